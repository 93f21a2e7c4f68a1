/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_FILE_SYSTEM_MACHINE_H
#define TESTS_HOST_FILE_SYSTEM_MACHINE_H

/*
 * A machine for the kernel's file system, on the host. Processes are coroutines that a seeded
 * scheduler switches where the kernel might. The disk records each write and flush, so that the
 * power may be cut at any point afterwards. Memory comes from the host's allocator, and may run out
 * on demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"

#include "kernel/fs/allocator.c"
#include "kernel/fs/block_cache.c"
#include "kernel/fs/directory.c"
#include "kernel/fs/disk.c"
#include "kernel/fs/file_blocks.c"
#include "kernel/fs/file_calls.c"
#include "kernel/fs/file_contents.c"
#include "kernel/fs/file_system.c"
#include "kernel/fs/file_table.c"
#include "kernel/fs/inode.c"
#include "kernel/fs/inode_cache.c"
#include "kernel/fs/journal.c"
#include "kernel/fs/journal_recovery.c"
#include "kernel/fs/namespace.c"
#include "kernel/fs/open_file.c"
#include "kernel/fs/pipe.c"
#include "kernel/fs/text_file.c"
#include "kernel/sync/mutex.c"
#include "tools/fsck.c"
#include "tools/mkfs.c"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_FIBERS 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

#define PROCESSES_MAX 16
#define STACK_BYTES   (256 * 1024)

/* ---- randomness: xorshift64* (Vigna 2016) ---- */

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static void random_seed(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15ull + 1;
}

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)((random_next() >> 32) % bound);
}

static bool random_chance(uint32_t one_in)
{
    return one_in > 0 && random_below(one_in) == 0;
}

/* ---- behaviour of the machine, set by the tests ---- */

static struct {
    uint32_t interleave;  /* switch at 1 in n releases of the last lock; 0: never */
    uint32_t preempt;     /* switch at 1 in n other points; 0: never */
    uint32_t spurious;    /* 1 in n switches wakes a process without cause */
    uint32_t immediate;   /* 1 in n transfers completes within block_submit() */
    bool shuffle;         /* random order of processes and transfers */
    uint32_t no_memory;   /* 1 in n allocations fails */
    uint64_t total_pages; /* result of page_total() */
    uint64_t free_pages;  /* result of page_free_count() */
    uint64_t fail_from;   /* first transfer that fails; 0: none */
    uint32_t fail_reads;  /* 1 in n reads fails */
} conduct = {.total_pages = 1024, .free_pages = 512};

/* ---- memory ---- */

struct piece {
    struct list link;
    void *memory; /* argument for free() */
    uint64_t users;
};

static struct list pieces = {&pieces, &pieces};
static uint64_t pages_in_use;

static void *piece_allocate(size_t header, size_t bytes)
{
    void *memory;
    check(posix_memalign(&memory, header, header + bytes) == 0);
    struct piece *piece = (struct piece *)((char *)memory + header) - 1;
    *piece = (struct piece){.memory = memory, .users = 1};
    list_append(&pieces, &piece->link);
    return piece + 1;
}

static struct piece *piece_of(void *memory)
{
    return (struct piece *)memory - 1;
}

static void piece_free(void *memory)
{
    struct piece *piece = piece_of(memory);
    list_remove(&piece->link);
    free(piece->memory);
}

/* Frees all memory, as a power cut does. */
static void forget_all_memory(void)
{
    while (!list_empty(&pieces))
        piece_free(container_of(pieces.next, struct piece, link) + 1);
    pages_in_use = 0;
}

void *page_allocate_row(size_t count)
{
    pages_in_use += count;
    void *page = piece_allocate(PAGE_BYTES, count * PAGE_BYTES);
    memset(page, 0xa5, count * PAGE_BYTES);
    return page;
}

void *page_allocate(void)
{
    return random_chance(conduct.no_memory) ? NULL : page_allocate_row(1);
}

bool page_release(void *page)
{
    pages_in_use--;
    piece_free(page);
    return true;
}

uint64_t page_total(void)
{
    return conduct.total_pages;
}

uint64_t page_free_count(void)
{
    return conduct.free_pages;
}

void object_cache_init(struct object_cache *objects, const char *name, size_t object_bytes)
{
    (void)name;
    objects->object_bytes = object_bytes;
    objects->used = 0;
}

void *object_allocate(struct object_cache *objects)
{
    if (random_chance(conduct.no_memory))
        return NULL;
    objects->used++;
    void *object = piece_allocate(64, objects->object_bytes);
    return memset(object, 0, objects->object_bytes);
}

void object_free(struct object_cache *objects, void *object)
{
    check(objects->used > 0);
    objects->used--;
    piece_free(object);
}

/* User memory is the host's memory; a test may make a part of it invalid. */
static struct {
    uint64_t start;
    uint64_t end;
} bad_memory = {0, PAGE_BYTES};

static size_t good_bytes(uint64_t address, size_t n)
{
    if (address + n <= bad_memory.start || address >= bad_memory.end)
        return n;
    return address >= bad_memory.start ? 0 : (size_t)(bad_memory.start - address);
}

int copy_from_user(void *destination, uint64_t source, size_t n)
{
    size_t good = good_bytes(source, n);
    memcpy(destination, (const void *)source, good);
    return good == n ? 0 : -EFAULT;
}

int copy_to_user(uint64_t destination, const void *source, size_t n)
{
    size_t good = good_bytes(destination, n);
    memcpy((void *)destination, source, good);
    return good == n ? 0 : -EFAULT;
}

int copy_text_from_user(char *destination, uint64_t source, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (copy_from_user(destination + i, source + i, 1) != 0)
            return -EFAULT;
        if (destination[i] == 0)
            return (int)i;
    }
    return -ENAMETOOLONG;
}

int buffer_put(struct buffer *buffer, const void *source, size_t n)
{
    int error = copy_to_user(buffer->address, source, n);
    buffer->address += n;
    return error;
}

int buffer_take(struct buffer *buffer, void *destination, size_t n)
{
    int error = copy_from_user(destination, buffer->address, n);
    buffer->address += n;
    return error;
}

void panic(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "panic: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

static bool print_log; /* shows the kernel's output */

void print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (print_log)
        vprintf(format, arguments);
    va_end(arguments);
}

int format_text_list(char *buffer, size_t size, const char *format, va_list arguments)
{
    return vsnprintf(buffer, size, format, arguments);
}

int format_text(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

/* ---- processes ---- */

struct coroutine {
    struct process process; /* first */
    ucontext_t context;
    void *stack;
    void *fake_stack;
    void (*body)(void *argument);
    void *argument;
    bool alive;
    bool blocked;
    bool killable;
    struct list wait_link;      /* in a wait queue */
    struct spinlock *innermost; /* innermost spin lock */
};

static struct coroutine coroutines[PROCESSES_MAX];
static struct coroutine *running; /* null: the scheduler, or an interrupt */
static ucontext_t scheduler_context;
static struct spinlock *scheduler_held; /* spin locks of interrupts */
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static uint64_t switches;

struct process *current_process(void)
{
    return running ? &running->process : NULL;
}

bool current_killed(void)
{
    return running && running->process.killed;
}

static struct spinlock **held_locks(void)
{
    return running ? &running->innermost : &scheduler_held;
}

static void finish_switch(void *fake_stack, const void **stack, size_t *bytes)
{
#ifdef WITH_FIBERS
    __sanitizer_finish_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack, (void)stack, (void)bytes;
#endif
}

static void start_switch(void **fake_stack, const void *stack, size_t bytes)
{
#ifdef WITH_FIBERS
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack, (void)stack, (void)bytes;
#endif
}

static void leave_coroutine(void)
{
    struct coroutine *self = running;
    running = NULL;
    start_switch(self->alive ? &self->fake_stack : NULL, scheduler_stack, scheduler_stack_bytes);
    swapcontext(&self->context, &scheduler_context);
    finish_switch(self->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
}

static void coroutine_main(void)
{
    finish_switch(NULL, &scheduler_stack, &scheduler_stack_bytes);
    running->body(running->argument);
    check(!running->innermost);
    running->alive = false;
    leave_coroutine();
}

static void enter_coroutine(struct coroutine *coroutine)
{
    void *fake_stack = NULL;
    running = coroutine;
    switches++;
    start_switch(&fake_stack, coroutine->stack, STACK_BYTES);
    swapcontext(&scheduler_context, &coroutine->context);
    finish_switch(fake_stack, NULL, NULL);
}

/* Makes a process that will run `body`; its files come from the test. */
static struct coroutine *spawn(void (*body)(void *argument), void *argument)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct coroutine *coroutine = &coroutines[i];
        if (coroutine->alive)
            continue;
        void *stack = coroutine->stack ? coroutine->stack : malloc(STACK_BYTES);
        *coroutine =
            (struct coroutine){.stack = stack, .body = body, .argument = argument, .alive = true};
        coroutine->process.pid = i + 1;
        list_init(&coroutine->wait_link);
        getcontext(&coroutine->context);
        coroutine->context.uc_stack.ss_sp = stack;
        coroutine->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&coroutine->context, coroutine_main, 0);
        return coroutine;
    }
    check(!"too many processes");
    return NULL;
}

void preemption_point(void)
{
    check(!*held_locks());
    if (running && random_chance(conduct.preempt))
        leave_coroutine();
}

/* ---- spin locks and wait queues ---- */

void spinlock_init(struct spinlock *lock, const char *name, enum lock_rank rank)
{
    *lock = (struct spinlock){.name = name, .rank = rank};
}

void spinlock_acquire(struct spinlock *lock)
{
    struct spinlock **innermost = held_locks();
    check(!lock->locked); /* one CPU: no other process can hold it */
    check(!*innermost || (*innermost)->rank < lock->rank);
    lock->locked = 1;
    lock->next_acquired = *innermost;
    *innermost = lock;
}

static void put_back(struct spinlock *lock)
{
    struct spinlock **link = held_locks();
    check(lock->locked);
    while (*link != lock) {
        check(*link); /* the lock belongs to this process */
        link = &(*link)->next_acquired;
    }
    *link = lock->next_acquired;
    lock->locked = 0;
}

/* After the last lock is released, a process on another CPU may run. */
void spinlock_release(struct spinlock *lock)
{
    put_back(lock);
    if (running && !running->innermost && random_chance(conduct.interleave))
        leave_coroutine();
}

bool spinlock_held(const struct spinlock *lock)
{
    return lock->locked;
}

void wait_queue_init(struct wait_queue *queue, const char *name)
{
    spinlock_init(&queue->lock, name, LOCK_WAIT);
    list_init(&queue->waiters);
}

/* No policy needs this. */
void wait_queue_set_owner(struct wait_queue *queue, int owner)
{
    queue->owner = owner;
}

static void wait_in(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason,
                    bool killable)
{
    struct coroutine *self = running;
    check(self && self->innermost == lock && !lock->next_acquired);
    self->blocked = true;
    self->killable = killable;
    self->process.reason = reason;
    list_append(&queue->waiters, &self->wait_link);
    put_back(lock);
    leave_coroutine();
    list_remove(&self->wait_link);
    self->process.reason = BLOCK_NONE;
    spinlock_acquire(lock);
}

int wait_on(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason)
{
    if (current_killed())
        return -EINTR;
    wait_in(queue, lock, reason, true);
    return current_killed() ? -EINTR : 0;
}

void wait_on_always(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason)
{
    wait_in(queue, lock, reason, false);
}

static uint64_t wakes;

void wake_one(struct wait_queue *queue)
{
    check(!*held_locks() || (*held_locks())->rank < LOCK_WAIT);
    if (list_empty(&queue->waiters))
        return;
    struct list *first = queue->waiters.next;
    list_remove(first);
    container_of(first, struct coroutine, wait_link)->blocked = false;
    wakes++;
}

void wake_all(struct wait_queue *queue)
{
    while (!list_empty(&queue->waiters))
        wake_one(queue);
}

/* ---- the disk ---- */

/* A write, with the event numbers of its request and its completion. */
struct disk_write_note {
    uint32_t block;
    uint8_t *data;
    uint64_t generation;
    uint64_t ended; /* UINT64_MAX: never */
};

struct disk_flush_note {
    uint64_t generation;
    uint64_t ended;
};

struct pending {
    struct block_request *request;
    size_t note;
};

static struct {
    uint8_t *bytes;
    uint32_t blocks;
    uint64_t events; /* requests and completions of writes and flushes */
    uint64_t transfers;
    bool recording;
    struct disk_write_note *writes;
    size_t write_count;
    struct disk_flush_note *flushes;
    size_t flush_count;
    struct pending pending[4096];
    size_t pending_count;
} disk;

uint64_t block_count(void)
{
    return disk.blocks;
}

static void note_requested(struct pending *pending)
{
    struct block_request *request = pending->request;
    disk.events++;
    if (!disk.recording)
        return;
    if (request->operation == BLOCK_WRITE) {
        if ((disk.write_count & (disk.write_count - 1)) == 0)
            disk.writes = realloc(disk.writes, (disk.write_count * 2 + 1) * sizeof(*disk.writes));
        struct disk_write_note *note = &disk.writes[disk.write_count];
        *note = (struct disk_write_note){.block = (uint32_t)request->block,
                                         .data = malloc(BLOCK_BYTES),
                                         .generation = disk.events,
                                         .ended = UINT64_MAX};
        memcpy(note->data, request->data, BLOCK_BYTES);
        pending->note = disk.write_count++;
    } else if (request->operation == BLOCK_FLUSH) {
        if ((disk.flush_count & (disk.flush_count - 1)) == 0)
            disk.flushes =
                realloc(disk.flushes, (disk.flush_count * 2 + 1) * sizeof(*disk.flushes));
        disk.flushes[disk.flush_count] =
            (struct disk_flush_note){.generation = disk.events, .ended = UINT64_MAX};
        pending->note = disk.flush_count++;
    }
}

static void note_ended(const struct pending *pending)
{
    disk.events++;
    if (!disk.recording)
        return;
    if (pending->request->operation == BLOCK_WRITE) {
        /* data must not change while a write is in progress */
        check(memcmp(disk.writes[pending->note].data, pending->request->data, BLOCK_BYTES) == 0);
        disk.writes[pending->note].ended = disk.events;
    } else if (pending->request->operation == BLOCK_FLUSH) {
        disk.flushes[pending->note].ended = disk.events;
    }
}

static bool transfer_fails(const struct block_request *request)
{
    if (conduct.fail_from > 0 && disk.transfers >= conduct.fail_from)
        return true;
    return request->operation == BLOCK_READ && random_chance(conduct.fail_reads);
}

/* An interrupt: the transfer is complete. */
static void complete(struct pending pending)
{
    struct coroutine *interrupted = running;
    struct block_request *request = pending.request;
    uint8_t *place = disk.bytes + request->block * BLOCK_BYTES;

    running = NULL;
    disk.transfers++;
    request->result = transfer_fails(request) ? -EIO : 0;
    if (request->operation == BLOCK_READ && request->result == 0)
        memcpy(request->data, place, BLOCK_BYTES);
    if (request->operation == BLOCK_WRITE && request->result == 0)
        memcpy(place, request->data, BLOCK_BYTES);
    note_ended(&pending);
    request->done(request);
    check(!scheduler_held);
    running = interrupted;
}

void block_submit(struct block_request *request)
{
    struct pending pending = {.request = request};

    check(!*held_locks());
    check(request->operation == BLOCK_FLUSH ||
          (request->block < disk.blocks && (uintptr_t)request->data % 8 == 0));
    note_requested(&pending);
    if (random_chance(conduct.immediate)) {
        complete(pending);
        return;
    }
    check(disk.pending_count < sizeof(disk.pending) / sizeof(*disk.pending));
    disk.pending[disk.pending_count++] = pending;
}

static void complete_some(void)
{
    size_t chosen = conduct.shuffle ? random_below((uint32_t)disk.pending_count) : 0;
    struct pending pending = disk.pending[chosen];
    disk.pending_count--;
    memmove(&disk.pending[chosen], &disk.pending[chosen + 1],
            (disk.pending_count - chosen) * sizeof(pending));
    complete(pending);
}

static void disk_forget_history(void)
{
    for (size_t i = 0; i < disk.write_count; i++)
        free(disk.writes[i].data);
    free(disk.writes);
    free(disk.flushes);
    disk.writes = NULL;
    disk.flushes = NULL;
    disk.write_count = disk.flush_count = 0;
    disk.events = disk.transfers = 0;
}

/* ---- running ---- */

static struct coroutine *choose_runnable(bool *any_alive)
{
    static int turn;
    int first = conduct.shuffle ? (int)random_below(PROCESSES_MAX) : ++turn % PROCESSES_MAX;

    *any_alive = false;
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct coroutine *candidate = &coroutines[(first + i) % PROCESSES_MAX];
        *any_alive |= candidate->alive;
        if (candidate->alive && candidate->blocked && random_chance(conduct.spurious))
            candidate->blocked = false;
        if (candidate->alive && !candidate->blocked)
            return candidate;
    }
    return NULL;
}

/* Runs until all processes have ended. Returns false if nothing can happen any more. */
static bool machine_try_run(void)
{
    for (;;) {
        bool any_alive;
        struct coroutine *next = choose_runnable(&any_alive);
        if (disk.pending_count > 0 && (!next || (conduct.shuffle && random_chance(3))))
            complete_some();
        else if (next)
            enter_coroutine(next);
        else
            return !any_alive;
    }
}

static void machine_run(void)
{
    check(machine_try_run());
}

static int boot_result;

static void boot_body(void *unused)
{
    (void)unused;
    boot_result = file_system_init();
}

/* Switches power on and mounts the disk. */
static int machine_boot(void)
{
    check(disk.pending_count == 0);
    forget_all_memory();
    root_directory = NULL;
    spawn(boot_body, NULL);
    machine_run();
    return boot_result;
}

/* Runs one process on a mounted disk, with separate files. */
struct session {
    void (*body)(void *argument);
    void *argument;
};

static void session_body(void *argument)
{
    struct session session = *(struct session *)argument;
    free(argument);
    struct file_table *table = file_table_create();
    if (!table) /* out of memory, in tests of that case */
        return;
    current_process()->files = table;
    session.body(session.argument);
    current_process()->files = NULL;
    file_table_destroy(table);
}

static struct coroutine *spawn_session(void (*body)(void *argument), void *argument)
{
    struct session *session = malloc(sizeof(*session));
    *session = (struct session){body, argument};
    return spawn(session_body, session);
}

static void run_session(void (*body)(void *argument), void *argument)
{
    spawn_session(body, argument);
    machine_run();
}

/* Makes a disk with a file, or without one if the name is null. */
static void disk_make_with(uint32_t blocks, uint32_t inodes, uint32_t log_blocks, const char *name,
                           const void *contents, size_t size)
{
    struct image image;
    check(!image_begin(&image, blocks, inodes, log_blocks));
    if (name)
        check(!image_add(&image, name, contents, size));
    check(!image_end(&image));
    free(disk.bytes);
    disk_forget_history();
    disk.bytes = image.bytes;
    disk.blocks = blocks;
    image.bytes = NULL;
    image_free(&image);
}

static void disk_make(uint32_t blocks, uint32_t inodes, uint32_t log_blocks)
{
    disk_make_with(blocks, inodes, log_blocks, NULL, NULL, 0);
}

/* Runs the checker on a copy. */
static void check_disk(void)
{
    static uint8_t *copy;
    static size_t copy_bytes;
    size_t size = (size_t)disk.blocks * BLOCK_BYTES;

    if (size > copy_bytes)
        copy = realloc(copy, copy_bytes = size);
    memcpy(copy, disk.bytes, size);
    check(check_image(copy, disk.blocks, stderr) == 0);
}

/* Checks that all resources are returned, except for the caches' content. */
static void check_nothing_leaks(void)
{
    check(open_files.used == 0 && file_tables.used == 0 && pipes.used == 0);
    check(cache_of_inodes.objects.used == 1); /* the root */
    check(list_empty(&cache_of_inodes.doomed));
    check(journal.running == 0 && journal.reserved == 0);
}

static void sync_body(void *unused)
{
    (void)unused;
    check(system_sync() == 0);
}

/* Writes everything to its place; then the disk is valid without replay or reclaiming. */
static void check_settled_disk(void)
{
    run_session(sync_body, NULL);
    check_disk();
    const uint64_t *map =
        (const uint64_t *)(disk.bytes + (size_t)file_system.reclaim_map_start * BLOCK_BYTES);
    for (size_t i = 0; i < bitmap_blocks(file_system.inode_count) * BLOCK_BYTES / 8; i++)
        check(map[i] == 0);
}

/* Converts paths and buffers to addresses, as system calls take them. */
static uint64_t user(const void *pointer)
{
    return (uint64_t)pointer;
}

static int64_t do_open(const char *path, int flags)
{
    return system_open(user(path), flags);
}

static int64_t do_write(int64_t descriptor, const void *bytes, int n)
{
    return system_write((int)descriptor, user(bytes), n);
}

static int64_t do_read(int64_t descriptor, void *bytes, int n)
{
    return system_read((int)descriptor, user(bytes), n);
}

static int64_t do_close(int64_t descriptor)
{
    return system_close((int)descriptor);
}

static int64_t do_unlink(const char *path)
{
    return system_unlink(user(path));
}

static int64_t do_link(const char *old_path, const char *new_path)
{
    return system_link(user(old_path), user(new_path));
}

static int64_t do_mkdir(const char *path)
{
    return system_mkdir(user(path));
}

static int64_t do_chdir(const char *path)
{
    return system_chdir(user(path));
}

#endif
