/* SPDX-License-Identifier: MIT */

#include "fs/block_cache.h"

#include "abi/errors.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/object.h"
#include "memory/page.h"

enum {
    CACHE_SHARE = 8,    /* the cache takes at most this part of memory … */
    RESERVE_SHARE = 32, /* … and does not grow while less than this part is free */
    CACHE_BLOCKS_MIN = 128,
    SHRINK_STEP = 4, /* blocks given up for each one brought in while memory is short */
};

static struct {
    struct spinlock lock;
    struct object_cache objects;
    struct cached_block **buckets;
    uint32_t bucket_mask;
    struct list unused; /* blocks without users, least recently used first */
    size_t count;
    size_t bound;
    uint64_t reserve; /* pages that stay free */
} cache;

/* As many buckets as blocks, if memory has such a row of pages. 0 or -ENOMEM. */
static int make_buckets(void)
{
    size_t pages = 1;
    while (pages * PAGE_BYTES < cache.bound * sizeof(struct cached_block *))
        pages *= 2;
    while (!(cache.buckets = page_allocate_row(pages))) {
        if (pages == 1)
            return -ENOMEM;
        pages /= 2;
    }
    memset(cache.buckets, 0, pages * PAGE_BYTES);
    cache.bucket_mask = (uint32_t)(pages * PAGE_BYTES / sizeof(struct cached_block *)) - 1;
    return 0;
}

int block_cache_init(void)
{
    spinlock_init(&cache.lock, "block cache", LOCK_FILES);
    object_cache_init(&cache.objects, "cached block", sizeof(struct cached_block));
    list_init(&cache.unused);
    cache.count = 0;
    cache.bound = page_total() / CACHE_SHARE;
    if (cache.bound < CACHE_BLOCKS_MIN)
        cache.bound = CACHE_BLOCKS_MIN;
    cache.reserve = page_total() / RESERVE_SHARE;
    return make_buckets();
}

size_t block_cache_bound(void)
{
    return cache.bound;
}

static struct cached_block **bucket_of(uint32_t number)
{
    uint32_t hash = number * 2654435761u; /* multiplicative hashing: Knuth 1973 */
    return &cache.buckets[(hash ^ hash >> 16) & cache.bucket_mask];
}

static struct cached_block *find(uint32_t number)
{
    struct cached_block *block = *bucket_of(number);
    while (block && block->number != number)
        block = block->hash_next;
    return block;
}

static void unhash(struct cached_block *block)
{
    struct cached_block **link = bucket_of(block->number);
    while (*link != block)
        link = &(*link)->hash_next;
    *link = block->hash_next;
}

static void hash(struct cached_block *block)
{
    struct cached_block **bucket = bucket_of(block->number);
    block->hash_next = *bucket;
    *bucket = block;
}

/* Takes a block without users out of the cache. */
static void forget(struct cached_block *block)
{
    kernel_assert(block->users == 0 && !block->reading);
    unhash(block);
    page_release(block->data);
    object_free(&cache.objects, block);
    cache.count--;
}

/* Gives up that many blocks, the least recently used, as far as there are any without users. */
static void shrink(size_t blocks)
{
    for (size_t given = 0; given < blocks && !list_empty(&cache.unused); given++) {
        struct cached_block *oldest = container_of(cache.unused.next, struct cached_block, unused);
        list_remove(&oldest->unused);
        forget(oldest);
    }
}

/* A new block, not hashed; null: out of memory. */
static struct cached_block *allocate(void)
{
    struct cached_block *block = object_allocate(&cache.objects);
    if (!block)
        return NULL;
    block->data = page_allocate();
    if (!block->data) {
        object_free(&cache.objects, block);
        return NULL;
    }
    list_init(&block->unused);
    list_init(&block->transaction);
    list_init(&block->unsettled);
    wait_queue_init(&block->readers, "cached block");
    cache.count++;
    return block;
}

/* The least recently used block, not hashed; null: all have users. */
static struct cached_block *recycle(void)
{
    if (list_empty(&cache.unused))
        return NULL;
    struct cached_block *block = container_of(cache.unused.next, struct cached_block, unused);
    list_remove(&block->unused);
    unhash(block);
    block->valid = false;
    return block;
}

/* A block with a place in the cache and no contents; null: out of memory. */
static struct cached_block *create(uint32_t number)
{
    bool short_of_memory = page_free_count() < cache.reserve;
    struct cached_block *block = NULL;

    if (short_of_memory)
        shrink(SHRINK_STEP);
    if (cache.count < cache.bound && !short_of_memory)
        block = allocate();
    if (!block)
        block = recycle();
    if (!block)
        block = allocate(); /* beyond the bound: all others are in use */
    if (!block)
        return NULL;
    block->number = number;
    block->users = 1;
    hash(block);
    return block;
}

static void add_user(struct cached_block *block)
{
    if (block->users++ == 0)
        list_remove(&block->unused);
}

static void drop_user(struct cached_block *block)
{
    kernel_assert(block->users > 0);
    if (--block->users > 0)
        return;
    if (block->valid)
        list_append(&cache.unused, &block->unused);
    else
        forget(block);
}

/* The block with one user more, created if need be; null: out of memory. */
static struct cached_block *take(uint32_t number)
{
    kernel_assert(number < block_count());
    struct cached_block *block = find(number);
    if (!block)
        return create(number);
    add_user(block);
    return block;
}

static void read_done(struct block_request *request)
{
    struct cached_block *block = request->context;

    spinlock_acquire(&cache.lock);
    block->reading = false;
    block->valid = request->result == 0;
    wake_all(&block->readers);
    drop_user(block);
    spinlock_release(&cache.lock);
}

/* Called with the cache's lock held, which is free meanwhile. The transfer is a user of its own. */
static void start_read(struct cached_block *block)
{
    block->reading = true;
    block->users++;
    block->request = (struct block_request){
        .operation = BLOCK_READ,
        .block = block->number,
        .data = block->data,
        .done = read_done,
        .context = block,
    };
    spinlock_release(&cache.lock);
    block_submit(&block->request);
    spinlock_acquire(&cache.lock);
}

static void wait_for_read(struct cached_block *block)
{
    while (block->reading)
        wait_on_always(&block->readers, &cache.lock, BLOCK_DISK);
}

static int fill(struct cached_block *block)
{
    if (block->valid)
        return 0;
    if (!block->reading)
        start_read(block);
    wait_for_read(block);
    return block->valid ? 0 : -EIO;
}

int block_get(uint32_t number, struct cached_block **result)
{
    spinlock_acquire(&cache.lock);
    struct cached_block *block = take(number);
    int error = block ? fill(block) : -ENOMEM;
    if (block && error)
        drop_user(block);
    spinlock_release(&cache.lock);
    *result = error ? NULL : block;
    return error;
}

int block_get_unread(uint32_t number, struct cached_block **result)
{
    spinlock_acquire(&cache.lock);
    struct cached_block *block = take(number);
    if (block) {
        wait_for_read(block);
        block->valid = true;
    }
    spinlock_release(&cache.lock);
    *result = block;
    return block ? 0 : -ENOMEM;
}

void block_share(struct cached_block *block)
{
    spinlock_acquire(&cache.lock);
    kernel_assert(block->users > 0);
    block->users++;
    spinlock_release(&cache.lock);
}

void block_put(struct cached_block *block)
{
    spinlock_acquire(&cache.lock);
    drop_user(block);
    spinlock_release(&cache.lock);
}

void block_prefetch(uint32_t number)
{
    spinlock_acquire(&cache.lock);
    struct cached_block *block = find(number) ? NULL : take(number);
    if (block) {
        start_read(block);
        drop_user(block);
    }
    spinlock_release(&cache.lock);
}
