/* SPDX-License-Identifier: MIT */

/*
 * Makes a disk image that contains the given files in its root directory. The same arguments and
 * files give the same image, byte for byte, even if some of them are added later.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/fs/disk_format.h"

/* An image under construction. Blocks and inodes are allocated from the front. */
struct image {
    uint8_t *bytes;
    struct superblock super;
    uint32_t next_block;
    uint32_t next_inode;
    struct directory_entry *root; /* the root's entries, written last */
    size_t root_entries;
};

static void *image_block(const struct image *image, uint32_t block)
{
    return image->bytes + (size_t)block * FS_BLOCK_BYTES;
}

static struct disk_inode *image_inode(const struct image *image, uint32_t number)
{
    uint32_t home = image->super.inode_table_start + number / INODES_PER_BLOCK;
    return (struct disk_inode *)image_block(image, home) + number % INODES_PER_BLOCK;
}

static void mark_used(const struct image *image, uint32_t map_start, uint32_t bit)
{
    uint8_t *map = image_block(image, map_start);
    map[bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* Marks the bits without a block or inode as permanently used. */
static void mark_rest_used(const struct image *image, uint32_t map_start, uint32_t bits)
{
    for (uint32_t bit = bits; bit < bitmap_blocks(bits) * BITS_PER_BLOCK; bit++)
        mark_used(image, map_start, bit);
}

/* Returns 0 if the disk is full. */
static uint32_t give_block(struct image *image)
{
    if (image->next_block >= image->super.block_count)
        return 0;
    mark_used(image, image->super.block_map_start, image->next_block);
    return image->next_block++;
}

/* Returns 0 if none is free. */
static uint32_t give_inode(struct image *image, uint16_t type)
{
    if (image->next_inode >= image->super.inode_count)
        return 0;
    uint32_t number = image->next_inode++;
    mark_used(image, image->super.inode_map_start, number);
    *image_inode(image, number) = (struct disk_inode){.type = type, .links = 1};
    return number;
}

/* Returns one more block at the end of the file, with the tables it needs, or null if the disk
 * is full. */
static void *append_block(struct image *image, struct disk_inode *inode)
{
    struct block_path path = block_path_of(inode->blocks);
    uint32_t *pointer = block_path_root(inode, &path);

    for (uint32_t level = 0; level <= path.depth; level++) {
        if (block_path_first_at(&path, level))
            *pointer = give_block(image);
        if (*pointer == 0)
            return NULL;
        if (level < path.depth)
            pointer = (uint32_t *)image_block(image, *pointer) + path.index[level + 1];
    }
    inode->blocks++;
    return image_block(image, *pointer);
}

/* Gives an empty file its contents. Returns false if the disk is full. */
static bool fill_file(struct image *image, uint32_t number, const void *contents, size_t size)
{
    struct disk_inode *inode = image_inode(image, number);

    inode->size = size;
    for (size_t done = 0; done < size; done += FS_BLOCK_BYTES) {
        size_t piece = size - done < FS_BLOCK_BYTES ? size - done : FS_BLOCK_BYTES;
        void *block = append_block(image, inode);
        if (!block)
            return false;
        memcpy(block, (const uint8_t *)contents + done, piece);
    }
    return true;
}

static bool add_root_entry(struct image *image, uint32_t number, const char *name)
{
    size_t bytes = (image->root_entries + 1) * sizeof(struct directory_entry);
    struct directory_entry *root = realloc(image->root, bytes);
    if (!root)
        return false;
    image->root = root;
    struct directory_entry *entry = &root[image->root_entries++];
    *entry = (struct directory_entry){.inode = (uint16_t)number};
    memcpy(entry->name, name, strnlen(name, sizeof(entry->name)));
    return true;
}

/*
 * Free inodes for files created when the machine boots: /proc, its contents, and the console. They
 * share the root's block. So their block, and the boot's duration, do not depend on the number of
 * programs. A program's start within a tick affects the scheduler's decisions.
 */
enum { INODES_AT_BOOT = 5 };

/* Initializes an image without files. Returns null, or the reason of a failure. */
static const char *image_begin(struct image *image, uint32_t blocks, uint32_t inodes,
                               uint32_t log_blocks)
{
    *image = (struct image){.next_inode = ROOT_INODE};
    if (!superblock_make(&image->super, blocks, inodes, log_blocks))
        return "the disk is too small";
    image->bytes = calloc(blocks, FS_BLOCK_BYTES);
    if (!image->bytes)
        return "not enough memory";

    struct superblock *super = image_block(image, 0);
    *super = image->super;
    struct journal_header *header = image_block(image, super->journal_start);
    *header = (struct journal_header){.magic = JOURNAL_HEADER_MAGIC, .sequence = 1ull << 32};
    header->checksum = journal_header_checksum(header);

    while (image->next_block < super->data_start)
        give_block(image);
    mark_used(image, super->inode_map_start, 0);
    mark_rest_used(image, super->inode_map_start, super->inode_count);
    mark_rest_used(image, super->block_map_start, super->block_count);
    give_inode(image, FILE_DIRECTORY);
    image->next_inode += INODES_AT_BOOT;
    bool added = add_root_entry(image, ROOT_INODE, ".") && add_root_entry(image, ROOT_INODE, "..");
    return added ? NULL : "not enough memory";
}

static const char *image_add(struct image *image, const char *name, const void *contents,
                             size_t size)
{
    if (size > FILE_BYTES_MAX)
        return "the file is too large";
    uint32_t number = give_inode(image, FILE_REGULAR);
    if (number == 0)
        return "too many files for this disk";
    if (!fill_file(image, number, contents, size))
        return "the disk is too small";
    return add_root_entry(image, number, name) ? NULL : "not enough memory";
}

/* Writes the root directory. Must be called once, after all files are added. */
static const char *image_end(struct image *image)
{
    size_t bytes = image->root_entries * sizeof(struct directory_entry);
    return fill_file(image, ROOT_INODE, image->root, bytes) ? NULL : "the disk is too small";
}

static void image_free(struct image *image)
{
    free(image->bytes);
    free(image->root);
}

#ifndef HOST_TEST

static const char usage[] =
    "usage: mkfs IMAGE BLOCKS [FILE[=NAME]...]\n"
    "       mkfs IMAGE --add OLD [FILE[=NAME]...]\n"
    "  IMAGE   file to make\n"
    "  OLD     an image that mkfs made: its files, then these\n"
    "  BLOCKS  its size in blocks of 4096 bytes\n"
    "  FILE    is copied to the image's root directory, as NAME or under its name,\n"
    "          which has at most 14 bytes\n";

enum { SUCCESS = 0, FAILED = 1, WRONG_USAGE = 2 };

static int complain(int status, const char *subject, const char *reason)
{
    fprintf(stderr, "mkfs: %s: %s\n", subject, reason);
    return status;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Starts an image with capacity for many small files, and a journal of a sixteenth of the disk. */
static const char *begin(struct image *image, uint32_t blocks)
{
    uint32_t inodes = clamp(blocks / 4, 64, 16384) / INODES_PER_BLOCK * INODES_PER_BLOCK;
    return image_begin(image, blocks, inodes, clamp(blocks / 16, JOURNAL_LOG_MIN, 1024));
}

/* Returns the whole file, for the caller to free; null with errno. */
static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *contents = NULL;
    size_t room = 0;

    *size = 0;
    if (!file)
        return NULL;
    do {
        room += 1 << 20;
        uint8_t *larger = realloc(contents, room);
        if (!larger)
            break;
        contents = larger;
        *size += fread(contents + *size, 1, room - *size, file);
    } while (*size == room);
    bool complete = *size < room && !ferror(file);
    fclose(file);
    if (complete)
        return contents;
    free(contents);
    return NULL;
}

static bool has_name(const struct image *image, const char *name)
{
    for (size_t i = 0; i < image->root_entries; i++) {
        if (strncmp(image->root[i].name, name, DIRECTORY_NAME_BYTES) == 0)
            return true;
    }
    return false;
}

/* FILE or FILE=NAME. */
static int add_argument(struct image *image, char *argument)
{
    char *equals = strrchr(argument, '=');
    char *slash = strrchr(argument, '/');
    const char *name = equals ? equals + 1 : slash ? slash + 1 : argument;
    size_t size;

    if (equals)
        *equals = 0;
    if (*name == 0 || strchr(name, '/') || strlen(name) > DIRECTORY_NAME_BYTES)
        return complain(WRONG_USAGE, name, "a name has 1 to 14 bytes, none of them '/'");
    if (has_name(image, name))
        return complain(WRONG_USAGE, name, "duplicate file name");
    void *contents = read_file(argument, &size);
    if (!contents)
        return complain(FAILED, argument, strerror(errno));
    const char *problem = image_add(image, name, contents, size);
    free(contents);
    return problem ? complain(FAILED, argument, problem) : SUCCESS;
}

/* Blocks of zeros are skipped: the file has holes there. */
static bool write_blocks(const struct image *image, FILE *file)
{
    static const uint8_t zeros[FS_BLOCK_BYTES];
    for (uint32_t i = 0; i < image->super.block_count; i++) {
        const void *block = image_block(image, i);
        if (memcmp(block, zeros, sizeof(zeros)) == 0)
            continue;
        if (fseeko(file, (off_t)i * FS_BLOCK_BYTES, SEEK_SET) != 0 ||
            fwrite(block, FS_BLOCK_BYTES, 1, file) != 1)
            return false;
    }
    return fflush(file) == 0 &&
           ftruncate(fileno(file), (off_t)image->super.block_count * FS_BLOCK_BYTES) == 0;
}

/* Uses another name until the image is complete. */
static int write_image(const struct image *image, const char *path)
{
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return complain(FAILED, path, "not enough memory");

    FILE *file = fopen(temporary, "wb");
    bool written = file && write_blocks(image, file);
    int error = errno;
    if (file && fclose(file) != 0) {
        written = false;
        error = errno;
    }
    if (written && rename(temporary, path) != 0) {
        written = false;
        error = errno;
    }
    if (file && !written)
        remove(temporary);
    free(temporary);
    return written ? SUCCESS : complain(FAILED, path, strerror(error));
}

static bool parse_blocks(const char *text, uint32_t *blocks)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *blocks = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && value <= UINT32_MAX;
}

static int make_image(struct image *image, int files, char *file[])
{
    int status = SUCCESS;
    for (int i = 0; i < files && status == SUCCESS; i++)
        status = add_argument(image, file[i]);
    if (status != SUCCESS)
        return status;
    const char *problem = image_end(image);
    return problem ? complain(FAILED, "/", problem) : SUCCESS;
}

static bool block_is_used(const struct image *image, uint32_t block)
{
    const uint8_t *map = image_block(image, image->super.block_map_start);
    return block < image->super.block_count && (map[block / 8] >> block % 8 & 1);
}

/* Returns true if the root's blocks are the last used ones, as image_end() places them. */
static bool root_is_last(const struct image *image, const struct disk_inode *root)
{
    if (root->type != FILE_DIRECTORY || root->blocks == 0 || root->blocks > DIRECT_BLOCKS)
        return false;
    for (uint32_t i = 0; i < root->blocks; i++) {
        if (root->direct[i] != root->direct[0] + i || !block_is_used(image, root->direct[i]))
            return false;
    }
    return !block_is_used(image, root->direct[0] + root->blocks);
}

/* Undoes image_end(): the root's entries become a list again, its blocks free. */
static bool take_back_root(struct image *image)
{
    struct disk_inode *root = image_inode(image, ROOT_INODE);
    uint32_t first = root->direct[0];
    image->root = malloc(root->size);
    if (!image->root)
        return false;
    memcpy(image->root, image_block(image, first), root->size);
    image->root_entries = root->size / sizeof(struct directory_entry);
    memset(image_block(image, first), 0, (size_t)root->blocks * FS_BLOCK_BYTES);
    uint8_t *map = image_block(image, image->super.block_map_start);
    for (uint32_t block = first; block < first + root->blocks; block++)
        map[block / 8] &= (uint8_t)~(1u << block % 8);
    image->next_block = first;
    *root = (struct disk_inode){.type = FILE_DIRECTORY, .links = root->links};
    return true;
}

/* Continues an image that mkfs made, with these bytes. Returns null, or the reason of a failure. */
static const char *image_continue(struct image *image, uint8_t *bytes, size_t size)
{
    *image = (struct image){.bytes = bytes};
    if (size < FS_BLOCK_BYTES)
        return "not a disk image";
    memcpy(&image->super, bytes, sizeof(image->super));
    if (!superblock_valid(&image->super, size / FS_BLOCK_BYTES))
        return "not a disk image";
    if (!root_is_last(image, image_inode(image, ROOT_INODE)))
        return "it was changed after mkfs made it";
    const uint8_t *map = image_block(image, image->super.inode_map_start);
    image->next_inode = ROOT_INODE + 1 + INODES_AT_BOOT;
    while (image->next_inode < image->super.inode_count &&
           (map[image->next_inode / 8] >> image->next_inode % 8 & 1))
        image->next_inode++;
    return take_back_root(image) ? NULL : "not enough memory";
}

/* Uses the old image as the beginning of a new one. */
static int continue_old(struct image *image, const char *path)
{
    size_t size;
    *image = (struct image){0};
    uint8_t *bytes = read_file(path, &size);
    if (!bytes)
        return complain(FAILED, path, strerror(errno));
    const char *problem = image_continue(image, bytes, size);
    return problem ? complain(FAILED, path, problem) : SUCCESS;
}

int main(int count, char *argument[])
{
    struct image image;
    uint32_t blocks = 0;
    bool add = count > 3 && strcmp(argument[2], "--add") == 0;

    if (!add && (count < 3 || !parse_blocks(argument[2], &blocks))) {
        fputs(usage, stderr);
        return WRONG_USAGE;
    }
    int words = add ? 4 : 3;
    const char *problem = add ? NULL : begin(&image, blocks);
    int status = add ? continue_old(&image, argument[3]) : SUCCESS;
    if (problem)
        status = complain(FAILED, argument[1], problem);
    if (status == SUCCESS)
        status = make_image(&image, count - words, argument + words);
    if (status == SUCCESS)
        status = write_image(&image, argument[1]);
    image_free(&image);
    return status;
}

#endif
