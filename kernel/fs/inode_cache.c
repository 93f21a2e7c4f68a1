/* SPDX-License-Identifier: MIT */

#include "fs/inode_cache.h"

#include "abi/errors.h"
#include "fs/file_system.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/object.h"

#define INODE_BUCKETS 1024

static struct {
    struct spinlock lock;
    struct object_cache objects;
    struct inode *buckets[INODE_BUCKETS];
    struct list doomed; /* without links, and used only by this list */
} cache_of_inodes;

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

uint32_t inode_home(uint32_t number)
{
    return file_system.inode_table_start + number / INODES_PER_BLOCK;
}

struct disk_inode *inode_in(const struct cached_block *home, uint32_t number)
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

/* Without links, but not free yet: its last user must free it. */
static bool is_doomed(const struct inode *inode)
{
    return inode->disk && inode->disk->links == 0 && inode->disk->type != INODE_FREE &&
           !journal_failed();
}

void inode_drop(struct inode *inode, bool may_doom)
{
    bool is_unused = false;

    spinlock_acquire(&cache_of_inodes.lock);
    kernel_assert(inode->users > 0);
    if (--inode->users == 0) {
        if (may_doom && is_doomed(inode)) {
            inode->users = 1; /* the list's */
            list_append(&cache_of_inodes.doomed, &inode->doomed);
        } else {
            unhash_inode(inode);
            is_unused = true;
        }
    }
    spinlock_release(&cache_of_inodes.lock);
    if (!is_unused)
        return;
    if (inode->home)
        block_put(inode->home);
    object_free(&cache_of_inodes.objects, inode);
}

void inode_put(struct inode *inode)
{
    inode_drop(inode, true);
}

bool inode_any_doomed(void)
{
    return __atomic_load_n(&cache_of_inodes.doomed.next, __ATOMIC_RELAXED) !=
           &cache_of_inodes.doomed;
}

struct inode *inode_next_doomed(void)
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

bool inode_only_user(const struct inode *inode)
{
    spinlock_acquire(&cache_of_inodes.lock);
    bool only = inode->users == 1;
    spinlock_release(&cache_of_inodes.lock);
    return only;
}
