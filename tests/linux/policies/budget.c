/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Uses every service that a host offers for timed policies, and checks the host's promises. Tasks
 * run first in, first out, in time slices that end between ticks. Each task has its own period and
 * a budget for it; twice the weight is twice the budget. A task that has used its budget is held
 * until its next period. Overuse is deducted from the next budget. The share is therefore exact
 * over many periods, even if the host is late.
 */

#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/task_list.h"

enum { BUDGET_TURN, BUDGET_BUDGET, BUDGET_PERIOD };

static const struct tunable budget_tunables[] = {
    [BUDGET_TURN] = {"turn_us", "microseconds of a turn", 100, 1500, 1000000},
    [BUDGET_BUDGET] = {"budget_us", "microseconds of a period that weight 5 may run", 100, 10000,
                       1000000},
    [BUDGET_PERIOD] = {"period_us", "microseconds of a period", 1000, 40000, 1000000},
};

/* The rule that the host broke. */
enum budget_rule {
    RULES_MET,
    RULE_STATE,    /* a queue's state is zero at first */
    RULE_TIME,     /* a queue's time never decreases */
    RULE_TURN,     /* turn_over() needs a picked task, and comes no earlier than its time */
    RULE_CURRENT,  /* the running task is the queue's current task */
    RULE_RUN_TIME, /* run times never decrease */
    RULE_ALARM,    /* alarm() comes at its time or later, and the host clears it */
    RULE_CHANGED,  /* no attribute of a queued task changes */
    RULE_LEAVE,    /* a task leaves the queue where it blocked before it enters another */
    RULE_COUNT,    /* the number of queued tasks equals the length of the lists */
};

enum budget_place { BUDGET_NOWHERE, BUDGET_READY, BUDGET_HELD };

struct budget_task {
    int64_t left;      /* remaining budget in ns; negative if overused */
    uint64_t next;     /* start of the next period */
    uint64_t charged;  /* run time already deducted from the budget */
    uint64_t seen;     /* run time at the last check */
    uint64_t turn_end; /* end of the current time slice; 0: none */
    uint32_t place;    /* enum budget_place */
    uint32_t blocked;  /* 1 + the queue where it blocked; 0: it has left */
};

struct budget_queue {
    struct task_list ready;
    struct task_list waiting_for_period; /* sorted by the start of the next period */
    uint64_t now;                        /* time of the latest hook */
    uint32_t count;
    uint32_t blocked;
};

struct budget_scheduler {
    uint32_t broken; /* enum budget_rule: the first */
};

_Static_assert(sizeof(struct budget_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct budget_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

POLICY_FUNCTION void budget_hold_to(const scheduler_t *scheduler, bool kept, enum budget_rule rule)
{
    struct budget_scheduler SHARED_MEMORY *state = STATE_OF(scheduler, struct budget_scheduler);
    if (!kept && !state->broken)
        state->broken = rule;
}

/* Called at the beginning of each hook. */
POLICY_FUNCTION void budget_look(run_queue_t *queue)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    budget_hold_to(queue->scheduler, queue->now >= state->now, RULE_TIME);
    state->now = queue->now;
    task_t *current = queue->current;
    if (!current)
        return;
    uint64_t run_time = run_time_now(queue, current);
    struct budget_task SHARED_MEMORY *running = STATE_OF(current, struct budget_task);
    budget_hold_to(queue->scheduler, run_time >= running->seen, RULE_RUN_TIME);
    running->seen = run_time;
}

/* ---- budgets ---- */

POLICY_FUNCTION int64_t budget_nanoseconds(const scheduler_t *scheduler, uint32_t tunable)
{
    return scheduler->tunable[tunable] * 1000;
}

POLICY_FUNCTION int64_t budget_of(const scheduler_t *scheduler, const task_t *task)
{
    return budget_nanoseconds(scheduler, BUDGET_BUDGET) * task->weight / WEIGHT_DEFAULT;
}

POLICY_FUNCTION void budget_begin(run_queue_t *queue, task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    state->left = budget_of(queue->scheduler, task);
    state->next = queue->now + (uint64_t)budget_nanoseconds(queue->scheduler, BUDGET_PERIOD);
}

/* Each period that has begun adds a budget; unused budgets expire. */
POLICY_FUNCTION void budget_refill(run_queue_t *queue, task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    uint64_t period = (uint64_t)budget_nanoseconds(queue->scheduler, BUDGET_PERIOD);
    int64_t budget = budget_of(queue->scheduler, task);
    if (!state->next)
        budget_begin(queue, task);
    if (queue->now < state->next)
        return;
    uint64_t periods = (queue->now - state->next) / period + 1;
    state->next += periods * period;
    state->left += (int64_t)periods * budget;
    if (state->left > budget)
        state->left = budget;
}

POLICY_FUNCTION void budget_charge(task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    state->left -= (int64_t)(task->run_time - state->charged);
    state->charged = task->run_time;
}

/* ---- lists ---- */

POLICY_FUNCTION void budget_set_alarm(run_queue_t *queue)
{
    task_t *first = STATE_OF(queue, struct budget_queue)->waiting_for_period.first;
    queue->alarm = first ? STATE_OF(first, struct budget_task)->next : 0;
}

POLICY_FUNCTION void budget_hold(run_queue_t *queue, task_t *task)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    uint64_t next = STATE_OF(task, struct budget_task)->next;
    task_t *later = state->waiting_for_period.first;
    while (later && STATE_OF(later, struct budget_task)->next <= next && LOOP_GUARD)
        later = later->next;
    task_list_insert_before(&state->waiting_for_period, task, later);
    STATE_OF(task, struct budget_task)->place = BUDGET_HELD;
    queue->held++;
    budget_set_alarm(queue);
}

POLICY_FUNCTION void budget_remove(run_queue_t *queue, task_t *task)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    struct budget_task SHARED_MEMORY *task_state = STATE_OF(task, struct budget_task);
    if (task_state->place == BUDGET_READY) {
        task_list_remove(&state->ready, task);
    } else {
        task_list_remove(&state->waiting_for_period, task);
        queue->held--;
        budget_set_alarm(queue);
    }
    task_state->place = BUDGET_NOWHERE;
}

/* ---- hooks ---- */

POLICY_FUNCTION void budget_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    struct budget_task SHARED_MEMORY *task_state = STATE_OF(task, struct budget_task);
    budget_look(queue);
    budget_hold_to(queue->scheduler, task_state->place == BUDGET_NOWHERE, RULE_COUNT);
    if (task_state->blocked) {
        budget_hold_to(queue->scheduler,
                       reason == ENQUEUE_WOKEN && task_state->blocked == queue->cpu + 1,
                       RULE_LEAVE);
        task_state->blocked = 0;
        state->blocked--;
    }
    state->count++;
    budget_refill(queue, task);
    if (task_state->left <= 0) {
        budget_hold(queue, task);
        return;
    }
    task_state->place = BUDGET_READY;
    task_list_insert_before(&state->ready, task,
                            reason == ENQUEUE_PREEMPTED ? state->ready.first : NULL);
}

POLICY_FUNCTION void budget_dequeue(run_queue_t *queue, task_t *task)
{
    budget_look(queue);
    STATE_OF(queue, struct budget_queue)->count--;
    budget_remove(queue, task);
}

POLICY_FUNCTION uint64_t budget_turn_end(run_queue_t *queue, task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    int64_t turn = budget_nanoseconds(queue->scheduler, BUDGET_TURN);
    state->turn_end = queue->now + (uint64_t)(turn < state->left ? turn : state->left);
    return state->turn_end;
}

POLICY_FUNCTION task_t *budget_pick(run_queue_t *queue, uint32_t cpu)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    (void)cpu;
    budget_look(queue);
    budget_hold_to(queue->scheduler, !queue->current && queue->queued == state->count, RULE_COUNT);
    task_t *task = state->ready.first;
    if (!task && queue->scheduler->ending)
        task = state->waiting_for_period.first;
    if (!task)
        return NULL;
    state->count--;
    budget_remove(queue, task);
    queue->turn_end = budget_turn_end(queue, task);
    return task;
}

/* Called for a queue whose CPU runs a task: `current` does not change. */
POLICY_FUNCTION task_t *budget_steal(run_queue_t *queue, uint32_t cpu)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    (void)cpu;
    budget_look(queue);
    task_t *task = state->ready.first;
    if (!task)
        return NULL;
    state->count--;
    budget_remove(queue, task);
    return task;
}

POLICY_FUNCTION void budget_see_running(run_queue_t *queue, task_t *task)
{
    budget_look(queue);
    budget_hold_to(queue->scheduler, queue->current == task, RULE_CURRENT);
    budget_charge(task);
}

POLICY_FUNCTION enum tick_verdict budget_tick(run_queue_t *queue, task_t *task)
{
    budget_see_running(queue, task);
    return TICK_CONTINUE;
}

/* A task continues if no other task may run. */
POLICY_FUNCTION enum tick_verdict budget_turn_over(run_queue_t *queue, task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    budget_see_running(queue, task);
    budget_hold_to(queue->scheduler, state->turn_end && queue->now >= state->turn_end, RULE_TURN);
    if (state->left <= 0)
        SAY(queue, task, "has used its budget, and {} ns more; {} wait", -state->left,
            queue->queued);
    if (state->left <= 0 || STATE_OF(queue, struct budget_queue)->ready.first) {
        queue->turn_end = queue->now; /* has no effect after the slice's end */
        return TICK_PREEMPT;
    }
    queue->turn_end = budget_turn_end(queue, task);
    return TICK_CONTINUE;
}

/* Releases at most one task: the host calls again if the next task's time has also come. */
POLICY_FUNCTION task_t *budget_alarm(run_queue_t *queue)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    task_t *task = state->waiting_for_period.first;
    budget_look(queue);
    budget_hold_to(queue->scheduler, !queue->alarm, RULE_ALARM);
    if (!task)
        return NULL;
    budget_hold_to(queue->scheduler, queue->now >= STATE_OF(task, struct budget_task)->next,
                   RULE_ALARM);
    budget_remove(queue, task);
    budget_refill(queue, task);
    if (STATE_OF(task, struct budget_task)->left <= 0) {
        budget_hold(queue, task);
        return NULL;
    }
    STATE_OF(task, struct budget_task)->place = BUDGET_READY;
    task_list_append(&state->ready, task);
    return task;
}

POLICY_FUNCTION void budget_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    budget_look(queue);
    budget_charge(task);
    STATE_OF(task, struct budget_task)->turn_end = 0;
    STATE_OF(task, struct budget_task)->seen = task->run_time;
    if (reason != STOP_BLOCKED)
        return;
    STATE_OF(task, struct budget_task)->blocked = queue->cpu + 1;
    STATE_OF(queue, struct budget_queue)->blocked++;
}

/* A task with a new weight begins a new period. */
POLICY_FUNCTION void budget_changed(run_queue_t *queue, task_t *task)
{
    budget_look(queue);
    budget_hold_to(queue->scheduler, STATE_OF(task, struct budget_task)->place == BUDGET_NOWHERE,
                   RULE_CHANGED);
    budget_begin(queue, task);
}

POLICY_FUNCTION void budget_leave(run_queue_t *queue, task_t *task)
{
    struct budget_task SHARED_MEMORY *state = STATE_OF(task, struct budget_task);
    budget_look(queue);
    budget_hold_to(queue->scheduler, state->blocked == queue->cpu + 1, RULE_LEAVE);
    state->blocked = 0;
    STATE_OF(queue, struct budget_queue)->blocked--;
}

POLICY_FUNCTION void budget_task_exit(scheduler_t *scheduler, task_t *task)
{
    budget_hold_to(scheduler, !STATE_OF(task, struct budget_task)->blocked, RULE_LEAVE);
}

POLICY_FUNCTION void budget_queue_init(run_queue_t *queue)
{
    struct budget_queue SHARED_MEMORY *state = STATE_OF(queue, struct budget_queue);
    budget_hold_to(queue->scheduler,
                   !state->now && !state->ready.first && !state->count && !state->blocked,
                   RULE_STATE);
}

POLICY_FUNCTION uint64_t budget_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

/* Called without a lock, so that it can report the broken rule to Linux. */
POLICY_FUNCTION uint32_t budget_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
#ifdef __bpf__
    static char format[] = "a test: the host did not keep to rule %d";
    unsigned long long arguments[] = {STATE_OF(scheduler, struct budget_scheduler)->broken};
    if (arguments[0])
        scx_bpf_error_bstr(format, arguments, sizeof(arguments));
#endif
    return balance_longest(scheduler, cpu, idle);
}

POLICY_DEFINITION policy_budget = {
    .name = "budget",
    .meaning = "a test: turns between ticks, and a budget in each period",
    .source = "a test",
    .order = "Of the tasks whose budget is not used up, the one that came first is next.",
    .tunables = budget_tunables,
    .tunable_count = sizeof(budget_tunables) / sizeof(budget_tunables[0]),
    .task_bytes = sizeof(struct budget_task),
    .enqueue = budget_enqueue,
    .dequeue = budget_dequeue,
    .pick = budget_pick,
    .steal = budget_steal,
    .tick = budget_tick,
    .speaks = true,
    .turn_over = budget_turn_over,
    .alarm = budget_alarm,
    .stopped = budget_stopped,
    .changed = budget_changed,
    .leave = budget_leave,
    .task_exit = budget_task_exit,
    .queue_init = budget_queue_init,
    .balance = budget_balance,
    .time_slice = budget_time_slice,
};
