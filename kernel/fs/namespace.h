/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_NAMESPACE_H
#define KERNEL_FS_NAMESPACE_H

#include "directory.h"

/*
 * What changes directories. Each is one operation, and returns when it is
 * committed: 0, or an error with nothing changed. Paths begin at `start`.
 */

/* A new file, directory or device, with one user: the caller. -EEXIST: there is one. */
int namespace_create(struct inode *start, const char *path, uint16_t type, uint16_t major,
                     uint16_t minor, struct inode **inode);
/* Another name for a file or device. -EISDIR: not of a directory. */
int namespace_link(struct inode *start, const char *old_path, const char *new_path);
/* Takes away a name; -ENOTEMPTY: of a directory that holds something. */
int namespace_unlink(struct inode *start, const char *path);

#endif
