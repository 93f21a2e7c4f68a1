/* SPDX-License-Identifier: MIT */

#include "user/library/system.h"

/* The arguments lie in a0 to a5 already, and the result comes back in a0. */
#define SYSTEM_CALL(type, name, number, ...)                                                       \
    __attribute__((naked)) type name(__VA_ARGS__)                                                  \
    {                                                                                              \
        __asm__ volatile("li a7, %0\n ecall\n ret" ::"i"(number));                                 \
    }

#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Winvalid-noreturn"

SYSTEM_CALL(int, fork, SYSTEM_CALL_FORK, void)
SYSTEM_CALL(_Noreturn void, exit, SYSTEM_CALL_EXIT, int status)
SYSTEM_CALL(int, wait, SYSTEM_CALL_WAIT, int *status)
SYSTEM_CALL(int, kill, SYSTEM_CALL_KILL, int pid)
SYSTEM_CALL(int, exec, SYSTEM_CALL_EXEC, const char *path, char *const arguments[])
SYSTEM_CALL(int, getpid, SYSTEM_CALL_GETPID, void)
SYSTEM_CALL(int, setname, SYSTEM_CALL_SETNAME, const char *name)
SYSTEM_CALL(int, yield, SYSTEM_CALL_YIELD, void)
SYSTEM_CALL(int, last_error, SYSTEM_CALL_LAST_ERROR, void)

SYSTEM_CALL(int, pipe, SYSTEM_CALL_PIPE, int descriptors[2])
SYSTEM_CALL(int, read, SYSTEM_CALL_READ, int descriptor, void *destination, int bytes)
SYSTEM_CALL(int, write, SYSTEM_CALL_WRITE, int descriptor, const void *source, int bytes)
SYSTEM_CALL(int, open, SYSTEM_CALL_OPEN, const char *path, int flags)
SYSTEM_CALL(int, close, SYSTEM_CALL_CLOSE, int descriptor)
SYSTEM_CALL(int, dup, SYSTEM_CALL_DUP, int descriptor)
SYSTEM_CALL(int, fstat, SYSTEM_CALL_FSTAT, int descriptor, struct file_status *status)
SYSTEM_CALL(int, mknod, SYSTEM_CALL_MKNOD, const char *path, int major, int minor)
SYSTEM_CALL(int, unlink, SYSTEM_CALL_UNLINK, const char *path)
SYSTEM_CALL(int, link, SYSTEM_CALL_LINK, const char *old_path, const char *new_path)
SYSTEM_CALL(int, mkdir, SYSTEM_CALL_MKDIR, const char *path)
SYSTEM_CALL(int, chdir, SYSTEM_CALL_CHDIR, const char *path)
SYSTEM_CALL(int, sync, SYSTEM_CALL_SYNC, void)

SYSTEM_CALL(static void *, system_sbrk, SYSTEM_CALL_SBRK, int64_t change, int manner)
SYSTEM_CALL(void *, shared_memory, SYSTEM_CALL_SHARED_MEMORY, int64_t bytes)
SYSTEM_CALL(int, channels_make, SYSTEM_CALL_CHANNELS_MAKE, int count)
SYSTEM_CALL(int, channel_take, SYSTEM_CALL_CHANNEL_TAKE, int channel, int released, int as)
SYSTEM_CALL(int, channel_give, SYSTEM_CALL_CHANNEL_GIVE, int channel, int64_t count, int to)
SYSTEM_CALL(int, channel_meet, SYSTEM_CALL_CHANNEL_MEET, int channel, int processes)
SYSTEM_CALL(int, sleep_ns, SYSTEM_CALL_SLEEP_NS, int64_t time)
SYSTEM_CALL(int, sleep_until_ns, SYSTEM_CALL_SLEEP_UNTIL, int64_t time)
SYSTEM_CALL(int, sleep, SYSTEM_CALL_SLEEP, int ticks)
SYSTEM_CALL(int, uptime, SYSTEM_CALL_UPTIME, void)
SYSTEM_CALL(int64_t, clock_ns, SYSTEM_CALL_CLOCK, void)
SYSTEM_CALL(int64_t, cycles, SYSTEM_CALL_CYCLES, void)

SYSTEM_CALL(int, setpriority, SYSTEM_CALL_SETPRIORITY, int pid, int priority)
SYSTEM_CALL(int, seturgent, SYSTEM_CALL_SETURGENT, int urgent)
SYSTEM_CALL(int, settickets, SYSTEM_CALL_SETTICKETS, int tickets)
SYSTEM_CALL(int, settickets_pid, SYSTEM_CALL_SETTICKETS_PID, int pid, int tickets)
SYSTEM_CALL(int, setweight, SYSTEM_CALL_SETWEIGHT, int pid, int weight)
SYSTEM_CALL(int, setattribute, SYSTEM_CALL_SETATTRIBUTE, int pid, int kind, int64_t value)
SYSTEM_CALL(int, getattribute, SYSTEM_CALL_GETATTRIBUTE, int pid, int kind, int64_t *value)
SYSTEM_CALL(int, setgroup, SYSTEM_CALL_SETGROUP, int group, int field, int64_t value)
SYSTEM_CALL(int, setaffinity, SYSTEM_CALL_SETAFFINITY, int pid, const uint64_t *cpus, int words)
SYSTEM_CALL(int, getaffinity, SYSTEM_CALL_GETAFFINITY, int pid, uint64_t *cpus, int words)
SYSTEM_CALL(int, getpinfo, SYSTEM_CALL_GETPINFO, struct process_info *rows, int capacity)
SYSTEM_CALL(int64_t, getcontextswitches, SYSTEM_CALL_GETCONTEXTSWITCHES, void)
SYSTEM_CALL(int, getstats, SYSTEM_CALL_GETSTATS, struct system_stats *stats)
SYSTEM_CALL(int, getcpustats, SYSTEM_CALL_GETCPUSTATS, int cpu, struct cpu_stats *stats)
SYSTEM_CALL(int, setpolicy, SYSTEM_CALL_SETPOLICY, const char *policy)
SYSTEM_CALL(int, getpolicy, SYSTEM_CALL_GETPOLICY, char *policy, int capacity)
SYSTEM_CALL(int, settunable, SYSTEM_CALL_SETTUNABLE, const char *name, int64_t value)
SYSTEM_CALL(int, gettunable, SYSTEM_CALL_GETTUNABLE, const char *name, int64_t *value)
SYSTEM_CALL(int, mark, SYSTEM_CALL_MARK, int kind, uint64_t value)

SYSTEM_CALL(int, poweroff, SYSTEM_CALL_POWEROFF, int status)
SYSTEM_CALL(int, boot_argument, SYSTEM_CALL_BOOT_ARGUMENT, const char *name, char *value,
            int capacity)

/* The second argument of sbrk: when the new pages are added. */
enum { SBRK_NOW = 1, SBRK_WHEN_TOUCHED = 2 };

void *sbrk(int64_t change)
{
    return system_sbrk(change, SBRK_NOW);
}

void *sbrk_lazy(int64_t growth)
{
    return system_sbrk(growth, SBRK_WHEN_TOUCHED);
}
