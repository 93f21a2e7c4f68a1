/* SPDX-License-Identifier: MIT */

/*
 * The three workloads of study 3, section 4.3, and the one that it had no time
 * for: priority inversion over a pipe. docs/workloads.md gives the sources of
 * the numbers.
 */

#include "workloads/api/workload.h"

enum { PROCESSES_MAX = 500 };
enum { PRIORITY_HIGH = 0, PRIORITY_MIDDLE = 5, PRIORITY_LOW = 10 };
enum { TICKETS_HIGH = 100, TICKETS_MIDDLE = 10, TICKETS_LOW = 1 };
enum { WEIGHT_HIGH = 10, WEIGHT_MIDDLE = 5, WEIGHT_LOW = 1 };

static int64_t processes = 40;
static int64_t loop_work = 290;
static int64_t file_bytes = 32768;
static int64_t gap = 2;
static int64_t offset = 10;
static int64_t hogs = 4;
static int64_t hog_work = 5000;
static int64_t rounds = 5;
static int64_t byte_work = 400;
static int64_t tick_work = 100000;

static void compute(int64_t hundredths_of_a_tick)
{
    workload_burn((uint64_t)(hundredths_of_a_tick * tick_work / 100));
}

/* The tasks of the three workloads */

static void loop_task(int64_t argument)
{
    (void)argument;
    workload_group("cpu");
    compute(loop_work);
}

static void file_task(int64_t argument)
{
    (void)argument;
    workload_group("io");
    workload_write_file(file_bytes);
}

/* Each arrives a little later than the previous one, by the seed. Returns its PID. */
static int start_task(void (*task)(int64_t argument))
{
    workload_burn(workload_random((uint64_t)(offset * tick_work / 100) + 1));
    return workload_start(task, 0);
}

static int writers[PROCESSES_MAX];
static int writer_count;

static void start_file_task(void)
{
    writers[writer_count++] = start_task(file_task);
}

/* The files stay until all have ended: removing them is not measured. */
static int finish(void)
{
    int status = workload_finish();
    for (int i = 0; i < writer_count && status == 0; i++)
        workload_remove_file_of(writers[i]);
    return status;
}

static int run_cpu_bound(void)
{
    workload_begin();
    for (int64_t i = 0; i < processes; i++)
        start_task(loop_task);
    return finish();
}

static int run_io_bound(void)
{
    workload_begin();
    for (int64_t i = 0; i < processes; i++)
        start_file_task();
    return finish();
}

/* Two of three compute, in groups of five. */
static int run_mixed(void)
{
    workload_begin();
    for (int64_t i = 0; i < processes; i++) {
        if (i > 0 && i % 5 == 0)
            workload_sleep(gap);
        if (i % 3 == 2)
            start_file_task();
        else
            start_task(loop_task);
    }
    return finish();
}

/*
 * Priority inversion. The reader, which comes before all others, asks for a byte and waits. The
 * writer, which comes after all others, computes for a while and writes it. In between are
 * processes that compute, and need neither.
 */

enum waits { TICKS_SUM, TICKS_MOST, MICROSECONDS_SUM, MICROSECONDS_MOST, WAITS };

static struct workload_channel requests;
static struct workload_channel bytes;
static struct workload_channel results;

static void rank(const char *group, int priority, int tickets, int weight)
{
    workload_group(group);
    workload_priority(priority);
    workload_tickets(tickets);
    workload_weight(weight);
}

static void hog(int64_t argument)
{
    (void)argument;
    rank("hog", PRIORITY_MIDDLE, TICKETS_MIDDLE, WEIGHT_MIDDLE);
    compute(hog_work);
}

static void writer(int64_t argument)
{
    (void)argument;
    rank("writer", PRIORITY_LOW, TICKETS_LOW, WEIGHT_LOW);
    for (int64_t i = 0; i < rounds; i++) {
        workload_receive(&requests);
        compute(byte_work);
        workload_send(&bytes, i);
    }
}

static void note_wait(int64_t wait, int64_t *sum, int64_t *most)
{
    *sum += wait;
    if (wait > *most)
        *most = wait;
}

/* It sleeps before each wait, as interactive processes do. */
static void reader(int64_t argument)
{
    int64_t waits[WAITS] = {0};
    (void)argument;
    rank("reader", PRIORITY_HIGH, TICKETS_HIGH, WEIGHT_HIGH);
    for (int64_t i = 0; i < rounds; i++) {
        workload_sleep(1);
        int64_t ticks = workload_ticks();
        int64_t nanoseconds = workload_nanoseconds();
        workload_send(&requests, i);
        workload_receive(&bytes);
        ticks = workload_ticks() - ticks;
        nanoseconds = workload_nanoseconds() - nanoseconds;
        workload_tell("wait", ticks);
        workload_tell("wait_ns", nanoseconds);
        note_wait(ticks, &waits[TICKS_SUM], &waits[TICKS_MOST]);
        note_wait(nanoseconds / 1000, &waits[MICROSECONDS_SUM], &waits[MICROSECONDS_MOST]);
    }
    for (int i = 0; i < WAITS; i++)
        workload_send(&results, waits[i]);
}

static void print_waits(void)
{
    int64_t waits[WAITS];
    for (int i = 0; i < WAITS; i++)
        waits[i] = workload_receive(&results);
    int64_t tenths = waits[TICKS_SUM] * 10 / rounds;
    workload_print("reader waits: mean %ld.%ld ticks, longest %ld ticks\n", tenths / 10,
                   tenths % 10, waits[TICKS_MOST]);
    workload_print("              mean %ld us, longest %ld us\n", waits[MICROSECONDS_SUM] / rounds,
                   waits[MICROSECONDS_MOST]);
    workload_print("writer's own work for a byte: %ld.%02ld ticks\n", byte_work / 100,
                   byte_work % 100);
}

static int run_inversion(void)
{
    workload_channel_make(&requests);
    workload_channel_make(&bytes);
    workload_channel_make(&results);
    workload_begin();
    workload_start(writer, 0);
    for (int64_t i = 0; i < hogs; i++)
        start_task(hog);
    workload_start(reader, 0);
    int status = workload_finish();
    if (status == 0)
        print_waits();
    return status;
}

int main(int argc, char *argv[])
{
    enum { MIXED = 2 };
    static const char *const names[] = {"cpu", "io", "mixed", "inversion"};
    static int (*const run[])(void) = {run_cpu_bound, run_io_bound, run_mixed, run_inversion};
    const struct workload_option options[] = {
        {'n', "processes; mixed: 50", &processes, 1, PROCESSES_MAX},
        {'i', "work of one that computes, in hundredths of a tick", &loop_work, 0, 10000000},
        {'b', "bytes of a file", &file_bytes, 0, 1 << 20},
        {'g', "mixed: ticks after each five processes", &gap, 0, 1000000},
        {'o', "most from one arrival to the next, in hundredths of a tick", &offset, 0, 10000},
        {'c', "inversion: processes between the two that only compute", &hogs, 0, 1000},
        {'t', "inversion: work of each of these, in hundredths of a tick", &hog_work, 0, 10000000},
        {'r', "inversion: bytes that the reader waits for", &rounds, 1, 10000},
        {'y', "inversion: work for a byte, in hundredths of a tick", &byte_work, 0, 10000000},
        {'w', "iterations that fill a tick, 10 ns of a 1 GHz CPU each", &tick_work, 100,
         1000000000},
    };
    int chosen = workload_choose(&argc, argv, names, sizeof(names) / sizeof(names[0]));
    if (chosen == MIXED)
        processes = 50;
    workload_init(argc, argv,
                  "One of study 3's workloads, which comes first: 1 cpu, 2 io, 3 mixed,\n"
                  "4 inversion.",
                  options, sizeof(options) / sizeof(options[0]));
    if (chosen < 0)
        workload_wrong_usage(argv[0], "no workload", "name one first");
    return run[chosen]();
}
