/* SPDX-License-Identifier: MIT */

/*
 * Checks a disk image: replays its journal, in memory, and then checks that its contents are
 * consistent. It shares only the disk's format with the kernel, and no code. docs/file-system.md
 * lists the rules.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/fs/disk_format.h"

struct checker {
    uint8_t *bytes; /* the image, which the replay changes */
    uint64_t blocks;
    const struct superblock *super;
    uint8_t *block_used; /* by block: found in use */
    uint32_t *links;     /* by inode: entries that name it, without "." and ".." */
    uint32_t *children;  /* by inode: directories in it */
    uint32_t *parent;    /* by inode: the directory that holds it; 0: not found yet */
    FILE *report;        /* null: silent */
    unsigned problems;
};

static void __attribute__((format(printf, 2, 3))) problem(struct checker *checker,
                                                          const char *format, ...)
{
    va_list arguments;

    checker->problems++;
    if (!checker->report)
        return;
    va_start(arguments, format);
    vfprintf(checker->report, format, arguments);
    va_end(arguments);
    fputc('\n', checker->report);
}

static void *block_at(const struct checker *checker, uint64_t block)
{
    return checker->bytes + block * FS_BLOCK_BYTES;
}

static struct disk_inode *inode_at(const struct checker *checker, uint32_t number)
{
    uint32_t home = checker->super->inode_table_start + number / INODES_PER_BLOCK;
    return (struct disk_inode *)block_at(checker, home) + number % INODES_PER_BLOCK;
}

static bool bit_at(const struct checker *checker, uint32_t map_start, uint32_t bit)
{
    const uint8_t *map = block_at(checker, map_start);
    return map[bit / 8] >> bit % 8 & 1;
}

static bool is_marked(const struct checker *checker, uint32_t number)
{
    return bit_at(checker, checker->super->reclaim_map_start, number);
}

/* ---- the journal ---- */

static uint64_t log_block_at(const struct checker *checker, uint64_t position)
{
    return checker->super->log_start + position % checker->super->log_blocks;
}

static const struct journal_header *latest_header(const struct checker *checker)
{
    const struct journal_header *latest = NULL;
    for (uint32_t i = 0; i < JOURNAL_HEADERS; i++) {
        const struct journal_header *header = block_at(checker, checker->super->journal_start + i);
        if (header->magic == JOURNAL_HEADER_MAGIC &&
            header->checksum == journal_header_checksum(header) &&
            header->position < checker->super->log_blocks &&
            (!latest || header->sequence > latest->sequence))
            latest = header;
    }
    return latest;
}

/* Returns true if there is a complete transaction of that number. */
static bool is_committed(const struct checker *checker, uint64_t position, uint64_t sequence)
{
    struct journal_record record;
    memcpy(&record, block_at(checker, log_block_at(checker, position)), sizeof(record));
    if (record.magic != JOURNAL_RECORD_MAGIC || record.sequence != sequence || record.count == 0 ||
        record.count > RECORD_BLOCKS_MAX || record.count >= checker->super->log_blocks)
        return false;

    uint64_t expected = record.checksum;
    record.checksum = 0;
    uint64_t sum = checksum_add(CHECKSUM_START, &record, sizeof(record));
    for (uint32_t i = 0; i < record.count; i++) {
        const void *contents = block_at(checker, log_block_at(checker, position + 1 + i));
        sum = checksum_add(sum, contents, FS_BLOCK_BYTES);
    }
    return sum == expected;
}

static bool replay_one(struct checker *checker, uint64_t position)
{
    const struct journal_record *record = block_at(checker, log_block_at(checker, position));
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->home[i] < checker->super->inode_map_start ||
            record->home[i] >= checker->super->block_count) {
            problem(checker, "journal: a transaction changes block %u", record->home[i]);
            return false;
        }
        memcpy(block_at(checker, record->home[i]),
               block_at(checker, log_block_at(checker, position + 1 + i)), FS_BLOCK_BYTES);
    }
    return true;
}

static void replay_journal(struct checker *checker)
{
    const struct journal_header *header = latest_header(checker);
    if (!header) {
        problem(checker, "journal: neither header is valid");
        return;
    }
    uint64_t position = header->position;
    uint64_t sequence = header->sequence;
    uint64_t end = position + checker->super->log_blocks;
    while (position < end && is_committed(checker, position, sequence)) {
        const struct journal_record *record = block_at(checker, log_block_at(checker, position));
        if (!replay_one(checker, position))
            return;
        position += record->count + 1;
        sequence++;
    }
}

/* ---- inodes and their blocks ---- */

/* Returns false if the block cannot be followed. */
static bool claim_block(struct checker *checker, uint32_t number, uint32_t block)
{
    if (block < checker->super->data_start || block >= checker->super->block_count) {
        problem(checker, "inode %u: points to block %u, which is not a data block", number, block);
        return false;
    }
    if (checker->block_used[block])
        problem(checker, "inode %u: block %u is used twice", number, block);
    checker->block_used[block] = 1;
    return true;
}

/* Returns the disk block of a file's block, claiming tables on the way at their first use, or 0
 * if there is none. */
static uint32_t walk_to(struct checker *checker, uint32_t number, uint32_t file_block, bool claim)
{
    struct block_path path = block_path_of(file_block);
    uint32_t block = *block_path_root(inode_at(checker, number), &path);

    for (uint32_t level = 0;; level++) {
        if (claim && block_path_first_at(&path, level)) {
            if (!claim_block(checker, number, block))
                return 0;
        } else if (block < checker->super->data_start || block >= checker->super->block_count) {
            return 0;
        }
        if (level == path.depth)
            return block;
        block = ((uint32_t *)block_at(checker, block))[path.index[level + 1]];
    }
}

static void check_inode(struct checker *checker, uint32_t number)
{
    const struct disk_inode *inode = inode_at(checker, number);
    bool used = bit_at(checker, checker->super->inode_map_start, number);

    if (used != (inode->type != INODE_FREE))
        problem(checker, "inode %u: type %u, but marked %s", number, inode->type,
                used ? "used" : "free");
    if (inode->type == INODE_FREE) {
        if (is_marked(checker, number))
            problem(checker, "inode %u: free, but marked for reclaiming", number);
        return;
    }
    if (!disk_inode_valid(inode) || inode->blocks > checker->super->block_count) {
        problem(checker, "inode %u: invalid fields", number);
        return;
    }
    bool excess = inode->blocks > blocks_of_bytes(inode->size);
    if ((excess || inode->links == 0) && !is_marked(checker, number))
        problem(checker, "inode %u: has blocks to free, but is not marked", number);
    for (uint32_t i = 0; i < inode->blocks; i++)
        walk_to(checker, number, i, true);
}

/* ---- directories ---- */

static bool same_name(const struct directory_entry *entry, const char *name)
{
    return strncmp(entry->name, name, sizeof(entry->name)) == 0;
}

static bool name_valid(const struct directory_entry *entry)
{
    size_t length = strnlen(entry->name, sizeof(entry->name));
    for (size_t i = length; i < sizeof(entry->name); i++) {
        if (entry->name[i] != 0)
            return false;
    }
    return length > 0 && !memchr(entry->name, '/', length);
}

static void check_dots(struct checker *checker, uint32_t directory,
                       const struct directory_entry *entries, uint32_t count)
{
    if (count < 2 || !same_name(&entries[0], ".") || entries[0].inode != directory)
        problem(checker, "directory %u: \".\" is wrong", directory);
    if (count < 2 || !same_name(&entries[1], "..") ||
        entries[1].inode != checker->parent[directory])
        problem(checker, "directory %u: \"..\" is wrong", directory);
}

/* Checks an entry that is neither "." nor "..". Returns true if it refers to a directory not
 * seen before. */
static bool check_entry(struct checker *checker, uint32_t directory,
                        const struct directory_entry *entry)
{
    if (!name_valid(entry) || same_name(entry, ".") || same_name(entry, ".."))
        problem(checker, "directory %u: an entry has a bad name", directory);
    if (entry->inode >= checker->super->inode_count ||
        inode_at(checker, entry->inode)->type == INODE_FREE) {
        problem(checker, "directory %u: %.14s leads to inode %u, which is free", directory,
                entry->name, entry->inode);
        return false;
    }
    checker->links[entry->inode]++;
    if (inode_at(checker, entry->inode)->type != FILE_DIRECTORY)
        return false;
    checker->children[directory]++;
    if (checker->parent[entry->inode] != 0) {
        problem(checker, "directory %u: has two parents", entry->inode);
        return false;
    }
    checker->parent[entry->inode] = directory;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct directory_entry *const *first = a;
    const struct directory_entry *const *second = b;
    return strncmp((*first)->name, (*second)->name, DIRECTORY_NAME_BYTES);
}

static void check_distinct(struct checker *checker, uint32_t directory,
                           const struct directory_entry *entries, uint32_t count)
{
    const struct directory_entry **sorted = calloc(count + 1, sizeof(*sorted));
    uint32_t used = 0;

    for (uint32_t i = 0; sorted && i < count; i++) {
        if (entries[i].inode != 0)
            sorted[used++] = &entries[i];
    }
    if (sorted)
        qsort(sorted, used, sizeof(*sorted), compare_names);
    for (uint32_t i = 1; i < used; i++) {
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
            problem(checker, "directory %u: duplicate entry %.14s", directory, sorted[i]->name);
    }
    free(sorted);
}

/* Returns the directory's entries, for the caller to free, or null if they cannot be read. */
static struct directory_entry *read_entries(struct checker *checker, uint32_t directory,
                                            uint32_t *count)
{
    const struct disk_inode *inode = inode_at(checker, directory);
    uint32_t blocks = blocks_of_bytes(inode->size);
    uint8_t *entries = disk_inode_valid(inode) && inode->blocks <= checker->super->block_count
                           ? calloc(blocks + 1, FS_BLOCK_BYTES)
                           : NULL;

    for (uint32_t i = 0; entries && i < blocks; i++) {
        uint32_t block = walk_to(checker, directory, i, false);
        if (block == 0) {
            free(entries);
            return NULL;
        }
        memcpy(entries + (size_t)i * FS_BLOCK_BYTES, block_at(checker, block), FS_BLOCK_BYTES);
    }
    *count = (uint32_t)(inode->size / sizeof(struct directory_entry));
    return (struct directory_entry *)entries;
}

/* Appends the directories found in it to the queue. */
static uint32_t check_directory(struct checker *checker, uint32_t directory, uint32_t *line,
                                uint32_t line_end)
{
    uint32_t count;
    struct directory_entry *entries = read_entries(checker, directory, &count);
    if (!entries) {
        problem(checker, "directory %u: cannot be read", directory);
        return line_end;
    }
    check_dots(checker, directory, entries, count);
    check_distinct(checker, directory, entries, count);
    for (uint32_t i = 2; i < count; i++) {
        if (entries[i].inode != 0 && check_entry(checker, directory, &entries[i]))
            line[line_end++] = entries[i].inode;
    }
    free(entries);
    return line_end;
}

/* Visits the tree from the root, level by level. Each directory is queued at most once. */
static void check_tree(struct checker *checker, uint32_t *line)
{
    uint32_t end = 1;

    if (inode_at(checker, ROOT_INODE)->type != FILE_DIRECTORY) {
        problem(checker, "the root is not a directory");
        return;
    }
    line[0] = ROOT_INODE;
    checker->parent[ROOT_INODE] = ROOT_INODE;
    checker->links[ROOT_INODE] = 1;
    for (uint32_t i = 0; i < end; i++)
        end = check_directory(checker, line[i], line, end);
}

static void check_links(struct checker *checker, uint32_t number)
{
    const struct disk_inode *inode = inode_at(checker, number);
    uint32_t expected = checker->links[number];

    if (inode->type == INODE_FREE)
        return;
    if (inode->type == FILE_DIRECTORY)
        expected += checker->children[number];
    if (inode->links != expected)
        problem(checker, "inode %u: has %u links, but records %u", number, expected, inode->links);
}

/* ---- the bitmap of blocks ---- */

static void check_block_map(struct checker *checker)
{
    uint32_t bits = checker->super->block_map_blocks * BITS_PER_BLOCK;
    for (uint32_t i = 0; i < bits; i++) {
        bool expected = i < checker->super->data_start || i >= checker->super->block_count ||
                        checker->block_used[i];
        if (expected != bit_at(checker, checker->super->block_map_start, i))
            problem(checker, "block %u: is %s, but marked otherwise", i,
                    expected ? "in use" : "free");
    }
}

static void check_all(struct checker *checker, uint32_t *line)
{
    replay_journal(checker);
    for (uint32_t i = ROOT_INODE; i < checker->super->inode_count; i++)
        check_inode(checker, i);
    check_tree(checker, line);
    for (uint32_t i = ROOT_INODE; i < checker->super->inode_count; i++)
        check_links(checker, i);
    check_block_map(checker);
}

/* Returns the number of problems of the image. Replaying the journal changes `bytes`. */
static unsigned check_image(uint8_t *bytes, uint64_t blocks, FILE *report)
{
    struct checker checker = {.bytes = bytes, .blocks = blocks, .report = report};
    const struct superblock *super = (const struct superblock *)bytes;
    if (blocks == 0 || !superblock_valid(super, blocks)) {
        problem(&checker, "the superblock is not valid");
        return checker.problems;
    }
    checker.super = super;
    checker.block_used = calloc(super->block_count, 1);
    checker.links = calloc(super->inode_count, sizeof(uint32_t));
    checker.children = calloc(super->inode_count, sizeof(uint32_t));
    checker.parent = calloc(super->inode_count, sizeof(uint32_t));
    uint32_t *line = calloc(super->inode_count, sizeof(uint32_t));
    if (checker.block_used && checker.links && checker.children && checker.parent && line)
        check_all(&checker, line);
    else
        problem(&checker, "not enough memory");
    free(checker.block_used);
    free(checker.links);
    free(checker.children);
    free(checker.parent);
    free(line);
    return checker.problems;
}

#ifndef HOST_TEST

enum { CLEAN = 0, DAMAGED = 1, WRONG_USAGE = 2 };

/* Returns the whole file, for the caller to free; null with errno. */
static uint8_t *read_image(const char *path, uint64_t *blocks)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *bytes = NULL;
    if (fseeko(file, 0, SEEK_END) == 0 && ftello(file) >= 0) {
        *blocks = (uint64_t)ftello(file) / FS_BLOCK_BYTES;
        rewind(file);
        bytes = calloc(*blocks + 1, FS_BLOCK_BYTES);
        if (bytes && fread(bytes, FS_BLOCK_BYTES, *blocks, file) != *blocks) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

int main(int count, char *argument[])
{
    uint64_t blocks;

    if (count != 2) {
        fputs("usage: fsck IMAGE\n  checks the file system in a disk image; changes nothing\n",
              stderr);
        return WRONG_USAGE;
    }
    uint8_t *bytes = read_image(argument[1], &blocks);
    if (!bytes) {
        fprintf(stderr, "fsck: %s: %s\n", argument[1], strerror(errno));
        return WRONG_USAGE;
    }
    unsigned problems = check_image(bytes, blocks, stdout);
    free(bytes);
    printf("%s: %u problems\n", argument[1], problems);
    return problems > 0 ? DAMAGED : CLEAN;
}

#endif
