/* SPDX-License-Identifier: MIT */

#include "fs/file_contents.h"

#include "abi/errors.h"
#include "fs/file_blocks.h"
#include "fs/file_system.h"
#include "lib/panic.h"
#include "process/process.h"

enum {
    WRITE_BLOCKS = 64, /* the most that one operation writes */
    READ_AHEAD = 8,    /* blocks read together when one is missing */
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes from here to the end of the block, but at most n. */
static uint64_t within_block(uint64_t offset, uint64_t n)
{
    return smaller(BLOCK_BYTES - offset % BLOCK_BYTES, n);
}

/* Files are usually read sequentially: reads the following blocks together with this one. */
static void read_ahead(struct inode *inode, uint32_t from, uint32_t end)
{
    uint32_t number;

    for (uint32_t i = from; i < end; i++) {
        if (inode_find_block(inode, i, &number) == 0)
            block_prefetch(number);
    }
}

int64_t inode_read_to(struct inode *inode, struct buffer *destination, uint64_t offset, uint64_t n)
{
    uint64_t size = inode->disk->size;
    uint64_t done = 0;

    if (offset >= size)
        return 0;
    n = smaller(n, size - offset);
    uint32_t end = blocks_of_bytes(offset + n);
    while (done < n) {
        uint32_t file_block = (uint32_t)((offset + done) / BLOCK_BYTES);
        uint64_t bytes = within_block(offset + done, n - done);
        struct cached_block *block;

        if (done % (READ_AHEAD * BLOCK_BYTES) < BLOCK_BYTES && file_block + 1 < end)
            read_ahead(inode, file_block, (uint32_t)smaller(end, file_block + READ_AHEAD));
        int error = inode_block(inode, file_block, &block);
        if (error)
            return error;
        error = buffer_put(destination, (char *)block->data + (offset + done) % BLOCK_BYTES, bytes);
        block_put(block);
        if (error)
            return error;
        done += bytes;
        preemption_point();
    }
    return (int64_t)done;
}

/* Returns the most blocks that one operation writes: each may need its bitmap's block too. */
static uint32_t write_blocks_max(void)
{
    uint32_t most = (journal_credits_max() - CREDITS_APPEND) / 2;
    return most < WRITE_BLOCKS ? most : WRITE_BLOCKS;
}

uint32_t inode_write_credits(uint64_t n)
{
    uint32_t blocks = (uint32_t)smaller(n / BLOCK_BYTES + 2, write_blocks_max());
    uint32_t maps = (uint32_t)smaller(blocks, file_system.block_map_blocks);
    return CREDITS_APPEND + blocks + maps;
}

/*
 * Returns the block to be written at `offset`. During a truncation of several operations an old
 * block may still exist there: its contents lie beyond the size.
 */
static int block_to_write(struct operation *operation, struct inode *inode, uint64_t offset,
                          struct cached_block **block, bool *appended)
{
    uint32_t file_block = (uint32_t)(offset / BLOCK_BYTES);

    *appended = file_block == inode->disk->blocks;
    if (*appended)
        return inode_append(operation, inode, block);
    int error = inode_block(inode, file_block, block);
    if (!error)
        journal_write(operation, *block);
    return error;
}

static int64_t write_in_block(struct operation *operation, struct inode *inode,
                              struct buffer *source, uint64_t offset, uint64_t n)
{
    struct cached_block *block;
    bool appended;
    uint64_t bytes = within_block(offset, n);
    int error = block_to_write(operation, inode, offset, &block, &appended);
    if (error)
        return error;

    error = buffer_take(source, (char *)block->data + offset % BLOCK_BYTES, bytes);
    block_put(block);
    if (error) {
        if (appended)
            kernel_assert(inode_free_last_block(operation, inode) == 0);
        return error;
    }
    if (offset + bytes > inode->disk->size) {
        journal_write(operation, inode->home);
        inode->disk->size = offset + bytes;
    }
    return (int64_t)bytes;
}

int64_t inode_write_from(struct operation *operation, struct inode *inode, struct buffer *source,
                         uint64_t offset, uint64_t n)
{
    uint64_t done = 0;

    if (inode->disk->type != FILE_REGULAR)
        return -EIO;
    if (offset > inode->disk->size)
        return -EINVAL;
    if (n > FILE_BYTES_MAX - offset)
        return -EFBIG;
    n = smaller(n, (uint64_t)write_blocks_max() * BLOCK_BYTES - offset % BLOCK_BYTES);
    while (done < n) {
        int64_t bytes = write_in_block(operation, inode, source, offset + done, n - done);
        if (bytes < 0)
            return done > 0 ? (int64_t)done : bytes;
        done += (uint64_t)bytes;
        preemption_point();
    }
    return (int64_t)done;
}
