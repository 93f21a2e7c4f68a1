/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_SYSTEM_H
#define KERNEL_FS_FILE_SYSTEM_H

#include "disk_format.h"

/* The superblock of the mounted file system; constant once mounted. */
extern struct superblock file_system;

/* Returns true if an inode may point to this block. */
static inline bool is_data_block(uint32_t block)
{
    return block >= file_system.data_start && block < file_system.block_count;
}

#endif
