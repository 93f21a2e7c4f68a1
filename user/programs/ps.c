/* SPDX-License-Identifier: MIT */

/* A table of all processes. TIME and WAIT (runnable, but not running) are seconds, SLICE ticks. */

#include "user/library/user.h"

static const char *state_name(const struct process_info *process)
{
    static const char *const states[] = {"new", "runnable", "running", "blocked", "zombie"};
    static const char *const reasons[] = {"blocked", "sleep", "child",   "pipe", "console",
                                          "disk",    "lock",  "journal", "ended"};
    if (process->state == PROCESS_BLOCKED && process->reason <= BLOCK_EXIT)
        return reasons[process->reason];
    return process->state <= PROCESS_ZOMBIE ? states[process->state] : "?";
}

/* The slice in ticks; some policies set no limit. */
static void write_slice(char *text, size_t size, uint64_t slice)
{
    if (slice == UINT64_MAX)
        text_copy(text, "none", size);
    else
        snprintf(text, size, "%lu", slice);
}

static void write_seconds(char *text, size_t size, uint64_t nanoseconds)
{
    uint64_t milliseconds = nanoseconds / 1000000;
    snprintf(text, size, "%lu.%03lu", milliseconds / 1000, milliseconds % 1000);
}

static void show(const struct process_info *process)
{
    char slice[24];
    char time[24];
    char wait[24];
    write_slice(slice, sizeof(slice), process->time_slice);
    write_seconds(time, sizeof(time), process->run_time);
    write_seconds(wait, sizeof(wait), process->waiting_time);
    printf("%5d %6d %-8s %3u %8d %7u %6u %5s %8s %8s %.*s\n", process->pid, process->parent,
           state_name(process), process->cpu, process->priority, process->tickets, process->weight,
           slice, time, wait, PROCESS_NAME_BYTES, process->name);
}

int main(int argc, char *argv[])
{
    (void)argv;
    if (argc != 1)
        usage("ps");
    int count;
    struct process_info *table = process_table(&count);
    if (!table)
        return complain("ps", "getpinfo");
    printf("%5s %6s %-8s %3s %8s %7s %6s %5s %8s %8s %s\n", "PID", "PARENT", "STATE", "CPU",
           "PRIORITY", "TICKETS", "WEIGHT", "SLICE", "TIME", "WAIT", "NAME");
    for (int i = 0; i < count; i++)
        show(&table[i]);
    return 0;
}
