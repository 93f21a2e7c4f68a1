/* SPDX-License-Identifier: MIT */

#include "fs/journal.h"

#include "abi/errors.h"
#include "fs/disk.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/page.h"
#include "process/process.h"

/*
 * One transaction runs at a time. It is open to new operations until an operation that wrote has
 * ended. Then it closes, so that no operation waits endlessly. When its last operation ends, that
 * process commits it. Operations that want to begin during the commit wait in a queue, and the
 * committer admits them to the next transaction together. So a busy disk has large transactions.
 *
 * Committed blocks stay in memory, "unsettled", until the log is half full. Then, between two
 * transactions, all are written to their homes. No operation runs then, so memory contains exactly
 * what was committed.
 */
static struct {
    struct spinlock lock;

    /* the running transaction */
    struct list blocks;
    uint32_t block_count;
    uint32_t reserved; /* credits of its operations */
    uint32_t running;  /* operations */
    uint64_t round;    /* counts transactions, including empty ones */
    bool closed;       /* accepts no more operations */

    bool committing;       /* guards all fields below, too, except `error` and `waiting` */
    bool settle_requested; /* the next commit also writes everything home */
    int error;             /* -EIO once the disk has failed */
    struct list waiting;   /* operations in line */
    struct wait_queue admission;
    struct wait_queue commits;

    struct list unsettled;
    uint32_t unsettled_count;
    uint32_t log_start;
    uint32_t log_blocks;
    uint32_t head;  /* the place of the next transaction in the log */
    uint32_t used;  /* blocks of the log that the header's transactions take */
    uint32_t limit; /* blocks in one transaction */
    uint64_t sequence;
    uint32_t journal_start;
    uint32_t header; /* the header that was last written */
    void *page;      /* for a record or a header during its write */
} journal;

/* ---- the log ---- */

static uint64_t log_block(uint32_t position)
{
    return journal.log_start + position % journal.log_blocks;
}

/* The committed transactions so far need no replay. */
static int write_header(void)
{
    struct journal_header *header = memset(journal.page, 0, BLOCK_BYTES);
    *header = (struct journal_header){
        .magic = JOURNAL_HEADER_MAGIC,
        .sequence = journal.sequence,
        .position = journal.head,
    };
    header->checksum = journal_header_checksum(header);
    journal.header = (journal.header + 1) % JOURNAL_HEADERS;

    int error = disk_write(journal.journal_start + journal.header, journal.page);
    if (!error)
        error = disk_flush();
    if (!error)
        journal.used = 0;
    return error;
}

/* Makes the record of the running transaction. Slow: it reads all changed blocks. */
static struct journal_record *make_record(void)
{
    struct journal_record *record = memset(journal.page, 0, BLOCK_BYTES);
    record->magic = JOURNAL_RECORD_MAGIC;
    record->sequence = journal.sequence;
    list_for_each(link, &journal.blocks) record->home[record->count++] =
        container_of(link, struct cached_block, transaction)->number;
    kernel_assert(record->count == journal.block_count);

    uint64_t sum = checksum_add(CHECKSUM_START, record, BLOCK_BYTES);
    list_for_each(link, &journal.blocks)
    {
        struct cached_block *block = container_of(link, struct cached_block, transaction);
        sum = checksum_add(sum, block->data, BLOCK_BYTES);
        preemption_point();
    }
    record->checksum = sum;
    return record;
}

/* The record and the contents are written together; the checksum shows whether all arrived. */
static int write_transaction(void)
{
    struct disk_batch batch;
    struct block_request record_request;
    uint32_t position = journal.head;

    struct journal_record *record = make_record();
    disk_batch_init(&batch);
    disk_start(&batch, &record_request, BLOCK_WRITE, log_block(position++), record);
    list_for_each(link, &journal.blocks)
    {
        struct cached_block *block = container_of(link, struct cached_block, transaction);
        disk_start(&batch, &block->request, BLOCK_WRITE, log_block(position++), block->data);
    }
    int error = disk_wait(&batch);
    return error ? error : disk_flush();
}

/* The running transaction's blocks become unsettled. */
static void pass_blocks_on(void)
{
    while (!list_empty(&journal.blocks)) {
        struct cached_block *block =
            container_of(journal.blocks.next, struct cached_block, transaction);
        list_remove(&block->transaction);
        block->in_transaction = false;
        if (list_empty(&block->unsettled)) {
            list_append(&journal.unsettled, &block->unsettled);
            journal.unsettled_count++;
        } else {
            block_put(block); /* the older transaction keeps it */
        }
    }
}

static int commit_blocks(void)
{
    int error = write_transaction();
    if (error)
        return error;
    journal.head = (journal.head + journal.block_count + 1) % journal.log_blocks;
    journal.used += journal.block_count + 1;
    journal.sequence++;
    pass_blocks_on();
    journal.block_count = 0;
    return 0;
}

/* ---- settling: writing committed blocks home ---- */

static int write_home(void)
{
    struct disk_batch batch;

    disk_batch_init(&batch);
    list_for_each(link, &journal.unsettled)
    {
        struct cached_block *block = container_of(link, struct cached_block, unsettled);
        disk_start(&batch, &block->request, BLOCK_WRITE, block->number, block->data);
    }
    int error = disk_wait(&batch);
    return error ? error : disk_flush();
}

/* The homes reach the medium before the header forgets the log, and the header before the log is
 * reused. */
static int settle(void)
{
    if (list_empty(&journal.unsettled))
        return 0;
    int error = write_home();
    if (!error)
        error = write_header();
    if (error)
        return error;
    while (!list_empty(&journal.unsettled)) {
        struct cached_block *block =
            container_of(journal.unsettled.next, struct cached_block, unsettled);
        list_remove(&block->unsettled);
        block_put(block);
    }
    journal.unsettled_count = 0;
    return 0;
}

/* A transaction of the largest size must always fit into the log, and into the cache. */
static bool must_settle(void)
{
    return journal.log_blocks - journal.used < journal.limit + 1 ||
           journal.unsettled_count > block_cache_bound_now() / 2;
}

/* ---- operations ---- */

static bool has_room(uint32_t credits)
{
    return journal.block_count + journal.reserved + credits <= journal.limit;
}

static void admit(struct operation *operation)
{
    operation->admitted = true;
    operation->round = journal.round;
    journal.reserved += operation->credits;
    journal.running++;
}

/* Admits queued operations, in their order, while there are enough credits. */
static void admit_waiting(void)
{
    bool any = false;
    while (!journal.closed && !list_empty(&journal.waiting)) {
        struct operation *first = container_of(journal.waiting.next, struct operation, link);
        if (!has_room(first->credits))
            break;
        list_remove(&first->link);
        admit(first);
        any = true;
    }
    if (any)
        wake_all(&journal.admission);
}

static void wait_in_line(struct operation *operation)
{
    list_append(&journal.waiting, &operation->link);
    while (!operation->admitted && !journal.error)
        wait_on_always(&journal.admission, &journal.lock, BLOCK_JOURNAL);
    if (!operation->admitted)
        list_remove(&operation->link);
}

int journal_begin(struct operation *operation, uint32_t credits)
{
    kernel_assert(credits <= journal.limit);
    *operation = (struct operation){.credits = credits};
    list_init(&operation->link);

    spinlock_acquire(&journal.lock);
    bool open = !journal.closed && !journal.committing && list_empty(&journal.waiting);
    if (!journal.error) {
        if (open && has_room(credits))
            admit(operation);
        else
            wait_in_line(operation);
    }
    spinlock_release(&journal.lock);
    return operation->admitted ? 0 : -EIO;
}

void journal_write(struct operation *operation, struct cached_block *block)
{
    bool added = false;

    spinlock_acquire(&journal.lock);
    kernel_assert(operation->admitted && !journal.committing);
    operation->wrote = true;
    if (!block->in_transaction) {
        kernel_assert(operation->credits > 0);
        operation->credits--;
        journal.reserved--;
        journal.block_count++;
        block->in_transaction = true;
        list_append(&journal.blocks, &block->transaction);
        added = true;
    }
    spinlock_release(&journal.lock);
    if (added)
        block_share(block); /* the transaction is a separate user; the caller still is one, too */
}

static void fail(void)
{
    journal.error = -EIO;
    print("file system: the disk failed; nothing more is written to it\n");
    wake_all(&journal.admission);
    wake_all(&journal.commits);
}

/* Ends a transaction: operations that wait for it return, queued operations begin the next. */
static void next_transaction(void)
{
    journal.closed = false;
    journal.round++;
    wake_all(&journal.commits);
}

/*
 * Called by the process that ended the transaction's last operation, with the
 * lock held; the lock is free while the disk works. Only that process and
 * operations that want to begin wait for the settling, unless it was requested.
 */
static void commit(void)
{
    bool settle_first = journal.settle_requested;

    journal.committing = true;
    spinlock_release(&journal.lock);
    int error = journal.block_count > 0 ? commit_blocks() : 0;
    if (!error && settle_first)
        error = settle();
    spinlock_acquire(&journal.lock);

    if (!error) {
        next_transaction();
        if (must_settle()) {
            spinlock_release(&journal.lock);
            error = settle();
            spinlock_acquire(&journal.lock);
        }
    }
    if (error)
        fail();
    journal.settle_requested = false;
    journal.committing = false;
}

int journal_end(struct operation *operation)
{
    spinlock_acquire(&journal.lock);
    kernel_assert(operation->admitted && operation->round == journal.round);
    kernel_assert(journal.running > 0 && journal.reserved >= operation->credits);
    journal.reserved -= operation->credits;
    journal.running--;
    journal.closed |= operation->wrote;

    if (journal.running == 0 && journal.closed && !journal.error)
        commit();
    else
        while (operation->wrote && operation->round == journal.round && !journal.error)
            wait_on_always(&journal.commits, &journal.lock, BLOCK_JOURNAL);
    if (!journal.error && !journal.committing)
        admit_waiting();
    int error = operation->wrote && operation->round == journal.round ? -EIO : 0;
    spinlock_release(&journal.lock);
    return error;
}

int journal_sync(void)
{
    struct operation operation;
    int error = journal_begin(&operation, 0);
    if (error)
        return error;
    spinlock_acquire(&journal.lock);
    journal.settle_requested = true;
    operation.wrote = true;
    spinlock_release(&journal.lock);
    return journal_end(&operation);
}

bool journal_holds_blocks(void)
{
    return __atomic_load_n(&journal.unsettled_count, __ATOMIC_RELAXED) > 0 && !journal_failed();
}

bool journal_failed(void)
{
    return __atomic_load_n(&journal.error, __ATOMIC_RELAXED) != 0;
}

uint32_t journal_credits_max(void)
{
    return journal.limit;
}

/* ---- at mount ---- */

/* Half of the log, so that a transaction fits while the other half waits to be settled. */
static uint32_t transaction_limit(void)
{
    size_t limit = journal.log_blocks / 2 - 1;
    if (limit > RECORD_BLOCKS_MAX)
        limit = RECORD_BLOCKS_MAX;
    if (limit > block_cache_bound() / 4)
        limit = block_cache_bound() / 4;
    return (uint32_t)limit;
}

static void journal_init(const struct superblock *super)
{
    memset(&journal, 0, sizeof(journal));
    spinlock_init(&journal.lock, "journal", LOCK_FILES);
    wait_queue_init(&journal.admission, "journal admission");
    wait_queue_init(&journal.commits, "journal commits");
    list_init(&journal.blocks);
    list_init(&journal.waiting);
    list_init(&journal.unsettled);
    journal.journal_start = super->journal_start;
    journal.log_start = super->log_start;
    journal.log_blocks = super->log_blocks;
    journal.limit = transaction_limit();
}

/*
 * The sequence numbers of each mount begin at a new multiple of 2^32. So an
 * unfinished transaction of an earlier mount is never mistaken for a present
 * one.
 */
int journal_open(const struct superblock *super)
{
    struct log_end end;
    int error = journal_recover(super, &end);
    if (error)
        return error;

    journal_init(super);
    journal.header = end.header;
    journal.sequence = ((end.sequence >> 32) + 1) << 32;
    journal.page = page_allocate();
    if (!journal.page)
        return -ENOMEM;
    return write_header();
}
