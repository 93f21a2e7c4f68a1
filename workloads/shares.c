/* SPDX-License-Identifier: MIT */

/*
 * Processes that differ in one attribute by the same step, and compete for the CPUs. All compute
 * until the window has ended, which begins after they have competed for a while. So their parts of
 * the CPU time are the scheduler's, regardless of the process that would end first. Each is a
 * group, named by its attribute.
 */

#include "workloads/api/workload.h"

enum { PROCESSES_MAX = 1000 };
enum { TICKETS = 2, WEIGHT = 3 };
enum { PRIORITY_FIRST = 0, TICKETS_MOST = 1000000, WEIGHT_MOST = 10 };

/* Between checks of the clock: 50 µs of a 1 GHz CPU. */
#define STEP_ITERATIONS 5000

static int64_t processes = 10;
static int64_t attribute = WEIGHT;
static int64_t first = 1;
static int64_t step = 1;
static int64_t ticks = 500;
static int64_t warm_up = 100;

static void take_attribute(int64_t value)
{
    if (attribute == TICKETS)
        workload_tickets((int)value);
    else
        workload_weight((int)value);
}

/* Sets the group's label. Its digits are in reverse order first. */
static void take_name(int64_t value)
{
    char digits[8];
    char label[sizeof(digits) + 1] = {0};
    int count = 0;
    for (; value > 0 && count < (int)sizeof(digits); value /= 10)
        digits[count++] = (char)('0' + value % 10);
    for (int i = 0; i < count; i++)
        label[i] = digits[count - 1 - i];
    workload_group(label);
}

static void compute_until(int64_t tick)
{
    while (workload_ticks() < tick)
        workload_burn(STEP_ITERATIONS);
}

static void compete(int64_t number)
{
    int64_t value = first + number * step;
    take_name(value);
    take_attribute(value);
    int64_t opening = workload_gate_wait();
    compute_until(opening);
    workload_open();
    compute_until(opening + ticks);
    workload_end();
}

/* The parent releases all in one tick, and must not wait for a CPU then; the members open and
 * close the window. */
static void take_the_best(void)
{
    workload_priority(PRIORITY_FIRST);
    workload_tickets(TICKETS_MOST);
    workload_weight(WEIGHT_MOST);
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "processes", &processes, 1, PROCESSES_MAX},
        {'a', "attribute: 2 tickets, 3 weight", &attribute, TICKETS, WEIGHT},
        {'f', "the attribute of the first", &first, 1, 10000},
        {'d', "what the next one has more", &step, 0, 1000},
        {'t', "ticks that are measured", &ticks, 1, 1000000},
        {'u', "ticks before that", &warm_up, 1, 1000000},
    };
    workload_init(argc, argv, "Processes that compete, each with more of an attribute.", options,
                  sizeof(options) / sizeof(options[0]));
    workload_window(ticks);
    workload_gate_make();
    for (int64_t i = 0; i < processes; i++)
        workload_start(compete, i);
    workload_gate_gather(processes);
    take_the_best();
    workload_sleep(1);
    workload_gate_open(processes, workload_ticks() + warm_up);
    return workload_finish();
}
