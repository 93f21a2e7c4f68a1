/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_FAMILY_H
#define SIM_ENGINE_FAMILY_H

/* The life of processes: they fork, wait for their children, end and are killed. */

#include "sim/engine/waits.h"
#include "sim/waiting.h"

static void act_fork(struct simulator *simulator, struct cpu *cpu, uint32_t program)
{
    struct process *parent = cpu->current;
    advance(simulator, parent);
    struct process *child = process_create(simulator, parent, program);
    if (!child)
        return;
    if (!simulator->first_pid)
        simulator->first_pid = child->task.pid;
    record(simulator, cpu->id, TRACE_FORK, parent, pid_of(child), 0);
    make_runnable(simulator, cpu->id, child, ENQUEUE_NEW, parent);
    if (simulator->costs.fork_return)
        cpu->resumes += simulator->costs.fork_return;
}

static void reap(struct simulator *simulator, struct process *child)
{
    if (child->known)
        policy_exit_task(policy, &simulator->scheduler, &child->task);
    process_free(simulator, child);
}

/* A child of the CPU's process. */
static void reap_child(struct simulator *simulator, struct cpu *cpu, struct process *child)
{
    reap(simulator, child);
    cpu->current->children--;
    cpu->resumes += simulator->costs.reap;
}

static void act_wait(struct simulator *simulator, struct cpu *cpu)
{
    struct process *parent = cpu->current;
    bool all = step_of(simulator, parent)->detail == 1;
    struct process *child = zombie_take(simulator, parent);
    for (; child && all; child = zombie_take(simulator, parent))
        reap_child(simulator, cpu, child);
    if (!child && parent->children > 0) {
        if (asks_for_owners(simulator))
            name_owner(simulator, cpu->id, parent, only_child(simulator, parent));
        block(simulator, cpu, WAIT_CHILD, BLOCK_CHILD);
        return;
    }
    if (child)
        reap_child(simulator, cpu, child);
    advance(simulator, parent);
}

/* Makes the CPU's process precede all tasks that the policy orders, as in the kernel. */
static void make_urgent(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    struct run_queue *queue = queue_of(simulator, cpu->id);
    if (process->known)
        run_queue_disown(policy, queue, &process->task);
    hooks_called(simulator, cpu->id, queue);
    process->known = false;
    process->urgent = true;
}

/* Init reaps all ended processes. A policy that starves other processes does not delay the end
 * of the run. */
static void act_reap(struct simulator *simulator, struct cpu *cpu)
{
    struct process *child;
    while ((child = zombie_take(simulator, cpu->current))) {
        if (child->task.pid == simulator->first_pid)
            simulator->status = SIMULATOR_DONE;
        reap(simulator, child);
    }
    if (!cpu->current->urgent)
        make_urgent(simulator, cpu);
    if (simulator->status != SIMULATOR_DONE)
        block(simulator, cpu, WAIT_CHILD, BLOCK_CHILD);
}

/* Reaps an ended process that arrived from outside, which no process reaps. Returns true if its
 * parent has no children any more. */
static bool leaves_none(const struct process *process, struct process *parent)
{
    return parent->task.pid == process->parent_pid && --parent->children == 0;
}

/* Ends the CPU's process. Its parent is notified before the process has left the CPU. */
static void end_process(struct simulator *simulator, struct cpu *cpu, int32_t status)
{
    struct process *process = cpu->current;
    struct process *init = process_at(simulator, FIRST_SLOT);
    struct process *parent = process_parent(simulator, process);
    drop_waiters(&process->task);
    record(simulator, cpu->id, TRACE_EXIT, process, (uint32_t)status, 0);
    if (process->task.pid == simulator->first_pid)
        simulator->counts.exit_status = process->killed ? -1 : status;
    bool orphans = zombies_bequeath(simulator, process);
    if (orphans && init->waits == WAIT_CHILD)
        make_runnable(simulator, cpu->id, init, ENQUEUE_WOKEN, process);
    cpu->moves = false;
    bool arrived = process->arrived;
    bool reports = !arrived || leaves_none(process, parent);
    if (!arrived)
        zombie_append(simulator, parent, process);
    if (reports && parent->waits == WAIT_CHILD)
        make_runnable(simulator, cpu->id, parent, ENQUEUE_WOKEN, process);
    reschedule(simulator, cpu, STOP_ENDED, ENQUEUE_WOKEN, true);
    if (arrived)
        reap(simulator, process);
}

/*
 * Ends the process when it is next in the kernel. The actor ends at once, a running process at its
 * CPU's tick or its next act. A queued process ends when it has a CPU; a waiting one is woken for
 * that.
 */
static void kill_process(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                         const struct process *actor)
{
    process->killed = true;
    if (process->place == PLACE_RUNNING && process != actor)
        return;
    if (process->place == PLACE_BLOCKED) {
        stop_waiting(simulator, process);
        make_runnable(simulator, acting_cpu, process, ENQUEUE_WOKEN, actor);
    }
    process->left = 0;
}

#endif
