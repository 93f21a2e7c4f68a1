/* SPDX-License-Identifier: MIT */

/*
 * Repeats the operations that the simulator has costs for, on an otherwise idle machine.
 * `./schedlab calibrate` reads their durations from the trace. A yield before and after shows the
 * cycle counter; a note announces the operation. tools/schedlab_tools/calibration.py derives the
 * costs.
 */

#include "user/library/user.h"
#include "workloads/api/workload.h"

/* Notes, which tools/schedlab_tools/benchmarks/calibration.py identifies by these numbers. */
enum { YIELD = 1, COMPUTE, FORK, TOUCH, REAP, SLEEP, PIPE, WAKE, CROWD, NEW, USED, END };

enum { PAGES = 8, PAGE = 4096, SLEEPERS = 8, CHILDREN = 40 };

static volatile char pages[PAGES + 1][PAGE];
static int64_t rounds = 24;
static int64_t work = 300000; /* iterations: 3 ms at 1 GHz */
static int64_t crowd = 100;
static struct workload_channel channel;

static void note(uint64_t what)
{
    mark(MARK_NOTE, what);
}

static void measure_yield(void)
{
    note(YIELD);
    for (int64_t i = 0; i < rounds; i++)
        workload_yield();
}

static void measure_compute(void)
{
    note(COMPUTE);
    for (int i = 0; i < 4; i++) {
        workload_yield();
        workload_burn((uint64_t)work);
    }
    workload_yield();
}

static void end_soon(int64_t ignored)
{
    (void)ignored;
    workload_yield();
}

/* The parent yields before and after the fork; then the child has its turn. */
static void measure_fork(int64_t touched)
{
    note(touched ? TOUCH : FORK);
    for (int64_t i = 0; i < rounds; i++) {
        workload_yield();
        workload_start(end_soon, 0);
        for (int64_t page = 0; page < touched; page++)
            pages[page][0]++;
        workload_yield();
        workload_wait_all();
    }
}

static void end_at_once(int64_t ignored)
{
    (void)ignored;
}

/* The child has ended when its parent asks. */
static void measure_reap(void)
{
    note(REAP);
    for (int64_t i = 0; i < rounds; i++) {
        workload_start(end_at_once, 0);
        workload_sleep(1);
        int status;
        workload_yield();
        wait(&status);
        workload_yield();
    }
}

static void measure_sleep(void)
{
    note(SLEEP);
    for (int64_t i = 0; i < rounds; i++) {
        workload_yield();
        workload_sleep(1);
    }
    workload_yield();
}

static void measure_pipe(void)
{
    note(PIPE);
    for (int64_t i = 0; i < rounds; i++) {
        workload_yield();
        workload_send(&channel, i);
        workload_yield();
        workload_receive(&channel);
    }
    workload_yield();
}

static void sleep_often(int64_t ignored)
{
    (void)ignored;
    for (int64_t i = 0; i < rounds; i++)
        workload_sleep(1);
}

/* One process, then many, that all wake at the same tick of an idle machine. */
static void measure_wake(void)
{
    note(WAKE);
    for (int64_t count = 1; count <= SLEEPERS; count += SLEEPERS - 1) {
        for (int64_t i = 0; i < count; i++)
            workload_start(sleep_often, 0);
        workload_wait_all();
    }
}

static void yield_often(int64_t ignored)
{
    (void)ignored;
    workload_sleep(1);
    for (int64_t i = 0; i < rounds; i++)
        workload_yield();
}

/* Many processes that yield: the queue is long. */
static void measure_crowd(void)
{
    note(CROWD);
    for (int64_t i = 0; i < crowd; i++)
        workload_start(yield_often, 0);
    workload_wait_all();
}

/* Starts at the beginning of a tick, and ends before the next one. The first time, no process of
 * the kernel has used the children's memory. */
static void measure_new(uint64_t what)
{
    workload_sleep(1);
    note(what);
    workload_yield();
    for (int64_t i = 0; i < CHILDREN; i++)
        workload_start(end_at_once, 0);
    workload_yield();
    workload_wait_all();
}

int main(int argc, char *argv[])
{
    static const struct workload_option options[] = {
        {'n', "repetitions", &rounds, 4, 10000},
        {'w', "iterations of the computing, 10 ns of a 1 GHz CPU each", &work, 1000, 100000000},
        {'c', "processes of the crowd", &crowd, 2, 10000},
    };
    workload_init(argc, argv, "What the simulator has costs for.", options,
                  sizeof(options) / sizeof(options[0]));
    workload_channel_make(&channel);
    workload_begin();
    measure_new(NEW);
    measure_new(USED);
    measure_yield();
    measure_compute();
    measure_fork(0);
    measure_fork(PAGES);
    measure_reap();
    measure_sleep();
    measure_pipe();
    measure_wake();
    measure_crowd();
    note(END);
    return workload_finish();
}
