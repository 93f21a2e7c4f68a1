/* SPDX-License-Identifier: MIT */

#include "fs/file_blocks.h"

#include "abi/errors.h"
#include "fs/allocator.h"
#include "fs/file_system.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "process/process.h"

/* The most blocks that one operation frees. Tests make it small. */
static uint32_t freed_blocks_max = 1024;

/* Follows a pointer from the disk, which may be wrong. */
static int follow(uint32_t pointer, struct cached_block **block)
{
    *block = NULL;
    return is_data_block(pointer) ? block_get(pointer, block) : -EIO;
}

int inode_find_block(struct inode *inode, uint32_t file_block, uint32_t *number)
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
    int error = inode_find_block(inode, file_block, &number);
    *block = NULL;
    return error ? error : block_get(number, block);
}

/* Creates a block that was free, all zero. */
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

/* The path to a new block: the blocks with the pointers, and the blocks created for it. */
struct append {
    struct cached_block *holder; /* in use; the caller must put it */
    uint32_t *pointer;           /* in the holder */
    uint32_t made[3];
    uint32_t made_count;
};

/* Takes one step: to the block that the pointer refers to, created if it is the first needed
 * there. */
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

/* Frees the created blocks; pointers to them are meaningless, since disk->blocks stays. */
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

/* Finds the file's block and the tables that only it needs. */
static int find_chain(struct inode *inode, uint32_t file_block, uint32_t chain[3], uint32_t *length)
{
    struct block_path path = block_path_of(file_block);
    uint32_t pointer = *block_path_root(inode->disk, &path);

    *length = 0;
    for (uint32_t level = 0;; level++) {
        if (!is_data_block(pointer))
            return 0; /* a damaged disk: there is nothing to free */
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

int inode_free_last_block(struct operation *operation, struct inode *inode)
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

int inode_free_excess(struct operation *operation, struct inode *inode, uint32_t keep)
{
    uint32_t needed = blocks_of_bytes(inode->disk->size);

    for (uint32_t i = 0; i < freed_blocks_max && inode->disk->blocks > needed; i++) {
        if (operation->credits < keep + 4)
            break;
        int error = inode_free_last_block(operation, inode);
        if (error)
            return error;
        preemption_point();
    }
    return 0;
}
