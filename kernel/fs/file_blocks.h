/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_BLOCKS_H
#define KERNEL_FS_FILE_BLOCKS_H

/* Which blocks of the disk a file has. All functions want the inode's mutex held. */

#include "fs/inode.h"

/* Finds the disk's block of a file's block. Returns 0, -EIO or -ENOMEM. */
int inode_find_block(struct inode *inode, uint32_t file_block, uint32_t *number);
/* Finds the contents of the file's block; file_block < disk->blocks. Returns 0, -EIO or -ENOMEM. */
int inode_block(struct inode *inode, uint32_t file_block, struct cached_block **block);
/* One more block at the end of the file, all zero. Nothing has changed if it fails. */
#define CREDITS_APPEND 7u /* block, two tables, three bitmaps, inode */
int inode_append(struct operation *operation, struct inode *inode, struct cached_block **block);
/* Frees the file's last block, and the tables that it alone needed. At most three credits. */
int inode_free_last_block(struct operation *operation, struct inode *inode);
/* Frees blocks beyond the size as far as one operation may. `keep`: credits to leave. */
int inode_free_excess(struct operation *operation, struct inode *inode, uint32_t keep);

#endif
