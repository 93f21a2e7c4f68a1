/* SPDX-License-Identifier: MIT */

#include "fs/allocator.h"

#include "abi/errors.h"
#include "fs/file_system.h"
#include "sync/mutex.h"

enum { WORD_BITS = 64 };

struct bitmap {
    uint32_t start; /* its first block on the disk */
    uint32_t first; /* bits below are never allocated */
    uint32_t bits;
    uint32_t lowest; /* none below is clear; guarded by the allocator's mutex */
};

static struct mutex allocator;
static struct bitmap block_map;
static struct bitmap inode_map;
static struct bitmap reclaim_map;

static struct bitmap bitmap_make(uint32_t start, uint32_t first, uint32_t bits)
{
    return (struct bitmap){.start = start, .first = first, .bits = bits, .lowest = first};
}

void allocator_init(void)
{
    mutex_init(&allocator, "allocator");
    block_map =
        bitmap_make(file_system.block_map_start, file_system.data_start, file_system.block_count);
    inode_map = bitmap_make(file_system.inode_map_start, ROOT_INODE + 1, file_system.inode_count);
    reclaim_map = bitmap_make(file_system.reclaim_map_start, ROOT_INODE, file_system.inode_count);
}

/* Returns the first bit from `from` up to `end` with the value `requested`; `end`: none. */
static uint32_t find_bit(const uint64_t *words, uint32_t from, uint32_t end, bool requested)
{
    while (from < end) {
        uint64_t candidates = requested ? words[from / WORD_BITS] : ~words[from / WORD_BITS];
        candidates &= ~0ull << from % WORD_BITS;
        if (candidates) {
            uint32_t bit = from - from % WORD_BITS + (uint32_t)__builtin_ctzll(candidates);
            return bit < end ? bit : end;
        }
        from += WORD_BITS - from % WORD_BITS;
    }
    return end;
}

/* Does the same over the whole bitmap, and also returns the bit's block. bits: there is none. */
static int bitmap_find(const struct bitmap *map, uint32_t from, bool requested, uint32_t *bit,
                       struct cached_block **holder)
{
    *holder = NULL;
    while (from < map->bits) {
        uint32_t base = from - from % BITS_PER_BLOCK;
        uint32_t end = map->bits - base < BITS_PER_BLOCK ? map->bits - base : BITS_PER_BLOCK;
        int error = block_get(map->start + base / BITS_PER_BLOCK, holder);
        if (error)
            return error;
        uint32_t match = find_bit((*holder)->data, from - base, end, requested);
        if (match < end) {
            *bit = base + match;
            return 0;
        }
        block_put(*holder);
        *holder = NULL;
        from = base + BITS_PER_BLOCK;
    }
    *bit = map->bits;
    return 0;
}

static void set_bit(struct operation *operation, struct cached_block *holder, uint32_t bit,
                    bool value)
{
    uint64_t *word = (uint64_t *)holder->data + bit % BITS_PER_BLOCK / WORD_BITS;
    uint64_t mask = 1ull << bit % WORD_BITS;

    journal_write(operation, holder);
    *word = value ? *word | mask : *word & ~mask;
}

/* Takes the lowest clear bit. */
static int bitmap_allocate(struct operation *operation, struct bitmap *map, uint32_t *bit)
{
    struct cached_block *holder;

    mutex_acquire(&allocator);
    int error = bitmap_find(map, map->lowest, false, bit, &holder);
    if (!error) {
        map->lowest = *bit < map->bits ? *bit + 1 : map->bits;
        error = holder ? 0 : -ENOSPC;
    }
    if (holder) {
        set_bit(operation, holder, *bit, true);
        block_put(holder);
    }
    mutex_release(&allocator);
    return error;
}

static int bitmap_change(struct operation *operation, struct bitmap *map, uint32_t bit, bool value)
{
    struct cached_block *holder;

    if (bit < map->first || bit >= map->bits)
        return -EIO;
    mutex_acquire(&allocator);
    int error = block_get(map->start + bit / BITS_PER_BLOCK, &holder);
    if (!error) {
        set_bit(operation, holder, bit, value);
        block_put(holder);
        if (!value && bit < map->lowest)
            map->lowest = bit;
    }
    mutex_release(&allocator);
    return error;
}

int allocate_block(struct operation *operation, uint32_t *block)
{
    return bitmap_allocate(operation, &block_map, block);
}

int free_block(struct operation *operation, uint32_t block)
{
    return bitmap_change(operation, &block_map, block, false);
}

int allocate_inode_number(struct operation *operation, uint32_t *number)
{
    return bitmap_allocate(operation, &inode_map, number);
}

int free_inode_number(struct operation *operation, uint32_t number)
{
    return bitmap_change(operation, &inode_map, number, false);
}

int reclaim_mark(struct operation *operation, uint32_t number, bool marked)
{
    return bitmap_change(operation, &reclaim_map, number, marked);
}

int reclaim_next(uint32_t number, uint32_t *match)
{
    struct cached_block *holder;
    int error = bitmap_find(&reclaim_map, number, true, match, &holder);
    if (holder)
        block_put(holder);
    return error;
}
