/* SPDX-License-Identifier: MIT */

/*
 * Runs a command. Then records in the trace, for each CPU in their order, the cycles spent waiting
 * for the locks of run queues ("waited"), the number of waits ("waits"), the same for the locks of
 * processes ("p-waited", "p-waits"), and the cycles of the scheduler ("schedule"). Its exit status
 * is the command's.
 */

#include "abi/system_calls.h"
#include "user/library/user.h"

static void report(const char *name, uint64_t value)
{
    uint64_t label = 0;
    memcpy(&label, name, strlen(name));
    mark(MARK_NAME, label);
    mark(MARK_VALUE, value);
}

static void report_cpus(void)
{
    struct cpu_stats stats;
    for (int cpu = 0; getcpustats(cpu, &stats) == 0; cpu++) {
        report("waited", stats.queue_wait_cycles);
        report("waits", stats.queue_waits);
        report("p-waited", stats.process_wait_cycles);
        report("p-waits", stats.process_waits);
        report("schedule", stats.scheduler_cycles);
    }
}

int main(int argc, char *argv[])
{
    int status;
    if (argc < 2)
        usage("contention COMMAND [ARGUMENT]...");
    int pid = fork();
    if (pid == 0)
        become_program("contention", &argv[1]);
    if (pid < 0 || wait(&status) < 0)
        return complain("contention", argv[1]);
    report_cpus();
    return status;
}
