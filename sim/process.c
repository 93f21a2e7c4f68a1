/* SPDX-License-Identifier: MIT */

#include "sim/process.h"

#include "policies/support/attributes.h"
#include "sim/speeds.h"

#include <string.h>

uint32_t program_of(const struct simulator *simulator, const struct process *process)
{
    uint32_t low = 0;
    uint32_t high = simulator->used.programs;
    if (process->step < INIT_STEPS)
        return INIT_PROGRAM;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (simulator->program_first[middle] <= process->step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *name_of(const struct simulator *simulator, uint32_t program)
{
    return program == INIT_PROGRAM ? "init" : simulator->names[program];
}

static void begin_step(const struct simulator *simulator, struct process *process)
{
    const struct workload_step *step = step_of(simulator, process);
    process->left = step->kind == STEP_RUN ? step->value : simulator->step_cost[step->kind];
    if (simulator->speeds)
        begin_pace(simulator, process);
}

void advance(struct simulator *simulator, struct process *process)
{
    const struct workload_step *step = &simulator->steps[++process->step];
    while (step->kind == STEP_LOOP) {
        uint32_t *rounds =
            &simulator->loop_rounds[process->task.slot * simulator->loop_depth + step->detail];
        bool again = step->value == 0 || ++*rounds < step->value;
        if (!again)
            *rounds = 0;
        process->step = again ? step->target : process->step + 1;
        step = step_of(simulator, process);
    }
    begin_step(simulator, process);
}

struct process *process_create(struct simulator *simulator, struct process *parent,
                               uint32_t program)
{
    uint32_t slot = slots_take(&simulator->slots);
    if (slot == UINT32_MAX) {
        fail(simulator, "too many processes: the machine has at most %u at once",
             simulator->process_limit);
        return NULL;
    }
    struct process *process = process_at(simulator, slot);
    *process = (struct process){
        .task =
            {
                .pid = ++simulator->last_pid,
                .slot = slot,
                .cpu = parent ? parent->task.cpu : 0,
                .run_time = simulator->policy_run_time,
                .state = process + 1,
            },
        .step = program == INIT_PROGRAM ? 0 : simulator->program_first[program],
        .link = NOBODY,
        .parent = parent ? parent->task.slot : FIRST_SLOT,
        .parent_pid = parent ? parent->task.pid : 0,
        .zombies = NOBODY,
        .place = PLACE_BLOCKED,
    };
    if (parent)
        INHERIT_ATTRIBUTES(&process->task, &parent->task);
    else
        SET_FIRST_ATTRIBUTES(&process->task);
    if (parent && parent->task.cpus) {
        simulator->cpu_sets[slot] = *parent->task.cpus;
        process->task.cpus = &simulator->cpu_sets[slot];
    }
    if (simulator->speeds)
        simulator->speeds->paces[slot] = (struct pace){.ran_on = RAN_NOWHERE};
    if (program != INIT_PROGRAM)
        simulator->players[program] = (struct player){slot, process->task.pid};
    if (parent)
        parent->children++;
    if (simulator->loop_depth > 0)
        memset(&simulator->loop_rounds[slot * simulator->loop_depth], 0,
               simulator->loop_depth * sizeof(uint32_t));
    for (uint32_t i = 0; i < simulator->timer_count; i++)
        simulator->timer_times[slot * simulator->timer_count + i] = simulator->now;
    begin_step(simulator, process);
    simulator->counts.forks++;
    simulator->counts.processes++;
    if (simulator->counts.processes > simulator->most_processes)
        simulator->most_processes = simulator->counts.processes;
    return process;
}

void process_free(struct simulator *simulator, struct process *process)
{
    process->place = PLACE_FREE;
    simulator->counts.processes--;
    slots_give_back(&simulator->slots, process->task.slot);
}

struct process *process_parent(const struct simulator *simulator, const struct process *process)
{
    struct process *parent = process_at(simulator, process->parent);
    bool lives = parent->task.pid == process->parent_pid && parent->place != PLACE_FREE &&
                 parent->place != PLACE_ZOMBIE;
    return lives ? parent : process_at(simulator, FIRST_SLOT);
}

/* Adds a zombie at the end of its parent's ring. `zombies` is the last zombie, whose `link` is the
 * first. */
void zombie_append(struct simulator *simulator, struct process *parent, struct process *child)
{
    child->link = child->task.slot;
    if (parent->zombies != NOBODY) {
        struct process *last = process_at(simulator, parent->zombies);
        child->link = last->link;
        last->link = child->task.slot;
    }
    parent->zombies = child->task.slot;
}

struct process *zombie_take(struct simulator *simulator, struct process *parent)
{
    if (parent->zombies == NOBODY)
        return NULL;
    struct process *last = process_at(simulator, parent->zombies);
    struct process *first = process_at(simulator, last->link);
    if (first == last)
        parent->zombies = NOBODY;
    else
        last->link = first->link;
    return first;
}

bool zombies_bequeath(struct simulator *simulator, struct process *parent)
{
    struct process *child;
    bool any = false;
    while ((child = zombie_take(simulator, parent))) {
        zombie_append(simulator, process_at(simulator, FIRST_SLOT), child);
        any = true;
    }
    return any;
}
