/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_STATE_H
#define EXPLORE_ENGINE_STATE_H

/* Where tasks are, and the functions that the mechanism of policies/support/ needs from its
 * host. */

#include "explore/engine/base.h"

static bool names(enum named field)
{
    return named >> field & 1;
}

/* Returns true if the policy reads the time. */
static bool has_time(void)
{
    const uint32_t times = 1u << NAMED_NOW | 1u << NAMED_RUN_TIME | 1u << NAMED_COUNTED |
                           1u << NAMED_QUEUED_SINCE | 1u << NAMED_PICKED_SINCE;
    return (named & times) != 0;
}

static struct member *member_of(const task_t *task)
{
    return &machine.tasks[(const struct member *)task - machine.tasks];
}

static struct member *running_on(uint32_t cpu)
{
    return machine.current[cpu] ? &machine.tasks[machine.current[cpu] - 1] : NULL;
}

static uint32_t queue_number(uint32_t cpu)
{
    return machine.scheduler.queues == 1 ? 0 : cpu;
}

static struct run_queue *queue_of(uint32_t cpu)
{
    struct run_queue *queue = &machine.queues[queue_number(cpu)];
    queue->now = machine.now;
    return queue;
}

static bool waits_in(const struct member *member, const run_queue_t *queue)
{
    return member->place == PLACE_QUEUED && queue_number(member->task.cpu) == queue->cpu;
}

/* Returns true if the task may run on the CPU that asks for a task. */
static bool may_be_picked(const struct member *member, const run_queue_t *queue)
{
    return waits_in(member, queue) && task_may_run_on(&member->task, asking);
}

static bool is_queued(const struct task *task)
{
    return member_of(task)->place == PLACE_QUEUED;
}

/* ---- required by the shared mechanism ---- */

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return member_of(task)->known;
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    member_of(task)->known = 1;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    return is_queued(task);
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    member_of(task)->place = queued ? PLACE_QUEUED : PLACE_BLOCKED;
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *scheduler)
{
    (void)scheduler;
    return (POLICY.task_bytes ? POLICY.task_bytes + 7 : POLICY_TASK_BYTES) / 8 * 8;
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw flaw)
{
    static const char *const texts[] = {
        [FLAW_LOST] = FLAW_LOST_TEXT,   [FLAW_HELD] = FLAW_HELD_TEXT,
        [FLAW_GIVEN] = FLAW_GIVEN_TEXT, [FLAW_COUNT] = FLAW_COUNT_TEXT,
        [FLAW_CPU] = FLAW_CPU_TEXT,     [FLAW_VERDICT] = FLAW_VERDICT_TEXT,
        [FLAW_PLACE] = FLAW_PLACE_TEXT,
    };
    const char *text = texts[flaw];
    bool rule = strncmp(text, BROKE_A_RULE, strlen(BROKE_A_RULE)) == 0;
    (void)queue;
    (void)task;
    watch_broken("%s", text + (rule ? strlen(BROKE_A_RULE) : 0));
}

#endif
