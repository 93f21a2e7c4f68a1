/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_HANDS_H
#define EXPLORE_ENGINE_HANDS_H

/* Queues and dequeues tasks. */

#include "explore/engine/promises.h"

static void add(struct member *member, enum enqueue_reason reason, const struct member *parent)
{
    static const char *const reasons[] = {"NEW",     "WOKEN", "EXPIRED", "PREEMPTED",
                                          "YIELDED", "MOVED", "ADOPTED"};
    struct run_queue *queue = queue_of(member->task.cpu);
    if (!member->known) {
        reason = task_introduce(policy, &machine.scheduler, &member->task, reason,
                                parent ? &parent->task : NULL);
    }
    print_act(" enqueue(task %d, %s) on queue %u;", member->task.pid, reasons[reason], queue->cpu);
    rank_as_last(member, queue, reason == ENQUEUE_PREEMPTED);
    if (reason != ENQUEUE_PREEMPTED)
        member->ticks = 0;
    run_queue_add(policy, queue, &member->task, reason);
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        const struct member *running = running_on(cpu);
        if (queue_number(cpu) == queue->cpu && running && running->known)
            policy_preempts(policy, queue, &member->task, &running->task);
    }
}

static void take_out(struct member *member)
{
    struct run_queue *queue = queue_of(member->task.cpu);
    print_act(" dequeue(task %d) from queue %u;", member->task.pid, queue->cpu);
    run_queue_remove(policy, queue, &member->task);
    rank_no_more(member, queue);
}

static struct member *pick(uint32_t cpu)
{
    uint64_t levels[TASKS_MOST] = {0};
    struct run_queue *queue = queue_of(cpu);
    const uint32_t ineligible = queue->held;
    asking = cpu;
    if (POLICY.level_order != LEVELS_NONE)
        levels_in(queue, levels);
    task_t *task = run_queue_pick_for(policy, queue, cpu);
    print_act(" pick() of queue %u gives ", queue->cpu);
    if (!task) {
        print_act("none;");
        return NULL;
    }
    print_act("task %d;", task->pid);
    struct member *member = member_of(task);
    if (law.of_pick && !going_on)
        law.of_pick(queue, member);
    if (POLICY.level_order != LEVELS_NONE && ineligible == 0)
        check_levels(queue, member, levels);
    rank_no_more(member, queue);
    return member;
}

/* Makes the picked task run on the CPU. Returns true if there is one. */
static bool enter_picked(uint32_t cpu)
{
    struct member *member = pick(cpu);
    if (!member)
        return false;
    struct run_queue *queue = queue_of(cpu);
    member->place = PLACE_RUNNING;
    member->task.cpu = cpu;
    machine.current[cpu] = (uint64_t)(member - machine.tasks) + 1;
    machine.turn_end[cpu] = queue->turn_end;
    run_queue_enter(queue, &member->task);
    queue->current = machine.scheduler.queues == machine.scheduler.cpus ? &member->task : NULL;
    return true;
}

/* Calls steal(). Returns the task that came to the CPU's queue, or null. */
static struct member *steal(uint32_t cpu, uint32_t from)
{
    struct run_queue *queue = queue_of(from);
    task_t *task = run_queue_steal_for(policy, queue, cpu);
    if (!task) {
        print_act(" steal() from queue %u gives none;", from);
        return NULL;
    }
    print_act(" steal() from queue %u gives task %d;", from, task->pid);
    rank_no_more(member_of(task), queue);
    task->cpu = cpu;
    add(member_of(task), ENQUEUE_MOVED, NULL);
    return member_of(task);
}

/* Takes the running task off its CPU, which is then idle. */
static struct member *leave(uint32_t cpu, enum stop_reason reason)
{
    static const char *const reasons[] = {"RUNNABLE", "BLOCKED", "ENDED"};
    struct member *member = running_on(cpu);
    struct run_queue *queue = queue_of(cpu);
    task_count_run_time(&member->task, machine.now);
    machine.current[cpu] = 0;
    machine.turn_end[cpu] = 0;
    member->place = PLACE_BLOCKED;
    print_act(" stopped(task %d, %s);", member->task.pid, reasons[reason]);
    run_queue_leave(policy, queue, &member->task, reason);
    queue->current = NULL;
    return member;
}

#include "explore/acting_cpus.h"

static void end(struct member *member)
{
    if (member->known)
        policy_exit_task(policy, &machine.scheduler, &member->task);
    drop_waiters(&member->task);
    print_act(" task_exit(task %d);", member->task.pid);
    member->place = PLACE_FREE;
}

/* Notifies the policy of other tasks that now wait for the owner of a lock. */
MECHANISM_FUNCTION void notify_owner(scheduler_t *scheduler, task_t *owner, uint32_t cpu)
{
    struct member *member = member_of(owner);
    struct run_queue *queue = queue_of(owner->cpu);
    (void)scheduler;
    (void)cpu;
    if (!run_queue_waiters_changed(policy, queue, owner))
        return;
    print_act(" waiters_changed(task %d);", owner->pid);
    if (member->place == PLACE_QUEUED) {
        take_out(member);
        add(member, ENQUEUE_MOVED, NULL);
        if (setup.acting)
            announce(member);
    } else if (member->place == PLACE_RUNNING && setup.acting) {
        called[owner->cpu] = true;
    }
}

static void wait_for(struct member *member, struct member *owner)
{
    if (machine.scheduler.follows_waits)
        wait_for_task(&machine.scheduler, &member->task, owner ? &owner->task : NULL, 0);
}

/* Where place() says. */
static void make_runnable(struct member *member, enum enqueue_reason reason,
                          const struct member *parent)
{
    uint32_t from = member->task.cpu;
    uint32_t cpu = policy_place(policy, &machine.scheduler, &member->task, reason);
    member->task.cpu = cpu;
    if (reason == ENQUEUE_WOKEN && queue_number(from) != queue_number(cpu))
        run_queue_forget(policy, queue_of(from), &member->task);
    add(member, reason, parent);
    if (setup.acting)
        announce(member);
}

#endif
