/* SPDX-License-Identifier: MIT */

/*
 * Measures the simulator's speed on this host, compared with a bare loop over the same policy's
 * pick() and enqueue(). The processes only compute, under round-robin with a slice of one tick, so
 * that each tick of each CPU is a decision. Prints
 *
 *     bench simulator-NAME PROCESSES NANOSECONDS
 *
 * of CPU time for one decision: the minimum of some rounds, because other programs on the host only
 * add to it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policies/registry.h"
#include "sim/simulator.h"

#define TICK_NS   1000000ull
#define DECISIONS 4000000ull
#define ROUNDS    5

static const char *trace_file; /* of the traced run */

static double cpu_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "simulator_speed: %s\n", why);
    exit(1);
}

/* ---- the bare loop ---- */

struct bare {
    struct scheduler scheduler;
    struct run_queue queue;
    uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
    uint64_t queue_state[POLICY_QUEUE_BYTES / 8];
    char *tasks;
    size_t task_bytes;
};

static void build_bare(struct bare *bare, const struct policy *policy, uint32_t processes)
{
    const struct policy_choice choice = {.policy = policy};
    bare->task_bytes = sizeof(struct task) + (policy->task_bytes + 7) / 8 * 8;
    bare->tasks = calloc(processes, bare->task_bytes);
    if (!bare->tasks)
        give_up("no memory");
    bare->scheduler = (struct scheduler){
        .cpus = 1, .queues = 1, .tick_ns = TICK_NS, .seed = 1, .state = bare->scheduler_state};
    policy_set_defaults(&bare->scheduler, &choice);
    bare->scheduler.queue[0] = &bare->queue;
    bare->queue = (struct run_queue){.scheduler = &bare->scheduler, .state = bare->queue_state};
    for (uint32_t i = 0; i < processes; i++) {
        struct task *task = (struct task *)(void *)(bare->tasks + i * bare->task_bytes);
        *task = (struct task){.pid = (int32_t)i + 1, .slot = i, .state = task + 1};
        policy->enqueue(&bare->queue, task, ENQUEUE_NEW);
        bare->queue.queued++;
    }
}

static double time_bare(uint32_t processes)
{
    struct bare bare = {0};
    const struct policy *volatile match = policy_find("rr", 2); /* hidden from the compiler */
    const struct policy *policy = match;
    build_bare(&bare, policy, processes);
    double begin = cpu_nanoseconds();
    for (uint64_t i = 0; i < DECISIONS; i++) {
        struct task *task = policy->pick(&bare.queue, 0);
        bare.queue.queued--;
        bare.queue.now += TICK_NS;
        policy->enqueue(&bare.queue, task, ENQUEUE_EXPIRED);
        bare.queue.queued++;
    }
    double taken = cpu_nanoseconds() - begin;
    free(bare.tasks);
    return taken / (double)DECISIONS;
}

/* ---- the simulator ---- */

static struct simulator *create(uint32_t processes, uint32_t cpus, const char *trace)
{
    struct simulator_error error;
    const struct workload_step root[] = {{.kind = STEP_FORK, .target = 1},
                                         {.kind = STEP_LOOP, .target = 0, .value = processes},
                                         {.kind = STEP_WAIT},
                                         {.kind = STEP_EXIT}};
    const struct workload_step worker[] = {{.kind = STEP_RUN, .value = 1ull << 60},
                                           {.kind = STEP_EXIT}};
    const struct simulator_program programs[] = {{"root", root, 4}, {"worker", worker, 2}};
    const struct simulator_workload workload = {.programs = programs, .program_count = 2};
    const struct simulator_setup setup = {.policy = "rr",
                                          .cpus = cpus,
                                          .processes = processes + 2,
                                          .tick_ns = TICK_NS,
                                          .seed = 1,
                                          .trace = trace};
    struct simulator *simulator = simulator_create(&setup, &workload, &error);
    if (!simulator)
        give_up(error.text);
    return simulator;
}

static double time_run(uint32_t processes, uint32_t cpus, const char *trace)
{
    struct simulator_error error = {""};
    struct simulator_counts before;
    struct simulator_counts after;
    struct simulator *simulator = create(processes, cpus, trace);
    simulator_run(simulator, TICK_NS, &error); /* all are forked, and wait */
    simulator_count(simulator, &before);
    if (before.forks != processes + 2)
        give_up("the processes are not all there after a tick");
    double begin = cpu_nanoseconds();
    if (simulator_run(simulator, (DECISIONS / cpus + 1) * TICK_NS, &error) == SIMULATOR_FAILED ||
        !simulator_finish(simulator, &error))
        give_up(error.text);
    double taken = cpu_nanoseconds() - begin;
    simulator_count(simulator, &after);
    simulator_destroy(simulator);
    return taken / (double)(after.decisions - before.decisions);
}

static double time_simulator(uint32_t processes)
{
    return time_run(processes, 1, NULL);
}

static double time_four_cpus(uint32_t processes)
{
    return time_run(processes, 4, NULL);
}

static double time_traced(uint32_t processes)
{
    return time_run(processes, 1, trace_file);
}

static void measure(const char *name, double (*once)(uint32_t processes), uint32_t processes)
{
    double least = once(processes);
    for (int i = 1; i < ROUNDS; i++) {
        double taken = once(processes);
        least = taken < least ? taken : least;
    }
    printf("bench simulator-%s %u %.1f\n", name, processes, least);
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 2) {
        fprintf(stderr, "usage: simulator_speed [TRACE]\n");
        return 2;
    }
    trace_file = argument_count == 2 ? arguments[1] : "/dev/null";
    measure("bare-loop", time_bare, 100);
    measure("bare-loop", time_bare, 100000);
    measure("decision", time_simulator, 100);
    measure("decision", time_simulator, 100000);
    measure("decision-4-cpus", time_four_cpus, 1000);
    measure("decision-traced", time_traced, 100);
    return 0;
}
