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
#define CHUNK        64  /* states that a worker takes at a time */
#define FEW          512 /* states for which one worker is enough */
#define DRAWS_MOST   2   /* in one operation, of which each value is tried */
#define NO_KEY       UINT64_MAX
#define LEAST_FREE   (1 << 20) /* bytes, so that what follows one state has room */

enum worker_end { WORKER_DONE, WORKER_TIME = 3, WORKER_MEMORY };

/*
 * How a state was reached first: its parent's number, the operation, the draws. The least key of
 * all that lead to a state in its level counts, whichever was found first; states of a level are
 * numbered in the order of their keys.
 */
typedef uint64_t key_type;

static key_type key_of(uint64_t parent, operation_t operation, uint32_t draws)
{
    return parent << 24 | (uint64_t)operation << 8 | draws;
}

struct entry {
    _Atomic uint64_t low; /* 0: free */
    _Atomic uint64_t high;
    _Atomic key_type key;
};

/* A state of the level that is being found, with its image behind it. */
struct found {
    uint64_t entry;
    uint64_t bytes; /* of the image */
    uint8_t image[];
};

struct worker {
    _Atomic key_type at; /* what it does */
    _Atomic uint64_t
        drains;            /* 1 more than the entry of the state of which it takes all tasks out */
    _Atomic uint64_t used; /* bytes of its part of the found states */
    uint64_t transitions;
    uint8_t *found;
};

/* What workers share. */
struct shared {
    _Atomic uint64_t next; /* state to be taken */
    _Atomic key_type broken;
    _Atomic uint64_t states;
    struct worker workers[WORKERS_MOST];
};

struct item {
    key_type key;
    const struct found *found;
};

static struct search_limits limits;
static struct shared *shared;
static struct entry *entries;
static uint64_t entry_count; /* a power of 2 */
static key_type *keys;       /* by a state's number */
static struct item *items;   /* the level that is gone on from */
static uint64_t level_begin; /* number of its first state */
static uint64_t level_count;
static uint64_t part_bytes; /* of all workers' found states, and at most of one's */
static struct timespec begun;
static bool drain_broke; /* after the last operation, when all tasks were taken out */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
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

/* Returns the state's entry, and in `is_new` whether it was not there. */
static uint64_t enter(struct fingerprint print, key_type key, bool *is_new)
{
    for (uint64_t i = print.low & (entry_count - 1);; i = (i + 1) & (entry_count - 1)) {
        struct entry *entry = &entries[i];
        uint64_t low = 0;
        *is_new = atomic_compare_exchange_strong(&entry->low, &low, print.low);
        if (*is_new) {
            atomic_store(&entry->key, key);
            atomic_store(&entry->high, print.high);
            return i;
        }
        uint64_t high = 0;
        while (low == print.low && !(high = atomic_load(&entry->high)))
            ;
        if (low != print.low || high != print.high)
            continue;
        if (atomic_load(&entry->key) >> 24 >= level_begin)
            lessen(&entry->key, key);
        return i;
    }
}

/* ---- a worker ---- */

static bool is_full(void)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < limits.workers; i++)
        used += atomic_load(&shared->workers[i].used) + LEAST_FREE;
    return used > part_bytes || atomic_load(&shared->states) > entry_count / 4 * 3;
}

static uint64_t bytes_of(const struct found *found)
{
    return sizeof(*found) + (found->bytes + 7) / 8 * 8;
}

static void keep(struct worker *self, uint64_t entry, const uint8_t *image, uint32_t bytes)
{
    struct found *found = (struct found *)(void *)(self->found + self->used);
    *found = (struct found){.entry = entry, .bytes = bytes};
    memcpy(found->image, image, bytes);
    atomic_fetch_add(&self->used, bytes_of(found));
    atomic_fetch_add(&shared->states, 1);
}

/* The draws that are tried next, of so many that were made. Returns false if all were. */
static bool next_draws(uint8_t *draws, uint32_t made)
{
    for (uint32_t i = made < DRAWS_MOST ? made : DRAWS_MOST; i-- > 0;) {
        if (++draws[i] < draw_values_count)
            return true;
        draws[i] = 0;
    }
    return false;
}

static void find(struct worker *self, key_type key)
{
    uint8_t image[IMAGE_BYTES_MOST];
    uint8_t order[TASKS_MOST];
    bool is_new;
    image_put_in_order(order);
    uint32_t bytes = image_take(image);
    uint64_t entry = enter(image_fingerprint(image, bytes), key, &is_new);
    if (!is_new)
        return;
    draws_choose(NULL, 0);
    atomic_store(&self->drains, entry + 1);
    machine_drain();
    atomic_store(&self->drains, 0);
    keep(self, entry, image, bytes);
}

static void go_on_by(struct worker *self, uint64_t number, operation_t operation)
{
    const struct found *from = items[number - level_begin].found;
    uint8_t draws[DRAWS_MOST] = {0};
    uint32_t made;
    do {
        key_type key = key_of(number, operation, draws[0] * draw_values_count + draws[1]);
        image_restore(from->image, (uint32_t)from->bytes);
        draws_choose(draws, DRAWS_MOST);
        atomic_store(&self->at, key);
        machine_do(operation);
        made = draws_made();
        self->transitions++;
        find(self, key);
    } while (next_draws(draws, made));
}

/* All operations that may follow the state. */
static void go_on_from(struct worker *self, uint64_t number)
{
    operation_t operations[OPERATIONS_MOST];
    const struct found *from = items[number - level_begin].found;
    image_restore(from->image, (uint32_t)from->bytes);
    uint32_t count = machine_operations(operations);
    for (uint32_t i = 0; i < count; i++)
        go_on_by(self, number, operations[i]);
}

static _Noreturn void work(struct worker *self)
{
    uint64_t begin;
    while ((begin = atomic_fetch_add(&shared->next, CHUNK)) < level_count) {
        for (uint64_t i = begin; i < begin + CHUNK && i < level_count; i++) {
            if (key_of(level_begin + i, 0, 0) > atomic_load(&shared->broken))
                _exit(WORKER_DONE);
            if (is_full())
                _exit(WORKER_MEMORY);
            if (i % 16 == 0 && seconds() > limits.seconds)
                _exit(WORKER_TIME);
            go_on_from(self, level_begin + i);
        }
    }
    _exit(WORKER_DONE);
}

/* What the worker's policy breaks is told later. */
static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

static pid_t start(struct worker *self)
{
    atomic_store(&self->used, 0);
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

/* The worker has ended by itself, or by a rule that was broken. */
static enum search_end end_of(struct worker *self, int status, enum search_end end)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == WORKER_DONE)
        return end;
    if (code == WORKER_TIME || code == WORKER_MEMORY)
        return end == SEARCH_BROKEN ? end : code == WORKER_TIME ? SEARCH_TIME : SEARCH_MEMORY;
    uint64_t drains = atomic_load(&self->drains);
    key_type key = drains ? atomic_load(&entries[drains - 1].key) : atomic_load(&self->at);
    if (key < atomic_load(&shared->broken))
        drain_broke = drains != 0;
    lessen(&shared->broken, key);
    return SEARCH_BROKEN;
}

/* Returns SEARCH_COMPLETE if the level was gone through. */
static enum search_end go_through(void)
{
    pid_t pids[WORKERS_MOST];
    enum search_end end = SEARCH_COMPLETE;
    uint32_t workers = level_count < FEW ? 1 : limits.workers;
    atomic_store(&shared->next, 0);
    for (uint32_t i = 0; i < limits.workers; i++)
        atomic_store(&shared->workers[i].used, 0);
    for (uint32_t i = 0; i < workers; i++)
        pids[i] = start(&shared->workers[i]);
    for (uint32_t i = 0; i < workers; i++) {
        int status = 0;
        if (pids[i] < 0)
            end = SEARCH_FAILED;
        else if (waitpid(pids[i], &status, 0) == pids[i])
            end = end_of(&shared->workers[i], status, end);
    }
    return end;
}

static int compare_items(const void *one, const void *two)
{
    key_type a = ((const struct item *)one)->key;
    key_type b = ((const struct item *)two)->key;
    return a < b ? -1 : a > b;
}

static bool new_parts(void)
{
    for (uint32_t i = 0; i < limits.workers; i++) {
        shared->workers[i].found = share(part_bytes);
        if (!shared->workers[i].found)
            return false;
    }
    return true;
}

static void drop_parts(uint8_t *const *parts)
{
    for (uint32_t i = 0; i < limits.workers; i++) {
        if (parts[i])
            munmap(parts[i], part_bytes);
    }
}

/* The states that were found are the next level. Returns false if there is no memory. */
static bool next_level(uint64_t states)
{
    uint64_t count = 0;
    free(items);
    items = malloc((states + 1) * sizeof(*items));
    if (!items)
        return false;
    for (uint32_t i = 0; i < limits.workers; i++) {
        const struct worker *worker = &shared->workers[i];
        const uint8_t *at = worker->found;
        while (at < worker->found + worker->used && count < states) {
            const struct found *found = (const struct found *)(const void *)at;
            items[count++] = (struct item){atomic_load(&entries[found->entry].key), found};
            at += bytes_of(found);
        }
    }
    qsort(items, count, sizeof(*items), compare_items);
    level_begin += level_count;
    level_count = count;
    for (uint64_t i = 0; i < count; i++)
        keys[level_begin + i] = items[i].key;
    return true;
}

/* ---- all ---- */

static bool reserve(void)
{
    entry_count = 1 << 12;
    while (entry_count * 2 * sizeof(struct entry) <= limits.bytes / 4)
        entry_count *= 2;
    uint64_t states = entry_count / 4 * 3 + WORKERS_MOST * OPERATIONS_MOST;
    shared = share(sizeof(*shared));
    entries = share(entry_count * sizeof(*entries));
    keys = share(states * sizeof(*keys));
    uint64_t rest = limits.bytes - entry_count * sizeof(*entries) - states * sizeof(*keys);
    part_bytes = rest / 2 / 4096 * 4096;
    return shared && entries && keys;
}

/* The machine as it is has number 0. */
static bool begin(void)
{
    uint8_t image[IMAGE_BYTES_MOST];
    bool is_new;
    if (!reserve() || !new_parts())
        return false;
    atomic_store(&shared->broken, NO_KEY);
    uint32_t bytes = image_take(image);
    uint64_t entry = enter(image_fingerprint(image, (bytes + 7) / 8 * 8), key_of(0, 0, 0), &is_new);
    keep(&shared->workers[0], entry, image, bytes);
    return next_level(1);
}

struct search_result search(const struct search_limits *wanted)
{
    limits = *wanted;
    limits.workers = limits.workers > WORKERS_MOST ? WORKERS_MOST : limits.workers;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    struct search_result result = {.end = begin() ? SEARCH_COMPLETE : SEARCH_FAILED, .states = 1};
    while (result.end == SEARCH_COMPLETE && level_count > 0) {
        uint8_t *parts[WORKERS_MOST] = {0};
        if (result.depth == limits.depth) {
            result.end = SEARCH_DEPTH;
            break;
        }
        for (uint32_t i = 0; i < limits.workers; i++)
            parts[i] = shared->workers[i].found;
        result.end = new_parts() ? go_through() : SEARCH_FAILED;
        if (result.end == SEARCH_COMPLETE) {
            uint64_t states = atomic_load(&shared->states);
            result.depth += states > result.states;
            if (!next_level(states - result.states))
                result.end = SEARCH_FAILED;
            result.states = states;
            printf("level %u states %" PRIu64 " seconds %.1f\n", result.depth, states, seconds());
        }
        drop_parts(parts);
    }
    for (uint32_t i = 0; shared && i < limits.workers; i++)
        result.transitions += shared->workers[i].transitions;
    return result;
}

static operation_t operation_in(key_type key)
{
    return (operation_t)(key >> 8);
}

static void do_again(key_type key, const uint8_t *places)
{
    const uint32_t code = key & 255;
    const uint8_t draws[DRAWS_MOST] = {(uint8_t)(code / draw_values_count),
                                       (uint8_t)(code % draw_values_count)};
    draws_choose(draws, DRAWS_MOST);
    machine_do(machine_translated(operation_in(key), places));
}

/* The states have their tasks in an order of their own. Finds out where, at each operation, the
 * tasks are of a machine in which each stays where it is; all except the last one breaks no rule.
 */
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

#define PATH_MOST 4096

void search_tell(void)
{
    static key_type path[PATH_MOST];
    static uint8_t places[PATH_MOST][TASKS_MOST];
    uint32_t count = 1;
    for (key_type key = atomic_load(&shared->broken); key >> 24 > 0; key = keys[key >> 24])
        count++;
    if (count > PATH_MOST)
        return;
    key_type key = atomic_load(&shared->broken);
    for (uint32_t i = count; i-- > 0; key = keys[key >> 24])
        path[i] = key;
    image_restore(NULL, 0);
    find_places(path, count, places);
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("operations %u\n", count);
    machine_tell(true);
    for (uint32_t i = 0; i < count; i++)
        do_again(path[i], places[i]);
    draws_choose(NULL, 0);
    if (drain_broke)
        machine_drain();
}
