/* SPDX-License-Identifier: MIT */

/*
 * Calls that courses add to xv6, in the forms that their programs use. They have no fixed numbers,
 * since courses disagree on them: a boot argument gives the meaning of each number, and the range
 * of priorities that the programs know.
 */

#include "system_call/course_calls.h"

#include <stdbool.h>
#include <stddef.h>

#include "abi/course_calls.h"
#include "abi/errors.h"
#include "abi/machine_status.h"
#include "boot/shutdown.h"
#include "device/device_tree.h"
#include "fs/file.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/user_copy.h"
#include "process/lifecycle.h"
#include "process/process.h"
#include "process/process_table.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"

#define TABLE_BYTES 1024 /* as long as all boot arguments may be */
#define ENTRY_BYTES 64
#define SPAN_BYTES  32
#define SPAN_MAX    1000000

/* ---- information for processes ---- */

static int64_t ticks_of(uint64_t nanoseconds)
{
    return (int64_t)(nanoseconds / clock_tick_ns());
}

static int64_t call_getpinfo_pstat(const uint64_t argument[])
{
    struct pstat table = {0};
    struct process_info row;
    int last = 0;
    for (int i = 0; i < PSTAT_PROCESSES && process_describe_next(&row, 1, &last) == 1; i++) {
        table.in_use[i] = 1;
        table.tickets[i] = (int32_t)row.tickets;
        table.pid[i] = row.pid;
        table.ticks[i] = (int32_t)ticks_of(row.run_time);
    }
    return copy_to_user(argument[0], &table, sizeof(table));
}

static int64_t call_getpinfo_rows(const uint64_t argument[])
{
    struct pinfo rows[PSTAT_PROCESSES] = {0};
    struct process_info row;
    int last = 0;
    for (int i = 0; i < PSTAT_PROCESSES && process_describe_next(&row, 1, &last) == 1; i++)
        rows[i] = (struct pinfo){row.pid, (int32_t)row.tickets, (int32_t)row.selections};
    return copy_to_user(argument[0], rows, sizeof(rows));
}

static int64_t call_last_scheduled(const uint64_t argument[])
{
    int pid = (int)argument[0];
    spinlock_acquire(&process_tree_lock);
    const struct process *process = pid ? process_table_find(pid) : current_process();
    int64_t ticks = process ? ticks_of(process->task.picked_since) : -ESRCH;
    spinlock_release(&process_tree_lock);
    return ticks;
}

static int64_t call_gettickets(const uint64_t argument[])
{
    struct process_info row;
    int error = process_describe((int)argument[0], &row);
    return error ? error : (int64_t)row.tickets;
}

static int64_t call_getppid(const uint64_t argument[])
{
    struct process_info row;
    (void)argument;
    process_describe(0, &row);
    return row.parent;
}

static int64_t call_process_count(const uint64_t argument[])
{
    (void)argument;
    return (int64_t)process_count();
}

static int64_t call_ps(const uint64_t argument[])
{
    (void)argument;
    process_list_print();
    return 0;
}

/* As in study 4: its children do not print theirs unless they ask for it. */
static int64_t call_printtime(const uint64_t argument[])
{
    (void)argument;
    current_process()->prints_time = true;
    return 0;
}

static int64_t call_halt(const uint64_t argument[])
{
    (void)argument;
    shutdown(MACHINE_SUCCESS);
}

/* ---- priorities, from `first`, the highest of the course's, to `last` ---- */

static struct {
    int64_t first;
    int64_t last;
} span = {PRIORITY_HIGHEST, PRIORITY_LOWEST};

/* Returns which of `steps` steps from 0 to `length` lies nearest to `at`. */
static int64_t nearest(int64_t at, int64_t length, int64_t steps)
{
    return (2 * at * steps + length) / (2 * length);
}

static int64_t length_of_span(void)
{
    return span.last > span.first ? span.last - span.first : span.first - span.last;
}

/* Returns schedlab's priority, or a value outside its range, which the scheduler refuses. */
static int64_t priority_here(int64_t value)
{
    int64_t at = span.last > span.first ? value - span.first : span.first - value;
    if (at < 0 || at > length_of_span())
        return PRIORITY_LOWEST + 1;
    return PRIORITY_HIGHEST + nearest(at, length_of_span(), PRIORITY_LOWEST - PRIORITY_HIGHEST);
}

static int64_t priority_there(int64_t priority)
{
    int64_t at =
        nearest(priority - PRIORITY_HIGHEST, PRIORITY_LOWEST - PRIORITY_HIGHEST, length_of_span());
    return span.last > span.first ? span.first + at : span.first - at;
}

static int64_t set_priority(int pid, int value)
{
    return process_set_attribute(pid, ATTRIBUTE_PRIORITY, priority_here(value));
}

static int64_t get_priority(int pid)
{
    struct process_info row;
    int error = process_describe(pid, &row);
    return error ? error : priority_there(row.priority);
}

static int64_t call_set_priority(const uint64_t argument[])
{
    return set_priority((int)argument[0], (int)argument[1]);
}

static int64_t call_set_current_priority(const uint64_t argument[])
{
    return set_priority(0, (int)argument[0]);
}

/* (priority, pid), and returns the old value. */
static int64_t call_set_priority_swap(const uint64_t argument[])
{
    int64_t before = get_priority((int)argument[1]);
    int64_t error = set_priority((int)argument[1], (int)argument[0]);
    return error ? error : before;
}

static int64_t call_get_priority(const uint64_t argument[])
{
    return get_priority((int)argument[0]);
}

/* ---- waitx(): how long the child waited for a CPU, and ran, in ticks ---- */

/* Checks that the program's number at `address` is writable, without changing it. */
static int check_writable(uint64_t address)
{
    int32_t value;
    int error = copy_from_user(&value, address, sizeof(value));
    return error ? error : copy_to_user(address, &value, sizeof(value));
}

static int64_t wait_with_times(uint64_t status, uint64_t waited, uint64_t ran)
{
    struct ended_process ended;
    int error = check_writable(waited);
    if (!error)
        error = check_writable(ran);
    int64_t pid = error ? error : process_wait_for(status, &ended);
    if (pid < 0)
        return pid;
    int32_t waited_ticks = (int32_t)ticks_of(ended.waiting_time);
    int32_t ran_ticks = (int32_t)ticks_of(ended.run_time);
    copy_to_user(waited, &waited_ticks, sizeof(waited_ticks));
    copy_to_user(ran, &ran_ticks, sizeof(ran_ticks));
    return pid;
}

static int64_t call_waitx(const uint64_t argument[])
{
    return wait_with_times(argument[0], argument[1], argument[2]);
}

static int64_t call_waitx_times(const uint64_t argument[])
{
    return wait_with_times(0, argument[0], argument[1]);
}

/* ---- the tables ---- */

static const struct system_call course_calls[] = {
    {"getpinfo_pstat", call_getpinfo_pstat},
    {"getpinfo_rows", call_getpinfo_rows},
    {"last_scheduled", call_last_scheduled},
    {"gettickets", call_gettickets},
    {"getppid", call_getppid},
    {"process_count", call_process_count},
    {"ps", call_ps},
    {"printtime", call_printtime},
    {"halt", call_halt},
    {"set_priority", call_set_priority},
    {"set_priority_own", call_set_current_priority},
    {"set_priority_swap", call_set_priority_swap},
    {"get_priority", call_get_priority},
    {"waitx", call_waitx},
    {"waitx_times", call_waitx_times},
};

static const struct system_call *find_call(const struct system_call *calls, uint64_t count,
                                           const char *name)
{
    for (uint64_t i = 0; i < count; i++) {
        if (calls[i].name && strcmp(calls[i].name, name) == 0)
            return &calls[i];
    }
    return NULL;
}

/* Cuts `text` at the first `mark`. Returns the text after it, or null if there is no mark. */
static char *cut(char *text, char mark)
{
    for (; *text; text++) {
        if (*text == mark) {
            *text = '\0';
            return text + 1;
        }
    }
    return NULL;
}

static void set_call(struct system_call *table, uint64_t count, char *entry)
{
    int64_t number;
    const char *name = cut(entry, ':');
    if (!name || !text_to_number(entry, &number))
        panic("boot argument calls: '%s' is not NUMBER:NAME", entry);
    if (number < COURSE_CALL_FIRST || number > COURSE_CALL_LAST)
        panic("boot argument calls: %s is not within %d and %d", entry, COURSE_CALL_FIRST,
              COURSE_CALL_LAST);
    const struct system_call *call = find_call(table, count, name);
    if (!call)
        call = find_call(course_calls, sizeof(course_calls) / sizeof(course_calls[0]), name);
    if (!call)
        panic("boot argument calls: there is no call '%s'; docs/course-programs.md names all",
              name);
    if (table[number].function)
        panic("boot argument calls: %s is given twice", entry);
    table[number].function = call->function;
}

static void set_span(void)
{
    char text[SPAN_BYTES];
    if (!boot_argument_text("call-priorities", text, sizeof(text)))
        return;
    char *last = cut(text, '.');
    bool valid = last && *last == '.' && text_to_number(text, &span.first) &&
                 text_to_number(last + 1, &span.last);
    if (!valid || span.first == span.last || span.first < -SPAN_MAX || span.first > SPAN_MAX ||
        span.last < -SPAN_MAX || span.last > SPAN_MAX)
        panic("boot argument call-priorities: it is not HIGHEST..LOWEST, two different numbers");
}

void course_calls_init(struct system_call *table, uint64_t count)
{
    static char text[TABLE_BYTES];
    set_span();
    if (!boot_argument_text("calls", text, sizeof(text)))
        return;
    for (char *next, *entry = text; entry; entry = next) {
        next = cut(entry, ',');
        set_call(table, count, entry);
    }
}
