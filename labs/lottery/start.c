/* SPDX-License-Identifier: MIT */

/* A lottery: at each tick a ticket is drawn among all that wait, and its task runs. */

#include "policy.h"
#include "random.h"
#include "task_list.h"

struct draw_queue {
    struct task_list line;
    uint64_t random;
};

POLICY_FUNCTION void draw_queue_init(run_queue_t *queue)
{
    STATE_OF(queue, struct draw_queue)->random = queue->scheduler->seed + queue->cpu;
}

POLICY_FUNCTION void draw_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(&STATE_OF(queue, struct draw_queue)->line, task);
}

POLICY_FUNCTION void draw_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct draw_queue)->line, task);
}

/* To do: draw a ticket. */
POLICY_FUNCTION task_t *draw_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(&STATE_OF(queue, struct draw_queue)->line, cpu);
}

/* To do: each turn is one tick. */
POLICY_FUNCTION enum tick_verdict draw_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t draw_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

POLICY_FUNCTION enum share_attribute draw_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_draw = {
    .name = "draw",
    .meaning = "a lottery at each tick",
    .source = "Waldspurger and Weihl 1994",
    .order = "Chance decides; a task with more tickets is drawn more often.",
    .remark = "ticket {}",
    .remark_kind = REMARK_TICKET,
    .queue_init = draw_queue_init,
    .enqueue = draw_enqueue,
    .dequeue = draw_dequeue,
    .pick = draw_pick,
    .tick = draw_tick,
    .time_slice = draw_time_slice,
    .shares_by = draw_shares_by,
};
