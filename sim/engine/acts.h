/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_ACTS_H
#define SIM_ENGINE_ACTS_H

/* The steps of processes. */

#include "policies/support/groups.h"
#include "sim/engine/arrivals.h"
#include "sim/policies.h"

/* If processes perform this many acts while no time passes, the run fails: the workload has an
 * endless loop. */
#define IDLE_ACTS_MAX 10000000

static void act_yield(struct simulator *simulator, struct cpu *cpu)
{
    advance(simulator, cpu->current);
    record(simulator, cpu->id, TRACE_YIELD, cpu->current, 0, 0);
    reschedule(simulator, cpu, STOP_RUNNABLE, ENQUEUE_YIELDED, true);
}

/* Returns the process that a step refers to, or null if the process does not exist yet or has
 * ended. */
static struct process *find_player(const struct simulator *simulator, struct process *self,
                                   uint32_t target)
{
    if (target == WORKLOAD_SELF)
        return self;
    const struct player *player = &simulator->players[target];
    if (player->slot == NOBODY)
        return NULL;
    struct process *process = process_at(simulator, player->slot);
    bool lives = process->task.pid == player->pid && process->place != PLACE_FREE &&
                 process->place != PLACE_ZOMBIE;
    return lives ? process : NULL;
}

static void set_attribute(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                          enum attribute_kind kind, uint64_t value)
{
    bool queued = begin_change(simulator, acting_cpu, process);
    store_attribute(simulator, acting_cpu, process, kind, value);
    end_change(simulator, acting_cpu, process, queued);
}

static void set_affinity(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                         const char *list)
{
    bool queued = begin_change(simulator, acting_cpu, process);
    store_affinity(simulator, acting_cpu, process, list);
    end_change(simulator, acting_cpu, process, queued);
}

static void act_attribute(struct simulator *simulator, struct cpu *cpu,
                          const struct workload_step *step)
{
    struct process *process = find_player(simulator, cpu->current, step->target);
    advance(simulator, cpu->current);
    if (!process)
        return;
    if (step->kind == STEP_AFFINITY)
        set_affinity(simulator, cpu->id, process, simulator->texts[step->value]);
    else
        set_attribute(simulator, cpu->id, process, step->detail, step->value);
}

/* Sets an attribute of a group, which a policy sees at its next decision. */
static void act_set_group(struct simulator *simulator, struct cpu *cpu,
                          const struct workload_step *step)
{
    advance(simulator, cpu->current);
    group_set(&simulator->scheduler, step->target, step->detail, (int64_t)step->value);
    record_at(simulator, simulator->now, cpu->id, TRACE_TASK_GROUP, step->target, step->detail,
              step->value);
    note_group_change(simulator, step->target, step->detail);
}

static void act_kill(struct simulator *simulator, struct cpu *cpu, uint32_t program)
{
    struct process *process = find_player(simulator, NULL, program);
    advance(simulator, cpu->current);
    if (process)
        kill_process(simulator, cpu->id, process, cpu->current);
}

/* Records a mark. The measured processes are those of the workload's first process, even if another
 * process begins the window. */
static void act_mark(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct process *process = cpu->current;
    uint64_t value = step->value;
    if (step->detail == MARK_BEGIN && process->task.pid != simulator->first_pid)
        value = (uint64_t)simulator->first_pid;
    record(simulator, cpu->id, TRACE_MARK, process, step->detail, value);
    advance(simulator, process);
}

/* Ends a job; the next one is released when its timer expires. */
static void act_job(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct process *process = cpu->current;
    uint64_t release = *task_timer(simulator, process, step->detail);
    timer_next(simulator, &release, step->value, step->target == 1);
    if (release == 0) /* 0 means no job */
        release = 1;
    if (step->target == JOB_NONE)
        release = 0;
    record(simulator, cpu->id, TRACE_MARK, process, MARK_JOB, release);
    advance(simulator, process);
}

/* Executes the next act of the CPU's process. */
static void act(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    const struct workload_step *step = step_of(simulator, process);
    switch (step->kind) {
    case STEP_RUN:
    case STEP_RUN_UNTIL:
        advance(simulator, process);
        break;
    case STEP_SLEEP:
        act_sleep(simulator, cpu, simulator->now + step->value);
        break;
    case STEP_SLEEP_TICKS:
        act_sleep(simulator, cpu, step->value ? tick_after(simulator, step->value) : 0);
        break;
    case STEP_SLEEP_UNTIL:
        act_sleep(simulator, cpu, step->value);
        break;
    case STEP_TIMER:
        act_sleep(simulator, cpu, task_timer_next(simulator, process, step));
        break;
    case STEP_SHARED_TIMER:
        act_sleep(simulator, cpu, shared_timer_next(simulator, process, step));
        break;
    case STEP_YIELD:
        act_yield(simulator, cpu);
        break;
    case STEP_FORK:
        act_fork(simulator, cpu, step->target);
        break;
    case STEP_WAIT:
        act_wait(simulator, cpu);
        break;
    case STEP_REAP:
        act_reap(simulator, cpu);
        break;
    case STEP_TAKE:
        act_take(simulator, cpu, step);
        break;
    case STEP_MEET:
        act_meet(simulator, cpu, step);
        break;
    case STEP_GIVE:
        act_give(simulator, cpu, step);
        break;
    case STEP_ATTRIBUTE:
    case STEP_AFFINITY:
        act_attribute(simulator, cpu, step);
        break;
    case STEP_MARK:
        act_mark(simulator, cpu, step);
        break;
    case STEP_JOB:
        act_job(simulator, cpu, step);
        break;
    case STEP_SET_POLICY:
        advance(simulator, process);
        if (!switch_policy(simulator, cpu->id, simulator->texts[step->target], &simulator->error))
            simulator->status = SIMULATOR_FAILED;
        break;
    case STEP_SET_TUNABLE:
        advance(simulator, process);
        if (!switch_tunable(simulator, cpu->id, simulator->texts[step->target], &simulator->error))
            simulator->status = SIMULATOR_FAILED;
        break;
    case STEP_EXIT:
        end_process(simulator, cpu, (int32_t)step->value);
        break;
    case STEP_SETGROUP:
        act_set_group(simulator, cpu, step);
        break;
    case STEP_HOTPLUG:
        advance(simulator, process);
        set_online(simulator, step->target, step->detail);
        break;
    case STEP_KILL:
        act_kill(simulator, cpu, step->target);
        break;
    case STEP_ARRIVE:
        act_arrive(simulator, cpu);
        break;
    }
}

/* Starts a system call of the CPU's process. The kernel cannot be interrupted until it has
 * performed the act, or checks for interrupts before that. */
static inline void enter_call(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    uint8_t kind = step_of(simulator, process)->kind;
    uint64_t rest = simulator->step_rest[kind];
    bool begins = rest == 0 || process->left > rest;
    cpu->resumes = simulator->now + process->left;
    process->left = begins ? rest : 0;
    cpu->resumes -= process->left;
    if (begins && kind == STEP_FORK && simulator->counts.processes == simulator->most_processes)
        cpu->resumes += simulator->costs.fork_new;
    cpu->calls = true;
}

/* Handles the end of a computation, or an act, of the CPU's process. An act that takes no time is
 * merged with the preceding computation. */
static void act_on(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    progress(simulator, cpu);
    if (simulator->acted_at != simulator->now) {
        simulator->acted_at = simulator->now;
        simulator->idle_acts = 0;
    }
    if (++simulator->idle_acts > IDLE_ACTS_MAX)
        fail(simulator,
             "pid %d repeats steps that take no time; add a step that computes or sleeps",
             process->task.pid);
    if (process->killed) {
        cpu->calls = false;
        end_process(simulator, cpu, -1);
        return;
    }
    bool computed = is_computing(step_of(simulator, process));
    if (computed)
        act(simulator, cpu);
    if (is_computing(step_of(simulator, process)))
        return;
    bool checks_first = cpu->calls && process->left > 0;
    cpu->calls = false;
    if (process->left == 0)
        act(simulator, cpu);
    else if (!checks_first)
        enter_call(simulator, cpu);
}

#endif
