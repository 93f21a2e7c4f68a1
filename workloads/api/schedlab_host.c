/* SPDX-License-Identifier: MIT */

/* The workload API on the schedlab kernel. */

#include "user/library/user.h"
#include "workloads/api/host.h"
#include "workloads/api/workload.h"

void host_exit(int status)
{
    exit(status);
}

int host_fork(void)
{
    return fork();
}

int host_wait(int *status)
{
    return wait(status);
}

void host_kill(int pid)
{
    kill(pid);
}

bool host_pipe(int ends[2])
{
    return pipe(ends) == 0;
}

void host_mark(enum mark_kind kind, uint64_t value)
{
    if (mark(kind, value) < 0)
        host_fail("mark");
}

uint64_t host_seed(void)
{
    char text[24];
    int64_t seed;
    if (boot_argument("seed", text, sizeof(text)) < 0 || !text_to_number(text, &seed))
        return 1;
    return (uint64_t)seed;
}

void host_print(bool error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(error ? 2 : 1, format, arguments);
    va_end(arguments);
}

void host_complain(const char *what)
{
    complain("workload", what);
}

void host_fail(const char *what)
{
    host_complain(what);
    exit(1);
}

void workload_priority(int priority)
{
    if (setpriority(getpid(), priority) < 0)
        host_fail("setpriority");
}

void workload_tickets(int tickets)
{
    if (settickets(tickets) < 0)
        host_fail("settickets");
}

void workload_weight(int weight)
{
    if (setweight(getpid(), weight) < 0)
        host_fail("setweight");
}

void workload_sleep(int64_t ticks)
{
    if (sleep((int)ticks) < 0)
        host_fail("sleep");
}

int64_t workload_ticks(void)
{
    return uptime();
}

int64_t workload_nanoseconds(void)
{
    return clock_ns();
}

void workload_yield(void)
{
    yield();
}

int64_t workload_switches(void)
{
    return getcontextswitches();
}

void workload_become(char *const arguments[])
{
    become_program("workload", arguments);
}

void workload_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int printed = vfprintf(1, format, arguments);
    va_end(arguments);
    if (printed < 0)
        host_fail("print");
}

static const char *file_of(int process)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/work.%d", process);
    return path;
}

int host_open(bool create)
{
    return open(file_of(getpid()), create ? OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE : OPEN_READ);
}

bool host_write(int descriptor, const void *source, int bytes)
{
    return write(descriptor, source, bytes) == bytes;
}

bool host_read(int descriptor, void *destination, int bytes)
{
    return read(descriptor, destination, bytes) == bytes;
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
