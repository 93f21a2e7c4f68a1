/* SPDX-License-Identifier: MIT */

#include "sim/process_memory.h"

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GUARD_BYTES 32
#else
#define GUARD_BYTES 0
#endif

uint32_t state_bytes_of(const struct policy *policy)
{
    uint32_t bytes = policy->task_bytes ? policy->task_bytes : POLICY_TASK_BYTES;
    return (bytes + 7) / 8 * 8;
}

size_t bytes_of_process(uint32_t state_bytes)
{
    return sizeof(struct process) + state_bytes + GUARD_BYTES;
}

size_t process_bytes(const struct simulator *simulator)
{
    return simulator->process_bytes - GUARD_BYTES;
}

void guard_states(const struct simulator *simulator)
{
#if GUARD_BYTES > 0
    size_t room = simulator->process_bytes - sizeof(struct process);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        char *state = (char *)(process_at(simulator, slot) + 1);
        ASAN_UNPOISON_MEMORY_REGION(state, room);
        ASAN_POISON_MEMORY_REGION(state + simulator->state_bytes, room - simulator->state_bytes);
    }
#else
    (void)simulator;
#endif
}

void move_processes(struct simulator *simulator)
{
    size_t bytes = bytes_of_process(POLICY_TASK_BYTES);
    unsigned char *array = arena_take(&simulator->arena, simulator->process_limit, bytes);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        struct process *moved = (struct process *)(void *)(array + slot * bytes);
        *moved = *process_at(simulator, slot);
        moved->task.state = moved + 1;
    }
    const unsigned char *old = simulator->processes;
    size_t old_bytes = simulator->process_limit * simulator->process_bytes;
    simulator->processes = array;
    simulator->process_bytes = bytes;
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        struct process **current = &simulator->cpus[i].current;
        *current = *current ? process_at(simulator, (*current)->task.slot) : NULL;
    }
#if GUARD_BYTES > 0
    ASAN_POISON_MEMORY_REGION(old, old_bytes); /* the old memory is no longer used */
#else
    (void)old;
    (void)old_bytes;
#endif
}
