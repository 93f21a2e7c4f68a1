/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_QUEUEING_H
#define SCHEDLAB_QUEUEING_H

/*
 * The mechanism of run queues, for all hosts: how a task becomes known to the policy, is queued,
 * taken out, picked, run and stopped. It also defines which hooks are called, what is counted, and
 * the invariants. All functions need the queue's lock. Locks, records and interrupts belong to the
 * host, and so does the storage of its data about a task.
 *
 * As in hooks.h, `policy` must be a constant in a BPF program.
 */

#include "policies/policy.h"
#include "policies/support/hooks.h"
#include "policies/support/mechanism.h"

/* ---- defined by the host ---- */

/* Returns true if task_init() of the active policy was called for the task. */
MECHANISM_FUNCTION bool task_is_known(const task_t *task);
MECHANISM_FUNCTION void task_set_known(task_t *task);
/* Returns true if the policy holds the task. */
MECHANISM_FUNCTION bool task_is_queued(const task_t *task);
MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued);
/* Returns the policy's bytes of state for each task. */
MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *scheduler);
/* `task` is null if the flaw concerns no task. */
MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw flaw);

/* ---- state ---- */

/* States are zeroed word by word, regardless of the types that policies later give them. */
typedef uint64_t __attribute__((may_alias)) state_word_t;

MECHANISM_FUNCTION void clear_state(void SHARED_MEMORY *state, uint32_t bytes)
{
    state_word_t SHARED_MEMORY *words = (state_word_t SHARED_MEMORY *)state;
    uint32_t count = (uint32_t)LOOP_START(bytes / sizeof(*words));
    for (uint32_t i = (uint32_t)LOOP_START(0); i < count && LOOP_GUARD; i++)
        words[i] = 0;
}

/* Initializes an empty queue, whose `state` and `now` the host has set. */
MECHANISM_FUNCTION void run_queue_begin(const struct policy *policy, scheduler_t *scheduler,
                                        run_queue_t *queue, uint32_t cpu)
{
    clear_state(queue->state, POLICY_QUEUE_BYTES);
    queue->scheduler = scheduler;
    queue->cpu = cpu;
    queue->queued = 0;
    queue->running = 0;
    queue->current = NULL;
    queue->remark = 0;
    queue->turn_end = 0;
    queue->alarm = 0;
    queue->held = 0;
    queue->said.told = 0;
    queue->bound = false;
    scheduler->queue[cpu] = queue;
    policy_init_queue(policy, queue);
}

/* Makes the task known to the policy, before it is queued for `reason`. A forked task inherits
 * from its parent, if it has one and the policy knows it. Returns the reason for queueing it. */
MECHANISM_FUNCTION enum enqueue_reason task_introduce(const struct policy *policy,
                                                      scheduler_t *scheduler, task_t *task,
                                                      enum enqueue_reason reason,
                                                      const task_t *parent)
{
    clear_state(task->state, task_state_bytes(scheduler));
    task->level = 0;
    task->lent = 0;
    task->next = NULL;
    task->previous = NULL;
    policy_init_task(policy, scheduler, task, parent && task_is_known(parent) ? parent : NULL);
    task_set_known(task);
    return reason == ENQUEUE_NEW ? reason : ENQUEUE_ADOPTED;
}

/* ---- annotations ---- */

/* Takes the annotation that hooks made since the last call. Returns false if there is none.
 * (Field by field: BPF copies no structure from an arena.) */
MECHANISM_FUNCTION bool take_annotation(run_queue_t *queue, struct said *annotation)
{
    if (!queue->said.told)
        return false;
    queue->said.told = 0;
    annotation->pid = queue->said.pid;
    annotation->text[0] = queue->said.text[0];
    annotation->text[1] = queue->said.text[1];
    annotation->text[2] = queue->said.text[2];
    annotation->text[3] = queue->said.text[3];
    annotation->text[4] = queue->said.text[4];
    annotation->text[5] = queue->said.text[5];
    annotation->value = queue->said.value;
    annotation->other = queue->said.other;
    return true;
}

/* ---- queueing and taking out ---- */

/* Queues a known task; task_introduce() makes it known. */
MECHANISM_FUNCTION void run_queue_add(const struct policy *policy, run_queue_t *queue, task_t *task,
                                      enum enqueue_reason reason)
{
    task_set_queued(task, true);
    task->queued_since = queue->now;
    if (task->cpus)
        queue->bound = true;
    policy->enqueue(queue, task, reason);
    queue->queued++;
}

/* Returns false if the task was not queued there. */
MECHANISM_FUNCTION bool task_taken_out(run_queue_t *queue, task_t *task)
{
    if (!task_is_queued(task) || queue->queued == 0) {
        note_flaw(queue, task, FLAW_GIVEN);
        return false;
    }
    task_set_queued(task, false);
    queue->queued--;
    return true;
}

MECHANISM_FUNCTION void run_queue_remove(const struct policy *policy, run_queue_t *queue,
                                         task_t *task)
{
    policy->dequeue(queue, task);
    task_taken_out(queue, task);
}

/* Reports an error, if any: pick() returned no task although some are queued, possibly none that
 * may run on `cpu`. */
POLICY_RARE_FUNCTION void check_nothing_picked(const run_queue_t *queue, uint32_t cpu)
{
    if (queue_bars(queue, cpu))
        return;
    if (queue->queued > queue->held || queue->scheduler->ending)
        note_flaw(queue, NULL, FLAW_LOST);
    else if (!queue->alarm)
        note_flaw(queue, NULL, FLAW_HELD);
}

/* Takes out the task to run next on `cpu`, for run_queue_enter(). Sets queue->turn_end to the
 * end of its turn. Returns null if no queued task may run. */
MECHANISM_FUNCTION task_t *run_queue_pick(const struct policy *policy, run_queue_t *queue,
                                          uint32_t cpu)
{
    queue->remark = 0;
    queue->turn_end = 0;
    task_t *task = policy->pick(queue, cpu);
    if (!task) {
        if (queue->queued > 0)
            check_nothing_picked(queue, cpu);
        return NULL;
    }
    if (!task_taken_out(queue, task))
        return NULL;
    queue->current = task;
    return task;
}

/* Takes out the task to be moved to `cpu`. Returns null if the policy has none to move. */
MECHANISM_FUNCTION task_t *run_queue_steal(const struct policy *policy, run_queue_t *queue,
                                           uint32_t cpu)
{
    task_t *task = policy_steal(policy, queue, cpu);
    return task && task_taken_out(queue, task) ? task : NULL;
}

/* ---- tasks that may not run on every CPU ---- */

/*
 * Handles a policy that ignored the CPU set of a task that it just handed out for `cpu`: no task
 * may run outside its set. Sets the task aside and asks again, until a task may run there or the
 * policy has none. Then requeues the tasks set aside, in reverse order. To the policy, a task that
 * it picked was preempted at once, so its order may suffer. Tasks that are handed out while the
 * policy ends run nowhere. Policies that call task_may_run_on(), or use the lists and trees of
 * policies/, never get here.
 */
POLICY_RARE_FUNCTION task_t *ask_again(const struct policy *policy, run_queue_t *queue,
                                       task_t *task, uint32_t cpu, bool steals)
{
    task_t *aside = NULL;
    if (queue->scheduler->ending)
        return task;
    while (task && !task_may_run_on(task, cpu) && LOOP_GUARD) {
        if (!steals) {
            task->picked_since = queue->now;
            queue->current = NULL;
            policy_stop(policy, queue, task, STOP_RUNNABLE);
        }
        task->next = aside;
        aside = task;
        task = steals ? run_queue_steal(policy, queue, cpu) : run_queue_pick(policy, queue, cpu);
    }
    while (aside && LOOP_GUARD) {
        task_t *back = aside;
        aside = back->next;
        back->next = NULL;
        task_set_queued(back, true);
        policy->enqueue(queue, back, steals && policy->steal ? ENQUEUE_MOVED : ENQUEUE_PREEMPTED);
        queue->queued++;
    }
    return task;
}

/* Like run_queue_pick(), restricted to tasks that may run on the CPU. */
MECHANISM_FUNCTION task_t *run_queue_pick_for(const struct policy *policy, run_queue_t *queue,
                                              uint32_t cpu)
{
    task_t *task = run_queue_pick(policy, queue, cpu);
    return task && task->cpus ? ask_again(policy, queue, task, cpu, false) : task;
}

/* Like run_queue_steal(), restricted to tasks that may run on the CPU. */
MECHANISM_FUNCTION task_t *run_queue_steal_for(const struct policy *policy, run_queue_t *queue,
                                               uint32_t cpu)
{
    task_t *task = run_queue_steal(policy, queue, cpu);
    return task && task->cpus ? ask_again(policy, queue, task, cpu, true) : task;
}

/* ---- changes of a task, and alarms ---- */

/* To change an attribute of a queued task: take it out, store the attribute, and call
 * run_queue_changed() before queueing it again. */

/* Notifies the policy that an attribute of the task was changed, wherever the task is. */
MECHANISM_FUNCTION void run_queue_changed(const struct policy *policy, run_queue_t *queue,
                                          task_t *task)
{
    if (policy->changed && task_is_known(task))
        policy->changed(queue, task);
}

/* Handles a change of the tasks that wait for `owner`. Returns true if the owner must be
 * requeued, or its CPU must pick again. */
MECHANISM_FUNCTION bool run_queue_waiters_changed(const struct policy *policy, run_queue_t *queue,
                                                  task_t *owner)
{
    return policy->waiters_changed && task_is_known(owner) && policy->waiters_changed(queue, owner);
}

/* Chooses which task continues among tasks that wait for the same lock or channel. The host
 * visits them in the order of arrival: `waiter` is next, and `chosen` is the choice so far, or
 * null. Returns the new choice. The policy is asked only about known tasks. So a task that waits
 * since before the policy was active keeps its place. */
MECHANISM_FUNCTION task_t *run_queue_choose_waiter(const struct policy *policy, run_queue_t *queue,
                                                   task_t *chosen, task_t *waiter)
{
    bool asks = policy->overtakes && queue->scheduler->orders_waiters;
    bool known = task_is_known(waiter) && (!chosen || task_is_known(chosen));
    bool overtakes = asks && known && policy->overtakes(queue, waiter, chosen);
    return overtakes || !chosen ? waiter : chosen;
}

/* A blocked task is about to be queued elsewhere, or to leave the policy. */
MECHANISM_FUNCTION void run_queue_forget(const struct policy *policy, run_queue_t *queue,
                                         task_t *task)
{
    if (policy->leave && task_is_known(task))
        policy->leave(queue, task);
}

/* Calls the policy's alarm, whose time has come. Returns a queued task that may run now, or
 * null. */
MECHANISM_FUNCTION task_t *run_queue_alarm(const struct policy *policy, run_queue_t *queue)
{
    queue->alarm = 0;
    return policy->alarm ? policy->alarm(queue) : NULL;
}

/* Returns true if a task waits that may run. */
MECHANISM_FUNCTION bool run_queue_waits(const run_queue_t *queue)
{
    return queue->queued > queue->held;
}

/* ---- on a CPU ---- */

/* Adds the time until `now` to the run_time of a running task. */
MECHANISM_FUNCTION void task_count_run_time(task_t *task, uint64_t now)
{
    task->run_time += now - task->counted;
    task->counted = now;
}

/* Gives a CPU of the queue to the task, just picked. */
MECHANISM_FUNCTION void run_queue_enter(run_queue_t *queue, task_t *task)
{
    task->picked_since = queue->now;
    task->counted = queue->now;
    task->selections++;
    queue->running++;
}

/* Checks a verdict other than TICK_CONTINUE from tick() or turn_over(). */
MECHANISM_FUNCTION enum tick_verdict checked_verdict(const run_queue_t *queue, const task_t *task,
                                                     enum tick_verdict verdict)
{
    if (verdict == TICK_PREEMPT || verdict == TICK_KILL)
        return verdict;
    if (verdict == TICK_MOVE)
        return queue->scheduler->queues > 1 ? TICK_MOVE : TICK_PREEMPT;
    note_flaw(queue, task, FLAW_VERDICT);
    return TICK_CONTINUE;
}

/* Handles a tick of the CPU that runs the task. The run time is up to date. Sets queue->turn_end
 * to the time for turn_over(), or 0 if it does not change. */
MECHANISM_FUNCTION enum tick_verdict run_queue_tick(const struct policy *policy, run_queue_t *queue,
                                                    task_t *task)
{
    queue->turn_end = 0;
    if (!task_is_known(task))
        return TICK_CONTINUE;
    enum tick_verdict verdict = policy->tick(queue, task);
    return verdict == TICK_CONTINUE ? verdict : checked_verdict(queue, task, verdict);
}

/* Handles the time that the policy set. Sets queue->turn_end to a new time, or 0. */
MECHANISM_FUNCTION enum tick_verdict run_queue_turn_over(const struct policy *policy,
                                                         run_queue_t *queue, task_t *task)
{
    queue->turn_end = 0;
    if (!task_is_known(task))
        return TICK_CONTINUE;
    enum tick_verdict verdict = policy->turn_over ? policy->turn_over(queue, task) : TICK_PREEMPT;
    return verdict == TICK_CONTINUE ? verdict : checked_verdict(queue, task, verdict);
}

/* The CPU takes a task that the policy does not know, instead of a task of the queue. */
MECHANISM_FUNCTION void run_queue_pick_none(run_queue_t *queue)
{
    queue->remark = 0;
    queue->turn_end = 0;
    queue->current = NULL;
}

/* Ends the task for the policy; the task is known, and continues to run without the policy. */
MECHANISM_FUNCTION void run_queue_disown(const struct policy *policy, run_queue_t *queue,
                                         task_t *task)
{
    queue->running--;
    queue->current = NULL;
    policy_stop(policy, queue, task, STOP_ENDED);
    queue->running++;
    policy_exit_task(policy, queue->scheduler, task);
    task->level = 0;
}

/* Removes the task from its CPU. */
MECHANISM_FUNCTION void run_queue_leave(const struct policy *policy, run_queue_t *queue,
                                        task_t *task, enum stop_reason reason)
{
    if (queue->running == 0)
        note_flaw(queue, task, FLAW_COUNT);
    else
        queue->running--;
    if (!task_is_known(task))
        return;
    queue->current = NULL;
    policy_stop(policy, queue, task, reason);
}

#endif
