/* SPDX-License-Identifier: MIT */

/* Checks actions from outside, and lets the engine perform them. */

#include "sim/control.h"

#include "abi/attribute_names.h"
#include "policies/support/attributes.h"
#include "sim/policies.h"
#include "sim/process.h"
#include "sim/ticking.h"

/*
 * Prepares for an action. A run that has ended accepts no action. If ticks were skipped because all
 * processes slept, the ticks resume until all processes sleep again.
 */
bool begin_act(struct simulator *simulator, struct simulator_error *error)
{
    if (simulator->status == SIMULATOR_FAILED)
        *error = simulator->error;
    else if (simulator->status == SIMULATOR_DONE)
        set_error(error, "the first process has ended, which ends the run");
    else if (simulator->finished)
        set_error(error, "the run is finished and cannot be changed");
    if (simulator->status != SIMULATOR_TIME || simulator->finished)
        return false;
    seek_tick(simulator, simulator->now + 1);
    recipe_note_touch(&simulator->recipe);
    return true;
}

/* Returns the process with a PID, or null if there is none or the process has ended. */
static struct process *find_process(const struct simulator *simulator, int32_t pid,
                                    struct simulator_error *error)
{
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        struct process *process = process_at(simulator, slot);
        if (process->task.pid != pid || process->place == PLACE_FREE)
            continue;
        if (process->place != PLACE_ZOMBIE)
            return process;
        set_error(error, "pid %d has ended", pid);
        return NULL;
    }
    set_error(error, "pid %d: no such process", pid);
    return NULL;
}

static struct process *begin_act_on(struct simulator *simulator, int32_t pid,
                                    struct simulator_error *error)
{
    return begin_act(simulator, error) ? find_process(simulator, pid, error) : NULL;
}

int32_t simulator_fork(struct simulator *simulator, uint32_t program, struct simulator_error *error)
{
    if (!begin_act(simulator, error))
        return 0;
    if (program >= simulator->used.programs) {
        set_error(error, "program %u: the workload has only %u", program, simulator->used.programs);
        return 0;
    }
    if (!slots_any(&simulator->slots)) {
        set_error(error, "the machine is full: it has at most %u processes at once",
                  simulator->process_limit);
        return 0;
    }
    simulator->engine->fork(simulator, program);
    recipe_note(&simulator->recipe, ACT_FORK, program, 0, 0);
    return simulator->last_pid;
}

bool simulator_kill(struct simulator *simulator, int32_t pid, struct simulator_error *error)
{
    struct process *process = begin_act_on(simulator, pid, error);
    if (!process)
        return false;
    if (process->task.slot == FIRST_SLOT) {
        set_error(error, "pid %d: init cannot be killed", pid);
        return false;
    }
    simulator->engine->kill(simulator, process);
    recipe_note(&simulator->recipe, ACT_KILL, (uint32_t)pid, 0, 0);
    return true;
}

bool simulator_wake(struct simulator *simulator, int32_t pid, struct simulator_error *error)
{
    struct process *process = begin_act_on(simulator, pid, error);
    if (!process)
        return false;
    if (process->place != PLACE_BLOCKED || process->task.slot == FIRST_SLOT) {
        set_error(error, "pid %d %s", pid,
                  process->task.slot == FIRST_SLOT ? "is init, which only the end of a process "
                                                     "wakes"
                                                   : "does not wait");
        return false;
    }
    simulator->engine->wake(simulator, process);
    recipe_note(&simulator->recipe, ACT_WAKE, (uint32_t)pid, 0, 0);
    return true;
}

bool simulator_migrate(struct simulator *simulator, int32_t pid, uint32_t cpu,
                       struct simulator_error *error)
{
    struct process *process = begin_act_on(simulator, pid, error);
    if (!process)
        return false;
    if (simulator->scheduler.queues == 1)
        set_error(error, "no process can be moved: there is only one queue");
    else if (cpu >= simulator->scheduler.cpus)
        set_error(error, "CPU %u: there are only %u", cpu, simulator->scheduler.cpus);
    else if (process->place != PLACE_QUEUED)
        set_error(error, "pid %d is not queued", pid);
    else if (!task_may_run_on(&process->task, cpu))
        set_error(error, "pid %d may not run on CPU %u", pid, cpu);
    else if (process->task.cpu == cpu)
        set_error(error, "pid %d is already queued on CPU %u", pid, cpu);
    else {
        simulator->engine->migrate(simulator, process, cpu);
        recipe_note(&simulator->recipe, ACT_MIGRATE, (uint32_t)pid, cpu, 0);
        return true;
    }
    return false;
}

bool simulator_give(struct simulator *simulator, uint32_t channel, uint64_t count,
                    struct simulator_error *error)
{
    if (!begin_act(simulator, error))
        return false;
    if (channel >= simulator->used.channels) {
        set_error(error, "channel %u: the workload has only %u", channel, simulator->used.channels);
        return false;
    }
    if (count > UINT32_MAX) {
        set_error(error, "%llu things: too many for a channel; use at most %u",
                  (unsigned long long)count, UINT32_MAX);
        return false;
    }
    simulator->engine->give(simulator, &simulator->channels[channel], count);
    recipe_note(&simulator->recipe, ACT_GIVE, channel, count, 0);
    return true;
}

bool simulator_set_attribute(struct simulator *simulator, int32_t pid, uint32_t kind,
                             uint64_t value, struct simulator_error *error)
{
    struct process *process = begin_act_on(simulator, pid, error);
    if (!process)
        return false;
    if (!attribute_allowed(kind, (int64_t)value)) {
        if (kind == 0 || kind >= ATTRIBUTE_KINDS)
            set_error(error, "attribute %u: unknown", kind);
        else
            set_error(error, "%s %lld: expected a number from %lld to %lld", attribute_names[kind],
                      (long long)value, (long long)attribute_lowest(kind),
                      (long long)attribute_highest(kind));
        return false;
    }
    simulator->engine->set_attribute(simulator, process, (enum attribute_kind)kind, value);
    recipe_note(&simulator->recipe, ACT_ATTRIBUTE, (uint32_t)pid, value, kind);
    return true;
}

bool simulator_set_policy(struct simulator *simulator, const char *text,
                          struct simulator_error *error)
{
    if (!begin_act(simulator, error) || !switch_policy(simulator, OUTSIDE, text, error))
        return false;
    recipe_note_text(&simulator->recipe, ACT_POLICY, text);
    return true;
}

bool simulator_set_tunable(struct simulator *simulator, const char *text,
                           struct simulator_error *error)
{
    if (!begin_act(simulator, error) || !switch_tunable(simulator, OUTSIDE, text, error))
        return false;
    recipe_note_text(&simulator->recipe, ACT_TUNABLE, text);
    return true;
}

static struct simulator_process describe(const struct simulator *simulator,
                                         const struct process *process)
{
    static const uint32_t places[] = {
        [PLACE_QUEUED] = SIMULATOR_QUEUED,
        [PLACE_RUNNING] = SIMULATOR_RUNNING,
        [PLACE_BLOCKED] = SIMULATOR_BLOCKED,
        [PLACE_ZOMBIE] = SIMULATOR_ENDED,
    };
    bool is_init = process->task.slot == FIRST_SLOT;
    bool runs = process->place == PLACE_RUNNING;
    uint64_t running = runs ? policy_now(simulator) - process->task.counted : 0;
    return (struct simulator_process){
        .pid = process->task.pid,
        .parent = is_init ? 0 : process_parent(simulator, process)->task.pid,
        .place = places[process->place],
        .cpu = process->task.cpu,
        .program = program_of(simulator, process),
        .priority = process->task.priority,
        .tickets = process->task.tickets,
        .weight = process->task.weight,
        .run_time = process->task.run_time + running - simulator->policy_run_time,
    };
}

uint32_t simulator_processes(const struct simulator *simulator, struct simulator_process *processes,
                             uint32_t room)
{
    uint32_t match = 0;
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        const struct process *process = process_at(simulator, slot);
        if (process->place == PLACE_FREE)
            continue;
        if (match < room)
            processes[match] = describe(simulator, process);
        match++;
    }
    return match;
}
