/* SPDX-License-Identifier: MIT */

/* How a process waits and is woken. */

#include "process/lifecycle.h"

#include "abi/errors.h"
#include "process/owners.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"
#include "time/timer.h"

bool process_block(struct process *process, enum block_reason reason, bool killable)
{
    spinlock_acquire(&process->lock);
    bool block = !(killable && process->killed);
    if (block) {
        process->state = PROCESS_BLOCKED;
        process->reason = reason;
    }
    spinlock_release(&process->lock);
    return block;
}

void process_wake(struct process *process)
{
    spinlock_acquire(&process->lock);
    if (process->state == PROCESS_BLOCKED) {
        while (__atomic_load_n(&process->on_cpu, __ATOMIC_ACQUIRE))
            ; /* it is about to switch */
        process->reason = BLOCK_NONE;
        owners_woken(process);
        scheduler_add(process, ENQUEUE_WOKEN);
    }
    spinlock_release(&process->lock);
}

struct sleeper {
    struct timer timer;
    struct process *process;
};

static void sleep_is_over(struct timer *timer)
{
    process_wake(container_of(timer, struct sleeper, timer)->process);
}

static int64_t wait_until(uint64_t when)
{
    struct sleeper sleeper = {.process = current_process()};
    timer_start(&sleeper.timer, when, sleep_is_over);
    while (sleeper.timer.pending && process_block(sleeper.process, BLOCK_SLEEP, true))
        scheduler_block();
    timer_cancel(&sleeper.timer);
    return current_killed() ? -EINTR : 0;
}

/* It waits even if the tick has come since the ticks were counted: sleeping always yields the
 * CPU. */
int64_t process_sleep(int64_t ticks)
{
    if (ticks <= 0)
        return 0;
    return wait_until((clock_ticks() + (uint64_t)ticks) * clock_tick_ns());
}

int64_t process_sleep_until(uint64_t when)
{
    return when <= clock_now() ? 1 : wait_until(when);
}
