/* SPDX-License-Identifier: MIT */

/* Calls that behave as in another kernel: docs/kernel-boot-and-devices.md has the boot
 * arguments. */

#include "system_call/habits.h"

#include <stddef.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "process/lifecycle.h"
#include "time/clock.h"

#define EXEC_DELAY_LONGEST 1000000000ul /* nanoseconds */

static uint64_t exec_delay;
static uint64_t picks_of_ended; /* of processes that their parents have reaped */

static int64_t call_slow_exec(const uint64_t argument[])
{
    clock_pass(exec_delay);
    return process_exec(argument[0], argument[1]);
}

/* Some kernels wake all sleepers at each tick, and each checks whether its time has come. */
static int64_t call_rechecking_sleep(const uint64_t argument[])
{
    int ticks = (int)argument[0];
    uint64_t end = clock_ticks() + (uint64_t)ticks;
    int64_t result = 0;
    if (ticks <= 0)
        return 0;
    while (result >= 0 && clock_ticks() < end)
        result = process_sleep(1);
    return result;
}

static int64_t call_counting_wait(const uint64_t argument[])
{
    struct ended_process ended;
    int64_t pid = process_wait_for(argument[0], &ended);
    if (pid >= 0)
        __atomic_fetch_add(&picks_of_ended, ended.selections, __ATOMIC_RELAXED);
    return pid;
}

static int64_t call_getpicks(const uint64_t argument[])
{
    struct process_info row;
    uint64_t picks = __atomic_load_n(&picks_of_ended, __ATOMIC_RELAXED);
    (void)argument;
    for (int last = 0; process_describe_next(&row, 1, &last) == 1;)
        picks += row.selections;
    return (int64_t)picks;
}

void habits_init(struct system_call *table)
{
    exec_delay = boot_argument_number("exec-delay", 0);
    if (exec_delay > EXEC_DELAY_LONGEST)
        panic("boot argument exec-delay=%lu ns: it must be at most 1s", exec_delay);
    if (exec_delay)
        table[SYSTEM_CALL_EXEC].function = call_slow_exec;
    if (boot_argument_number("recheck", 0))
        table[SYSTEM_CALL_SLEEP].function = call_rechecking_sleep;
    if (boot_argument_number("count-picks", 0)) {
        table[SYSTEM_CALL_WAIT].function = call_counting_wait;
        table[SYSTEM_CALL_GETCONTEXTSWITCHES].function = call_getpicks;
    }
}
