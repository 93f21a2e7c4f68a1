/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRUSTED_PATH_H
#define LINUX_LOADER_TRUSTED_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Paths that no other user of this machine can redirect. Each directory on the path belongs to
 * root, to the current user, or to the user who called sudo. Others cannot write to it (or it is
 * sticky, as /tmp is). Links are followed only if root or the current user owns them. The path is
 * walked directory by directory, so that nothing can be swapped between the check and the use.
 * python/schedlab/base/files/trusted_path.py is the same for the monitor.
 */

#define TRUSTED_WHY_BYTES 1024

/*
 * Opens a file for rewriting, and creates it if necessary. A regular file must belong to one of the
 * users named above, and have one name. Pipes and devices are opened as they are. Returns a
 * descriptor, or a negative errno. After -EPERM, `why`, of TRUSTED_WHY_BYTES, names the untrusted
 * part.
 */
int trusted_create(const char *path, int flags, mode_t mode, char *why);

/* Returns true if the whole path to a directory is trusted, or the part that exists. If not,
 * `why` gives the reason. A mount that a killed server has left there is no obstacle. */
bool trusted_folder(const char *path, char *why);

#endif
