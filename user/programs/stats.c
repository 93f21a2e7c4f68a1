/* SPDX-License-Identifier: MIT */

/* Prints the results of getstats(), one figure a line; with -c, those of getcpustats(), one CPU
 * a line. */

#include "user/library/user.h"

static void show(const char *name, uint64_t value)
{
    printf("%-18s %lu\n", name, value);
}

static int show_cpus(void)
{
    struct cpu_stats stats;
    printf("cpu context_switches idle_switches idle_time_ns scheduler_cycles queue_waits "
           "queue_wait_cycles process_waits process_wait_cycles\n");
    for (int cpu = 0; getcpustats(cpu, &stats) == 0; cpu++)
        printf("%d %lu %lu %lu %lu %lu %lu %lu %lu\n", cpu, stats.context_switches,
               stats.idle_switches, stats.idle_time, stats.scheduler_cycles, stats.queue_waits,
               stats.queue_wait_cycles, stats.process_waits, stats.process_wait_cycles);
    return 0;
}

static int show_machine(void)
{
    struct system_stats stats;
    if (getstats(&stats) < 0)
        return complain("stats", "getstats");
    show("cpus", stats.cpus);
    show("processes", stats.processes);
    show("finished", stats.finished);
    show("tick_ns", stats.tick_ns);
    show("time_ns", stats.time);
    show("context_switches", stats.context_switches);
    show("idle_switches", stats.idle_switches);
    show("scheduler_cycles", stats.scheduler_cycles);
    show("idle_time_ns", stats.idle_time);
    show("memory_pages", stats.memory_pages);
    show("free_pages", stats.free_pages);
    show("trace_records", stats.trace_records);
    return 0;
}

int main(int argc, char *argv[])
{
    if (argc == 2 && strcmp(argv[1], "-c") == 0)
        return show_cpus();
    if (argc != 1)
        usage("stats [-c]");
    return show_machine();
}
