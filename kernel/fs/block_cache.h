/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_BLOCK_CACHE_H
#define KERNEL_FS_BLOCK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/block.h"
#include "lib/list.h"
#include "sync/wait_queue.h"

/*
 * The disk's blocks in memory, a page each, found by a hash. A block with a user stays. Other
 * blocks are evicted, least recently used first: when the cache reaches its limit, memory runs
 * short, or block_cache_give() asks. Some are created at the start and stay, so that files can be
 * used when no memory is free.
 *
 * Contents are guarded by the block's owner: a file's blocks and its inode by the inode's mutex,
 * the bitmaps by the allocator's. Only the journal writes blocks to the disk, so each change of
 * contents calls journal_write().
 */
struct cached_block {
    uint32_t number;
    void *data; /* BLOCK_BYTES */

    /* guarded by the cache's lock */
    uint32_t users;
    bool valid;   /* holds the block's contents */
    bool reading; /* the block will hold them when the transfer ends */
    bool lasting; /* its memory is never freed */
    struct cached_block *hash_next;
    struct list unused; /* while it has no users, or is empty */
    struct wait_queue readers;

    /* the journal's */
    bool in_transaction;
    struct list transaction; /* changed by the running transaction */
    struct list unsettled;   /* committed, and not yet written to its home */

    struct block_request request; /* of its one transfer in progress */
};

/* Returns 0 or -ENOMEM. */
int block_cache_init(void);

/* Finds the block with its contents, and adds a user; waits for the disk if necessary. Returns
 * 0, -EIO or -ENOMEM. */
int block_get(uint32_t number, struct cached_block **block);
/* Does the same for a caller that will set all contents: they are unspecified. Returns 0 or
 * -ENOMEM. */
int block_get_unread(uint32_t number, struct cached_block **block);
/* Adds a user to a block that the caller uses already. */
void block_share(struct cached_block *block);
void block_put(struct cached_block *block);
/* Begins to read the block, without waiting, if it is not in the cache. */
void block_prefetch(uint32_t number);

/* Returns how many blocks the cache may hold. */
size_t block_cache_bound(void);
/* Returns how many blocks the cache can rely on now, if memory is short. */
size_t block_cache_bound_now(void);
/* Returns the pages that it could free if no block had a user. */
size_t block_cache_spare_pages(void);
/* Frees the memory of up to that many blocks without users. Returns how many. */
size_t block_cache_give(size_t blocks);

#endif
