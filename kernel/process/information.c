/* SPDX-License-Identifier: MIT */

/* The information that processes get about each other, and the attributes that they set. */

#include "abi/errors.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/user_copy.h"
#include "process/lifecycle.h"
#include "process/process_table.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"

#include "abi/attribute_names.h"
#include "policies/support/attributes.h"

#define ROWS_AT_ONCE 4

/* Returns a process that has not ended, with process_tree_lock and its own lock held, or null,
 * with neither; PID 0: the current one. */
static struct process *lock_living(int pid)
{
    spinlock_acquire(&process_tree_lock);
    struct process *process = pid ? process_table_find(pid) : current_process();
    if (process) {
        spinlock_acquire(&process->lock);
        if (process->state != PROCESS_ZOMBIE)
            return process;
        spinlock_release(&process->lock);
    }
    spinlock_release(&process_tree_lock);
    return NULL;
}

static void unlock_living(struct process *process)
{
    spinlock_release(&process->lock);
    spinlock_release(&process_tree_lock);
}

/* Returns the PID of the next process of a group in the order of creation, or 0. */
static int next_of_group(int pid, uint32_t group)
{
    spinlock_acquire(&process_tree_lock);
    struct process *process = process_table_after(pid);
    while (process && process->task.group != group)
        process = process_table_after(process->pid);
    pid = process ? process->pid : 0;
    spinlock_release(&process_tree_lock);
    return pid;
}

/* Sets the attribute of the group's living processes. Processes that they fork during the call
 * may or may not get it. */
static __attribute__((noinline)) int64_t set_of_group(uint32_t group, uint32_t kind, int64_t value)
{
    int64_t result = -ESRCH;
    for (int pid = 0; (pid = next_of_group(pid, group)) != 0;) {
        struct process *process = lock_living(pid);
        if (!process)
            continue;
        result = scheduler_set_attribute(process, (enum attribute_kind)kind, value);
        unlock_living(process);
        preemption_point();
    }
    return result;
}

int64_t process_set_attribute(int pid, uint32_t kind, int64_t value)
{
    if (kind == 0 || kind >= ATTRIBUTE_KINDS)
        return -EINVAL;
    struct process *process = lock_living(pid);
    if (!process)
        return pid < 0 ? set_of_group((uint32_t)-(int64_t)pid, kind, value) : -ESRCH;
    int error = scheduler_set_attribute(process, (enum attribute_kind)kind, value);
    unlock_living(process);
    return error;
}

int64_t process_set_affinity(int pid, const struct cpu_set *cpus)
{
    struct process *process = lock_living(pid);
    if (!process)
        return -ESRCH;
    int error = scheduler_set_affinity(process, cpus);
    unlock_living(process);
    return error;
}

int64_t process_get_affinity(int pid, struct cpu_set *cpus)
{
    struct process *process = lock_living(pid);
    if (!process)
        return -ESRCH;
    *cpus = scheduler_affinity(process);
    unlock_living(process);
    return 0;
}

int64_t process_get_attribute(int pid, uint32_t kind, int64_t *value)
{
    if (kind == 0 || kind >= ATTRIBUTE_KINDS)
        return -EINVAL;
    spinlock_acquire(&process_tree_lock);
    const struct process *process = pid ? process_table_find(pid) : current_process();
    if (process)
        *value = attribute_of(&process->task, kind);
    spinlock_release(&process_tree_lock);
    return process ? 0 : -ESRCH;
}

/* A snapshot: the scheduler continues during the call. */
static void describe(const struct process *process, struct process_info *row)
{
    *row = (struct process_info){
        .pid = process->pid,
        .parent = process->parent ? process->parent->pid : 0,
        .state = process->state,
        .reason = process->state == PROCESS_BLOCKED ? process->reason : BLOCK_NONE,
        .cpu = process->task.cpu,
        .priority = process->task.priority,
        .tickets = process->task.tickets,
        .weight = process->task.weight,
        .time_slice = scheduler_time_slice(process),
        .selections = process->task.selections,
        .run_time = process->task.run_time,
        .waiting_time = process->waiting_time,
        .created = process->created,
        .first_run = process->first_run,
        .voluntary_switches = process->voluntary_switches,
        .involuntary_switches = process->involuntary_switches,
    };
    text_copy(row->name, process->name, sizeof(row->name));
}

int process_describe(int pid, struct process_info *row)
{
    spinlock_acquire(&process_tree_lock);
    const struct process *process = pid ? process_table_find(pid) : current_process();
    if (process)
        describe(process, row);
    spinlock_release(&process_tree_lock);
    return process ? 0 : -ESRCH;
}

int process_describe_next(struct process_info *rows, int room, int *last)
{
    int filled = 0;
    struct process *process;
    spinlock_acquire(&process_tree_lock);
    while (filled < room && (process = process_table_after(*last))) {
        describe(process, &rows[filled++]);
        *last = process->pid;
    }
    spinlock_release(&process_tree_lock);
    return filled;
}

int64_t process_get_info(uint64_t address, int64_t capacity)
{
    struct process_info rows[ROWS_AT_ONCE];
    int last = 0;
    int64_t total = 0;
    int filled;
    while (total < capacity && (filled = process_describe_next(rows, ROWS_AT_ONCE, &last)) > 0) {
        if (filled > capacity - total)
            filled = (int)(capacity - total);
        if (copy_to_user(address + (uint64_t)total * sizeof(rows[0]), rows,
                         (size_t)filled * sizeof(rows[0])))
            return -EFAULT;
        total += filled;
        preemption_point();
    }
    return capacity <= 0 ? (int64_t)process_count() : total;
}

uint32_t process_count(void)
{
    return process_table_count();
}

const char *process_state_name(enum process_state state)
{
    static const char *const names[] = {"new", "runnable", "running", "blocked", "zombie"};
    return names[state];
}

void process_list_print(void)
{
    static const char *const reasons[] = {"",      " sleep", " child",   " pipe", " console",
                                          " disk", " lock",  " journal", " exit"};
    spinlock_acquire(&process_tree_lock);
    print("\nPID PARENT STATE CPU NAME\n");
    list_for_each(node, &all_processes)
    {
        const struct process *process = container_of(node, struct process, all);
        bool blocked = process->state == PROCESS_BLOCKED;
        print("%d %d %s%s %u %s\n", process->pid, process->parent ? process->parent->pid : 0,
              process_state_name(process->state), blocked ? reasons[process->reason] : "",
              process->task.cpu, process->name);
    }
    spinlock_release(&process_tree_lock);
}
