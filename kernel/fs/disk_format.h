/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_DISK_FORMAT_H
#define KERNEL_FS_DISK_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/files.h"

/*
 * The layout of the disk, in blocks of 4096 bytes, little-endian; docs/file-system.md explains it.
 * Shared by the kernel, mkfs and fsck.
 *
 *   block 0     superblock
 *   2 blocks    journal headers, written alternately
 *   n blocks    journal: a ring of transactions
 *   bitmap      inodes in use
 *   bitmap      inodes with blocks to free (unlinked while open, or being truncated)
 *   bitmap      blocks in use
 *   n blocks    inodes, 32 to a block
 *   the rest    contents of files and directories, and tables of their blocks
 */
#define FS_BLOCK_BYTES  4096u
#define FS_MAGIC        0x0153464c44454353ull /* "SCEDLFS" 1 */
#define FS_VERSION      1u
#define ROOT_INODE      1u     /* 0: none */
#define INODES_MAX      65536u /* directory entries have 16-bit numbers */
#define BITS_PER_BLOCK  (FS_BLOCK_BYTES * 8)
#define JOURNAL_HEADERS 2u
#define JOURNAL_LOG_MIN 64u    /* blocks */
#define JOURNAL_LOG_MAX 65536u /* blocks */

struct superblock {
    uint64_t magic;
    uint32_t version;
    uint32_t block_bytes;
    uint32_t block_count; /* of the file system; the disk may be larger */
    uint32_t inode_count; /* including number 0, which is not used; a multiple of 32 */
    uint32_t journal_start;
    uint32_t log_start;
    uint32_t log_blocks;
    uint32_t inode_map_start;
    uint32_t reclaim_map_start;
    uint32_t block_map_start;
    uint32_t block_map_blocks;
    uint32_t inode_table_start;
    uint32_t data_start;
    uint32_t reserved; /* 0 */
    uint64_t checksum; /* of everything before it */
};

#define DIRECT_BLOCKS    24u
#define TABLE_ENTRIES    (FS_BLOCK_BYTES / 4)
#define FILE_BLOCKS_MAX  (DIRECT_BLOCKS + TABLE_ENTRIES + TABLE_ENTRIES * TABLE_ENTRIES)
#define FILE_BYTES_MAX   ((uint64_t)FILE_BLOCKS_MAX * FS_BLOCK_BYTES)
#define INODE_FREE       0u /* type of an unused inode; others: abi/files.h */
#define LINKS_MAX        32767u
#define INODES_PER_BLOCK (FS_BLOCK_BYTES / 128)

/*
 * The file's blocks number 0 to blocks - 1 all exist, and pointers beyond are
 * meaningless. `blocks` is what `size` needs. It is more only while the inode
 * is marked in the bitmap of inodes to reclaim.
 */
struct disk_inode {
    uint16_t type;
    uint16_t links; /* directory entries; of a directory: those of its parent and its children */
    uint16_t major; /* of a device */
    uint16_t minor;
    uint64_t size; /* bytes */
    uint32_t blocks;
    uint32_t reserved;
    uint32_t direct[DIRECT_BLOCKS];
    uint32_t indirect;        /* a table of TABLE_ENTRIES blocks */
    uint32_t double_indirect; /* a table of tables */
};

#define ENTRIES_PER_BLOCK (FS_BLOCK_BYTES / sizeof(struct directory_entry))

/* The place of the oldest transaction that may have to be replayed. The later of two headers is
 * valid. */
#define JOURNAL_HEADER_MAGIC 0x4c4e524a44414548ull
struct journal_header {
    uint64_t magic;
    uint64_t sequence; /* of the next transaction found there */
    uint64_t position; /* in the log, from 0 */
    uint64_t checksum; /* of everything before it */
};

/*
 * A transaction in the log: one block with this record, then `count` blocks of
 * contents, for the homes named here. It is committed if the checksum is right,
 * so the record and the contents may reach the disk in any order.
 */
#define JOURNAL_RECORD_MAGIC 0x4f4345524c4e524aull
#define RECORD_BLOCKS_MAX    1016u
struct journal_record {
    uint64_t magic;
    uint64_t sequence;
    uint64_t checksum; /* of this block, with 0 here, and of the contents */
    uint32_t count;
    uint32_t reserved;
    uint32_t home[RECORD_BLOCKS_MAX];
};

_Static_assert(sizeof(struct superblock) == 72, "the superblock's layout is fixed");
_Static_assert(sizeof(struct disk_inode) == 128, "the inode's layout is fixed");
_Static_assert(sizeof(struct journal_record) == FS_BLOCK_BYTES, "a record is a block");
_Static_assert(sizeof(struct directory_entry) == 16, "the entry's layout is fixed");

/*
 * A checksum of whole 64-bit words, fast without special instructions. Each step
 * is a bijection of the sum and of the word, so a change of one word always shows.
 */
#define CHECKSUM_START 0x736368656466736cull
static inline uint64_t checksum_add(uint64_t sum, const void *data, size_t bytes)
{
    typedef uint64_t __attribute__((may_alias)) word;
    const word *words = (const word *)data;

    for (size_t i = 0; i < bytes / sizeof(word); i++) {
        sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ull;
        sum ^= sum >> 29;
    }
    return sum;
}

static inline uint64_t superblock_checksum(const struct superblock *super)
{
    return checksum_add(CHECKSUM_START, super, offsetof(struct superblock, checksum));
}

static inline uint64_t journal_header_checksum(const struct journal_header *header)
{
    return checksum_add(CHECKSUM_START, header, offsetof(struct journal_header, checksum));
}

static inline uint32_t bitmap_blocks(uint32_t bits)
{
    return (uint32_t)(((uint64_t)bits + BITS_PER_BLOCK - 1) / BITS_PER_BLOCK);
}

static inline uint32_t blocks_of_bytes(uint64_t bytes)
{
    return (uint32_t)((bytes + FS_BLOCK_BYTES - 1) / FS_BLOCK_BYTES);
}

/* Computes the only layout for these sizes. Returns false if they exceed their ranges, or leave
 * no space for files. */
static inline bool superblock_make(struct superblock *super, uint32_t blocks, uint32_t inodes,
                                   uint32_t log_blocks)
{
    if (inodes < INODES_PER_BLOCK || inodes > INODES_MAX || inodes % INODES_PER_BLOCK != 0 ||
        log_blocks < JOURNAL_LOG_MIN || log_blocks > JOURNAL_LOG_MAX)
        return false;
    *super = (struct superblock){
        .magic = FS_MAGIC,
        .version = FS_VERSION,
        .block_bytes = FS_BLOCK_BYTES,
        .block_count = blocks,
        .inode_count = inodes,
        .journal_start = 1,
        .log_start = 1 + JOURNAL_HEADERS,
        .log_blocks = log_blocks,
        .block_map_blocks = bitmap_blocks(blocks),
    };
    super->inode_map_start = super->log_start + log_blocks;
    super->reclaim_map_start = super->inode_map_start + bitmap_blocks(inodes);
    super->block_map_start = super->reclaim_map_start + bitmap_blocks(inodes);
    super->inode_table_start = super->block_map_start + super->block_map_blocks;
    super->data_start = super->inode_table_start + inodes / INODES_PER_BLOCK;
    super->checksum = superblock_checksum(super);
    return super->data_start < blocks;
}

/* Returns true if superblock_make() would produce it, for a disk of this many blocks. */
static inline bool superblock_valid(const struct superblock *super, uint64_t disk_blocks)
{
    struct superblock expected;

    return super->block_count <= disk_blocks &&
           superblock_make(&expected, super->block_count, super->inode_count, super->log_blocks) &&
           __builtin_memcmp(super, &expected, sizeof(expected)) == 0;
}

/* Returns true if the inode's fields are consistent. The targets of its pointers are checked on
 * use. */
static inline bool disk_inode_valid(const struct disk_inode *inode)
{
    bool has_contents = inode->type == FILE_REGULAR || inode->type == FILE_DIRECTORY;

    if (!has_contents && inode->type != FILE_DEVICE)
        return false;
    if (!has_contents && (inode->size != 0 || inode->blocks != 0))
        return false;
    if (inode->type == FILE_DIRECTORY && inode->size % sizeof(struct directory_entry) != 0)
        return false;
    return inode->links <= LINKS_MAX && inode->size <= FILE_BYTES_MAX &&
           inode->blocks <= FILE_BLOCKS_MAX && inode->blocks >= blocks_of_bytes(inode->size);
}

/* The path to a file's block: through `depth` tables, with these indexes, the first in the
 * inode. */
struct block_path {
    uint32_t depth;
    uint32_t index[3];
};

static inline struct block_path block_path_of(uint32_t file_block)
{
    if (file_block < DIRECT_BLOCKS)
        return (struct block_path){.depth = 0, .index = {file_block}};
    file_block -= DIRECT_BLOCKS;
    if (file_block < TABLE_ENTRIES)
        return (struct block_path){.depth = 1, .index = {0, file_block}};
    file_block -= TABLE_ENTRIES;
    return (struct block_path){
        .depth = 2, .index = {0, file_block / TABLE_ENTRIES, file_block % TABLE_ENTRIES}};
}

/* Returns where in the inode the path begins. */
static inline uint32_t *block_path_root(struct disk_inode *inode, const struct block_path *path)
{
    if (path->depth == 0)
        return &inode->direct[path->index[0]];
    return path->depth == 1 ? &inode->indirect : &inode->double_indirect;
}

/* Returns true if the file's block is the first that needs the table at this level, counted from
 * 0. */
static inline bool block_path_first_at(const struct block_path *path, uint32_t level)
{
    for (uint32_t i = level + 1; i <= path->depth; i++) {
        if (path->index[i] != 0)
            return false;
    }
    return true;
}

#endif
