/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_FAMILY_H
#define SIM_ENGINE_FAMILY_H

/* Steps that create and end processes: fork, wait for children, exit and kill. */

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

/* Reaps a child of the CPU's process. */
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

/* Makes the CPU's process urgent, as in the kernel: an urgent process is picked before all tasks of
 * the policy. */
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

/* Reaps all ended processes, as init. Init is urgent at the end, so a policy that starves processes
 * does not delay the end of the run. */
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

/* Reaps an ended process that arrived from outside, because its parent does not reap it. Returns
 * true if the parent has no children left. */
static bool leaves_none(const struct process *process, struct process *parent)
{
    return parent->task.pid == process->parent_pid && --parent->children == 0;
}

/* Ends the CPU's process. The parent is notified before the process leaves the CPU. */
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
 * Ends the process when it is next in the kernel. If the process kills itself, it ends at once. A
 * running process ends at its CPU's tick or its next act. A queued process ends when it gets a CPU,
 * and a waiting process is woken to end.
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
