/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ACTING_H
#define EXPLORE_ACTING_H

/*
 * Lets CPUs act by themselves, as in a machine with workloads.
 *
 * An idle CPU that is notified picks at once. If its queue has no task, it takes a task from
 * another queue (docs/policy-interface.md, "What happens first"). So the search only chooses the
 * operations of tasks. This file is a part of engine.c.
 */

/* By CPU: it was asked to pick again. All are false between two operations. */
static bool called[QUEUES_MOST]; /* to pick again */
static bool expired[QUEUES_MOST];
static bool moves[QUEUES_MOST]; /* the running task must be placed again when it leaves the CPU */

static void make_runnable(struct member *member, enum enqueue_reason reason,
                          const struct member *parent);

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    const struct member *running = running_on(cpu);
    (void)scheduler;
    return running ? &running->task : NULL;
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    (void)task;
    return false;
}

MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    (void)scheduler;
    if (running_on(cpu) || called[cpu])
        return false;
    called[cpu] = true;
    return true;
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    for (uint32_t cpu = 0; cpu < scheduler->cpus; cpu++) {
        if (claim_idle_cpu(scheduler, cpu))
            return cpu;
    }
    return NO_CPU;
}

static void announce(struct member *member)
{
    uint32_t cpu = find_cpu_to_call(policy, queue_of(member->task.cpu), &member->task);
    if (cpu != NO_CPU)
        called[cpu] = true;
}

/* Calls steal() or balance() for a CPU. Returns true if its queue got a task. */
static bool pull(uint32_t cpu, bool idle)
{
    uint32_t from = policy_balance(policy, &machine.scheduler, cpu, idle);
    struct member *member = from == NO_CPU ? NULL : steal(cpu, from);
    if (member && !idle)
        announce(member);
    return member;
}

static void push(uint32_t cpu)
{
    uint32_t to = policy_push(policy, &machine.scheduler, cpu);
    struct member *member = to == NO_CPU ? NULL : steal(to, cpu);
    if (member)
        announce(member);
}

static void pick_for_itself(uint32_t cpu)
{
    called[cpu] = false;
    expired[cpu] = false;
    print_act(" CPU %u:", cpu);
    while (!enter_picked(cpu) && pull(cpu, true))
        ;
}

static void pick_again(uint32_t cpu)
{
    struct member *left = running_on(cpu);
    bool moved = left && expired[cpu] && moves[cpu];
    if (left)
        add(leave(cpu, STOP_RUNNABLE), expired[cpu] ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED, NULL);
    if (moved)
        take_out(left);
    pick_for_itself(cpu);
    if (moved)
        make_runnable(left, ENQUEUE_MOVED, NULL);
}

/* Makes each notified CPU pick again, in the order of their numbers. A CPU that moves a task may
 * thereby notify a CPU with a lower number. */
static void settle(uint32_t cpus)
{
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        if (!called[cpu])
            continue;
        pick_again(cpu);
        cpu = UINT32_MAX; /* starts again with CPU 0 */
    }
}

#endif
