/* SPDX-License-Identifier: MIT */

/*
 * Maps a system call's number to the function that serves it. Each function
 * reads its arguments from the argument registers and returns a result, or the
 * negative of an error, which the process reads with last_error().
 */

#include "system_call/system_call.h"

#include <stddef.h>

#include "abi/errors.h"
#include "abi/system_calls.h"
#include "boot/shutdown.h"
#include "device/device_tree.h"
#include "fs/file.h"
#include "lib/string.h"
#include "memory/address_space.h"
#include "memory/page.h"
#include "memory/user_copy.h"
#include "process/lifecycle.h"
#include "process/process.h"
#include "process/spare_memory.h"
#include "scheduler/cpu.h"
#include "scheduler/scheduler.h"
#include "sync/channel.h"
#include "system_call/course_calls.h"
#include "system_call/habits.h"
#include "time/clock.h"
#include "trace/trace.h"

#define TEXT_BYTES 64 /* names of policies and tunables */
#define BOOT_BYTES 1024
#define SBRK_LAZY  2

static int64_t call_fork(const uint64_t argument[])
{
    (void)argument;
    return process_fork();
}

static int64_t call_exit(const uint64_t argument[])
{
    process_exit((int)argument[0]);
}

static int64_t call_wait(const uint64_t argument[])
{
    return process_wait(argument[0]);
}

static int64_t call_pipe(const uint64_t argument[])
{
    return system_pipe(argument[0]);
}

static int64_t call_read(const uint64_t argument[])
{
    return system_read((int)argument[0], argument[1], (int)argument[2]);
}

static int64_t call_kill(const uint64_t argument[])
{
    return process_kill((int)argument[0]);
}

static int64_t call_exec(const uint64_t argument[])
{
    return process_exec(argument[0], argument[1]);
}

static int64_t call_fstat(const uint64_t argument[])
{
    return system_fstat((int)argument[0], argument[1]);
}

static int64_t call_chdir(const uint64_t argument[])
{
    return system_chdir(argument[0]);
}

static int64_t call_dup(const uint64_t argument[])
{
    return system_dup((int)argument[0]);
}

static int64_t call_getpid(const uint64_t argument[])
{
    (void)argument;
    return current_process()->pid;
}

/* The second argument is today's xv6's; older programs leave any value there. */
static int64_t call_sbrk(const uint64_t argument[])
{
    struct address_space *space = &current_process()->space;
    uint64_t old_end = space->end;
    int64_t change = (int64_t)argument[0];
    bool lazy = argument[1] == SBRK_LAZY && change > 0;
    int error = address_space_grow(space, change, lazy);
    return error ? error : (int64_t)old_end;
}

static int64_t call_shared_memory(const uint64_t argument[])
{
    uint64_t start;
    if ((int64_t)argument[0] <= 0)
        return -EINVAL;
    int error = address_space_share(&current_process()->space, argument[0], &start);
    return error ? error : (int64_t)start;
}

/* Sets the name like exec(), without the program. */
static int64_t call_setname(const uint64_t argument[])
{
    struct process *process = current_process();
    char name[PROCESS_NAME_BYTES];
    int length = copy_text_from_user(name, argument[0], sizeof(name));
    if (length <= 0)
        return length ? length : -EINVAL;
    text_copy(process->name, name, sizeof(process->name));
    trace_text(TRACE_EXEC, (uint32_t)process->pid, process->name);
    return 0;
}

static int64_t call_sleep(const uint64_t argument[])
{
    return process_sleep((int)argument[0]);
}

#define SLEEP_NS_MAX (1l << 62) /* 146 years: no sum with the present time overflows */

static int64_t call_sleep_ns(const uint64_t argument[])
{
    int64_t time = (int64_t)argument[0];
    if (time <= 0)
        return 0;
    uint64_t length = (uint64_t)(time < SLEEP_NS_MAX ? time : SLEEP_NS_MAX);
    int64_t result = process_sleep_until(clock_now() + length);
    return result < 0 ? result : 0;
}

static int64_t call_sleep_until(const uint64_t argument[])
{
    int64_t time = (int64_t)argument[0];
    return time <= 0 ? 1 : process_sleep_until((uint64_t)time);
}

static int64_t call_uptime(const uint64_t argument[])
{
    (void)argument;
    return (int64_t)clock_ticks();
}

static int64_t call_open(const uint64_t argument[])
{
    return system_open(argument[0], (int)argument[1]);
}

static int64_t call_write(const uint64_t argument[])
{
    return system_write((int)argument[0], argument[1], (int)argument[2]);
}

static int64_t call_mknod(const uint64_t argument[])
{
    return system_mknod(argument[0], (int)argument[1], (int)argument[2]);
}

static int64_t call_unlink(const uint64_t argument[])
{
    return system_unlink(argument[0]);
}

static int64_t call_link(const uint64_t argument[])
{
    return system_link(argument[0], argument[1]);
}

static int64_t call_mkdir(const uint64_t argument[])
{
    return system_mkdir(argument[0]);
}

static int64_t call_close(const uint64_t argument[])
{
    return system_close((int)argument[0]);
}

static int64_t call_yield(const uint64_t argument[])
{
    (void)argument;
    scheduler_yield();
    return 0;
}

static int64_t call_channels_make(const uint64_t argument[])
{
    return channels_make((int)argument[0]);
}

static int64_t call_channel_take(const uint64_t argument[])
{
    return channel_take((int)argument[0], (int)argument[1], (int)argument[2]);
}

static int64_t call_channel_give(const uint64_t argument[])
{
    return channel_give((int)argument[0], (int64_t)argument[1], (int)argument[2]);
}

static int64_t call_channel_meet(const uint64_t argument[])
{
    return channel_meet((int)argument[0], (int)argument[1]);
}

static int64_t call_last_error(const uint64_t argument[])
{
    (void)argument;
    return current_process()->last_error;
}

static int64_t call_clock(const uint64_t argument[])
{
    (void)argument;
    return (int64_t)clock_now();
}

static int64_t call_cycles(const uint64_t argument[])
{
    (void)argument;
    return (int64_t)clock_cycles();
}

static int64_t call_setpriority(const uint64_t argument[])
{
    return process_set_attribute((int)argument[0], ATTRIBUTE_PRIORITY, (int)argument[1]);
}

static int64_t call_seturgent(const uint64_t argument[])
{
    int urgent = (int)argument[0];
    if (urgent < URGENT_NOT || urgent > URGENT_ALONE)
        return -EINVAL;
    scheduler_set_urgent((enum urgency)urgent);
    return 0;
}

static int64_t call_settickets(const uint64_t argument[])
{
    return process_set_attribute(0, ATTRIBUTE_TICKETS, (int)argument[0]);
}

static int64_t call_settickets_pid(const uint64_t argument[])
{
    return process_set_attribute((int)argument[0], ATTRIBUTE_TICKETS, (int)argument[1]);
}

static int64_t call_setweight(const uint64_t argument[])
{
    return process_set_attribute((int)argument[0], ATTRIBUTE_WEIGHT, (int)argument[1]);
}

static int64_t call_setattribute(const uint64_t argument[])
{
    return process_set_attribute((int)argument[0], (uint32_t)argument[1], (int64_t)argument[2]);
}

static int64_t call_getattribute(const uint64_t argument[])
{
    int64_t value;
    int64_t error = process_get_attribute((int)argument[0], (uint32_t)argument[1], &value);
    return error ? error : copy_to_user(argument[2], &value, sizeof(value));
}

static int64_t call_setgroup(const uint64_t argument[])
{
    return scheduler_set_group(argument[0], (uint32_t)argument[1], (int64_t)argument[2]);
}

#define AFFINITY_WORDS (POLICY_CPUS_MAX / 64)

static int64_t call_setaffinity(const uint64_t argument[])
{
    struct cpu_set cpus = {0};
    int words = (int)argument[2];
    if (words < 1 || words > AFFINITY_WORDS)
        return -EINVAL;
    int error = copy_from_user(cpus.words, argument[1], (size_t)words * sizeof(*cpus.words));
    return error ? error : process_set_affinity((int)argument[0], &cpus);
}

static int64_t call_getaffinity(const uint64_t argument[])
{
    struct cpu_set cpus;
    int words = (int)argument[2];
    if (words < ((int)machine.cpus + 63) / 64 || words > AFFINITY_WORDS)
        return -EINVAL;
    int64_t error = process_get_affinity((int)argument[0], &cpus);
    if (error)
        return error;
    return copy_to_user(argument[1], cpus.words, (size_t)words * sizeof(*cpus.words));
}

static int64_t call_getpinfo(const uint64_t argument[])
{
    return process_get_info(argument[0], (int)argument[1]);
}

static struct system_stats gather_stats(void)
{
    struct system_stats stats = {
        .cpus = machine.cpus,
        .processes = process_count(),
        .tick_ns = clock_tick_ns(),
        .time = clock_now(),
        .finished = process_finished(),
        .memory_pages = page_total(),
        .free_pages = page_free_count() + spare_memory_pages(),
        .trace_records = trace_count(),
    };
    for (uint32_t i = 0; i < machine.cpus; i++) {
        stats.context_switches += cpus[i].context_switches;
        stats.idle_switches += cpus[i].idle_switches;
        stats.scheduler_cycles += cpus[i].scheduler_cycles;
        stats.idle_time += cpus[i].idle_time;
    }
    return stats;
}

static int64_t call_getcontextswitches(const uint64_t argument[])
{
    (void)argument;
    return (int64_t)gather_stats().context_switches;
}

static int64_t call_getstats(const uint64_t argument[])
{
    struct system_stats stats = gather_stats();
    return copy_to_user(argument[0], &stats, sizeof(stats));
}

static int64_t call_getcpustats(const uint64_t argument[])
{
    uint64_t number = argument[0];
    if (number >= machine.cpus)
        return -EINVAL;
    const struct cpu *cpu = &cpus[number];
    struct cpu_stats stats = {
        .context_switches = cpu->context_switches,
        .idle_switches = cpu->idle_switches,
        .idle_time = cpu->idle_time,
        .scheduler_cycles = cpu->scheduler_cycles,
        .queue_waits = cpu->queue_waits,
        .queue_wait_cycles = cpu->queue_wait_cycles,
        .process_waits = cpu->process_waits,
        .process_wait_cycles = cpu->process_wait_cycles,
    };
    return copy_to_user(argument[1], &stats, sizeof(stats));
}

static int64_t call_setpolicy(const uint64_t argument[])
{
    char text[TEXT_BYTES];
    int error = copy_text_from_user(text, argument[0], sizeof(text));
    return error < 0 ? error : scheduler_set_policy(text);
}

/* Copies a text and its final 0 to the user. Returns its length, or -ERANGE if the buffer is too
 * small. */
static int64_t give_text(uint64_t address, int64_t capacity, const char *text)
{
    int64_t length = (int64_t)strlen(text);
    if (length >= capacity)
        return -ERANGE;
    int error = copy_to_user(address, text, (size_t)length + 1);
    return error ? error : length;
}

static int64_t call_getpolicy(const uint64_t argument[])
{
    struct policy_in_use use;
    scheduler_describe(&use);
    return give_text(argument[0], (int)argument[1], use.text);
}

static int64_t call_settunable(const uint64_t argument[])
{
    char name[TEXT_BYTES];
    int error = copy_text_from_user(name, argument[0], sizeof(name));
    return error < 0 ? error : scheduler_set_tunable(name, (int64_t)argument[1]);
}

static int64_t call_gettunable(const uint64_t argument[])
{
    char name[TEXT_BYTES];
    int64_t value;
    int error = copy_text_from_user(name, argument[0], sizeof(name));
    if (error >= 0)
        error = scheduler_get_tunable(name, &value);
    return error < 0 ? error : copy_to_user(argument[1], &value, sizeof(value));
}

static int64_t call_mark(const uint64_t argument[])
{
    int kind = (int)argument[0];
    if (kind < MARK_BEGIN || kind > MARK_JOB)
        return -EINVAL;
    trace_record(TRACE_MARK, (uint32_t)current_process()->pid, (uint32_t)kind, argument[1]);
    return 0;
}

static int64_t call_poweroff(const uint64_t argument[])
{
    int status = (int)argument[0];
    if (status < 0 || status > 127)
        return -EINVAL;
    shutdown(status);
}

static int64_t call_sync(const uint64_t argument[])
{
    (void)argument;
    return system_sync();
}

static int64_t call_boot_argument(const uint64_t argument[])
{
    char name[TEXT_BYTES];
    char value[BOOT_BYTES];
    int error = copy_text_from_user(name, argument[0], sizeof(name));
    if (error < 0)
        return error;
    if (!boot_argument_text(name, value, sizeof(value)))
        return -ENOENT;
    return give_text(argument[1], (int)argument[2], value);
}

/* By number. The boot inserts courses' calls at unused numbers. */
static struct system_call calls[] = {
    [SYSTEM_CALL_FORK] = {"fork", call_fork},
    [SYSTEM_CALL_EXIT] = {"exit", call_exit},
    [SYSTEM_CALL_WAIT] = {"wait", call_wait},
    [SYSTEM_CALL_PIPE] = {"pipe", call_pipe},
    [SYSTEM_CALL_READ] = {"read", call_read},
    [SYSTEM_CALL_KILL] = {"kill", call_kill},
    [SYSTEM_CALL_EXEC] = {"exec", call_exec},
    [SYSTEM_CALL_FSTAT] = {"fstat", call_fstat},
    [SYSTEM_CALL_CHDIR] = {"chdir", call_chdir},
    [SYSTEM_CALL_DUP] = {"dup", call_dup},
    [SYSTEM_CALL_GETPID] = {"getpid", call_getpid},
    [SYSTEM_CALL_SBRK] = {"sbrk", call_sbrk},
    [SYSTEM_CALL_SLEEP] = {"sleep", call_sleep},
    [SYSTEM_CALL_UPTIME] = {"uptime", call_uptime},
    [SYSTEM_CALL_OPEN] = {"open", call_open},
    [SYSTEM_CALL_WRITE] = {"write", call_write},
    [SYSTEM_CALL_MKNOD] = {"mknod", call_mknod},
    [SYSTEM_CALL_UNLINK] = {"unlink", call_unlink},
    [SYSTEM_CALL_LINK] = {"link", call_link},
    [SYSTEM_CALL_MKDIR] = {"mkdir", call_mkdir},
    [SYSTEM_CALL_CLOSE] = {"close", call_close},
    [SYSTEM_CALL_YIELD] = {"yield", call_yield},
    [SYSTEM_CALL_LAST_ERROR] = {"last_error", call_last_error},
    [SYSTEM_CALL_CLOCK] = {"clock_ns", call_clock},
    [SYSTEM_CALL_CYCLES] = {"cycles", call_cycles},
    [SYSTEM_CALL_SETPRIORITY] = {"setpriority", call_setpriority},
    [SYSTEM_CALL_SETTICKETS] = {"settickets", call_settickets},
    [SYSTEM_CALL_SETTICKETS_PID] = {"settickets_pid", call_settickets_pid},
    [SYSTEM_CALL_SETWEIGHT] = {"setweight", call_setweight},
    [SYSTEM_CALL_SETATTRIBUTE] = {"setattribute", call_setattribute},
    [SYSTEM_CALL_GETATTRIBUTE] = {"getattribute", call_getattribute},
    [SYSTEM_CALL_SETGROUP] = {"setgroup", call_setgroup},
    [SYSTEM_CALL_SETAFFINITY] = {"setaffinity", call_setaffinity},
    [SYSTEM_CALL_GETAFFINITY] = {"getaffinity", call_getaffinity},
    [SYSTEM_CALL_GETPINFO] = {"getpinfo", call_getpinfo},
    [SYSTEM_CALL_GETCONTEXTSWITCHES] = {"getcontextswitches", call_getcontextswitches},
    [SYSTEM_CALL_GETSTATS] = {"getstats", call_getstats},
    [SYSTEM_CALL_GETCPUSTATS] = {"getcpustats", call_getcpustats},
    [SYSTEM_CALL_SETPOLICY] = {"setpolicy", call_setpolicy},
    [SYSTEM_CALL_GETPOLICY] = {"getpolicy", call_getpolicy},
    [SYSTEM_CALL_SETTUNABLE] = {"settunable", call_settunable},
    [SYSTEM_CALL_GETTUNABLE] = {"gettunable", call_gettunable},
    [SYSTEM_CALL_MARK] = {"mark", call_mark},
    [SYSTEM_CALL_POWEROFF] = {"poweroff", call_poweroff},
    [SYSTEM_CALL_SYNC] = {"sync", call_sync},
    [SYSTEM_CALL_BOOT_ARGUMENT] = {"boot_argument", call_boot_argument},
    [SYSTEM_CALL_SHARED_MEMORY] = {"shared_memory", call_shared_memory},
    [SYSTEM_CALL_SETNAME] = {"setname", call_setname},
    [SYSTEM_CALL_SLEEP_NS] = {"sleep_ns", call_sleep_ns},
    [SYSTEM_CALL_SLEEP_UNTIL] = {"sleep_until_ns", call_sleep_until},
    [SYSTEM_CALL_CHANNELS_MAKE] = {"channels_make", call_channels_make},
    [SYSTEM_CALL_CHANNEL_TAKE] = {"channel_take", call_channel_take},
    [SYSTEM_CALL_CHANNEL_GIVE] = {"channel_give", call_channel_give},
    [SYSTEM_CALL_CHANNEL_MEET] = {"channel_meet", call_channel_meet},
    [SYSTEM_CALL_SETURGENT] = {"seturgent", call_seturgent},
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

void system_calls_init(void)
{
    habits_init(calls);
    course_calls_init(calls, CALLS);
}

void system_call(struct trap_frame *frame)
{
    uint64_t number = frame->x[REGISTER_A7];
    system_call_function *function = NULL;
    if (number < CALLS)
        function = calls[number].function;
    int64_t result = function ? function(&frame->x[REGISTER_A0]) : -ENOSYS;
    /* A call that fails because memory is short has changed nothing: it may be retried. */
    for (bool again = false; result == -ENOMEM && spare_memory_give(again); again = true)
        result = function(&frame->x[REGISTER_A0]);
    if (result < 0) {
        current_process()->last_error = (int)-result;
        result = -1;
    }
    frame->x[REGISTER_A0] = (uint64_t)result;
}
