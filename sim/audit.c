/* SPDX-License-Identifier: MIT */

/* Checks for tests: no process is lost, duplicated or in two places. */

#include <string.h>

#include "sim/speeds.h"

struct tally {
    uint32_t queued[POLICY_CPUS_MAX];
    uint32_t running[POLICY_CPUS_MAX];
    uint32_t all_queued;
    uint32_t waiting[WAIT_CHANNEL + 1]; /* by enum process_wait */
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
        tally->queued[queue_serving(simulator, cpu)] += !process->urgent;
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
    if (process->place == PLACE_BLOCKED)
        tally->waiting[process->waits]++;
    if ((process->place == PLACE_BLOCKED) != (process->waits != WAIT_NONE)) {
        set_error(error,
                  "pid %d is blocked without waiting for anything, or waits without being "
                  "blocked",
                  process->task.pid);
        return false;
    }
    if (process->known &&
        simulator->engine->policy->time_slice(&simulator->scheduler, &process->task) == 0) {
        set_error(error,
                  "policy %s: pid %d has a time slice of 0; time_slice() must return at least 1",
                  simulator->engine->policy->name, process->task.pid);
        return false;
    }
    return true;
}

static bool compare(uint64_t counted, uint64_t match, const char *what, uint32_t cpu,
                    struct simulator_error *error)
{
    if (counted != match)
        set_error(error, "CPU %u: %llu %s counted, %llu found", cpu, (unsigned long long)counted,
                  what, (unsigned long long)match);
    return counted == match;
}

/* Returns true if the CPU was asked to pick again, but has not done so yet. */
static bool is_called(const struct cpu *cpu)
{
    return cpu->reschedule || cpu->late || cpu->due_first != NOBODY;
}

/* Returns how many processes in the queue may run on the CPU, and wait. */
static uint32_t waiting_for(const struct simulator *simulator, uint32_t queue, uint32_t cpu)
{
    const struct run_queue *waiting = &simulator->queues[queue];
    uint32_t forbidden = 0;
    for (uint32_t slot = 0; simulator->affinity_used && slot < simulator->most_processes; slot++) {
        const struct process *process = process_at(simulator, slot);
        forbidden += process->place == PLACE_QUEUED &&
                     queue_serving(simulator, process->task.cpu) == queue &&
                     !task_may_run_on(&process->task, cpu);
    }
    uint32_t remaining = forbidden + waiting->held;
    return waiting->queued > remaining ? waiting->queued - remaining : 0;
}

/* Checks an invariant: if a waiting process may run on a CPU, that CPU is not idle, or it has
 * been asked to pick. (A queue serves one CPU, or all.) */
static bool check_idle(const struct simulator *simulator, uint32_t queue,
                       struct simulator_error *error)
{
    if (simulator->sched_ext) /* its scheduler may leave CPUs idle */
        return true;
    bool serves_all = simulator->scheduler.queues == 1;
    uint32_t first = serves_all ? 0 : queue;
    uint32_t end = serves_all ? simulator->scheduler.cpus : queue + 1;
    uint32_t called = 0;
    uint32_t idle = NO_CPU;
    for (uint32_t i = first; i < end; i++)
        called += is_called(&simulator->cpus[i]);
    for (uint32_t i = first; i < end && idle == NO_CPU; i++) {
        const struct cpu *cpu = &simulator->cpus[i];
        bool rests = !is_called(cpu) && !cpu->current;
        if (rests && waiting_for(simulator, queue, i) > called)
            idle = i;
    }
    if (idle == NO_CPU)
        return true;
    set_error(error, "CPU %u is idle, although its queue has a process", idle);
    return false;
}

static bool check_current(const struct cpu *cpu, struct simulator_error *error)
{
    if (!cpu->current || cpu->current->place == PLACE_RUNNING)
        return true;
    set_error(error, "CPU %u has pid %d, which is not running", cpu->id, cpu->current->task.pid);
    return false;
}

/* Returns how many processes are in a channel's list. Returns UINT32_MAX if one of them waits
 * for something else, or if the list has a cycle. */
static uint32_t line_length(const struct simulator *simulator, uint32_t first,
                            enum process_wait waits)
{
    uint32_t length = 0;
    for (uint32_t slot = first; slot != NOBODY; length++) {
        const struct process *process = process_at(simulator, slot);
        if (process->place != PLACE_BLOCKED || process->waits != waits ||
            length == simulator->process_limit)
            return UINT32_MAX;
        slot = process->link;
    }
    return length;
}

/* Checks an invariant: each waiting process is in the list of the channel that it waits for. */
static bool check_lines(const struct simulator *simulator, const struct tally *tally,
                        struct simulator_error *error)
{
    const struct timers *timers = &simulator->timers;
    uint64_t in_channels = 0;
    uint64_t due = 0;
    for (uint32_t i = 0; i < simulator->used.channels; i++) {
        const struct channel *channel = &simulator->channels[i];
        uint32_t length = line_length(simulator, channel->first, WAIT_CHANNEL);
        in_channels += length;
        if (!compare(channel->waiting, length, "in the queue of a channel", 0, error))
            return false;
    }
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++)
        due += line_length(simulator, simulator->cpus[i].due_first, WAIT_DUE);
    return compare(in_channels, tally->waiting[WAIT_CHANNEL], "in queues of channels", 0, error) &&
           compare(due, tally->waiting[WAIT_DUE], "in queues of due timers", 0, error) &&
           compare(timers->count - timers->dead, tally->waiting[WAIT_TIMER], "timers", 0, error);
}

/* Checks an invariant: each CPU has the speed that results from its level and its busy siblings. */
static bool check_speeds(const struct simulator *simulator, struct simulator_error *error)
{
    const struct speeds *speeds = simulator->speeds;
    uint32_t busy[POLICY_CPUS_MAX] = {0};
    for (uint32_t i = 0; speeds && i < simulator->scheduler.cpus; i++)
        busy[speeds->shape.cpu[i].core] += simulator->cpus[i].current != NULL;
    for (uint32_t i = 0; speeds && i < simulator->scheduler.cpus; i++) {
        if (!compare(speeds->busy[i], busy[i], "busy CPUs in a core", i, error) ||
            !compare(speeds->speed[i], speed_now(simulator, i), "units of work in a ns", i, error))
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
            !compare(simulator->queues[i].running, tally.running[i], "running", i, error) ||
            !check_idle(simulator, i, error))
            return false;
    }
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        if (!check_current(&simulator->cpus[i], error))
            return false;
    }
    return check_lines(simulator, &tally, error) && check_speeds(simulator, error) &&
           compare(simulator->queued, tally.all_queued, "queued in all", 0, error) &&
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
