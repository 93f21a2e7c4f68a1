/* SPDX-License-Identifier: MIT */

/* Functions for `play` on the schedlab kernel. */

#include "abi/cpu_list.h"
#include "user/library/user.h"
#include "workloads/api/host.h"
#include "workloads/api/workload.h"

/* When the first process has ended, init ends the machine. */
void host_begin_family(void)
{
}

void host_begin_arrivals(void)
{
    seturgent(URGENT_ALONE);
}

void *host_shared_memory(uint64_t bytes)
{
    void *memory = shared_memory((int64_t)bytes);
    return memory == SYSTEM_FAILED ? NULL : memory;
}

int host_open_path(const char *path, uint64_t *bytes)
{
    struct file_status status;
    int descriptor = open(path, OPEN_READ);
    if (descriptor < 0 || fstat(descriptor, &status) < 0)
        return -1;
    *bytes = status.size;
    return descriptor;
}

bool host_channels_make(uint32_t count)
{
    return channels_make((int)count) == 0;
}

bool host_channel_take(uint32_t channel, int64_t released, int as)
{
    return channel_take((int)channel, (int)released, as) == 0;
}

bool host_channel_give(uint32_t channel, uint64_t count, enum give_to to)
{
    return channel_give((int)channel, (int64_t)count, to) == 0;
}

bool host_channel_meet(uint32_t channel, uint64_t processes)
{
    return channel_meet((int)channel, (int)processes) == 0;
}

uint64_t host_tick_ns(void)
{
    struct system_stats stats;
    getstats(&stats);
    return stats.tick_ns;
}

bool host_sleep_until(int64_t time)
{
    return sleep_until_ns(time) == 0;
}

void host_sleep_ns(int64_t time)
{
    sleep_ns(time);
}

void host_sleep_ticks(uint64_t ticks)
{
    sleep(ticks < INT32_MAX ? (int)ticks : INT32_MAX);
}

void host_set_name(const char *name)
{
    char cut[PROCESS_NAME_BYTES];
    text_copy(cut, name, sizeof(cut));
    setname(cut);
}

bool host_set_attribute(int process, enum attribute_kind kind, uint64_t value)
{
    return setattribute(process, (int)kind, (int64_t)value) == 0 || last_error() == ESRCH;
}

bool host_set_group(uint32_t group, enum group_field field, uint64_t value)
{
    return setgroup((int)group, (int)field, (int64_t)value) == 0;
}

bool host_set_affinity(int process, const uint64_t *cpus)
{
    return setaffinity(process, cpus, CPU_LIST_WORDS) == 0 || last_error() == ESRCH;
}

bool host_set_policy(const char *text)
{
    return setpolicy(text) == 0;
}

bool host_set_tunable(const char *text)
{
    char name[64];
    int64_t value;
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof(name) || !text_to_number(equals + 1, &value))
        return false;
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    return settunable(name, value) == 0;
}

/* Returns this CPU's cycles for an iteration: the minimum of some tries, because interrupts may
 * occur. */
static uint64_t cycles_of_iteration(void)
{
    enum { ITERATIONS = 1000, TRIES = 5 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t begin;
        uint64_t end;
        __asm__ volatile("rdcycle %0" : "=r"(begin));
        workload_burn(ITERATIONS);
        __asm__ volatile("rdcycle %0" : "=r"(end));
        if (end - begin < least)
            least = end - begin;
    }
    return least / ITERATIONS;
}

/*
 * A CPU that takes a cycle for each instruction is a 1 GHz model (Spike's). Its speed is known more
 * precisely than its clock, of 5 us, can measure it. Otherwise it is measured.
 */
uint64_t host_burn_speed(void)
{
    if (cycles_of_iteration() == WORKLOAD_BURN_INSTRUCTIONS)
        return 1000000 / WORKLOAD_BURN_INSTRUCTIONS;
    return fastest_burn(1000000, 5);
}
