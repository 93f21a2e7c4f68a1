/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Stride scheduling (Waldspurger and Weihl 1995): the lottery without chance. A task with twice the
 * tickets gets twice the time, exactly.
 *
 * Each task has a pass, its virtual time: it advances by the task's CPU use divided by its tickets.
 * The task with the lowest pass runs next; for equal passes, the task with the lowest PID. Only
 * time really used counts: a task that blocks in the middle of a slice pays for half a slice.
 *
 * Each run queue has a pass, too. It advances like the pass of a task with all the tickets of the
 * queue. A task that leaves (it blocks, moves to another CPU or gets other tickets) keeps its lead
 * over the queue's pass, and joins again with the same lead. So no task gains or loses by being
 * away.
 *
 * All this is fair among the tasks of one CPU. fair_shares.h assigns tasks to CPUs so that shares
 * of the whole machine are fair.
 */

#include "fair_shares.h"
#include "placement.h"
#include "policy.h"
#include "task_heap.h"

enum { STRIDE_SLICE, STRIDE_HORIZON };

static const struct tunable stride_tunables[] = {
    [STRIDE_SLICE] = {"slice", "ticks of a task's time slice", 1, 1, 100},
    [STRIDE_HORIZON] = {"horizon", "ticks that the balance of shares looks ahead", 1, 32, 10000},
};

/* A pass is in 2^-20 ns for each ticket: fine enough for TICKETS_MAX. It wraps around. */
#define PASS_PER_NS ((int64_t)1 << 20)

struct stride_task {
    struct task_heap_node node;
    struct share_member member; /* of the tasks that share several CPUs */
    uint64_t pass;
    uint64_t tickets; /* as counted in the queue; 0: the task has left it */
    uint64_t charged; /* run_time that is already charged */
    int64_t remain;   /* while it has left: its lead over the queue, in nanoseconds */
    uint64_t ticks;   /* used of the slice */
};

struct stride_queue {
    struct share_queue shares;
    struct task_heap waiting;
    uint64_t pass;
    uint64_t tickets; /* of the tasks that are queued or run here */
};

_Static_assert(sizeof(struct stride_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct stride_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct stride_task SHARED_MEMORY stride_task_t;
typedef struct stride_queue SHARED_MEMORY stride_queue_t;

/* Returns the advance of a pass while `tickets` use the CPU for this many nanoseconds. */
POLICY_FUNCTION uint64_t stride_pass(int64_t ns, uint64_t tickets)
{
    return (uint64_t)(ns * PASS_PER_NS / (int64_t)tickets);
}

POLICY_FUNCTION void stride_join(run_queue_t *queue, task_t *task)
{
    stride_queue_t *all = STATE_OF(queue, struct stride_queue);
    stride_task_t *state = STATE_OF(task, struct stride_task);
    state->tickets = task->tickets;
    state->charged = task->run_time;
    state->pass = all->pass + stride_pass(state->remain, state->tickets);
    all->tickets += state->tickets;
    shares_join(queue, &state->member, state->tickets);
}

POLICY_FUNCTION void stride_leave(run_queue_t *queue, task_t *task)
{
    stride_queue_t *all = STATE_OF(queue, struct stride_queue);
    stride_task_t *state = STATE_OF(task, struct stride_task);
    int64_t ahead = (int64_t)(state->pass - all->pass);
    state->remain = ahead * (int64_t)state->tickets / PASS_PER_NS;
    all->tickets -= state->tickets;
    state->tickets = 0;
    shares_leave(queue, &state->member);
}

/* Charges the task for its CPU use since the last charge. */
POLICY_FUNCTION void stride_charge(run_queue_t *queue, task_t *task)
{
    stride_queue_t *all = STATE_OF(queue, struct stride_queue);
    stride_task_t *state = STATE_OF(task, struct stride_task);
    int64_t used = (int64_t)(task->run_time - state->charged);
    state->charged = task->run_time;
    state->pass += stride_pass(used, state->tickets);
    all->pass += stride_pass(used, all->tickets);
}

/* A new task starts one slice ahead: forking children brings no earlier turns. */
POLICY_FUNCTION void stride_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)parent;
    int64_t slice = scheduler->tunable[STRIDE_SLICE] * (int64_t)scheduler->tick_ns;
    STATE_OF(task, struct stride_task)->remain = slice;
}

POLICY_FUNCTION void stride_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    stride_task_t *state = STATE_OF(task, struct stride_task);
    if (state->tickets == 0)
        stride_join(queue, task);
    if (reason != ENQUEUE_PREEMPTED)
        state->ticks = 0;
    task_heap_insert(&STATE_OF(queue, struct stride_queue)->waiting, task, state->pass);
}

POLICY_FUNCTION void stride_dequeue(run_queue_t *queue, task_t *task)
{
    task_heap_remove(&STATE_OF(queue, struct stride_queue)->waiting, task);
    stride_leave(queue, task);
}

POLICY_FUNCTION task_t *stride_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_heap_take_first_on(&STATE_OF(queue, struct stride_queue)->waiting, cpu);
    if (task)
        queue->remark = STATE_OF(task, struct stride_task)->pass / PASS_PER_NS;
    return task;
}

POLICY_FUNCTION uint32_t stride_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    return idle ? balance_longest(scheduler, cpu, idle) : shares_next_cpu(scheduler, cpu);
}

POLICY_FUNCTION task_t *stride_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_heap_first_on(&STATE_OF(queue, struct stride_queue)->waiting, cpu);
    int64_t horizon = queue->scheduler->tunable[STRIDE_HORIZON];
    if (!task ||
        !shares_move_pays(queue, &STATE_OF(task, struct stride_task)->member, cpu, horizon))
        return NULL;
    stride_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION enum tick_verdict stride_tick(run_queue_t *queue, task_t *task)
{
    stride_task_t *state = STATE_OF(task, struct stride_task);
    uint64_t slice = (uint64_t)queue->scheduler->tunable[STRIDE_SLICE];
    stride_charge(queue, task);
    shares_tick(queue);
    state->ticks++;
    return state->ticks >= slice ? TICK_PREEMPT : TICK_CONTINUE;
}

/* Users may have changed the tickets while the task ran: then it joins again with the new ones. */
POLICY_FUNCTION void stride_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    stride_charge(queue, task);
    if (reason != STOP_RUNNABLE || STATE_OF(task, struct stride_task)->tickets != task->tickets)
        stride_leave(queue, task);
}

POLICY_FUNCTION uint64_t stride_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[STRIDE_SLICE];
}

POLICY_FUNCTION enum share_attribute stride_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_stride = {
    .name = "stride",
    .meaning = "shares of the CPU exactly in proportion to tickets, without chance",
    .source = "Waldspurger and Weihl 1995",
    .order = "The task with the least pass is next: its time so far, divided by its tickets.",
    .remark = "the least pass: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .tunables = stride_tunables,
    .tunable_count = sizeof(stride_tunables) / sizeof(stride_tunables[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct stride_task),
    .enqueue = stride_enqueue,
    .dequeue = stride_dequeue,
    .pick = stride_pick,
    .tick = stride_tick,
    .time_slice = stride_time_slice,
    .task_init = stride_task_init,
    .stopped = stride_stopped,
    .place = shares_place,
    .balance = stride_balance,
    .steal = stride_steal,
    .shares_by = stride_shares_by,
    .reads = "tickets",
};
