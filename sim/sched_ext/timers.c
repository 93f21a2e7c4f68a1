/* SPDX-License-Identifier: MIT */

/* Timers of programs (struct bpf_timer). A started timer stays on the CPU where it was started. */

#include "sim/machine.h"
#include "sim/sched_ext/state.h"

#define ABSOLUTE_TIMER 1
#define DELAY_MIN      1000 /* ns; a timer that restarts itself cannot stop the time */

/* The 16 bytes that a program reserves for a timer (struct bpf_timer). */
struct guest_timer {
    uint32_t map; /* number + 1; 0: not initialized */
    uint32_t has_callback;
    uint32_t callback;
    uint32_t unused;
};

static struct guest_timer *timer_at(struct sched_ext *ext, uint64_t address)
{
    struct guest_timer *timer = guest_words(&ext->guest, address, sizeof(*timer));
    if (!timer) {
        guest_trap(&ext->guest, "there is no timer at %#llx", (unsigned long long)address);
        return NULL;
    }
    return timer;
}

/* Returns the entry of a timer. Adds one if there is none; null if all are used. */
static struct ext_timer *entry_of(struct sched_ext *ext, uint64_t address)
{
    struct ext_timer *unused = NULL;
    for (uint32_t i = 0; i < ext->timer_count; i++) {
        if (ext->timers[i].address == address)
            return &ext->timers[i];
        if (ext->timers[i].when == NEVER)
            unused = &ext->timers[i];
    }
    if (!unused && ext->timer_count < BPF_TIMERS_MAX)
        unused = &ext->timers[ext->timer_count++];
    if (unused)
        *unused = (struct ext_timer){.address = address, .when = NEVER};
    return unused;
}

host_function helper_timer_init;
uint64_t helper_timer_init(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct guest_timer *timer = timer_at(ext, arguments[0]);
    const struct ext_map *map = map_at(ext, arguments[1]);
    if (!timer || !map)
        return 0;
    if (timer->map)
        return failure(LINUX_EBUSY);
    timer->map = map->number + 1;
    return 0;
}

host_function helper_timer_set_callback;
uint64_t helper_timer_set_callback(struct guest *guest, const uint64_t *arguments)
{
    struct guest_timer *timer = timer_at(ext_of(guest), arguments[0]);
    if (!timer || !timer->map)
        return failure(LINUX_EINVAL);
    timer->has_callback = 1;
    timer->callback = (uint32_t)arguments[1];
    return 0;
}

host_function helper_timer_start;
uint64_t helper_timer_start(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    const struct guest_timer *timer = timer_at(ext, arguments[0]);
    if (!timer || !timer->map || !timer->has_callback)
        return failure(LINUX_EINVAL);
    struct ext_timer *entry = entry_of(ext, arguments[0]);
    if (!entry)
        return failure(LINUX_ENOMEM);
    uint64_t begin = arguments[2] & ABSOLUTE_TIMER ? 0 : ext_now(ext);
    uint32_t before = entry->when == NEVER ? ext->this_cpu : entry->cpu;
    uint64_t earliest = ext_now(ext) + DELAY_MIN;
    uint64_t when = arguments[1] < TIME_MAX ? begin + arguments[1] : NEVER;
    entry->when = when < earliest ? earliest : when;
    entry->cpu = ext->this_cpu;
    ext_timer_changed(ext, before);
    ext_timer_changed(ext, entry->cpu);
    return 0;
}

host_function helper_timer_cancel;
uint64_t helper_timer_cancel(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    if (!timer_at(ext, arguments[0]))
        return 0;
    for (uint32_t i = 0; i < ext->timer_count; i++) {
        struct ext_timer *entry = &ext->timers[i];
        if (entry->address != arguments[0] || entry->when == NEVER)
            continue;
        entry->when = NEVER;
        ext_timer_changed(ext, entry->cpu);
        return 1;
    }
    return 0;
}

uint64_t next_timer(const struct sched_ext *ext, uint32_t cpu)
{
    uint64_t next = NEVER;
    for (uint32_t i = 0; i < ext->timer_count; i++) {
        if (ext->timers[i].cpu == cpu && ext->timers[i].when < next)
            next = ext->timers[i].when;
    }
    return next;
}

void move_timers(struct sched_ext *ext, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < ext->timer_count; i++) {
        if (ext->timers[i].cpu == from)
            ext->timers[i].cpu = to;
    }
    ext_timer_changed(ext, from);
    ext_timer_changed(ext, to);
}

/* Calls a timer's callback with its map, key and value. */
static void call_back(struct sched_ext *ext, uint64_t address)
{
    const struct guest_timer *timer = timer_at(ext, address);
    uint32_t index;
    uint64_t value;
    if (!timer || timer->map == 0 || timer->map > ext->map_count)
        return;
    const struct ext_map *map = &ext->maps[timer->map - 1];
    if (!map_element(map, address, &index, &value))
        return;
    const uint64_t arguments[5] = {guest_address(REGION_MAPS, timer->map), map_key(ext, map, index),
                                   value};
    call_from_outside(ext, timer->callback, arguments);
    note_trap(ext);
}

void expire_timers(struct sched_ext *ext, uint32_t cpu)
{
    uint64_t now = ext_now(ext);
    for (uint32_t i = 0; i < ext->timer_count && !ext->bypasses; i++) {
        struct ext_timer *entry = &ext->timers[i];
        if (entry->cpu != cpu || entry->when > now)
            continue;
        entry->when = NEVER;
        call_back(ext, entry->address);
    }
    ext_timer_changed(ext, cpu);
}
