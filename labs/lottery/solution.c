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

POLICY_FUNCTION uint64_t all_tickets(task_t *first, uint32_t cpu)
{
    uint64_t sum = 0;
    for (task_t *task = first; task && LOOP_GUARD; task = task_list_next_on(task->next, cpu))
        sum += task->tickets;
    return sum;
}

POLICY_FUNCTION task_t *draw_pick(run_queue_t *queue, uint32_t cpu)
{
    struct draw_queue SHARED_MEMORY *state = STATE_OF(queue, struct draw_queue);
    task_t *task = task_list_first_on(&state->line, cpu);
    if (!task)
        return NULL;
    uint64_t ticket = random_splitmix(&state->random) % all_tickets(task, cpu);
    queue->remark = ticket;
    while (ticket >= task->tickets && LOOP_GUARD) {
        ticket -= task->tickets;
        task = task_list_next_on(task->next, cpu);
    }
    task_list_remove(&state->line, task);
    return task;
}

POLICY_FUNCTION enum tick_verdict draw_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_PREEMPT;
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
