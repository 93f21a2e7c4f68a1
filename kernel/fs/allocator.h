/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_ALLOCATOR_H
#define KERNEL_FS_ALLOCATOR_H

#include "journal.h"

/*
 * The blocks and inodes in use: three bitmaps on the disk, changed as part of an operation. Each
 * function changes one block of a bitmap, or none if it fails. A bit that the running transaction
 * has set can always be cleared again.
 */
void allocator_init(void);

/* Allocates the lowest free block. Returns 0, -ENOSPC, -EIO or -ENOMEM. */
int allocate_block(struct operation *operation, uint32_t *block);
/* Returns 0, -EIO or -ENOMEM. */
int free_block(struct operation *operation, uint32_t block);

/* The same for inode numbers. */
int allocate_inode_number(struct operation *operation, uint32_t *number);
int free_inode_number(struct operation *operation, uint32_t number);

/* Records whether the inode has blocks to free; a mount finishes work that a crash interrupted. */
int reclaim_mark(struct operation *operation, uint32_t number, bool marked);
/* Returns the first marked inode from `number`, or the inode count if there is none. */
int reclaim_next(uint32_t number, uint32_t *match);

#endif
