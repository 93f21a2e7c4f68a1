/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_TABLE_H
#define KERNEL_FS_FILE_TABLE_H

#include "open_file.h"

struct file_table {
    struct open_file *files[FILES_PER_PROCESS]; /* by descriptor; null: not open */
    struct inode *directory;                    /* start of relative paths */
};

void file_tables_init(void);
/* Returns the lowest descriptor that is not in use, or -EMFILE. */
int file_table_free_slot(const struct file_table *table);
/* Returns null if the descriptor is not open. */
struct open_file *file_table_get(const struct file_table *table, int descriptor);

#endif
