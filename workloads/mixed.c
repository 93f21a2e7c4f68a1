/* SPDX-License-Identifier: MIT */

/*
 * A mix that arrives over time, in groups of five: two CPU-bound processes, two interactive ones
 * that compute a little and sleep, one writer of files. Within a group, each arrives a few ticks
 * after the previous one, by the seed.
 */

#include "workloads/api/workload.h"

static int64_t groups = 6;
static int64_t gap = 110;
static int64_t offset = 8;
static int64_t iterations = 5000000;

static void compute(int64_t argument)
{
    (void)argument;
    workload_group("cpu");
    workload_burn((uint64_t)iterations);
}

/* A tenth of the CPU work, in thirty bursts with a sleep of 5 to 14 ticks after each. */
static void interact(int64_t argument)
{
    (void)argument;
    workload_group("inter");
    for (int i = 0; i < 30; i++) {
        workload_burn((uint64_t)iterations / 300);
        workload_sleep(5 + (int64_t)workload_random(10));
    }
}

/* A tenth of the CPU work, in ten bursts with a file of 1 to 16 KiB after each. */
static void use_files(int64_t argument)
{
    (void)argument;
    workload_group("io");
    for (int i = 0; i < 10; i++) {
        int64_t bytes = 1024 * (1 + (int64_t)workload_random(16));
        workload_burn((uint64_t)iterations / 100);
        workload_write_file(bytes);
        workload_read_file(bytes);
        workload_remove_file();
    }
}

static void start_group(void)
{
    static void (*const members[])(int64_t) = {compute, interact, use_files, interact, compute};
    for (int i = 0; i < 5; i++) {
        workload_sleep((int64_t)workload_random((uint64_t)offset + 1));
        workload_start(members[i], 0);
    }
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "groups of five processes", &groups, 1, 10000},
        {'g', "ticks from one group to the next", &gap, 0, 1000000},
        {'o', "most ticks from one process to the next within a group", &offset, 0, 100000},
        {'i', "iterations of a CPU-bound process, 10 ns of a 1 GHz CPU each", &iterations, 300,
         1000000000000},
    };
    workload_init(argc, argv, "CPU-bound, interactive and I/O-bound processes, over time.", options,
                  sizeof(options) / sizeof(options[0]));

    workload_begin();
    int64_t next = workload_ticks();
    for (int64_t i = 0; i < groups; i++) {
        int64_t now = workload_ticks();
        if (next > now)
            workload_sleep(next - now);
        start_group();
        next += gap;
    }
    return workload_finish();
}
