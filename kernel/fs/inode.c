/* SPDX-License-Identifier: MIT */

#include "fs/inode.h"

#include "abi/errors.h"
#include "fs/allocator.h"
#include "fs/file_system.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/object.h"
#include "process/process.h"

enum {
    INODE_BUCKETS = 1024,
    WRITE_BLOCKS = 64, /* that one operation writes at most */
    READ_AHEAD = 8,    /* blocks brought in together when one is missing */
};

/* Blocks that one operation frees at most. Tests make it small. */
static uint32_t freed_blocks_max = 1024;

static struct {
    struct spinlock lock;
    struct object_cache objects;
    struct inode *buckets[INODE_BUCKETS];
    struct list doomed; /* without links, and without users but this list */
} cache_of_inodes;

/* ---- inodes in memory ---- */

void inode_cache_init(void)
{
    spinlock_init(&cache_of_inodes.lock, "inode cache", LOCK_FILES);
    object_cache_init(&cache_of_inodes.objects, "inode", sizeof(struct inode));
    list_init(&cache_of_inodes.doomed);
    memset(cache_of_inodes.buckets, 0, sizeof(cache_of_inodes.buckets));
}

static struct inode **inode_bucket(uint32_t number)
{
    return &cache_of_inodes.buckets[number % INODE_BUCKETS];
}

/* Returns the inode with one user more, not read yet if it is new, or null if memory is short. */
static struct inode *take_inode(uint32_t number)
{
    struct inode **bucket = inode_bucket(number);
    struct inode *inode = *bucket;

    while (inode && inode->number != number)
        inode = inode->hash_next;
    if (!inode) {
        inode = object_allocate(&cache_of_inodes.objects);
        if (!inode)
            return NULL;
        inode->number = number;
        inode->hash_next = *bucket;
        list_init(&inode->doomed);
        mutex_init(&inode->mutex, "inode");
        *bucket = inode;
    }
    inode->users++;
    return inode;
}

static void unhash_inode(struct inode *inode)
{
    struct inode **link = inode_bucket(inode->number);
    while (*link != inode)
        link = &(*link)->hash_next;
    *link = inode->hash_next;
}

static uint32_t inode_home(uint32_t number)
{
    return file_system.inode_table_start + number / INODES_PER_BLOCK;
}

static struct disk_inode *inode_in(const struct cached_block *home, uint32_t number)
{
    return (struct disk_inode *)home->data + number % INODES_PER_BLOCK;
}

static int read_inode(struct inode *inode)
{
    struct cached_block *home;
    int error = block_get(inode_home(inode->number), &home);
    if (error)
        return error;
    const struct disk_inode *disk = inode_in(home, inode->number);
    if (!disk_inode_valid(disk) || disk->blocks > file_system.block_count) {
        block_put(home);
        return -EIO;
    }
    inode->home = home;
    __atomic_store_n(&inode->disk, inode_in(home, inode->number), __ATOMIC_RELEASE);
    return 0;
}

int inode_get(uint32_t number, struct inode **result)
{
    *result = NULL;
    if (number < ROOT_INODE || number >= file_system.inode_count)
        return -EIO;
    spinlock_acquire(&cache_of_inodes.lock);
    struct inode *inode = take_inode(number);
    spinlock_release(&cache_of_inodes.lock);
    if (!inode)
        return -ENOMEM;

    int error = 0;
    if (!__atomic_load_n(&inode->disk, __ATOMIC_ACQUIRE)) {
        inode_lock(inode);
        if (!inode->disk)
            error = read_inode(inode);
        inode_unlock(inode);
    }
    if (error)
        inode_put(inode);
    else
        *result = inode;
    return error;
}

struct inode *inode_share(struct inode *inode)
{
    spinlock_acquire(&cache_of_inodes.lock);
    kernel_assert(inode->users > 0);
    inode->users++;
    spinlock_release(&cache_of_inodes.lock);
    return inode;
}

/* Without links, but not free yet: its last user must see to that. */
static bool is_doomed(const struct inode *inode)
{
    return inode->disk && inode->disk->links == 0 && inode->disk->type != INODE_FREE &&
           !journal_failed();
}

static void drop_inode(struct inode *inode, bool may_doom)
{
    bool gone = false;

    spinlock_acquire(&cache_of_inodes.lock);
    kernel_assert(inode->users > 0);
    if (--inode->users == 0) {
        if (may_doom && is_doomed(inode)) {
            inode->users = 1; /* the list's */
            list_append(&cache_of_inodes.doomed, &inode->doomed);
        } else {
            unhash_inode(inode);
            gone = true;
        }
    }
    spinlock_release(&cache_of_inodes.lock);
    if (!gone)
        return;
    if (inode->home)
        block_put(inode->home);
    object_free(&cache_of_inodes.objects, inode);
}

void inode_put(struct inode *inode)
{
    drop_inode(inode, true);
}

/* ---- the blocks of a file ---- */

/* Follows a pointer from the disk, which may be wrong. */
static int follow(uint32_t pointer, struct cached_block **block)
{
    *block = NULL;
    return is_data_block(pointer) ? block_get(pointer, block) : -EIO;
}

/* The disk block of a file's block. 0, -EIO or -ENOMEM. */
static int find_block(struct inode *inode, uint32_t file_block, uint32_t *number)
{
    struct block_path path = block_path_of(file_block);
    uint32_t pointer = *block_path_root(inode->disk, &path);

    for (uint32_t level = 1; level <= path.depth; level++) {
        struct cached_block *table;
        int error = follow(pointer, &table);
        if (error)
            return error;
        pointer = ((uint32_t *)table->data)[path.index[level]];
        block_put(table);
    }
    *number = pointer;
    return is_data_block(pointer) ? 0 : -EIO;
}

int inode_block(struct inode *inode, uint32_t file_block, struct cached_block **block)
{
    uint32_t number;

    kernel_assert(file_block < inode->disk->blocks);
    int error = find_block(inode, file_block, &number);
    *block = NULL;
    return error ? error : block_get(number, block);
}

/* A block that was free, all zero. */
static int create_block(struct operation *operation, struct cached_block **block)
{
    uint32_t number;
    int error = allocate_block(operation, &number);
    if (error)
        return error;
    error = block_get_unread(number, block);
    if (error) {
        kernel_assert(free_block(operation, number) == 0);
        return error;
    }
    journal_write(operation, *block);
    memset((*block)->data, 0, BLOCK_BYTES);
    return 0;
}

/* The way to a new block: the blocks that hold the pointers, and those that were made for it. */
struct append {
    struct cached_block *holder; /* used, and the caller's to put */
    uint32_t *pointer;           /* in the holder */
    uint32_t made[3];
    uint32_t made_count;
};

/* One step: the block that the pointer leads to, made if it is the first to be needed there. */
static int append_step(struct operation *operation, struct append *append, bool make,
                       struct cached_block **block)
{
    if (!make)
        return follow(*append->pointer, block);
    int error = create_block(operation, block);
    if (error)
        return error;
    append->made[append->made_count++] = (*block)->number;
    journal_write(operation, append->holder);
    *append->pointer = (*block)->number;
    return 0;
}

/* Gives up the blocks made; pointers to them have no meaning, since disk->blocks stays. */
static void append_undo(struct operation *operation, const struct append *append)
{
    for (uint32_t i = 0; i < append->made_count; i++)
        kernel_assert(free_block(operation, append->made[i]) == 0);
}

int inode_append(struct operation *operation, struct inode *inode, struct cached_block **result)
{
    if (inode->disk->blocks >= FILE_BLOCKS_MAX)
        return -EFBIG;
    struct block_path path = block_path_of(inode->disk->blocks);
    struct append append = {.holder = inode->home, .pointer = block_path_root(inode->disk, &path)};
    int error = 0;

    journal_write(operation, inode->home);
    block_share(inode->home);
    for (uint32_t level = 0; level <= path.depth && !error; level++) {
        struct cached_block *next;
        error = append_step(operation, &append, block_path_first_at(&path, level), &next);
        if (error)
            break;
        block_put(append.holder);
        append.holder = next;
        if (level < path.depth)
            append.pointer = (uint32_t *)next->data + path.index[level + 1];
    }
    if (error) {
        append_undo(operation, &append);
        block_put(append.holder);
        return error;
    }
    inode->disk->blocks++;
    *result = append.holder;
    return 0;
}

/* The file's block and the tables that it alone needs. */
static int find_chain(struct inode *inode, uint32_t file_block, uint32_t chain[3], uint32_t *length)
{
    struct block_path path = block_path_of(file_block);
    uint32_t pointer = *block_path_root(inode->disk, &path);

    *length = 0;
    for (uint32_t level = 0;; level++) {
        if (!is_data_block(pointer))
            return 0; /* a damaged disk: there is nothing to be freed */
        if (block_path_first_at(&path, level))
            chain[(*length)++] = pointer;
        if (level == path.depth)
            return 0;
        struct cached_block *table;
        int error = block_get(pointer, &table);
        if (error)
            return error;
        pointer = ((uint32_t *)table->data)[path.index[level + 1]];
        block_put(table);
    }
}

/* Frees the file's last block, and the tables that it alone needed. At most three credits. */
static int free_last_block(struct operation *operation, struct inode *inode)
{
    uint32_t chain[3];
    uint32_t length;
    int error = find_chain(inode, inode->disk->blocks - 1, chain, &length);

    for (uint32_t i = 0; i < length && !error; i++)
        error = free_block(operation, chain[i]);
    if (!error) {
        journal_write(operation, inode->home);
        inode->disk->blocks--;
    }
    return error;
}

/* Frees blocks beyond the size as far as one operation may. `keep`: credits to leave. */
static int free_excess(struct operation *operation, struct inode *inode, uint32_t keep)
{
    uint32_t needed = blocks_of_bytes(inode->disk->size);

    for (uint32_t i = 0; i < freed_blocks_max && inode->disk->blocks > needed; i++) {
        if (operation->credits < keep + 4)
            break;
        int error = free_last_block(operation, inode);
        if (error)
            return error;
        preemption_point();
    }
    return 0;
}

/* ---- making and freeing inodes ---- */

/* Writes a new inode where the disk has a free one. */
static int fill_inode(struct operation *operation, uint32_t number, uint16_t type,
                      struct inode **result)
{
    struct cached_block *home;
    int error = block_get(inode_home(number), &home);
    if (error)
        return error;
    struct disk_inode *disk = inode_in(home, number);
    journal_write(operation, home);
    *disk = (struct disk_inode){.type = type, .links = 1};
    error = inode_get(number, result);
    if (error)
        disk->type = INODE_FREE;
    block_put(home);
    return error;
}

/* Checks in the bitmap whether the inode is free. 0, -EIO or -ENOMEM. */
static int check_free(uint32_t number)
{
    struct cached_block *home;
    int error = block_get(inode_home(number), &home);
    if (error)
        return error;
    error = inode_in(home, number)->type == INODE_FREE ? 0 : -EIO;
    block_put(home);
    return error;
}

/* On a damaged disk, a number that is in use stays marked, so that it is met only once. */
int inode_create(struct operation *operation, uint16_t type, struct inode **result)
{
    uint32_t number;
    int error = allocate_inode_number(operation, &number);
    if (error)
        return error;
    error = check_free(number);
    if (error == -EIO)
        return error;
    if (!error)
        error = fill_inode(operation, number, type, result);
    if (error)
        kernel_assert(free_inode_number(operation, number) == 0);
    else
        inode_lock(*result);
    return error;
}

void inode_uncreate(struct operation *operation, struct inode *inode)
{
    if (inode->disk->blocks > 0)
        kernel_assert(free_last_block(operation, inode) == 0);
    inode->disk->type = INODE_FREE;
    inode->disk->links = 0;
    kernel_assert(free_inode_number(operation, inode->number) == 0);
    inode_unlock(inode);
    inode_put(inode);
}

/*
 * The inode, whose blocks are all gone, is free. Nothing has changed if it fails. Its number goes
 * last: as soon as that is free, another CPU may take it, and must find the inode free.
 */
static int free_inode(struct operation *operation, struct inode *inode)
{
    struct disk_inode before = *inode->disk;
    int error = reclaim_mark(operation, inode->number, false);
    if (error)
        return error;
    journal_write(operation, inode->home);
    *inode->disk = (struct disk_inode){.type = INODE_FREE};
    error = free_inode_number(operation, inode->number);
    if (error) {
        *inode->disk = before;
        kernel_assert(reclaim_mark(operation, inode->number, true) == 0);
    }
    return error;
}

/*
 * A step towards what the mark asks for: no blocks beyond the size, and no inode
 * if it has no links. unused: only the caller uses the inode.
 */
static int reclaim_step(struct operation *operation, struct inode *inode, bool unused,
                        bool *finished)
{
    struct disk_inode *disk = inode->disk;

    *finished = true;
    if (disk->type == INODE_FREE)
        return 0;
    journal_write(operation, inode->home);
    if (disk->links == 0 && unused)
        disk->size = 0;
    int error = free_excess(operation, inode, 3);
    if (error)
        return error;
    *finished = disk->blocks == blocks_of_bytes(disk->size);
    if (!*finished)
        return 0;
    if (disk->links > 0)
        return reclaim_mark(operation, inode->number, false);
    return unused ? free_inode(operation, inode) : 0;
}

/* Takes all steps, each in an operation of its own. */
static int reclaim(struct inode *inode, bool unused)
{
    bool finished = false;
    int error = 0;

    while (!finished && !error) {
        struct operation operation;
        error = journal_begin(&operation, CREDITS_RECLAIM);
        if (error)
            return error;
        inode_lock(inode);
        error = reclaim_step(&operation, inode, unused, &finished);
        inode_unlock(inode);
        error = journal_end_with(&operation, error);
    }
    return error;
}

static struct inode *next_doomed(void)
{
    struct inode *inode = NULL;

    spinlock_acquire(&cache_of_inodes.lock);
    if (!list_empty(&cache_of_inodes.doomed)) {
        inode = container_of(cache_of_inodes.doomed.next, struct inode, doomed);
        list_remove(&inode->doomed);
    }
    spinlock_release(&cache_of_inodes.lock);
    return inode;
}

/* What cannot be freed now stays marked on the disk, and is freed at the next mount. */
void inode_reclaim_doomed(void)
{
    struct inode *inode;

    if (__atomic_load_n(&cache_of_inodes.doomed.next, __ATOMIC_RELAXED) == &cache_of_inodes.doomed)
        return;
    while ((inode = next_doomed())) {
        int error = reclaim(inode, true);
        if (error)
            print("file system: inode %u is not freed before the next mount: error %d\n",
                  (unsigned)inode->number, -error);
        drop_inode(inode, error == 0); /* its number may already be in use again, and doomed */
    }
}

/* A mark on an inode that is free already is only taken away. */
static int clear_mark(uint32_t number)
{
    struct operation operation;
    int error = journal_begin(&operation, 1);
    if (error)
        return error;
    error = reclaim_mark(&operation, number, false);
    return journal_end_with(&operation, error);
}

int inode_reclaim_marked(void)
{
    uint32_t number = ROOT_INODE;

    for (;; number++) {
        struct inode *inode;
        int error = reclaim_next(number, &number);
        if (error || number >= file_system.inode_count)
            return error;
        error = inode_get(number, &inode);
        if (!error) {
            error = reclaim(inode, true);
            drop_inode(inode, false);
        } else if (error == -EIO) {
            error = clear_mark(number);
        }
        if (error)
            print("file system: inode %u cannot be reclaimed: error %d\n", (unsigned)number,
                  -error);
    }
}

static bool only_user(const struct inode *inode)
{
    spinlock_acquire(&cache_of_inodes.lock);
    bool only = inode->users == 1;
    spinlock_release(&cache_of_inodes.lock);
    return only;
}

void inode_unlinked(struct operation *operation, struct inode *inode)
{
    bool finished;
    if (only_user(inode))
        reclaim_step(operation, inode, true,
                     &finished); /* if it fails, its last user tries again */
}

int inode_truncate(struct inode *inode)
{
    struct operation operation;
    bool finished = true;
    int error = journal_begin(&operation, CREDITS_RECLAIM);
    if (error)
        return error;

    inode_lock(inode);
    if (inode->disk->type == FILE_REGULAR && inode->disk->blocks > 0) {
        error = reclaim_mark(&operation, inode->number, true);
        if (!error) {
            journal_write(&operation, inode->home);
            inode->disk->size = 0;
            error = reclaim_step(&operation, inode, false, &finished);
        }
    }
    inode_unlock(inode);
    error = journal_end_with(&operation, error);
    return error || finished ? error : reclaim(inode, false);
}

/* ---- reading and writing ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes from here to the end of the block, but no more than n. */
static uint64_t within_block(uint64_t offset, uint64_t n)
{
    return smaller(BLOCK_BYTES - offset % BLOCK_BYTES, n);
}

/* Files are read from front to back: the blocks that are asked for next come with this one. */
static void read_ahead(struct inode *inode, uint32_t from, uint32_t end)
{
    uint32_t number;

    for (uint32_t i = from; i < end; i++) {
        if (find_block(inode, i, &number) == 0)
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

/* Blocks that one operation writes at most: each may need its bitmap's block too. */
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
 * The block to be written at `offset`. During a truncation of several operations
 * there may still be one from before: what it holds lies beyond the size.
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
            kernel_assert(free_last_block(operation, inode) == 0);
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
