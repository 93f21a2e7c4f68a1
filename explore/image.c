/* SPDX-License-Identifier: MIT */

#include "explore/image.h"

#include <stddef.h>
#include <string.h>

#define WORDS_MOST   4096 /* the number of a word, and its length, are stored in 16 bits */
#define REGIONS_MOST (2 * TASKS_MOST + 2 * QUEUES_MOST + 4)

#define BLOCK 16 /* number of words that are compared together */

struct region {
    uint64_t *words;
    uint32_t count;
};

static struct region regions[REGIONS_MOST];
static uint32_t region_count;
static uint64_t first[WORDS_MOST]; /* the words of all memory regions in the initial state */
static uint32_t word_count;
static uint32_t task_count;
static bool tasks_alike;

static bool is_same(const uint64_t *one, const uint64_t *two, uint32_t count)
{
    uint64_t difference = 0;
    for (uint32_t i = 0; i < count; i++)
        difference |= one[i] ^ two[i];
    return difference == 0;
}

/* Copies words. The C library's function would be slow, because AddressSanitizer checks each of
 * its accesses. */
static __attribute__((no_builtin("memcpy"))) void copy(uint64_t *to, const uint64_t *from,
                                                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = from[i];
}

static bool add_region(void *words, size_t bytes)
{
    uint32_t count = (uint32_t)(bytes / sizeof(uint64_t));
    if (region_count == REGIONS_MOST || word_count + count > WORDS_MOST)
        return false;
    regions[region_count++] = (struct region){words, count};
    memcpy(&first[word_count], words, bytes);
    word_count += count;
    return true;
}

bool image_begin(uint32_t tasks, uint32_t queues, bool alike)
{
    task_count = tasks;
    tasks_alike = alike;
    bool fits = add_region(&machine.now, offsetof(struct machine, queues));
    machine_open();
    for (uint32_t i = 0; i < queues; i++)
        fits = fits && add_region(&machine.queues[i], sizeof(machine.queues[i]));
    for (uint32_t i = 0; i < tasks; i++)
        fits = fits && add_region(&machine.tasks[i], sizeof(machine.tasks[i])) &&
               add_region(machine.task_state[i].words, machine_task_bytes());
    for (uint32_t i = 0; i < queues; i++)
        fits = fits && add_region(machine.queue_state[i].words, POLICY_QUEUE_BYTES);
    return fits && add_region(&machine.scheduler, offsetof(struct scheduler, queue)) &&
           add_region(machine.scheduler.group, GROUPS_EXPLORED * sizeof(struct share_group)) &&
           add_region(machine.scheduler_state.words, POLICY_SCHEDULER_BYTES);
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93;
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93;
    return value ^ value >> 32;
}

/* ---- the order of tasks ---- */

/* A word of the state that points to a task, or into a task's state. */
struct lead {
    uint64_t *word;
    uint64_t from; /* what the pointer is: its offset in a task, or in the machine */
    uint8_t owner; /* the task that contains the pointer; task_count: none */
    uint8_t task;
};

#define LEADS_MOST 512
static struct lead leads[LEADS_MOST];
static uint32_t lead_count;
static uint64_t colours[TASKS_MOST]; /* for each task, a hash of everything that distinguishes it
                                      * from others */

static uint8_t task_at(uint64_t address)
{
    uint64_t in_tasks = address - (uint64_t)machine.tasks;
    uint64_t in_states = address - (uint64_t)machine.task_state;
    if (in_tasks < task_count * sizeof(machine.tasks[0]))
        return (uint8_t)(in_tasks / sizeof(machine.tasks[0]));
    if (in_states < task_count * sizeof(machine.task_state[0]))
        return (uint8_t)(in_states / sizeof(machine.task_state[0]));
    return TASKS_MOST;
}

static void look_at(uint64_t *word, uint64_t from, uint8_t owner)
{
    uint8_t task = task_at(*word);
    if (task < TASKS_MOST && lead_count < LEADS_MOST)
        leads[lead_count++] = (struct lead){word, from, owner, task};
    else if (owner < TASKS_MOST)
        colours[owner] = mix(colours[owner] ^ *word) + from;
}

static void look_at_task(uint8_t task)
{
    static uint64_t nothing;
    struct member *member = &machine.tasks[task];
    uint64_t *words = (uint64_t *)(void *)member;
    uint64_t *state = machine.task_state[task].words;
    member->task.pid = 0;
    member->task.slot = 0;
    colours[task] = member->place == PLACE_FREE;
    for (uint32_t i = 0; i < offsetof(struct member, set) / sizeof(*words); i++) {
        if (&words[i] == (uint64_t *)(void *)&member->task.cpus)
            look_at(&nothing, i, task); /* not hashed: a pointer to the CPU set, which `set`
                                         * represents */
        else if (&words[i] != (uint64_t *)(void *)&member->task.state)
            look_at(&words[i], i, task);
    }
    colours[task] ^= member->set;
    for (uint32_t i = 0; i < machine_task_bytes() / sizeof(*state); i++)
        look_at(&state[i], 100 + i, task);
}

static void look_elsewhere(uint64_t *words, uint32_t count, uint64_t from)
{
    static const uint64_t zero[BLOCK];
    for (uint32_t i = 0; i < count; i += BLOCK) {
        uint32_t block = count - i < BLOCK ? count - i : BLOCK;
        if (is_same(&words[i], zero, block))
            continue;
        for (uint32_t j = i; j < i + block; j++)
            look_at(&words[j], from + j, TASKS_MOST);
    }
}

/* Includes, in the hash of each task, which pointers lead to it, and from where. */
static void follow_leads(void)
{
    uint64_t next[TASKS_MOST];
    for (uint32_t round = 0; round < task_count; round++) {
        memcpy(next, colours, sizeof(next));
        for (uint32_t i = 0; i < lead_count; i++) {
            const struct lead *lead = &leads[i];
            uint64_t owner = lead->owner < TASKS_MOST ? colours[lead->owner] : 0;
            next[lead->task] += mix(mix(owner ^ lead->from) + 1);
            if (lead->owner < TASKS_MOST)
                next[lead->owner] += mix(mix(colours[lead->task] ^ lead->from) + 2);
        }
        memcpy(colours, next, sizeof(next));
    }
}

/* Returns true if task `one` precedes task `other` in the sorted order; free slots come last. */
static bool comes_before(uint8_t one, uint8_t two)
{
    bool one_free = machine.tasks[one].place == PLACE_FREE;
    bool two_free = machine.tasks[two].place == PLACE_FREE;
    return one_free != two_free ? two_free : colours[one] < colours[two];
}

static bool sort_tasks(uint8_t *order)
{
    bool as_it_was = true;
    for (uint8_t i = 0; i < task_count; i++) {
        uint8_t at = i;
        for (; at > 0 && comes_before(i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        as_it_was = as_it_was && at == i;
    }
    return as_it_was;
}

static void move_tasks(const uint8_t *order)
{
    static struct member tasks[TASKS_MOST];
    static uint64_t states[TASKS_MOST][POLICY_TASK_BYTES / 8];
    uint64_t to[TASKS_MOST];
    for (uint32_t i = 0; i < task_count; i++)
        to[order[i]] = i;
    for (uint32_t i = 0; i < lead_count; i++) {
        uint64_t base = (uint64_t)machine.tasks;
        uint64_t size = sizeof(machine.tasks[0]);
        if (*leads[i].word - base >= task_count * size) {
            base = (uint64_t)machine.task_state;
            size = sizeof(machine.task_state[0]);
        }
        *leads[i].word += (to[leads[i].task] - leads[i].task) * size;
    }
    for (uint32_t i = 0; i < QUEUES_MOST; i++)
        machine.current[i] = machine.current[i] ? to[machine.current[i] - 1] + 1 : 0;
    memcpy(tasks, machine.tasks, sizeof(tasks));
    for (uint32_t i = 0; i < task_count; i++)
        memcpy(states[i], machine.task_state[i].words, machine_task_bytes());
    for (uint32_t i = 0; i < task_count; i++) {
        machine.tasks[i] = tasks[order[i]];
        machine.tasks[i].task.state = machine.task_state[i].words;
        memcpy(machine.task_state[i].words, states[order[i]], machine_task_bytes());
    }
}

void image_put_in_order(uint8_t *order)
{
    for (uint8_t i = 0; i < task_count; i++)
        order[i] = i;
    if (!tasks_alike)
        return;
    lead_count = 0;
    for (uint8_t i = 0; i < task_count; i++)
        look_at_task(i);
    for (uint32_t i = 0; i < machine.scheduler.queues; i++) {
        const uint32_t words = offsetof(struct run_queue, said) / 8;
        look_elsewhere((uint64_t *)(void *)&machine.queues[i], words, 1000 * (i + 1));
        look_elsewhere(machine.queue_state[i].words, POLICY_QUEUE_BYTES / 8, 1000 * (i + 1) + 100);
    }
    look_elsewhere(machine.scheduler_state.words, POLICY_SCHEDULER_BYTES / 8, 100);
    follow_leads();
    if (!sort_tasks(order))
        move_tasks(order);
    for (uint32_t i = 0; i < task_count; i++) {
        machine.tasks[i].task.pid = (int32_t)i + 1;
        machine.tasks[i].task.slot = i;
    }
}

/* ---- differences ---- */

void image_shift(uint64_t low, uint64_t high, uint64_t less)
{
    for (uint32_t i = 0; i < region_count; i++) {
        uint64_t *words = regions[i].words;
        for (uint32_t j = 0; j < regions[i].count; j++)
            words[j] -= words[j] - low <= high - low ? less : 0;
    }
}

/* Writes a word that differs from the initial state: in 16 bits, its number and which bytes of
 * the difference are not 0; then these bytes. */
static uint8_t *put(uint8_t *at, uint32_t number, uint64_t difference)
{
    uint32_t bytes = (71 - (uint32_t)__builtin_clzll(difference)) / 8;
    uint16_t head = (uint16_t)(number << 4 | bytes);
    memcpy(at, &head, sizeof(head));
    memcpy(at + sizeof(head), &difference, sizeof(difference));
    return at + sizeof(head) + bytes;
}

static uint8_t *put_region(uint8_t *at, const uint8_t *end, const struct region *region,
                           uint32_t begin)
{
    for (uint32_t i = 0; i < region->count; i += BLOCK) {
        uint32_t block = region->count - i < BLOCK ? region->count - i : BLOCK;
        if (is_same(&region->words[i], &first[begin + i], block))
            continue;
        for (uint32_t j = i; j < i + block; j++) {
            uint64_t difference = region->words[j] ^ first[begin + j];
            if (difference && end - at >= 16)
                at = put(at, begin + j, difference);
        }
    }
    return at;
}

uint32_t image_take(uint8_t *image)
{
    uint8_t *at = image;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < region_count; i++) {
        at = put_region(at, image + IMAGE_BYTES_MOST, &regions[i], begin);
        begin += regions[i].count;
    }
    return (uint32_t)(at - image);
}

void image_restore(const uint8_t *image, uint32_t bytes)
{
    const uint8_t *at = image;
    const uint8_t *end = image + bytes;
    uint32_t begin = 0;
    uint16_t head = 0;
    for (uint32_t i = 0; i < region_count; i++) {
        copy(regions[i].words, &first[begin], regions[i].count);
        for (; at < end; at += sizeof(head) + (head & 15)) {
            uint64_t difference = 0;
            memcpy(&head, at, sizeof(head));
            if ((uint32_t)head >> 4 >= begin + regions[i].count)
                break;
            memcpy(&difference, at + sizeof(head), head & 15);
            regions[i].words[(head >> 4) - begin] ^= difference;
        }
        begin += regions[i].count;
    }
}

struct fingerprint image_fingerprint(const uint8_t *image, uint32_t bytes)
{
    struct fingerprint print = {bytes, 0x9e3779b97f4a7c15};
    for (uint32_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, image + i, bytes - i < 8 ? bytes - i : 8);
        print.low = mix(print.low ^ word) + i;
        print.high = (print.high ^ word) * 0xff51afd7ed558ccd;
        print.high ^= print.high >> 29;
    }
    print.low += !print.low;
    print.high += !print.high;
    return print;
}
