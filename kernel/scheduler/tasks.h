/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_TASKS_H
#define KERNEL_SCHEDULER_TASKS_H

#include "lib/list.h"
#include "scheduler/bad_cpu.h"

#include "policies/support/queueing.h"
#include "scheduler/run_queue.h"

/* Processes as tasks: the functions that policies/support/queueing.h requires. Private to
 * kernel/scheduler/. */

static inline struct process *process_of(const task_t *task)
{
    return container_of(task, struct process, task);
}

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return queue_knows(process_of(task));
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    process_of(task)->policy_generation = policy_generation;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    const struct process *process = process_of(task);
    return process->queued && process->state == PROCESS_RUNNABLE && queue_knows(process);
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    process_of(task)->queued = queued;
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *unused)
{
    (void)unused;
    return POLICY_TASK_BYTES;
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw flaw)
{
    queue_panic(queue, task, flaw);
}

#endif
