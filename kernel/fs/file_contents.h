/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_CONTENTS_H
#define KERNEL_FS_FILE_CONTENTS_H

/* Reads and writes a file's contents. All functions require the inode's mutex. */

#include "fs/inode.h"
#include "memory/user_copy.h"

/* Returns the bytes read, less than n only at the end of the file; or an error. */
int64_t inode_read_to(struct inode *inode, struct buffer *destination, uint64_t offset, uint64_t n);
/*
 * Writes the part of n bytes that fits into one operation of
 * inode_write_credits(n). Returns its length, or an error with nothing written.
 * offset may be at most the size.
 */
int64_t inode_write_from(struct operation *operation, struct inode *inode, struct buffer *source,
                         uint64_t offset, uint64_t n);
uint32_t inode_write_credits(uint64_t n);

#endif
