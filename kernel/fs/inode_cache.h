/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_INODE_CACHE_H
#define KERNEL_FS_INODE_CACHE_H

/* Functions on the inodes in memory that only inode.c needs. All other files use inode.h. */

#include "fs/inode.h"

/* Returns the disk's block that contains the inode. */
uint32_t inode_home(uint32_t number);
/* Returns the inode in that block. */
struct disk_inode *inode_in(const struct cached_block *home, uint32_t number);

/* Does inode_put(), but leaves the inode to inode_reclaim_doomed() only if allowed. */
void inode_drop(struct inode *inode, bool may_doom);
bool inode_any_doomed(void);
/* Returns an inode without links or users, used by the caller from now, or null if there is
 * none. */
struct inode *inode_next_doomed(void);
/* Returns true if the caller is the inode's only user. */
bool inode_only_user(const struct inode *inode);

#endif
