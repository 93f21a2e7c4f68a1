/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_NAMESPACE_H
#define KERNEL_FS_NAMESPACE_H

#include "directory.h"

/*
 * Operations that change directories. Each is one journal operation, and
 * returns when it is committed: 0, or an error with nothing changed. Paths
 * begin at `start`.
 */

/* Creates a file, directory or device, and adds the caller as user. -EEXIST: the name exists. */
int namespace_create(struct inode *start, const char *path, uint16_t type, uint16_t major,
                     uint16_t minor, struct inode **inode);
/* Creates another name for a file or device. -EISDIR: a directory can have no other name. */
int namespace_link(struct inode *start, const char *old_path, const char *new_path);
/* Removes a name. -ENOTEMPTY: it names a directory that is not empty. */
int namespace_unlink(struct inode *start, const char *path);

#endif
