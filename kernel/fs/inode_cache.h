/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_INODE_CACHE_H
#define KERNEL_FS_INODE_CACHE_H

/* What inode.c alone needs of the inodes in memory. All other files use inode.h. */

#include "fs/inode.h"

/* Returns the block of the disk in which the inode lies. */
uint32_t inode_home(uint32_t number);
/* Returns the inode in that block. */
struct disk_inode *inode_in(const struct cached_block *home, uint32_t number);

/* inode_put(), but the inode is left to inode_reclaim_doomed() only if it may be. */
void inode_drop(struct inode *inode, bool may_doom);
bool inode_any_doomed(void);
/* Returns an inode without links or users, of which the caller becomes the user, or null if none is
 * left. */
struct inode *inode_next_doomed(void);
/* Is the caller the inode's only user? */
bool inode_only_user(const struct inode *inode);

#endif
