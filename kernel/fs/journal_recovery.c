/* SPDX-License-Identifier: MIT */

#include "abi/errors.h"
#include "fs/disk.h"
#include "fs/journal.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/page.h"

/* The state of recovery: two pages for blocks in transfer. */
struct recovery {
    const struct superblock *super;
    struct journal_record *record;
    void *contents;
    uint64_t sequence; /* of the transaction to find */
    uint32_t position; /* in the log */
    uint32_t replayed; /* blocks of the log, records included */
};

static uint64_t log_address(const struct recovery *recovery, uint32_t offset)
{
    const struct superblock *super = recovery->super;
    return super->log_start + (recovery->position + offset) % super->log_blocks;
}

static bool header_valid(const struct superblock *super, const struct journal_header *header)
{
    return header->magic == JOURNAL_HEADER_MAGIC && header->position < super->log_blocks &&
           header->checksum == journal_header_checksum(header);
}

/* Reads the valid header with the highest number: a crash may have corrupted the other. */
static int read_headers(struct recovery *recovery, struct log_end *end)
{
    bool has_match = false;

    for (uint32_t i = 0; i < JOURNAL_HEADERS; i++) {
        const struct journal_header *header = recovery->contents;
        int error = disk_read(recovery->super->journal_start + i, recovery->contents);
        if (error)
            return error;
        if (!header_valid(recovery->super, header))
            continue;
        if (has_match && header->sequence < recovery->sequence)
            continue;
        has_match = true;
        recovery->sequence = header->sequence;
        recovery->position = (uint32_t)header->position;
        end->header = i;
    }
    return has_match ? 0 : -EIO;
}

/* Only blocks after the log are ever journaled. */
static bool homes_valid(const struct recovery *recovery)
{
    const struct journal_record *record = recovery->record;
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->home[i] < recovery->super->inode_map_start ||
            record->home[i] >= recovery->super->block_count)
            return false;
    }
    return true;
}

/* Returns true if the record just read may belong to the transaction to find. */
static bool record_plausible(const struct recovery *recovery)
{
    const struct journal_record *record = recovery->record;
    uint32_t left = recovery->super->log_blocks - recovery->replayed;
    return record->magic == JOURNAL_RECORD_MAGIC && record->sequence == recovery->sequence &&
           record->count >= 1 && record->count <= RECORD_BLOCKS_MAX && record->count < left;
}

/* Reads the record of the next transaction. Returns 1 if that is committed, 0 if it is not, or
 * -EIO. */
static int find_transaction(struct recovery *recovery)
{
    struct journal_record *record = recovery->record;
    int error = disk_read(log_address(recovery, 0), record);
    if (error)
        return error;
    if (recovery->replayed >= recovery->super->log_blocks || !record_plausible(recovery))
        return 0;

    uint64_t expected = record->checksum;
    record->checksum = 0;
    uint64_t sum = checksum_add(CHECKSUM_START, record, BLOCK_BYTES);
    for (uint32_t i = 0; i < record->count; i++) {
        error = disk_read(log_address(recovery, 1 + i), recovery->contents);
        if (error)
            return error;
        sum = checksum_add(sum, recovery->contents, BLOCK_BYTES);
    }
    if (sum != expected)
        return 0;
    return homes_valid(recovery) ? 1 : -EIO;
}

static int replay_transaction(struct recovery *recovery)
{
    const struct journal_record *record = recovery->record;
    for (uint32_t i = 0; i < record->count; i++) {
        int error = disk_read(log_address(recovery, 1 + i), recovery->contents);
        if (!error)
            error = disk_write(record->home[i], recovery->contents);
        if (error)
            return error;
    }
    recovery->position = (recovery->position + record->count + 1) % recovery->super->log_blocks;
    recovery->replayed += record->count + 1;
    recovery->sequence++;
    return 0;
}

static int replay_log(struct recovery *recovery)
{
    uint64_t first = recovery->sequence;
    int match;

    while ((match = find_transaction(recovery)) > 0) {
        int error = replay_transaction(recovery);
        if (error)
            return error;
    }
    if (match < 0 || recovery->sequence == first)
        return match;
    print("file system: replayed %u transactions\n", (unsigned)(recovery->sequence - first));
    return disk_flush();
}

int journal_recover(const struct superblock *super, struct log_end *end)
{
    struct recovery recovery = {
        .super = super, .record = page_allocate(), .contents = page_allocate()};
    int error = recovery.record && recovery.contents ? 0 : -ENOMEM;

    if (!error)
        error = read_headers(&recovery, end);
    if (!error)
        error = replay_log(&recovery);
    end->sequence = recovery.sequence;
    if (recovery.record)
        page_release(recovery.record);
    if (recovery.contents)
        page_release(recovery.contents);
    return error;
}
