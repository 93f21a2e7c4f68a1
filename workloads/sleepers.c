/* SPDX-License-Identifier: MIT */

/* Processes that compute for less than a tick or two and sleep equally long, many times. */

#include "workloads/api/workload.h"

static int64_t processes = 24;
static int64_t rounds = 20;
static int64_t iterations = 100000;

static void doze(int64_t argument)
{
    (void)argument;
    workload_group("sleeper");
    for (int64_t i = 0; i < rounds; i++) {
        workload_burn(1 + workload_random((uint64_t)iterations * 2));
        workload_sleep(1 + (int64_t)workload_random(3));
    }
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "processes", &processes, 1, 100000},
        {'r', "rounds of each", &rounds, 1, 1000000},
        {'i', "iterations of CPU work in a round, on average, 10 ns of a 1 GHz CPU each",
         &iterations, 1, 1000000000},
    };
    workload_init(argc, argv, "Processes that compute a little and sleep a little.", options,
                  sizeof(options) / sizeof(options[0]));

    workload_begin();
    for (int64_t i = 0; i < processes; i++)
        workload_start(doze, i);
    return workload_finish();
}
