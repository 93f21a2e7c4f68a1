/* SPDX-License-Identifier: MIT */

#include "fs/block_cache.h"

#include "abi/errors.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/object.h"
#include "memory/page.h"

enum {
    CACHE_SHARE = 8,      /* the cache takes at most this part of memory … */
    RESERVE_SHARE = 32,   /* … and does not grow while less than this part is free */
    LASTING_BLOCKS = 128, /* permanent: the file system works without free memory */
    SHRINK_STEP = 4,      /* blocks freed for each one read while memory is short */
};

static struct {
    struct spinlock lock;
    struct object_cache objects;
    struct cached_block **buckets;
    uint32_t bucket_mask;
    struct list unused; /* blocks without users, least recently used first */
    struct list empty;  /* permanent blocks without contents */
    size_t count;       /* of all blocks except empty permanent ones */
    size_t lasting;     /* of all blocks */
    size_t bound;
    uint64_t reserve; /* pages that must stay free */
} cache;

/* Allocates as many buckets as blocks, if memory has such a row of pages. Returns 0 or -ENOMEM. */
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

/* Returns a block that is in no list, or null if memory is short. */
static struct cached_block *make_block(void)
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
    return block;
}

/* Creates as many permanent blocks as memory allows. */
static void make_lasting_blocks(void)
{
    struct cached_block *block;
    while (cache.lasting < LASTING_BLOCKS && (block = make_block())) {
        block->lasting = true;
        list_append(&cache.empty, &block->unused);
        cache.lasting++;
    }
}

int block_cache_init(void)
{
    spinlock_init(&cache.lock, "block cache", LOCK_FILES);
    object_cache_init(&cache.objects, "cached block", sizeof(struct cached_block));
    list_init(&cache.unused);
    list_init(&cache.empty);
    cache.count = cache.lasting = 0;
    cache.bound = page_total() / CACHE_SHARE;
    if (cache.bound < LASTING_BLOCKS)
        cache.bound = LASTING_BLOCKS;
    cache.reserve = page_total() / RESERVE_SHARE;
    int error = make_buckets();
    if (!error)
        make_lasting_blocks();
    return error;
}

static bool short_of_memory(void)
{
    return page_free_count() < cache.reserve;
}

size_t block_cache_bound(void)
{
    return cache.bound;
}

size_t block_cache_bound_now(void)
{
    return short_of_memory() ? LASTING_BLOCKS : cache.bound;
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

/* Removes a block without users from the cache. */
static void forget(struct cached_block *block)
{
    kernel_assert(block->users == 0 && !block->reading);
    unhash(block);
    cache.count--;
    if (block->lasting) {
        block->valid = false;
        list_append(&cache.empty, &block->unused);
        return;
    }
    page_release(block->data);
    object_free(&cache.objects, block);
}

/* Frees that many least recently used blocks, if that many have no users. Returns the number
 * freed. */
static size_t shrink(size_t blocks)
{
    size_t given = 0;
    struct list *next;
    for (struct list *link = cache.unused.next; link != &cache.unused && given < blocks;
         link = next) {
        struct cached_block *block = container_of(link, struct cached_block, unused);
        next = link->next;
        if (block->lasting)
            continue;
        list_remove(link);
        forget(block);
        given++;
    }
    return given;
}

/* Returns an empty block, not hashed, or null if memory is short. */
static struct cached_block *allocate(void)
{
    struct cached_block *block;
    if (list_empty(&cache.empty)) {
        block = make_block();
    } else {
        block = container_of(cache.empty.next, struct cached_block, unused);
        list_remove(&block->unused);
    }
    if (block)
        cache.count++;
    return block;
}

/* Returns the least recently used block, not hashed, or null if all have users. */
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

/* Returns a block with a place in the cache and no contents, or null if memory is short. */
static struct cached_block *create(uint32_t number)
{
    bool may_grow = !short_of_memory();
    struct cached_block *block = NULL;

    if (!may_grow)
        shrink(SHRINK_STEP);
    if (cache.count < cache.bound && (may_grow || !list_empty(&cache.empty)))
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

/* Returns the block with one more user, created if necessary; null if memory is short. */
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

/* The caller holds the cache's lock. It is free during the transfer, which is a user of the
 * block. */
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

size_t block_cache_spare_pages(void)
{
    size_t blocks = __atomic_load_n(&cache.objects.used, __ATOMIC_RELAXED) - cache.lasting;
    return blocks + blocks * sizeof(struct cached_block) / PAGE_BYTES;
}

size_t block_cache_give(size_t blocks)
{
    spinlock_acquire(&cache.lock);
    size_t given = shrink(blocks);
    spinlock_release(&cache.lock);
    return given;
}
