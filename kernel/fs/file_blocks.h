/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_BLOCKS_H
#define KERNEL_FS_FILE_BLOCKS_H

/* The disk blocks of a file. All functions require the inode's mutex. */

#include "fs/inode.h"

/* Finds the disk's block of a file's block. Returns 0, -EIO or -ENOMEM. */
int inode_find_block(struct inode *inode, uint32_t file_block, uint32_t *number);
/* Finds the contents of the file's block; file_block < disk->blocks. Returns 0, -EIO or -ENOMEM. */
int inode_block(struct inode *inode, uint32_t file_block, struct cached_block **block);
/* Appends one block to the file, all zero. Changes nothing on failure. */
#define CREDITS_APPEND 7u /* block, two tables, three bitmaps, inode */
int inode_append(struct operation *operation, struct inode *inode, struct cached_block **block);
/* Frees the file's last block, and the tables that only it needed. At most three credits. */
int inode_free_last_block(struct operation *operation, struct inode *inode);
/* Frees blocks beyond the size, up to one operation's limit. `keep`: credits to leave. */
int inode_free_excess(struct operation *operation, struct inode *inode, uint32_t keep);

#endif
