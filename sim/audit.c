/* SPDX-License-Identifier: MIT */

/* Checks for tests: no process is lost, doubled or in two places. */

#include <string.h>

#include "sim/machine.h"

struct tally {
    uint32_t queued[POLICY_CPUS_MAX];
    uint32_t running[POLICY_CPUS_MAX];
    uint32_t all_queued;
    uint32_t busy;
    uint32_t processes;
};

static uint32_t queue_serving(const struct simulator *simulator, uint32_t cpu)
{
    return simulator->scheduler.queues == 1 ? 0 : cpu;
}

static bool tally_process(const struct simulator *simulator, const struct process *process,
                          struct tally *tally, struct simulator_error *error)
{
    uint32_t cpu = process->task.cpu;
    if (process->place == PLACE_FREE)
        return true;
    tally->processes++;
    if (process->place == PLACE_QUEUED) {
        tally->queued[queue_serving(simulator, cpu)]++;
        tally->all_queued++;
    }
    if (process->place == PLACE_RUNNING) {
        tally->running[queue_serving(simulator, cpu)]++;
        tally->busy++;
        if (simulator->cpus[cpu].current != process) {
            set_error(error, "pid %d runs, but not on its CPU %u", process->task.pid, cpu);
            return false;
        }
    }
    if (process->known &&
        simulator->engine->policy->time_slice(&simulator->scheduler, &process->task) == 0) {
        set_error(error, "pid %d has a time slice of 0", process->task.pid);
        return false;
    }
    return true;
}

static bool compare(uint64_t counted, uint64_t found, const char *what, uint32_t cpu,
                    struct simulator_error *error)
{
    if (counted != found)
        set_error(error, "CPU %u: %llu %s by the count, %llu found", cpu,
                  (unsigned long long)counted, what, (unsigned long long)found);
    return counted == found;
}

static bool check_cpu(const struct simulator *simulator, uint32_t cpu,
                      struct simulator_error *error)
{
    const struct cpu *machine = &simulator->cpus[cpu];
    bool waits = machine->reschedule || machine->late_tick || machine->due_first != NOBODY;
    if (machine->current && machine->current->place != PLACE_RUNNING) {
        set_error(error, "CPU %u has pid %d, which does not run", cpu, machine->current->task.pid);
        return false;
    }
    if (!machine->current && !waits && simulator->queues[queue_serving(simulator, cpu)].queued) {
        set_error(error, "CPU %u is idle, though its queue holds a process", cpu);
        return false;
    }
    return true;
}

bool simulator_audit(const struct simulator *simulator, struct simulator_error *error)
{
    struct tally tally = {0};
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        if (!tally_process(simulator, process_at(simulator, slot), &tally, error))
            return false;
    }
    for (uint32_t i = 0; i < simulator->scheduler.queues; i++) {
        if (!compare(simulator->queues[i].queued, tally.queued[i], "queued", i, error) ||
            !compare(simulator->queues[i].running, tally.running[i], "running", i, error))
            return false;
    }
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        if (!check_cpu(simulator, i, error))
            return false;
    }
    return compare(simulator->queued, tally.all_queued, "queued in all", 0, error) &&
           compare(simulator->busy, tally.busy, "CPUs that run a process", 0, error) &&
           compare(simulator->counts.processes, tally.processes, "processes", 0, error);
}

bool simulator_drain(struct simulator *simulator, struct simulator_error *error)
{
    uint32_t expected = simulator->queued;
    uint32_t drained = 0;
    simulator->finished = true;
    uint32_t slot = simulator->engine->drain(simulator);
    for (; slot != NOBODY && drained <= expected; slot = process_at(simulator, slot)->link)
        drained++;
    if (simulator->status == SIMULATOR_FAILED)
        *error = simulator->error;
    return simulator->status != SIMULATOR_FAILED && compare(expected, drained, "queued", 0, error);
}
