/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WORKLOAD_CHECKS_H
#define TESTS_WORKLOAD_CHECKS_H

#include "workloads/api/workload.h"

/*
 * The promises of the workload API on every host, for tests/guest/test-workload.c and
 * tests/host/workload_test.c. They supply check(), and end_with(), which ends the process with a
 * status.
 */

static void end_with(int64_t status);

/* No CPU is so fast that ten million instructions take less than 0.1 ms. */
static void burning_takes_time(void)
{
    int64_t begin = workload_nanoseconds();
    workload_burn(0);
    workload_burn(1000000);
    check(workload_nanoseconds() - begin > 100000);
}

/* Sizes near a block's; afterwards the file does not exist. */
static void write_and_read_files(void)
{
    static const int64_t sizes[] = {0, 1, 4095, 4096, 4097, 20000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        workload_write_file(sizes[i]);
        workload_read_file(sizes[i]);
        workload_remove_file();
    }
}

static void failed_children_are_counted(void)
{
    for (int64_t i = 0; i < 6; i++)
        workload_start(end_with, i % 3);
    check(workload_wait_all() == 4);
    check(workload_wait_all() == 0);
    workload_begin();
    workload_start(end_with, 0);
    check(workload_finish() == 0);
}

static void go_through_the_gate(int64_t number)
{
    if (workload_gate_wait() != number)
        end_with(1);
}

static void a_gate_lets_go_those_who_wait(void)
{
    workload_gate_make();
    for (int i = 0; i < 3; i++)
        workload_start(go_through_the_gate, 42);
    workload_gate_gather(3);
    workload_gate_open(3, 42);
    check(workload_wait_all() == 0);
}

static void sleep_long(int64_t ticks)
{
    workload_sleep(ticks);
}

static void stopped_children_have_not_failed(void)
{
    workload_stop(workload_start(sleep_long, 1000000));
    workload_start(end_with, 1);
    check(workload_wait_all() == 1);
}

#endif
