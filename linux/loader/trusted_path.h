/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRUSTED_PATH_H
#define LINUX_LOADER_TRUSTED_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Paths that no other user of this machine can bend: each folder on the way belongs to root, to the
 * user who runs this or to the user who called sudo, and others cannot write to it (or it is
 * sticky, as /tmp is); links are followed only if they are root's or ours. The way is walked folder
 * by folder, so that nothing can be swapped between the check and the use.
 * python/schedlab/base/files/trusted_path.py is the same for the monitor.
 */

#define TRUSTED_WHY_BYTES 1024

/*
 * Opens a file to be written anew, and makes it if it is not there. A regular file must be one of
 * the users named above, and have one name. Pipes and devices are opened as they are. A descriptor,
 * or a negative errno; -EPERM: `why`, of TRUSTED_WHY_BYTES, tells what is not trusted.
 */
int trusted_create(const char *path, int flags, mode_t mode, char *why);

/* Is all of the way to a folder to be trusted, or to where it can be made? If not, `why` tells.
 * What a killed server has left mounted there is no obstacle. */
bool trusted_folder(const char *path, char *why);

#endif
