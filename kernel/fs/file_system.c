/* SPDX-License-Identifier: MIT */

#include "fs/file_system.h"

#include "abi/errors.h"
#include "fs/allocator.h"
#include "fs/directory.h"
#include "fs/file_table.h"
#include "fs/inode.h"
#include "fs/journal.h"
#include "fs/pipe.h"
#include "lib/print.h"

struct superblock file_system;

static int read_superblock(void)
{
    struct cached_block *block;

    if (block_count() == 0)
        return -ENODEV;
    int error = block_get(0, &block);
    if (error)
        return error;
    file_system = *(const struct superblock *)block->data;
    block_put(block);
    if (superblock_valid(&file_system, block_count()))
        return 0;
    print("file system: the disk holds none that fits it; make one with mkfs\n");
    return -EIO;
}

static int open_root(void)
{
    int error = inode_get(ROOT_INODE, &root_directory);
    if (error)
        return error;
    if (root_directory->disk->type == FILE_DIRECTORY && root_directory->disk->links > 0)
        return 0;
    print("file system: the root is not a directory\n");
    return -EIO;
}

int file_system_init(void)
{
    inode_cache_init();
    open_files_init();
    file_tables_init();
    pipe_init();

    int error = block_cache_init();
    if (!error)
        error = read_superblock();
    if (!error)
        error = journal_open(&file_system);
    if (error)
        return error;
    allocator_init();
    error = open_root();
    return error ? error : inode_reclaim_marked();
}
