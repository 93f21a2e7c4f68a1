/* SPDX-License-Identifier: MIT */

#include "explore/search.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore/image.h"
#include "explore/machine.h"
#include "sim/checked/watch.h"

#define WORKERS_MOST 16
#define CHUNK        64  /* states that a worker process takes at a time */
#define FEW          512 /* with at most this many states in a level, one worker is enough */
/* After this many operations, states are checked for tasks that wait endlessly. */
#define SERVED_DEPTH 4
/* Maximum number of draws in an operation; each value is tried for each of them. */
#define DRAWS_MOST    2
#define DEPTH_MOST    4096
#define ENTRIES_FIRST (1 << 14)
#define NO_KEY        UINT64_MAX

enum worker_end { WORKER_DONE, WORKER_TIME = 3, WORKER_FULL };

/*
 * How a state was first reached: number of the previous state, operation, draws. If a level has
 * several ways to a state, the least key counts, so that the result does not depend on the order of
 * discovery. States of a level are numbered in the order of their keys.
 */
typedef uint64_t key_type;

static key_type key_of(uint64_t parent, operation_t operation, uint32_t draws)
{
    return parent << 24 | (uint64_t)operation << 8 | draws;
}

/*
 * Only the fingerprint and the key of a state are stored. To continue from a state, a worker
 * repeats the operations that lead to it.
 */
struct entry {
    _Atomic uint64_t low; /* lower half of the fingerprint; 0: the entry is free */
    /* In the upper half, 32 more bits of the fingerprint; below, the state's number plus 1, or 0
     * if not yet known. Numbers are first given in the order of discovery. When the level is
     * complete, states get new numbers in the order of their keys; the number here then only
     * shows that the state is of an earlier level. */
    _Atomic uint64_t rest;
};

struct worker {
    uint64_t next, end;      /* of the states that the worker has taken: the next one, and the
                              * end */
    _Atomic key_type at;     /* what it does */
    _Atomic uint64_t drains; /* number, plus 1, of the state whose tasks are being dequeued for a
                              * check */
    uint64_t transitions;
};

/* What workers share. */
struct shared {
    _Atomic uint64_t next; /* the first state of the level that no worker has taken yet */
    _Atomic key_type broken;
    _Atomic uint64_t states;
    struct worker workers[WORKERS_MOST];
};

/* A state on the path to a worker's present state. States of a level are in the order of their
 * previous states. So a worker recreates each such state only once per level or chunk. */
struct ancestor {
    uint64_t number; /* number of the state; 0: none yet, except in the first entry */
    uint32_t bytes;
    uint8_t image[IMAGE_BYTES_MOST];
};

static struct search_limits limits;
static struct shared *shared;
static struct entry *entries;
static uint64_t entry_count;
static bool is_full;           /* four fifths of the entries are used */
static _Atomic key_type *keys; /* by number of the state */
static uint64_t level_begin;   /* number of the first state of the present level */
static uint64_t level_count;
static uint32_t level;                        /* number of operations that lead to the present
                                               * level */
static struct ancestor ancestors[DEPTH_MOST]; /* private to a worker: the path to its state, one
                                               * entry per level */
static struct timespec start_time;
static bool drain_broke; /* the rule was broken when all tasks were dequeued after the last
                          * operation */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start_time.tv_sec) +
           (double)(now.tv_nsec - start_time.tv_nsec) / 1e9;
}

static void *share(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* ---- the set of states ---- */

static void lessen(_Atomic key_type *least, key_type key)
{
    key_type before = atomic_load(least);
    while (key < before && !atomic_compare_exchange_weak(least, &before, key))
        ;
}

static uint64_t states_most(uint64_t entry_count)
{
    return entry_count / 5 * 4;
}

/* Stores a state in the table and returns its number; sets `is_new` if it was not there. Ends
 * the worker process if there are too many states. */
static uint64_t enter(struct fingerprint print, key_type key, bool *is_new)
{
    const uint64_t upper = print.high >> 32;
    for (uint64_t i = print.low % entry_count;; i = i + 1 < entry_count ? i + 1 : 0) {
        struct entry *entry = &entries[i];
        uint64_t low = atomic_load(&entry->low);
        if (low == 0 && atomic_load(&shared->states) >= states_most(entry_count))
            _exit(WORKER_FULL);
        *is_new = low == 0 && atomic_compare_exchange_strong(&entry->low, &low, print.low);
        if (*is_new) {
            uint64_t number = atomic_fetch_add(&shared->states, 1);
            atomic_store(&keys[number], key);
            atomic_store(&entry->rest, upper << 32 | (number + 1));
            return number;
        }
        uint64_t rest = 0;
        while (low == print.low && !(rest = atomic_load(&entry->rest)))
            ;
        if (low != print.low || rest >> 32 != upper)
            continue;
        uint64_t number = (uint32_t)rest - 1;
        if (number >= level_begin + level_count)
            lessen(&keys[number], key);
        return number;
    }
}

/* Doubles the size of the table. Returns false if memory is short: the old and the new table
 * exist at the same time. */
static bool grow(void)
{
    const uint64_t count = entry_count * 2;
    const uint64_t bytes = (entry_count + count) * sizeof(*entries);
    if (bytes + states_most(count) * sizeof(*keys) > limits.bytes || count > UINT32_MAX)
        return false;
    struct entry *grown = share(count * sizeof(*grown));
    if (!grown)
        return false;
    for (uint64_t i = 0; i < entry_count; i++) {
        uint64_t at = entries[i].low % count;
        while (entries[i].low && grown[at].low)
            at = at + 1 < count ? at + 1 : 0;
        if (entries[i].low) {
            grown[at].low = entries[i].low;
            grown[at].rest = entries[i].rest;
        }
    }
    munmap(entries, entry_count * sizeof(*entries));
    entries = grown;
    entry_count = count;
    return true;
}

/* ---- a worker ---- */

/* Advances to the next combination of results for this many draws. Returns false after the last
 * combination. */
static bool next_draws(uint8_t *draws, uint32_t made)
{
    for (uint32_t i = made < DRAWS_MOST ? made : DRAWS_MOST; i-- > 0;) {
        if (++draws[i] < draw_values_count)
            return true;
        draws[i] = 0;
    }
    return false;
}

/* Checks what may happen after a state: that all tasks are served, and can be dequeued. The
 * checks leave the machine unusable. */
static void try_ends(uint32_t operations, const uint8_t *image, uint32_t bytes)
{
    draws_choose(NULL, 0);
    if (operations <= SERVED_DEPTH) {
        machine_serve();
        image_restore(image, bytes);
    }
    machine_drain();
}

static void find(struct worker *self, key_type key)
{
    uint8_t image[IMAGE_BYTES_MOST];
    uint8_t order[TASKS_MOST];
    bool is_new;
    image_put_in_order(order);
    uint32_t bytes = image_take(image);
    uint64_t number = enter(image_fingerprint(image, bytes), key, &is_new);
    if (!is_new)
        return;
    atomic_store(&self->drains, number + 1);
    try_ends(level + 1, image, bytes);
    atomic_store(&self->drains, 0);
}

static void choose_draws_of(key_type key)
{
    const uint32_t code = key & 255;
    const uint8_t draws[DRAWS_MOST] = {(uint8_t)(code / draw_values_count),
                                       (uint8_t)(code % draw_values_count)};
    draws_choose(draws, DRAWS_MOST);
}

static operation_t operation_in(key_type key)
{
    return (operation_t)(key >> 8);
}

static void make_again(struct worker *self, struct ancestor *state, const struct ancestor *parent)
{
    uint8_t order[TASKS_MOST];
    key_type key = keys[state->number];
    image_restore(parent->image, parent->bytes);
    choose_draws_of(key);
    atomic_store(&self->at, key);
    machine_do(operation_in(key));
    image_put_in_order(order);
    state->bytes = image_take(state->image);
}

/* Recreates a state of this level, together with the states on the path to it. */
static const struct ancestor *state_of(struct worker *self, uint64_t number)
{
    uint64_t numbers[DEPTH_MOST];
    uint32_t at = level;
    for (; ancestors[at].number != number; at--) {
        numbers[at] = number;
        number = keys[number] >> 24;
    }
    for (at++; at <= level; at++) {
        ancestors[at].number = numbers[at];
        make_again(self, &ancestors[at], &ancestors[at - 1]);
    }
    return &ancestors[level];
}

/* Performs one operation from a state, once for each combination of draws. Returns how often it
 * was performed. */
static uint32_t go_on_by(struct worker *self, const struct ancestor *from, operation_t operation)
{
    uint8_t draws[DRAWS_MOST] = {0};
    uint32_t made;
    uint32_t transitions = 0;
    do {
        key_type key = key_of(from->number, operation, draws[0] * draw_values_count + draws[1]);
        image_restore(from->image, from->bytes);
        draws_choose(draws, DRAWS_MOST);
        atomic_store(&self->at, key);
        machine_do(operation);
        made = draws_made();
        transitions++;
        find(self, key);
    } while (next_draws(draws, made));
    return transitions;
}

/* Performs all operations that are possible in a state. */
static void go_on_from(struct worker *self, uint64_t number)
{
    operation_t operations[OPERATIONS_MOST];
    const struct ancestor *from = state_of(self, number);
    image_restore(from->image, from->bytes);
    uint32_t count = machine_operations(operations);
    uint64_t transitions = 0;
    for (uint32_t i = 0; i < count; i++)
        transitions += go_on_by(self, from, operations[i]);
    self->transitions += transitions;
}

/* Continues from states until none are left. If a worker ended in the middle of a state, another
 * one starts that state again. */
static _Noreturn void work(struct worker *self)
{
    for (;; self->next++) {
        if (self->next == self->end) {
            self->next = atomic_fetch_add(&shared->next, CHUNK);
            self->end = self->next + CHUNK;
        }
        if (self->next >= level_count ||
            key_of(level_begin + self->next, 0, 0) > atomic_load(&shared->broken))
            _exit(WORKER_DONE);
        if (self->next % 16 == 0 && seconds() > limits.seconds)
            _exit(WORKER_TIME);
        go_on_from(self, level_begin + self->next);
    }
}

/* Discards the messages of a worker; the broken rule is reported later, when it is repeated. */
static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

static pid_t start(struct worker *self)
{
    atomic_store(&self->at, NO_KEY);
    atomic_store(&self->drains, 0);
    fflush(stdout);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(WORKER_TIME);
        be_silent();
        watch_for_loops();
        work(self);
    }
    return pid;
}

/* ---- a level ---- */

/* Handles the end of a worker process: by itself, or because of a broken rule. */
static enum search_end end_of(struct worker *self, int status, enum search_end end)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    is_full = is_full || code == WORKER_FULL;
    if (code == WORKER_DONE || code == WORKER_FULL)
        return end;
    if (code == WORKER_TIME)
        return end == SEARCH_BROKEN ? end : SEARCH_TIME;
    uint64_t drains = atomic_load(&self->drains);
    key_type key = drains ? keys[drains - 1] : atomic_load(&self->at);
    if (key < atomic_load(&shared->broken))
        drain_broke = drains != 0;
    lessen(&shared->broken, key);
    return SEARCH_BROKEN;
}

/* Runs workers until the level is complete or the table is full; then returns SEARCH_COMPLETE.
 * Otherwise returns why the search ends. */
static enum search_end share_work(uint32_t workers)
{
    pid_t pids[WORKERS_MOST];
    int statuses[WORKERS_MOST] = {0};
    enum search_end end = SEARCH_COMPLETE;
    is_full = false;
    for (uint32_t i = 0; i < workers; i++)
        pids[i] = start(&shared->workers[i]);
    for (uint32_t i = 0; i < workers; i++) {
        if (pids[i] < 0)
            end = SEARCH_FAILED;
        else if (waitpid(pids[i], &statuses[i], 0) == pids[i])
            end = end_of(&shared->workers[i], statuses[i], end);
    }
    /* A second time: a worker that ended later may have found a broken rule with a lower key. */
    for (uint32_t i = 0; i < workers && end == SEARCH_BROKEN; i++)
        end = end_of(&shared->workers[i], statuses[i], end);
    return end;
}

/* Completes the level; returns SEARCH_COMPLETE or why the search ends. After a broken rule, the
 * other states of the level are still tried while memory suffices, because an earlier one may
 * break a rule, too. */
static enum search_end go_through(void)
{
    uint32_t workers = level_count < FEW ? 1 : limits.workers;
    atomic_store(&shared->next, 0);
    for (uint32_t i = 0; i < workers; i++)
        shared->workers[i].next = shared->workers[i].end = 0;
    enum search_end end = share_work(workers);
    while (is_full && (end == SEARCH_COMPLETE || end == SEARCH_BROKEN)) {
        if (!grow())
            return end == SEARCH_BROKEN ? end : SEARCH_MEMORY;
        enum search_end next = share_work(workers);
        end = next == SEARCH_COMPLETE || end == SEARCH_BROKEN ? end : next;
    }
    return end;
}

/* Sorts in place, by one bit after the other, the highest first. The C library's function may
 * need a copy of the same size. */
static void sort_keys(_Atomic key_type *part, uint64_t count, uint32_t bit)
{
    uint64_t ones = count;
    for (uint64_t i = 0; i < ones;) {
        key_type key = part[i];
        if (key >> bit & 1) {
            part[i] = part[--ones];
            part[ones] = key;
        } else {
            i++;
        }
    }
    if (bit > 0 && ones > 1)
        sort_keys(part, ones, bit - 1);
    if (bit > 0 && count - ones > 1)
        sort_keys(part + ones, count - ones, bit - 1);
}

/* Makes the states that were found the next level. */
static void next_level(void)
{
    level_begin += level_count;
    level_count = shared->states - level_begin;
    level++;
    sort_keys(keys + level_begin, level_count,
              63 - (uint32_t)__builtin_clzll(key_of(level_begin, 0, 0)));
}

/* ---- all ---- */

static bool reserve(void)
{
    entry_count = ENTRIES_FIRST;
    shared = share(sizeof(*shared));
    entries = share(entry_count * sizeof(*entries));
    keys = share(limits.bytes); /* as many keys as the table can hold states */
    return shared && entries && keys;
}

/* Stores the initial state, which has number 0. */
static bool begin(void)
{
    bool is_new;
    if (!reserve())
        return false;
    shared->broken = NO_KEY;
    ancestors[0].bytes = image_take(ancestors[0].image);
    enter(image_fingerprint(ancestors[0].image, ancestors[0].bytes), key_of(0, 0, 0), &is_new);
    level_count = 1;
    return true;
}

struct search_result search(const struct search_limits *requested)
{
    limits = *requested;
    limits.workers = limits.workers > WORKERS_MOST ? WORKERS_MOST : limits.workers;
    limits.depth = limits.depth < DEPTH_MOST ? limits.depth : DEPTH_MOST - 1;
    clock_gettime(CLOCK_MONOTONIC, &start_time);
    struct search_result result = {.end = begin() ? SEARCH_COMPLETE : SEARCH_FAILED, .states = 1};
    while (result.end == SEARCH_COMPLETE && level_count > 0) {
        if (result.depth == limits.depth) {
            result.end = SEARCH_DEPTH;
            break;
        }
        result.end = go_through();
        if (result.end == SEARCH_COMPLETE) {
            next_level();
            result.depth += level_count > 0;
            result.states += level_count;
            printf("level %u states %" PRIu64 " seconds %.1f\n", result.depth, result.states,
                   seconds());
        }
    }
    for (uint32_t i = 0; shared && i < limits.workers; i++)
        result.transitions += shared->workers[i].transitions;
    return result;
}

static void do_again(key_type key, const uint8_t *places)
{
    choose_draws_of(key);
    machine_do(machine_translated(operation_in(key), places));
}

/* Tasks of stored states are sorted, so a task changes its place on a path. Finds, for each
 * operation, the places that tasks would have if each kept its own. Only the last operation
 * breaks a rule. */
static void find_places(const key_type *path, uint32_t count, uint8_t (*places)[TASKS_MOST])
{
    uint8_t order[TASKS_MOST];
    for (uint8_t i = 0; i < TASKS_MOST; i++)
        places[0][i] = i;
    for (uint32_t step = 0; step + 1 < count; step++) {
        uint8_t same[TASKS_MOST];
        for (uint8_t i = 0; i < TASKS_MOST; i++)
            same[i] = order[i] = i;
        do_again(path[step], same);
        image_put_in_order(order);
        for (uint32_t i = 0; i < TASKS_MOST; i++)
            places[step + 1][i] = places[step][order[i]];
    }
    image_restore(NULL, 0);
}

void search_print(void)
{
    static key_type path[DEPTH_MOST];
    static uint8_t places[DEPTH_MOST][TASKS_MOST];
    uint32_t count = 1;
    for (key_type key = atomic_load(&shared->broken); key >> 24 > 0; key = keys[key >> 24])
        count++;
    key_type key = atomic_load(&shared->broken);
    for (uint32_t i = count; i-- > 0; key = keys[key >> 24])
        path[i] = key;
    image_restore(NULL, 0);
    find_places(path, count, places);
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("operations %u\n", count);
    machine_set_printing(true);
    for (uint32_t i = 0; i < count; i++)
        do_again(path[i], places[i]);
    static uint8_t image[IMAGE_BYTES_MOST];
    uint32_t bytes = image_take(image);
    if (drain_broke)
        try_ends(count, image, bytes);
}
