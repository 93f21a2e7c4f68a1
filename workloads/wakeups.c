/* SPDX-License-Identifier: MIT */

/*
 * Message processes that wake workers, like schbench (Chris Mason) for Linux. In each round one
 * wakes all of its workers, and each does a fixed amount of work and reports. After the last
 * report, the message process sleeps, and starts again. Optionally, other processes always compute.
 * The result is how long a woken worker waits for a CPU, until the time ends: the first process
 * that notices closes the window.
 */

#include "workloads/api/workload.h"

/* A message process has a pipe to each; it may have 16 files open. */
enum { WORKERS_MAX = 8 };
enum { ENOUGH = -1, WORK = 0 }; /* messages */

#define HOG_ITERATIONS 1000 /* between checks of the clock: 10 µs of a 1 GHz CPU */

static int64_t messengers = 2;
static int64_t workers = 4;
static int64_t hogs;
static int64_t milliseconds = 500;
static int64_t iterations = 20000;
static int64_t pause = 1;
static int64_t end_time; /* nanoseconds; no round starts after it */

static struct workload_channel to_worker[WORKERS_MAX];
static struct workload_channel from_workers;

static void work(int64_t number)
{
    workload_group("worker");
    workload_channel_receives(&to_worker[number]);
    while (workload_receive(&to_worker[number]) != ENOUGH) {
        workload_burn((uint64_t)iterations);
        workload_send(&from_workers, number);
    }
}

static void send_all(int64_t message)
{
    for (int64_t i = 0; i < workers; i++)
        workload_send(&to_worker[i], message);
}

static void start_workers(void)
{
    workload_channel_make(&from_workers);
    for (int64_t i = 0; i < workers; i++) {
        workload_channel_make(&to_worker[i]);
        workload_start(work, i);
        workload_channel_sends(&to_worker[i]);
    }
}

static void wake(int64_t argument)
{
    (void)argument;
    int64_t done = 0;
    workload_group("message");
    start_workers();
    for (; workload_nanoseconds() < end_time; done++) {
        send_all(WORK);
        for (int64_t i = 0; i < workers; i++)
            workload_receive(&from_workers);
        if (pause > 0)
            workload_sleep(pause);
    }
    workload_end();
    send_all(ENOUGH);
    if (workload_wait_all() > 0)
        workload_fail("a worker failed");
    workload_tell("rounds", done);
}

static void compute(int64_t argument)
{
    (void)argument;
    workload_group("cpu");
    while (workload_nanoseconds() < end_time)
        workload_burn(HOG_ITERATIONS);
    workload_end();
}

static void start(void (*run)(int64_t argument), int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        workload_start(run, i);
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'m', "message processes", &messengers, 1, 1000},
        {'n', "workers of each", &workers, 1, WORKERS_MAX},
        {'c', "processes that always compute", &hogs, 0, 1000},
        {'t', "milliseconds", &milliseconds, 1, 1000000},
        {'i', "iterations of CPU work in a round, 10 ns of a 1 GHz CPU each", &iterations, 0,
         1000000000},
        {'z', "ticks between rounds", &pause, 0, 1000000},
    };
    workload_init(argc, argv, "Message processes that wake workers.", options,
                  sizeof(options) / sizeof(options[0]));
    workload_window_for(milliseconds * 1000000);
    workload_open();
    end_time = workload_nanoseconds() + milliseconds * 1000000;
    start(compute, hogs);
    start(wake, messengers);
    return workload_finish();
}
