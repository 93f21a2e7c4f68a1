/* SPDX-License-Identifier: MIT */

/*
 * The workload API on Linux. From the environment: WORKLOAD_TICK_US, the length
 * of a tick in microseconds (1000); WORKLOAD_SEED; WORKLOAD_MARKS, 1: marks are
 * also printed on standard error, one line each. Files lie in TMPDIR, or /tmp.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workloads/api/host.h"
#include "workloads/api/workload.h"

static uint64_t environment_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

uint64_t host_tick_ns(void)
{
    uint64_t microseconds = environment_number("WORKLOAD_TICK_US", 1000);
    return (microseconds ? microseconds : 1) * 1000;
}

void host_exit(int status)
{
    _exit(status); /* all output uses write() */
}

int host_fork(void)
{
    return fork();
}

int host_wait(int *status)
{
    int raw;
    int pid;
    do {
        pid = waitpid(-1, &raw, 0);
    } while (pid < 0 && errno == EINTR);
    if (pid > 0)
        *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
    return pid;
}

void host_kill(int pid)
{
    kill(pid, SIGKILL);
}

/*
 * Each write wakes one reader. A pipe of Linux wakes no process while it contains unread data. Then
 * the next wake-up would depend on when the previous reader gets a CPU, from the scheduler that is
 * being measured.
 */
bool host_pipe(int ends[2])
{
    const int room = 8 << 20; /* for as many numbers as a pipe has; only root gets all of it */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        return false;
    if (setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0)
        setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    return true;
}

void host_mark(enum mark_kind kind, uint64_t value)
{
    /* A tracer of this machine sees the call; its failure has no other effect. */
    prctl(TRACE_MARK_PRCTL, (unsigned long)kind, (unsigned long)value, 0ul, 0ul);
    static const char *const names[] = {"?",    "begin", "end",   "group",
                                        "note", "name",  "value", "job"};
    if (environment_number("WORKLOAD_MARKS", 0) == 0)
        return;
    char text[24] = {0};
    if (kind == MARK_GROUP || kind == MARK_NAME)
        memcpy(text, &value, 8);
    else if (kind == MARK_VALUE || kind == MARK_NOTE || kind == MARK_JOB)
        snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
    host_print(true, "mark %d %s %s\n", getpid(), names[kind <= MARK_JOB ? kind : 0], text);
}

uint64_t host_seed(void)
{
    return environment_number("WORKLOAD_SEED", 1);
}

void host_print(bool error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(error ? 2 : 1, format, arguments);
    va_end(arguments);
}

void host_complain(const char *what)
{
    host_print(true, "workload: %s: %s\n", what, strerror(errno));
}

void host_fail(const char *what)
{
    host_complain(what);
    _exit(1);
}

void workload_sleep(int64_t ticks)
{
    uint64_t duration = (uint64_t)ticks * host_tick_ns();
    struct timespec time = {(time_t)(duration / 1000000000), (long)(duration % 1000000000)};
    while (nanosleep(&time, &time) < 0) {
        if (errno != EINTR)
            host_fail("nanosleep");
    }
}

int64_t workload_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time); /* as the trace */
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t workload_ticks(void)
{
    return workload_nanoseconds() / (int64_t)host_tick_ns();
}

void workload_yield(void)
{
    sched_yield();
}

/* Counts the switches of the whole machine, as on the schedlab kernel: the line "ctxt" of
 * /proc/stat. */
int64_t workload_switches(void)
{
    char line[256];
    int64_t switches = -1;
    FILE *file = fopen("/proc/stat", "re");
    while (file && switches < 0 && fgets(line, sizeof(line), file))
        sscanf(line, "ctxt %" SCNd64, &switches);
    if (file)
        fclose(file);
    return switches;
}

void workload_become(char *const arguments[])
{
    execvp(arguments[0], arguments);
    host_fail(arguments[0]);
}

void workload_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int printed = vdprintf(1, format, arguments);
    va_end(arguments);
    if (printed < 0)
        host_fail("print");
}

static const char *file_of(int process)
{
    static char path[4096];
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/workload.%d", directory ? directory : "/tmp", process);
    return path;
}

int host_open(bool create)
{
    return open(file_of(getpid()), create ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
}

bool host_write(int descriptor, const void *source, int bytes)
{
    return write(descriptor, source, (size_t)bytes) == bytes;
}

bool host_read(int descriptor, void *destination, int bytes)
{
    return read(descriptor, destination, (size_t)bytes) == bytes;
}

void host_close(int descriptor)
{
    close(descriptor);
}

bool host_remove(int process)
{
    return unlink(file_of(process)) == 0;
}

int host_process(void)
{
    return getpid();
}
