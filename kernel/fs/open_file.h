/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_OPEN_FILE_H
#define KERNEL_FS_OPEN_FILE_H

#include "directory.h"
#include "file.h"
#include "pipe.h"
#include "text_file.h"

enum open_file_kind {
    OPEN_INODE, /* a file or a directory */
    OPEN_DEVICE,
    OPEN_TEXT, /* a file of /proc */
    OPEN_PIPE,
};

/*
 * The target of a descriptor; shared by dup() and fork(), so the users are
 * counted. Only the offset and the text change, under the inode's mutex.
 */
struct open_file {
    enum open_file_kind kind;
    uint32_t users;
    bool readable;
    bool writable;
    struct inode *inode; /* of a file, directory or device */
    uint64_t offset;
    struct pipe *pipe;
    const struct text_file *text_file;
    struct text text; /* the whole text, made at the first read */
};

void open_files_init(void);
/* Returns an open file with one user, or null if memory is short. */
struct open_file *open_file_create(void);
struct open_file *open_file_share(struct open_file *file);
/* Removes a user; the last one closes it. May sleep. */
void open_file_put(struct open_file *file);

int64_t open_file_read(struct open_file *file, struct buffer *destination, uint64_t n);
/* Returns n or an error: some bytes may have been written then. */
int64_t open_file_write(struct open_file *file, struct buffer *source, uint64_t n);
/* Returns 0, or -EBADF for a pipe. */
int open_file_status(struct open_file *file, struct file_status *status);

/* Returns true if a device with these numbers exists. */
bool device_exists(int major, int minor);

#endif
