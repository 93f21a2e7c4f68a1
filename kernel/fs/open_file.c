/* SPDX-License-Identifier: MIT */

#include "fs/open_file.h"

#include "abi/errors.h"
#include "fs/file_contents.h"
#include "lib/panic.h"
#include "memory/object.h"
#include "process/process.h"

enum { DEVICES = 16, DISK_DEVICE = 1 };

static struct object_cache open_files;
static const struct device_operations *devices[DEVICES];

void open_files_init(void)
{
    object_cache_init(&open_files, "open file", sizeof(struct open_file));
}

struct open_file *open_file_create(void)
{
    struct open_file *file = object_allocate(&open_files);
    if (file)
        file->users = 1;
    return file;
}

struct open_file *open_file_share(struct open_file *file)
{
    __atomic_fetch_add(&file->users, 1, __ATOMIC_RELAXED);
    return file;
}

void open_file_put(struct open_file *file)
{
    uint32_t before = __atomic_fetch_sub(&file->users, 1, __ATOMIC_ACQ_REL);
    kernel_assert(before > 0);
    if (before > 1)
        return;
    if (file->pipe)
        pipe_close(file->pipe, file->writable);
    if (file->inode) {
        inode_put(file->inode);
        inode_reclaim_doomed();
    }
    text_free(&file->text);
    object_free(&open_files, file);
}

/* ---- devices ---- */

void device_register(int number, const struct device_operations *operations)
{
    kernel_assert(number >= 0 && number < DEVICES);
    devices[number] = operations;
}

static const struct device_operations *device_numbered(int number)
{
    return number >= 0 && number < DEVICES ? devices[number] : NULL;
}

bool device_exists(int major, int minor)
{
    return major == DEVICE_TEXT ? text_file_numbered((uint32_t)minor) != NULL
                                : device_numbered(major) != NULL;
}

/* ---- reading and writing ---- */

static int64_t read_text_at_offset(struct open_file *file, struct buffer *destination, uint64_t n)
{
    inode_lock(file->inode);
    int64_t result = file->text.first ? 0 : text_file_make(file->text_file, &file->text);
    if (result == 0)
        result = text_read(&file->text, destination, file->offset, n);
    if (result > 0)
        file->offset += (uint64_t)result;
    inode_unlock(file->inode);
    return result;
}

static int64_t read_inode_at_offset(struct open_file *file, struct buffer *destination, uint64_t n)
{
    inode_lock(file->inode);
    int64_t result = inode_read_to(file->inode, destination, file->offset, n);
    if (result > 0)
        file->offset += (uint64_t)result;
    inode_unlock(file->inode);
    return result;
}

int64_t open_file_read(struct open_file *file, struct buffer *destination, uint64_t n)
{
    const struct device_operations *device;

    if (!file->readable)
        return -EBADF;
    switch (file->kind) {
    case OPEN_PIPE:
        return pipe_read(file->pipe, destination, n);
    case OPEN_DEVICE:
        device = device_numbered(file->inode->disk->major);
        return device && device->read ? device->read(destination, n) : -ENODEV;
    case OPEN_TEXT:
        return read_text_at_offset(file, destination, n);
    case OPEN_INODE:
        return read_inode_at_offset(file, destination, n);
    }
    return -EBADF;
}

/* Does one operation's part of a write. Returns the bytes committed, or an error. */
static int64_t write_step(struct open_file *file, struct buffer *source, uint64_t n)
{
    struct operation operation;
    int error = journal_begin(&operation, inode_write_credits(n));
    if (error)
        return error;

    inode_lock(file->inode);
    int64_t result = inode_write_from(&operation, file->inode, source, file->offset, n);
    if (result > 0)
        file->offset += (uint64_t)result;
    inode_unlock(file->inode);

    error = journal_end(&operation);
    return error ? error : result;
}

/* A large write is split into operations: each reaches the disk completely before the next
 * begins. */
static int64_t write_inode(struct open_file *file, struct buffer *source, uint64_t n)
{
    uint64_t done = 0;

    while (done < n) {
        int64_t result = current_killed() ? -EINTR : write_step(file, source, n - done);
        if (result < 0)
            return result;
        done += (uint64_t)result;
    }
    return (int64_t)n;
}

int64_t open_file_write(struct open_file *file, struct buffer *source, uint64_t n)
{
    const struct device_operations *device;

    if (!file->writable)
        return -EBADF;
    switch (file->kind) {
    case OPEN_PIPE:
        return pipe_write(file->pipe, source, n);
    case OPEN_DEVICE:
        device = device_numbered(file->inode->disk->major);
        return device && device->write ? device->write(source, n) : -ENODEV;
    case OPEN_TEXT:
        return text_file_obey(file->text_file, source, n);
    case OPEN_INODE:
        return write_inode(file, source, n);
    }
    return -EBADF;
}

int open_file_status(struct open_file *file, struct file_status *status)
{
    struct inode *inode = file->inode;

    if (!inode)
        return -EBADF;
    inode_lock(inode);
    *status = (struct file_status){
        .device = DISK_DEVICE,
        .inode = inode->number,
        .type = (int16_t)inode->disk->type,
        .links = (int16_t)inode->disk->links,
        .size = inode->disk->size,
    };
    inode_unlock(inode);
    return 0;
}
