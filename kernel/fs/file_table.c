/* SPDX-License-Identifier: MIT */

#include "fs/file_table.h"

#include "abi/errors.h"
#include "memory/object.h"
#include "process/process.h"

static struct object_cache file_tables;

void file_tables_init(void)
{
    object_cache_init(&file_tables, "file table", sizeof(struct file_table));
}

struct file_table *file_table_create(void)
{
    struct file_table *table = object_allocate(&file_tables);
    if (table)
        table->directory = inode_share(root_directory);
    return table;
}

struct file_table *file_table_copy(struct file_table *table)
{
    struct file_table *copy = object_allocate(&file_tables);
    if (!copy)
        return NULL;
    copy->directory = inode_share(table->directory);
    for (int i = 0; i < FILES_PER_PROCESS; i++) {
        if (table->files[i])
            copy->files[i] = open_file_share(table->files[i]);
    }
    return copy;
}

void file_table_destroy(struct file_table *table)
{
    if (!table)
        return;
    for (int i = 0; i < FILES_PER_PROCESS; i++) {
        if (table->files[i])
            open_file_put(table->files[i]);
    }
    inode_put(table->directory);
    inode_reclaim_doomed();
    object_free(&file_tables, table);
}

int file_table_free_slot(const struct file_table *table)
{
    for (int i = 0; i < FILES_PER_PROCESS; i++) {
        if (!table->files[i])
            return i;
    }
    return -EMFILE;
}

struct open_file *file_table_get(const struct file_table *table, int descriptor)
{
    if (descriptor < 0 || descriptor >= FILES_PER_PROCESS)
        return NULL;
    return table->files[descriptor];
}
