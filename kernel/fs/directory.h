/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_DIRECTORY_H
#define KERNEL_FS_DIRECTORY_H

#include "fs/file_blocks.h"

/* A name as in directory entries: a longer one is truncated, a shorter one padded with zeros. */
struct file_name {
    char text[DIRECTORY_NAME_BYTES];
};

struct file_name file_name_make(const char *text, size_t length);
/* "." or "..": every directory always has them. */
bool file_name_is_dots(const struct file_name *name);

/*
 * All require the directory's mutex. They return -ENOTDIR for an inode that is not a directory,
 * -ENOENT for a removed directory, -EIO for an invalid one.
 */

/* Finds the inode number of that name. Returns 0, -ENOENT … */
int directory_find(struct inode *directory, const struct file_name *name, uint32_t *number);
/* Blocks that directory_add() may change. */
#define CREDITS_ADD (CREDITS_APPEND + 1)
/* Adds an entry. Returns 0, -EEXIST, -ENOSPC … */
int directory_add(struct operation *operation, struct inode *directory,
                  const struct file_name *name, uint32_t number);
/* Removes the entry, which must name this inode. Returns 0, -ENOENT … One credit. */
int directory_remove(struct operation *operation, struct inode *directory,
                     const struct file_name *name, uint32_t number);
/* Returns 0, or -ENOTEMPTY: it contains more than "." and "..". */
int directory_check_empty(struct inode *directory);

/*
 * Paths start at the root if they begin with '/', else at `start`. No mutex may be held. The empty
 * path names nothing: -ENOENT.
 */
int path_find(struct inode *start, const char *path, struct inode **inode);
/* Finds the directory of the path's last name, and that name. -ENOENT: the path has no name. */
int path_find_parent(struct inode *start, const char *path, struct inode **parent,
                     struct file_name *name);

/* The root directory; null until the disk is mounted. */
extern struct inode *root_directory;

#endif
