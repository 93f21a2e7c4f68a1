/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_JOURNAL_H
#define KERNEL_FS_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "block_cache.h"
#include "disk_format.h"
#include "lib/list.h"

/*
 * The write-ahead journal. An operation reaches the disk completely or not at all: the changes
 * between its journal_begin() and its journal_end(). Concurrent operations form one transaction,
 * and the last of them commits it. docs/file-system.md explains it in full.
 *
 * Order: first begin, then take mutexes; release them, then end.
 */
struct operation {
    uint32_t credits; /* blocks that it may still add to the transaction */
    bool admitted;    /* it is part of the running transaction */
    bool wrote;       /* it has to wait for the commit */
    uint64_t round;   /* its transaction */
    struct list link; /* in the queue of operations that wait to begin */
};

/* Replays the disk's journal, and begins a new one. Returns 0, -EIO or -ENOMEM. */
int journal_open(const struct superblock *super);

/* Returns how many blocks one operation may ask for. */
uint32_t journal_credits_max(void);

/* Waits until the operation may change `credits` blocks. Returns 0, or -EIO: the journal has
 * failed. */
int journal_begin(struct operation *operation, uint32_t credits);
/* Declares that the operation will change this block's contents. */
void journal_write(struct operation *operation, struct cached_block *block);
/* Waits until the operation's changes are committed. Returns 0 or -EIO. */
int journal_end(struct operation *operation);
/* Does the same for an operation that may have failed; an `error` other than 0 takes precedence. */
static inline int journal_end_with(struct operation *operation, int error)
{
    int commit_error = journal_end(operation);
    return error ? error : commit_error;
}

/* Returns when all changes are at home, and the journal is empty: 0 or -EIO. */
int journal_sync(void);

/* Returns true if some blocks must stay in memory until journal_sync() has written them home. */
bool journal_holds_blocks(void);

/* Returns true if a write to the disk has failed. Then nothing more is written until the next
 * mount. */
bool journal_failed(void);

/*
 * journal_recovery.c: replays the log's transactions, in order. Returns where
 * to write the next transaction, and which of the two headers must not be
 * overwritten. Returns 0, -EIO or -ENOMEM.
 */
struct log_end {
    uint64_t sequence; /* of the transaction that was not found */
    uint32_t header;   /* the header in use */
};
int journal_recover(const struct superblock *super, struct log_end *end);

#endif
