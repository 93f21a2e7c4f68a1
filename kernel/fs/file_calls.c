/* SPDX-License-Identifier: MIT */

#include "abi/errors.h"
#include "fs/file_contents.h"
#include "fs/file_table.h"
#include "fs/namespace.h"
#include "lib/panic.h"
#include "process/process.h"

static struct file_table *current_files(void)
{
    return current_process()->files;
}

static struct open_file *current_file(int descriptor)
{
    return file_table_get(current_files(), descriptor);
}

/* ---- calls on descriptors ---- */

int64_t system_read(int descriptor, uint64_t destination, int n)
{
    struct buffer buffer = {.address = destination, .in_user = true};
    struct open_file *file = current_file(descriptor);

    if (!file)
        return -EBADF;
    return n < 0 ? -EINVAL : open_file_read(file, &buffer, (uint64_t)n);
}

int64_t system_write(int descriptor, uint64_t source, int n)
{
    struct buffer buffer = {.address = source, .in_user = true};
    struct open_file *file = current_file(descriptor);

    if (!file)
        return -EBADF;
    return n < 0 ? -EINVAL : open_file_write(file, &buffer, (uint64_t)n);
}

int64_t system_close(int descriptor)
{
    struct open_file *file = current_file(descriptor);

    if (!file)
        return -EBADF;
    current_files()->files[descriptor] = NULL;
    open_file_put(file);
    return 0;
}

int64_t system_dup(int descriptor)
{
    struct open_file *file = current_file(descriptor);
    int slot = file_table_free_slot(current_files());

    if (!file)
        return -EBADF;
    if (slot >= 0)
        current_files()->files[slot] = open_file_share(file);
    return slot;
}

int64_t system_fstat(int descriptor, uint64_t destination)
{
    struct open_file *file = current_file(descriptor);
    struct file_status status;

    if (!file)
        return -EBADF;
    int error = open_file_status(file, &status);
    return error ? error : copy_to_user(destination, &status, sizeof(status));
}

/* ---- open and pipe ---- */

static bool wants_reading(int flags)
{
    return !(flags & OPEN_WRITE);
}

static bool wants_writing(int flags)
{
    return flags & (OPEN_WRITE | OPEN_BOTH);
}

/* Returns 0 if the inode may be opened with these flags. */
static int check_open(struct inode *inode, int flags)
{
    inode_lock(inode);
    uint16_t type = inode->disk->type;
    uint16_t major = inode->disk->major;
    uint16_t minor = inode->disk->minor;
    inode_unlock(inode);

    switch (type) {
    case FILE_DIRECTORY:
        return flags == OPEN_READ ? 0 : -EISDIR;
    case FILE_DEVICE:
        return device_exists(major, minor) ? 0 : -ENODEV;
    case FILE_REGULAR:
        return 0;
    default:
        return -EIO;
    }
}

static int find_or_create(const char *path, int flags, struct inode **inode)
{
    struct inode *start = current_files()->directory;
    int error = path_find(start, path, inode);

    if (error == -ENOENT && flags & OPEN_CREATE)
        error = namespace_create(start, path, FILE_REGULAR, 0, 0, inode);
    if (error == -EEXIST) /* another process was faster */
        error = path_find(start, path, inode);
    return error;
}

/* Returns an inode that may be opened with these flags, truncated if they require it. */
static int open_inode(const char *path, int flags, struct inode **inode)
{
    int error = find_or_create(path, flags, inode);
    if (error)
        return error;
    error = check_open(*inode, flags);
    if (!error && flags & OPEN_TRUNCATE)
        error = inode_truncate(*inode);
    if (error)
        inode_put(*inode);
    return error;
}

static enum open_file_kind open_kind(const struct disk_inode *inode)
{
    if (inode->type != FILE_DEVICE)
        return OPEN_INODE;
    return inode->major == DEVICE_TEXT ? OPEN_TEXT : OPEN_DEVICE;
}

static int64_t open_path(const char *path, int flags)
{
    struct inode *inode;
    int slot = file_table_free_slot(current_files());
    if (slot < 0)
        return slot;
    struct open_file *file = open_file_create();
    if (!file)
        return -ENOMEM;
    int error = open_inode(path, flags, &inode);
    if (error) {
        open_file_put(file);
        return error;
    }
    file->kind = open_kind(inode->disk);
    if (file->kind == OPEN_TEXT)
        file->text_file = text_file_numbered(inode->disk->minor);
    file->inode = inode;
    file->readable = wants_reading(flags);
    file->writable = wants_writing(flags);
    current_files()->files[slot] = file;
    return slot;
}

/* A call that takes a path. At the end it frees the inodes that it has put and that are no
 * longer needed. */
typedef int64_t (*path_call)(const char *path, int first, int second);

static int64_t with_path(uint64_t user_path, path_call call, int first, int second)
{
    char path[PATH_BYTES];
    int length = copy_text_from_user(path, user_path, sizeof(path));
    if (length < 0)
        return length;
    int64_t result = call(path, first, second);
    inode_reclaim_doomed();
    return result;
}

static int64_t call_open(const char *path, int flags, int unused)
{
    (void)unused;
    return open_path(path, flags);
}

int64_t system_open(uint64_t path, int flags)
{
    return with_path(path, call_open, flags, 0);
}

/* Creates both ends of a new pipe, in these two slots. Returns 0 or -ENOMEM. */
static int open_pipe(struct open_file *ends[2])
{
    struct pipe *pipe = pipe_create();
    ends[0] = open_file_create();
    ends[1] = open_file_create();
    bool complete = pipe && ends[0] && ends[1];

    for (int i = 0; i < 2; i++) {
        if (complete) {
            *ends[i] = (struct open_file){.kind = OPEN_PIPE,
                                          .users = 1,
                                          .readable = i == 0,
                                          .writable = i == 1,
                                          .pipe = pipe};
        } else if (ends[i]) {
            open_file_put(ends[i]);
        }
    }
    if (pipe && !complete) {
        pipe_close(pipe, false);
        pipe_close(pipe, true);
    }
    return complete ? 0 : -ENOMEM;
}

int64_t system_pipe(uint64_t descriptors)
{
    struct file_table *table = current_files();
    struct open_file *ends[2];
    int32_t slots[2];
    int error = open_pipe(ends);
    if (error)
        return error;

    for (int i = 0; i < 2; i++) {
        slots[i] = file_table_free_slot(table);
        if (slots[i] >= 0)
            table->files[slots[i]] = ends[i];
        else
            error = slots[i];
    }
    if (!error)
        error = copy_to_user(descriptors, slots, sizeof(slots));
    if (!error)
        return 0;
    for (int i = 0; i < 2; i++) {
        if (slots[i] >= 0)
            table->files[slots[i]] = NULL;
        open_file_put(ends[i]);
    }
    return error;
}

/* ---- calls on paths ---- */

static int64_t create_and_put(const char *path, uint16_t type, int major, int minor)
{
    struct inode *inode;
    int error = namespace_create(current_files()->directory, path, type, (uint16_t)major,
                                 (uint16_t)minor, &inode);
    if (!error)
        inode_put(inode);
    return error;
}

static int64_t call_mknod(const char *path, int major, int minor)
{
    const int most = UINT16_MAX;
    if (major < 0 || major > most || minor < 0 || minor > most)
        return -EINVAL;
    return create_and_put(path, FILE_DEVICE, major, minor);
}

int64_t system_mknod(uint64_t path, int major, int minor)
{
    return with_path(path, call_mknod, major, minor);
}

static int64_t call_mkdir(const char *path, int first, int second)
{
    return create_and_put(path, FILE_DIRECTORY, first, second);
}

int64_t system_mkdir(uint64_t path)
{
    return with_path(path, call_mkdir, 0, 0);
}

static int64_t call_unlink(const char *path, int first, int second)
{
    (void)first;
    (void)second;
    return namespace_unlink(current_files()->directory, path);
}

int64_t system_unlink(uint64_t path)
{
    return with_path(path, call_unlink, 0, 0);
}

int64_t system_link(uint64_t user_old_path, uint64_t user_new_path)
{
    char old_path[PATH_BYTES];
    char new_path[PATH_BYTES];
    int length = copy_text_from_user(old_path, user_old_path, sizeof(old_path));
    if (length >= 0)
        length = copy_text_from_user(new_path, user_new_path, sizeof(new_path));
    if (length < 0)
        return length;
    int error = namespace_link(current_files()->directory, old_path, new_path);
    inode_reclaim_doomed();
    return error;
}

static int64_t call_chdir(const char *path, int first, int second)
{
    struct inode *directory;
    int error = path_find(current_files()->directory, path, &directory);
    (void)first;
    (void)second;
    if (error)
        return error;
    inode_lock(directory);
    error = directory->disk->type == FILE_DIRECTORY ? 0 : -ENOTDIR;
    inode_unlock(directory);
    if (error) {
        inode_put(directory);
        return error;
    }
    inode_put(current_files()->directory);
    current_files()->directory = directory;
    return 0;
}

int64_t system_chdir(uint64_t path)
{
    return with_path(path, call_chdir, 0, 0);
}

int64_t system_sync(void)
{
    return journal_sync();
}

/* ---- for exec() ---- */

int inode_open(const char *path, struct inode **inode)
{
    int error = path_find(current_files()->directory, path, inode);
    if (error)
        return error;
    inode_lock(*inode);
    uint16_t type = (*inode)->disk->type;
    inode_unlock(*inode);
    if (type == FILE_REGULAR)
        return 0;
    inode_close(*inode);
    return type == FILE_DIRECTORY ? -EISDIR : -ENOEXEC;
}

int64_t inode_read(struct inode *inode, void *destination, uint64_t offset, uint64_t n)
{
    struct buffer buffer = {.address = (uint64_t)destination, .in_user = false};

    inode_lock(inode);
    int64_t result = inode_read_to(inode, &buffer, offset, n);
    inode_unlock(inode);
    return result;
}

uint64_t inode_size(struct inode *inode)
{
    inode_lock(inode);
    uint64_t size = inode->disk->size;
    inode_unlock(inode);
    return size;
}

void inode_close(struct inode *inode)
{
    inode_put(inode);
    inode_reclaim_doomed();
}
