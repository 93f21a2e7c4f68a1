/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Preset `table-scan`: the feedback queue as study 4 built it (its section 3.2.2), without queues.
 * Each process has only a level and a counter of ticks. Each tick of each CPU ends in the
 * scheduler, which scans the whole process table and takes the first process of the highest level.
 * The search begins where the last one ended, or at the process that ran if its slice has not
 * ended. One queue serves all CPUs, and each decision costs O(n).
 *
 * Levels, slices, allotments and the boost are those of `allotment-boost`, which is the same rule
 * with lists. Two things differ. Among equals the order of slots decides, not the order of arrival.
 * And a process whose turn a higher level interrupts loses its place.
 */

#include "policies/feedback_levels.h"
#include "policies/policy.h"

enum { SCAN_TABLE = FEEDBACK_TUNABLE_COUNT };

static const struct tunable study_mlfq_scan_tunables[] = {
    FEEDBACK_TUNABLES,
    [SCAN_TABLE] = {"table_scan", "1: one queue for all CPUs, in the order of process slots", 1, 1,
                    1},
};

static const struct preset study_mlfq_scan_presets[] = {
    {"table-scan",
     "as `allotment-boost`; each decision scans the table of processes (study 4)",
     {{NULL, 0}}},
};

struct scan_queue {
    struct feedback_queue feedback; /* used for its boosts: its lists stay empty */
    struct task_list table;         /* waiting tasks, in any order */
    uint32_t next_slot[POLICY_CPUS_MAX];
};

_Static_assert(sizeof(struct feedback_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct scan_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct scan_queue SHARED_MEMORY scan_queue_t;

POLICY_FUNCTION scan_queue_t *scan_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct scan_queue);
}

POLICY_FUNCTION void scan_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler, (void)parent;
    feedback_task_of(task)->epoch = UINT64_MAX;
}

POLICY_FUNCTION void scan_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    feedback_task_t *state = feedback_task_of(task);
    feedback_boost_queue(queue);
    feedback_boost_task(queue, task);
    if (state->turn_over)
        state->slice_used = 0;
    if (reason == ENQUEUE_YIELDED)
        scan_queue_of(queue)->next_slot[task->cpu] = task->slot + 1;
    task->level = state->level;
    task_list_append(&scan_queue_of(queue)->table, task);
}

POLICY_FUNCTION void scan_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&scan_queue_of(queue)->table, task);
}

/* Ranks a task: by its level, then by its distance from the start of the search, around the
 * table. */
POLICY_FUNCTION uint64_t scan_worth(run_queue_t *queue, task_t *task, uint32_t from)
{
    feedback_boost_task(queue, task);
    uint32_t distance = task->slot - from;
    return (uint64_t)feedback_task_of(task)->level << 32 | (UINT32_MAX - distance);
}

POLICY_FUNCTION task_t *scan_pick(run_queue_t *queue, uint32_t cpu)
{
    scan_queue_t *state = scan_queue_of(queue);
    feedback_boost_queue(queue);
    task_t *task = state->table.first;
    task_t *best = NULL;
    uint64_t most = LOOP_START(0);
    while (task && LOOP_GUARD) {
        uint64_t worth = scan_worth(queue, task, state->next_slot[cpu]);
        if ((!best || worth > most) && task_may_run_on(task, cpu)) {
            best = task;
            most = worth;
        }
        task = task->next;
    }
    if (!best)
        return NULL;
    state->next_slot[cpu] = best->slot;
    task_list_remove(&state->table, best);
    best->level = feedback_task_of(best)->level;
    feedback_begin_turn(queue, best);
    return best;
}

/* Each tick ends in the scheduler, where the search finds the next process. */
POLICY_FUNCTION enum tick_verdict scan_tick(run_queue_t *queue, task_t *task)
{
    feedback_task_t *state = feedback_task_of(task);
    feedback_pay(queue->scheduler, state, queue->scheduler->tick_ns, queue->scheduler->tick_ns);
    feedback_boost_queue(queue);
    feedback_boost_task(queue, task);
    task->level = state->level;
    return TICK_PREEMPT;
}

POLICY_FUNCTION void scan_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    if (reason != STOP_RUNNABLE || feedback_task_of(task)->turn_over)
        scan_queue_of(queue)->next_slot[task->cpu] = task->slot + 1;
}

POLICY_FUNCTION bool scan_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_study_mlfq_scan = {
    .name = "mlfq",
    .meaning = "the feedback queue of study 4, by a search of the table of processes",
    .source = "Corbató 1962; Arpaci-Dusseau 2018",
    .order = "The first of the highest level that a search finds, which begins after the last one.",
    .levels = "A task that uses up its time sinks, and a boost lifts all; level 0 is served last.",
    .remark = "level {}: the best at which a task waits",
    .boost = "boost",
    .level_order = LEVELS_HIGHEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .reads = "",
    .tunables = study_mlfq_scan_tunables,
    .tunable_count = sizeof(study_mlfq_scan_tunables) / sizeof(study_mlfq_scan_tunables[0]),
    .presets = study_mlfq_scan_presets,
    .preset_count = sizeof(study_mlfq_scan_presets) / sizeof(study_mlfq_scan_presets[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct feedback_task),
    .enqueue = scan_enqueue,
    .dequeue = scan_dequeue,
    .pick = scan_pick,
    .tick = scan_tick,
    .time_slice = feedback_time_slice,
    .queue_init = level_queue_init,
    .task_init = scan_task_init,
    .stopped = scan_stopped,
    .shared_queue = scan_shared_queue,
    .level = feedback_level_now,
};
