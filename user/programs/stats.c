/* SPDX-License-Identifier: MIT */

/* What getstats() tells of the machine, one figure a line. */

#include "user/library/user.h"

static void show(const char *name, uint64_t value)
{
    printf("%-18s %lu\n", name, value);
}

int main(int argc, char *argv[])
{
    struct system_stats stats;
    (void)argv;
    if (argc != 1)
        usage("stats");
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
