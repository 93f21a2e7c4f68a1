/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_FILE_H
#define KERNEL_FS_FILE_H

#include <stdint.h>

#include "memory/user_copy.h"

/*
 * A process's data about files: its descriptors and its working directory. Only its own process
 * uses it, so it needs no lock; the objects that it points to have locks.
 */
struct file_table;

/* At boot, in the first process, since it waits for the disk: mounts the root. Returns 0 or an
 * error. */
int file_system_init(void);

/* Returns a table with no open files, in the root directory, or null if memory is short. */
struct file_table *file_table_create(void);
/* Returns a table with the same open files and directory, or null if memory is short. */
struct file_table *file_table_copy(struct file_table *table);
/* Closes all. May sleep. */
void file_table_destroy(struct file_table *table);

/* A file opened by the kernel for reading: exec(). Returns 0 or an error. */
struct inode;
int inode_open(const char *path, struct inode **inode);
int64_t inode_read(struct inode *inode, void *destination, uint64_t offset, uint64_t n);
uint64_t inode_size(struct inode *inode);
void inode_close(struct inode *inode);

/* What a character device does; registered by number (abi/files.h). */
struct device_operations {
    int64_t (*read)(struct buffer *destination, uint64_t n);
    int64_t (*write)(struct buffer *source, uint64_t n);
};
void device_register(int number, const struct device_operations *operations);

/* The system calls, on the current process. Arguments are as the user gave them; results are for
 * the user; errors are negative. */
int64_t system_pipe(uint64_t descriptors);
int64_t system_read(int descriptor, uint64_t destination, int n);
int64_t system_write(int descriptor, uint64_t source, int n);
int64_t system_close(int descriptor);
int64_t system_dup(int descriptor);
int64_t system_fstat(int descriptor, uint64_t status);
int64_t system_open(uint64_t path, int flags);
int64_t system_mknod(uint64_t path, int major, int minor);
int64_t system_unlink(uint64_t path);
int64_t system_link(uint64_t old_path, uint64_t new_path);
int64_t system_mkdir(uint64_t path);
int64_t system_chdir(uint64_t path);
int64_t system_sync(void);

#endif
