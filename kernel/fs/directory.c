/* SPDX-License-Identifier: MIT */

#include "fs/directory.h"

#include "abi/errors.h"
#include "lib/string.h"
#include "process/process.h"

struct inode *root_directory;

/* ---- names ---- */

struct file_name file_name_make(const char *text, size_t length)
{
    struct file_name name = {{0}};
    memcpy(name.text, text, length < sizeof(name.text) ? length : sizeof(name.text));
    return name;
}

bool file_name_is_dots(const struct file_name *name)
{
    return name->text[0] == '.' &&
           (name->text[1] == 0 || (name->text[1] == '.' && name->text[2] == 0));
}

/* ---- entries ---- */

/* An entry as two words: a directory is searched at four instructions an entry. */
typedef uint64_t __attribute__((may_alias)) entry_word;
enum { WORDS_PER_ENTRY = 2, NUMBER_BITS = 16 };

/* The result of a search. */
struct place {
    struct cached_block *block; /* holds the entry, and has one more user; null: not found */
    uint32_t index;             /* of the entry in its block */
};

static struct directory_entry *entry_at(const struct place *place)
{
    return (struct directory_entry *)place->block->data + place->index;
}

/* Returns the entry of the block that has the name; `entries` if none has. */
static uint32_t find_name(const entry_word *words, uint32_t entries, const struct file_name *name)
{
    struct directory_entry requested = {.inode = 0};
    entry_word key[WORDS_PER_ENTRY];

    memcpy(requested.name, name->text, sizeof(requested.name));
    memcpy(key, &requested, sizeof(key));
    for (uint32_t i = 0; i < entries; i++, words += WORDS_PER_ENTRY) {
        bool same = ((words[0] ^ key[0]) >> NUMBER_BITS | (words[1] ^ key[1])) == 0;
        if (same && (uint16_t)words[0] != 0)
            return i;
    }
    return entries;
}

/* Returns the first free entry of the block; `entries` if none is free. */
static uint32_t find_free(const entry_word *words, uint32_t entries)
{
    for (uint32_t i = 0; i < entries; i++, words += WORDS_PER_ENTRY) {
        if ((uint16_t)words[0] == 0)
            return i;
    }
    return entries;
}

static uint32_t entries_in(const struct inode *directory, uint32_t file_block)
{
    uint64_t left = directory->disk->size - (uint64_t)file_block * BLOCK_BYTES;
    return (uint32_t)((left < BLOCK_BYTES ? left : BLOCK_BYTES) / sizeof(struct directory_entry));
}

/* Finds the first entry with the name; if `name` is null, the first free one. Returns 0, -ENOENT,
 * -EIO or -ENOMEM. */
static int search(struct inode *directory, const struct file_name *name, struct place *place)
{
    uint32_t blocks = blocks_of_bytes(directory->disk->size);

    for (uint32_t i = 0; i < blocks; i++) {
        int error = inode_block(directory, i, &place->block);
        if (error)
            return error;
        uint32_t entries = entries_in(directory, i);
        place->index = name ? find_name(place->block->data, entries, name)
                            : find_free(place->block->data, entries);
        if (place->index < entries)
            return 0;
        block_put(place->block);
        preemption_point();
    }
    place->block = NULL;
    return -ENOENT;
}

static int check_usable(const struct inode *directory)
{
    if (directory->disk->type != FILE_DIRECTORY)
        return -ENOTDIR;
    return directory->disk->links == 0 ? -ENOENT : 0;
}

int directory_find(struct inode *directory, const struct file_name *name, uint32_t *number)
{
    struct place place;
    int error = check_usable(directory);
    if (!error)
        error = search(directory, name, &place);
    if (error)
        return error;
    *number = entry_at(&place)->inode;
    block_put(place.block);
    return 0;
}

/* Finds a free entry; if necessary, appends one to the directory. */
static int find_room(struct operation *operation, struct inode *directory, struct place *place)
{
    uint64_t size = directory->disk->size;
    int error = search(directory, NULL, place);
    if (error != -ENOENT)
        return error;

    bool fresh = size == (uint64_t)directory->disk->blocks * BLOCK_BYTES;
    error = fresh ? inode_append(operation, directory, &place->block)
                  : inode_block(directory, (uint32_t)(size / BLOCK_BYTES), &place->block);
    if (error)
        return error;
    place->index = (uint32_t)(size % BLOCK_BYTES / sizeof(struct directory_entry));
    journal_write(operation, directory->home);
    directory->disk->size += sizeof(struct directory_entry);
    return 0;
}

int directory_add(struct operation *operation, struct inode *directory,
                  const struct file_name *name, uint32_t number)
{
    struct place place;
    uint32_t existing;
    int error = directory_find(directory, name, &existing);
    if (error != -ENOENT)
        return error ? error : -EEXIST;
    error = check_usable(directory);
    if (!error)
        error = find_room(operation, directory, &place);
    if (error)
        return error;

    journal_write(operation, place.block);
    struct directory_entry *entry = entry_at(&place);
    entry->inode = (uint16_t)number;
    memcpy(entry->name, name->text, sizeof(entry->name));
    block_put(place.block);
    return 0;
}

int directory_remove(struct operation *operation, struct inode *directory,
                     const struct file_name *name, uint32_t number)
{
    struct place place;
    int error = check_usable(directory);
    if (!error)
        error = search(directory, name, &place);
    if (error)
        return error;
    if (entry_at(&place)->inode == number) {
        journal_write(operation, place.block);
        *entry_at(&place) = (struct directory_entry){.inode = 0};
    } else {
        error = -ENOENT;
    }
    block_put(place.block);
    return error;
}

/* Returns true if all entries of the block are free, or "." and "..". */
static bool holds_nothing(const struct directory_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct file_name name = file_name_make(entries[i].name, sizeof(entries[i].name));
        if (entries[i].inode != 0 && !file_name_is_dots(&name))
            return false;
    }
    return true;
}

int directory_check_empty(struct inode *directory)
{
    uint32_t blocks = blocks_of_bytes(directory->disk->size);

    for (uint32_t i = 0; i < blocks; i++) {
        struct cached_block *block;
        int error = inode_block(directory, i, &block);
        if (error)
            return error;
        bool nothing = holds_nothing(block->data, entries_in(directory, i));
        block_put(block);
        if (!nothing)
            return -ENOTEMPTY;
        preemption_point();
    }
    return 0;
}

/* ---- paths ---- */

/* Reads the path's next name. Returns the rest of the path, or null if there is no name. */
static const char *next_name(const char *path, struct file_name *name)
{
    while (*path == '/')
        path++;
    if (*path == 0)
        return NULL;
    const char *end = path;
    while (*end != 0 && *end != '/')
        end++;
    *name = file_name_make(path, (size_t)(end - path));
    while (*end == '/')
        end++;
    return end;
}

/* Steps from a directory, which is put, to its inode of that name. */
static int step(struct inode *directory, const struct file_name *name, struct inode **next)
{
    uint32_t number;

    inode_lock(directory);
    int error = directory_find(directory, name, &number);
    if (!error)
        error = inode_get(number, next);
    inode_unlock(directory);
    inode_put(directory);
    return error;
}

static struct inode *first_directory(struct inode *start, const char *path)
{
    return inode_share(*path == '/' ? root_directory : start);
}

int path_find(struct inode *start, const char *path, struct inode **inode)
{
    struct file_name name;

    if (*path == 0)
        return -ENOENT;
    *inode = first_directory(start, path);
    while ((path = next_name(path, &name))) {
        int error = step(*inode, &name, inode);
        if (error)
            return error;
    }
    return 0;
}

int path_find_parent(struct inode *start, const char *path, struct inode **parent,
                     struct file_name *name)
{
    *parent = first_directory(start, path);
    path = next_name(path, name);
    while (path && *path != 0) {
        int error = step(*parent, name, parent);
        if (error)
            return error;
        path = next_name(path, name);
    }
    if (path)
        return 0;
    inode_put(*parent);
    return -ENOENT;
}
