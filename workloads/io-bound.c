/* SPDX-License-Identifier: MIT */

/* Processes that repeatedly write a file, read it back and remove it, with little CPU work in
 * between. */

#include "workloads/api/workload.h"

static int64_t processes = 8;
static int64_t rounds = 60;
static int64_t file_bytes = 8192;
static int64_t iterations = 20000;

static void write_and_read(int64_t argument)
{
    (void)argument;
    workload_group("io");
    for (int64_t i = 0; i < rounds; i++) {
        workload_write_file(file_bytes);
        workload_burn((uint64_t)iterations);
        workload_read_file(file_bytes);
        workload_remove_file();
    }
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "processes", &processes, 1, 100000},
        {'r', "rounds of each: write, compute, read, remove", &rounds, 1, 1000000},
        {'b', "bytes of a file", &file_bytes, 0, 1 << 24},
        {'i', "iterations of CPU work a round, 10 ns of a 1 GHz CPU each", &iterations, 0,
         1000000000},
    };
    workload_init(argc, argv, "I/O-bound processes that write, read and remove files.", options,
                  sizeof(options) / sizeof(options[0]));

    workload_begin();
    for (int64_t i = 0; i < processes; i++)
        workload_start(write_and_read, 0);
    return workload_finish();
}
