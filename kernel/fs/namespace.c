/* SPDX-License-Identifier: MIT */

#include "fs/namespace.h"

#include "abi/errors.h"
#include "fs/allocator.h"
#include "lib/panic.h"

enum {
    /* a new inode: its bitmap, its home; a new directory: its block and that one's bitmap */
    CREDITS_CREATE = CREDITS_ADD + 4,
    CREDITS_LINK = CREDITS_ADD + 1,
    /* the entry, the parent, and freeing the inode */
    CREDITS_UNLINK = 2 + CREDITS_RECLAIM,
};

static const struct file_name dot = {"."};
static const struct file_name dot_dot = {".."};

static void change_links(struct operation *operation, struct inode *inode, int change)
{
    journal_write(operation, inode->home);
    inode->disk->links = (uint16_t)(inode->disk->links + change);
}

/* Locks both, the lower number first: a damaged disk may hold a directory in itself. */
static void lock_both(struct inode *a, struct inode *b)
{
    kernel_assert(a->number != b->number);
    inode_lock(a->number < b->number ? a : b);
    inode_lock(a->number < b->number ? b : a);
}

/* ---- creating ---- */

/* The first entries of a new directory: itself and its parent. */
static int add_dots(struct operation *operation, struct inode *directory,
                    const struct inode *parent)
{
    struct cached_block *block;
    int error = inode_append(operation, directory, &block);
    if (error)
        return error;
    struct directory_entry *entries = block->data;
    entries[0].inode = (uint16_t)directory->number;
    __builtin_memcpy(entries[0].name, dot.text, sizeof(dot.text));
    entries[1].inode = (uint16_t)parent->number;
    __builtin_memcpy(entries[1].name, dot_dot.text, sizeof(dot_dot.text));
    directory->disk->size = 2 * sizeof(struct directory_entry);
    block_put(block);
    return 0;
}

/* In the locked parent, an inode that add_dots() has completed if it is a directory. */
static int create_in(struct operation *operation, struct inode *parent,
                     const struct file_name *name, uint16_t type, struct inode **result)
{
    uint32_t existing;
    int error = directory_find(parent, name, &existing);
    if (error != -ENOENT)
        return error ? error : -EEXIST;
    if (parent->disk->links == 0)
        return -ENOENT;
    if (type == FILE_DIRECTORY && parent->disk->links >= LINKS_MAX)
        return -EMLINK;

    error = inode_create(operation, type, result);
    if (error)
        return error;
    if (type == FILE_DIRECTORY)
        error = add_dots(operation, *result, parent);
    if (!error)
        error = directory_add(operation, parent, name, (*result)->number);
    if (error) {
        inode_uncreate(operation, *result);
        return error;
    }
    if (type == FILE_DIRECTORY)
        change_links(operation, parent, 1);
    return 0;
}

int namespace_create(struct inode *start, const char *path, uint16_t type, uint16_t major,
                     uint16_t minor, struct inode **inode)
{
    struct operation operation;
    struct inode *parent;
    struct file_name name;
    int error = path_find_parent(start, path, &parent, &name);
    if (error)
        return error;

    error = journal_begin(&operation, CREDITS_CREATE);
    if (!error) {
        inode_lock(parent);
        error = create_in(&operation, parent, &name, type, inode);
        bool created = error == 0;
        if (created) {
            (*inode)->disk->major = major;
            (*inode)->disk->minor = minor;
            inode_unlock(*inode);
        }
        inode_unlock(parent);
        error = journal_end_with(&operation, error);
        if (error && created)
            inode_put(*inode);
    }
    inode_put(parent);
    return error;
}

/* ---- linking ---- */

static int check_link(const struct inode *inode)
{
    if (inode->disk->type == FILE_DIRECTORY)
        return -EISDIR;
    if (inode->disk->links == 0)
        return -ENOENT; /* unlinked in the meantime */
    return inode->disk->links >= LINKS_MAX ? -EMLINK : 0;
}

static int link_in(struct operation *operation, struct inode *parent, const struct file_name *name,
                   struct inode *inode)
{
    if (inode->number == parent->number)
        return inode->disk->type == FILE_DIRECTORY ? -EISDIR : -ENOTDIR;
    lock_both(parent, inode);
    int error = check_link(inode);
    if (!error)
        error = directory_add(operation, parent, name, inode->number);
    if (!error)
        change_links(operation, inode, 1);
    inode_unlock(inode);
    inode_unlock(parent);
    return error;
}

int namespace_link(struct inode *start, const char *old_path, const char *new_path)
{
    struct operation operation;
    struct inode *inode;
    struct inode *parent;
    struct file_name name;
    int error = path_find(start, old_path, &inode);
    if (error)
        return error;
    error = path_find_parent(start, new_path, &parent, &name);
    if (!error) {
        error = journal_begin(&operation, CREDITS_LINK);
        if (!error)
            error = journal_end_with(&operation, link_in(&operation, parent, &name, inode));
        inode_put(parent);
    }
    inode_put(inode);
    return error;
}

/* ---- unlinking ---- */

static int check_unlink(struct inode *inode)
{
    if (inode->disk->type == INODE_FREE || inode->disk->links == 0)
        return -EIO;
    return inode->disk->type == FILE_DIRECTORY ? directory_check_empty(inode) : 0;
}

/* Both are locked. The disk records that the last link is gone, in case the file is still open. */
static int remove_link(struct operation *operation, struct inode *parent,
                       const struct file_name *name, struct inode *inode)
{
    bool is_directory = inode->disk->type == FILE_DIRECTORY;
    bool last = is_directory || inode->disk->links == 1;
    int error = check_unlink(inode);

    if (!error && is_directory && parent->disk->links < 2)
        error = -EIO;
    if (!error && last)
        error = reclaim_mark(operation, inode->number, true);
    if (error)
        return error;
    error = directory_remove(operation, parent, name, inode->number);
    if (error) {
        if (last)
            kernel_assert(reclaim_mark(operation, inode->number, false) == 0);
        return error;
    }
    if (is_directory)
        change_links(operation, parent, -1);
    change_links(operation, inode, last ? -inode->disk->links : -1);
    if (last)
        inode_unlinked(operation, inode);
    return 0;
}

/* Returns the inode of the name in the parent, with one more user, if it may be unlinked. */
static int find_target(struct inode *parent, const struct file_name *name, struct inode **inode)
{
    uint32_t number;

    inode_lock(parent);
    int error = directory_find(parent, name, &number);
    if (!error && number == parent->number)
        error = -EIO;
    if (!error)
        error = inode_get(number, inode);
    inode_unlock(parent);
    return error;
}

/* -EAGAIN: the name now refers to another inode. */
static int unlink_target(struct operation *operation, struct inode *parent,
                         const struct file_name *name, struct inode *inode)
{
    uint32_t number;

    lock_both(parent, inode);
    int error = directory_find(parent, name, &number);
    if (!error && number != inode->number)
        error = -EAGAIN;
    if (!error)
        error = remove_link(operation, parent, name, inode);
    inode_unlock(inode);
    inode_unlock(parent);
    return error;
}

static int unlink_in(struct operation *operation, struct inode *parent,
                     const struct file_name *name)
{
    struct inode *inode;
    int error;

    do {
        error = find_target(parent, name, &inode);
        if (error)
            return error;
        error = unlink_target(operation, parent, name, inode);
        inode_put(inode);
    } while (error == -EAGAIN);
    return error;
}

int namespace_unlink(struct inode *start, const char *path)
{
    struct operation operation;
    struct inode *parent;
    struct file_name name;
    int error = path_find_parent(start, path, &parent, &name);
    if (error)
        return error;

    error = file_name_is_dots(&name) ? -EINVAL : journal_begin(&operation, CREDITS_UNLINK);
    if (!error)
        error = journal_end_with(&operation, unlink_in(&operation, parent, &name));
    inode_put(parent);
    return error;
}
