/* SPDX-License-Identifier: MIT */

/* Processes that only compute, all started at once. */

#include "workloads/api/workload.h"

static int64_t processes = 8;
static int64_t iterations = 6250000;

static void compute(int64_t argument)
{
    (void)argument;
    workload_group("cpu");
    workload_burn((uint64_t)iterations);
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "processes", &processes, 1, 100000},
        {'i', "iterations of CPU work of each, 10 ns of a 1 GHz CPU each", &iterations, 0,
         1000000000000},
    };
    workload_init(argc, argv, "CPU-bound processes, all there from the start.", options,
                  sizeof(options) / sizeof(options[0]));

    workload_begin();
    for (int64_t i = 0; i < processes; i++)
        workload_start(compute, 0);
    return workload_finish();
}
