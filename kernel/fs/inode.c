/* SPDX-License-Identifier: MIT */

#include "fs/inode.h"

#include "abi/errors.h"
#include "fs/allocator.h"
#include "fs/file_blocks.h"
#include "fs/file_system.h"
#include "fs/inode_cache.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "process/process.h"

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

/* Checks in the bitmap whether the inode is free. Returns 0, -EIO or -ENOMEM. */
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

/* On a damaged disk, a number that is in use stays marked, so that it is found only once. */
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
        kernel_assert(inode_free_last_block(operation, inode) == 0);
    inode->disk->type = INODE_FREE;
    inode->disk->links = 0;
    kernel_assert(free_inode_number(operation, inode->number) == 0);
    inode_unlock(inode);
    inode_put(inode);
}

/*
 * Frees the inode, whose blocks are all gone. Changes nothing on failure. Its number goes last: as
 * soon as it is free, another CPU may take it, and must find the inode free.
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
 * Takes a step of the reclaim that the mark requires: no blocks beyond the size, and no inode if it
 * has no links. unused: only the caller uses the inode.
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
    int error = inode_free_excess(operation, inode, 3);
    if (error)
        return error;
    *finished = disk->blocks == blocks_of_bytes(disk->size);
    if (!*finished)
        return 0;
    if (disk->links > 0)
        return reclaim_mark(operation, inode->number, false);
    return unused ? free_inode(operation, inode) : 0;
}

/* Takes all steps, each in a separate operation. */
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

/* Inodes that cannot be freed now stay marked on the disk, and are freed at the next mount. */
void inode_reclaim_doomed(void)
{
    struct inode *inode;

    if (!inode_any_doomed())
        return;
    while ((inode = inode_next_doomed())) {
        int error = reclaim(inode, true);
        if (error)
            print("file system: inode %u is not freed before the next mount: error %d\n",
                  (unsigned)inode->number, -error);
        inode_drop(inode, error == 0); /* its number may already be in use again, and doomed */
    }
}

/* If the inode is free already, only its mark is removed. */
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
            inode_drop(inode, false);
        } else if (error == -EIO) {
            error = clear_mark(number);
        }
        if (error)
            print("file system: inode %u cannot be reclaimed: error %d\n", (unsigned)number,
                  -error);
    }
}

void inode_unlinked(struct operation *operation, struct inode *inode)
{
    bool finished;
    if (inode_only_user(inode))
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
