/* SPDX-License-Identifier: MIT */

/* A process's life: fork, exit, wait, kill. */

#include "process/lifecycle.h"

#include <stddef.h>

#include "abi/errors.h"
#include "abi/machine_status.h"
#include "boot/shutdown.h"
#include "boot/start.h"
#include "device/device_tree.h"
#include "fs/file.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/kernel_stack.h"
#include "memory/object.h"
#include "memory/page.h"
#include "memory/user_copy.h"
#include "process/exec.h"
#include "process/machine_commands.h"
#include "process/owners.h"
#include "process/process_table.h"
#include "process/scheduler_files.h"
#include "scheduler/cpu.h"
#include "scheduler/scheduler.h"
#include "sync/channel.h"
#include "time/clock.h"
#include "trace/trace.h"

#include "policies/support/attributes.h"

#define STATUS_KILLED      (-1)
#define FORK_DELAY_LONGEST 1000000000ul /* nanoseconds */
#define FORK_DELAY_STEP    20000ul

static struct object_cache process_cache;
static struct process *first_process;
static uint64_t finished;   /* processes that have ended: guarded by process_tree_lock */
static uint64_t fork_delay; /* extra nanoseconds of each fork */

/*
 * Parent and child share pages until one of them writes, so both soon need their own pages. A fork
 * is refused if it would leave too few pages for all processes that have not begun yet. So no
 * process has to be killed to free a page.
 */
enum { PAGES_TO_BEGIN = 2 };
static uint32_t not_started; /* processes that were forked and have not run yet */

static bool leaves_pages_to_begin(void)
{
    uint64_t beginning =
        __atomic_load_n(&not_started, __ATOMIC_RELAXED) + 2; /* the child and its parent */
    return page_free_count() >= beginning * PAGES_TO_BEGIN;
}

void process_entry(void); /* trap/entry.S */
void process_begin(void);

void process_init(void)
{
    object_cache_init(&process_cache, "processes", sizeof(struct process));
    process_table_init();
    fork_delay = boot_argument_number("fork-delay", 0);
    if (fork_delay > FORK_DELAY_LONGEST)
        panic("boot argument fork-delay=%lu ns: it must be at most 1s", fork_delay);
}

struct process *current_process(void)
{
    return this_cpu()->current;
}

bool current_killed(void)
{
    return __atomic_load_n(&current_process()->killed, __ATOMIC_RELAXED);
}

/* Returns a process without memory, files and a place in the table, or null if memory is short. */
static struct process *allocate_process(void)
{
    struct process *process = object_allocate(&process_cache);
    if (!process)
        return NULL;
    process->kernel_stack = kernel_stack_create();
    if (!process->kernel_stack) {
        object_free(&process_cache, process);
        return NULL;
    }
    process->trap_frame = (struct trap_frame *)process->kernel_stack - 1;
    process->switch_frame.ra = (uint64_t)process_entry;
    process->switch_frame.sp = (uint64_t)process->trap_frame;
    process->task.state = process->policy_state;
    process->created = clock_now();
    spinlock_init(&process->lock, "process", LOCK_PROCESS);
    wait_queue_init(&process->child_ended, "child ended");
    list_init(&process->children);
    list_init(&process->zombies);
    list_init(&process->sibling);
    list_init(&process->held);
    list_init(&process->owned);
    return process;
}

static void free_process(struct process *process)
{
    kernel_stack_destroy(process->kernel_stack);
    object_free(&process_cache, process);
}

static int64_t reap(struct process *parent, bool adopted, uint64_t status,
                    struct ended_process *ended);

/* Returns 0 or -EAGAIN: the table is full. */
static int add_to_tree(struct process *process, struct process *parent)
{
    spinlock_acquire(&process_tree_lock);
    int error = process_table_add(process);
    if (!error && parent) {
        process->parent = parent;
        list_append(&parent->children, &process->sibling);
    }
    spinlock_release(&process_tree_lock);
    return error;
}

/*
 * Adds the process to the table, as a child of `parent`, and makes it runnable. Returns 0 or
 * -EAGAIN. A full table first drops the children that init has adopted and not waited for yet. Init
 * may be late because it waits for a CPU, or because the host runs something else on its CPU.
 */
static int start_process(struct process *process, struct process *parent)
{
    int error = add_to_tree(process, parent);
    while (error == -EAGAIN && reap(first_process, true, 0, NULL) > 0)
        error = add_to_tree(process, parent);
    if (error)
        return error;
    __atomic_add_fetch(&not_started, 1, __ATOMIC_RELAXED);
    spinlock_acquire(&process->lock);
    trace_record(TRACE_FORK, parent ? (uint32_t)parent->pid : 0, (uint32_t)process->pid, 0);
    scheduler_add(process, ENQUEUE_NEW);
    spinlock_release(&process->lock);
    return 0;
}

void process_create_first(void)
{
    struct process *process = allocate_process();
    if (!process || address_space_create(&process->space))
        panic("no memory for the first process: give the machine more memory");
    text_copy(process->name, "init", sizeof(process->name));
    SET_FIRST_ATTRIBUTES(&process->task);
    first_process = process;
    start_process(process, NULL);
}

static void become_init(void)
{
    char *arguments[] = {"init", NULL};
    boot_release_other_cpus();
    int error = file_system_init();
    if (error)
        panic("no file system: error %d. Is there a disk, made by `make image`?", -error);
    scheduler_files_init();
    machine_commands_init();
    current_process()->files = file_table_create();
    error = process_execute("/init", arguments);
    if (error < 0)
        panic("/init cannot be run: error %d. Was the disk made by `make image`?", -error);
    current_process()->trap_frame->x[REGISTER_A0] = (uint64_t)error;
}

/* Runs a new process's first steps in the kernel, on its own stack; then it enters user mode. */
void process_begin(void)
{
    scheduler_finish_switch();
    __atomic_sub_fetch(&not_started, 1, __ATOMIC_RELAXED);
    if (current_process() == first_process)
        become_init();
}

static void inherit(struct process *child, const struct process *parent)
{
    memcpy(child->name, parent->name, sizeof(child->name));
    *child->trap_frame = *parent->trap_frame;
    child->trap_frame->x[REGISTER_A0] = 0;
    INHERIT_ATTRIBUTES(&child->task, &parent->task);
    if (parent->task.cpus)
        scheduler_inherit_affinity(child);
    child->task.cpu = parent->task.cpu;
    child->urgent = parent->urgent == URGENT_FAMILY ? URGENT_FAMILY : URGENT_NOT;
    child->channels = channel_set_join(parent->channels);
}

/* As a long fork does, it lets other processes run when their turn comes. */
static __attribute__((noinline)) void pass_fork_delay(void)
{
    for (uint64_t left = fork_delay; left > 0;) {
        uint64_t step = left < FORK_DELAY_STEP ? left : FORK_DELAY_STEP;
        clock_pass(step);
        left -= step;
        preemption_point();
    }
}

int64_t process_fork(void)
{
    struct process *parent = current_process();
    struct process *child = allocate_process();
    if (!child)
        return -ENOMEM;
    int error = address_space_copy(&child->space, &parent->space);
    if (error)
        goto free_process;
    if (!leaves_pages_to_begin()) {
        error = -ENOMEM;
        goto free_space;
    }
    child->files = file_table_copy(parent->files);
    if (!child->files) {
        error = -ENOMEM;
        goto free_space;
    }
    inherit(child, parent);
    if (fork_delay)
        pass_fork_delay();
    /* The child may end, but only this process can free it: its PID stays readable. */
    error = start_process(child, parent);
    if (!error)
        return child->pid;

    channel_set_leave(child->channels);
    file_table_destroy(child->files);
free_space:
    address_space_destroy(&child->space);
free_process:
    free_process(child);
    return error;
}

static void adopt_children(struct list *children, struct list *to)
{
    while (!list_empty(children)) {
        struct list *node = children->next;
        struct process *child = container_of(node, struct process, sibling);
        child->parent = first_process;
        child->adopted = true;
        list_remove(node);
        list_append(to, node);
    }
}

/* Ends the process: its parent may free it after this, once it is off its CPU. */
static void become_zombie(struct process *process, int status)
{
    struct process *parent = process->parent;
    spinlock_acquire(&process->lock);
    process->state = PROCESS_ZOMBIE;
    process->reason = BLOCK_EXIT;
    process->exit_status = status;
    spinlock_release(&process->lock);
    list_remove(&process->sibling);
    list_append(&parent->zombies, &process->sibling);
    wake_all(&parent->child_ended);
}

_Noreturn void process_exit(int status)
{
    struct process *process = current_process();
    if (process == first_process) {
        print("init has ended with status %d\n", status);
        shutdown(MACHINE_FAILED);
    }
    if (process->prints_time)
        print("%s, PID %d: %lu ticks\n", process->name, process->pid,
              clock_ticks() - process->created / clock_tick_ns());
    file_table_destroy(process->files);
    process->files = NULL;
    channel_set_leave(process->channels);
    process->channels = NULL;
    address_space_activate(NULL);
    address_space_destroy(&process->space);
    trace_record(TRACE_EXIT, (uint32_t)process->pid, (uint32_t)status, 0);

    owners_end(process);
    spinlock_acquire(&process_tree_lock);
    finished++;
    adopt_children(&process->children, &first_process->children);
    if (!list_empty(&process->zombies)) {
        adopt_children(&process->zombies, &first_process->zombies);
        wake_all(&first_process->child_ended);
    }
    become_zombie(process, status);
    spinlock_release(&process_tree_lock);
    scheduler_end();
}

/* Removes an ended child from the table. Returns null if there is none. `adopted`: only children
 * that the parent did not fork. */
static struct process *take_zombie(struct process *parent, bool adopted)
{
    list_for_each(node, &parent->zombies)
    {
        struct process *child = container_of(node, struct process, sibling);
        if (adopted && !child->adopted)
            continue;
        list_remove(&child->sibling);
        process_table_remove(child);
        return child;
    }
    return NULL;
}

/* Returns the PID of the child that must end, or 0 if any of several may. */
static int only_child(const struct process *parent)
{
    const struct list *first = parent->children.next;
    bool only = first != &parent->children && first->next == &parent->children;
    return only ? container_of(first, struct process, sibling)->pid : 0;
}

static int wait_for_zombie(struct process *parent, bool adopted, struct process **child)
{
    int error = 0;
    spinlock_acquire(&process_tree_lock);
    while (!(*child = take_zombie(parent, adopted)) && !error) {
        if (adopted || list_empty(&parent->children))
            error = -ECHILD;
        parent->child_ended.owner = only_child(parent);
        if (!error)
            error = wait_on(&parent->child_ended, &process_tree_lock, BLOCK_CHILD);
    }
    spinlock_release(&process_tree_lock);
    return *child ? 0 : error;
}

/* Checks that the program's integer at `address` is writable, without changing it. */
static int check_writable(uint64_t address)
{
    int value;
    int error = copy_from_user(&value, address, sizeof(value));
    return error ? error : copy_to_user(address, &value, sizeof(value));
}

/* Does process_wait_for() for any parent. `adopted`: only a child that the parent did not fork,
 * without waiting. */
static int64_t reap(struct process *parent, bool adopted, uint64_t status,
                    struct ended_process *ended)
{
    struct process *child;
    int error = status ? check_writable(status) : 0;
    if (!error)
        error = wait_for_zombie(parent, adopted, &child);
    if (error)
        return error;
    int64_t pid = child->pid;
    int exit_status = child->exit_status;
    while (__atomic_load_n(&child->on_cpu, __ATOMIC_ACQUIRE))
        ; /* it is in its last switch */
    if (ended)
        *ended = (struct ended_process){child->task.run_time, child->waiting_time,
                                        child->task.selections};
    scheduler_forget(child);
    free_process(child);
    if (status)
        copy_to_user(status, &exit_status, sizeof(exit_status));
    return pid;
}

int64_t process_wait_for(uint64_t status, struct ended_process *ended)
{
    return reap(current_process(), false, status, ended);
}

int64_t process_wait(uint64_t status)
{
    return process_wait_for(status, NULL);
}

void process_mark_killed(struct process *process)
{
    __atomic_store_n(&process->killed, true, __ATOMIC_RELAXED);
}

bool process_is_first(const struct process *process)
{
    return process == first_process;
}

int64_t process_kill(int pid)
{
    int error = 0;
    spinlock_acquire(&process_tree_lock);
    struct process *process = process_table_find(pid);
    if (!process)
        error = -ESRCH;
    else if (process == first_process)
        error = -EPERM;
    else
        process_mark_killed(process);
    if (!error)
        process_wake(process);
    spinlock_release(&process_tree_lock);
    return error;
}

/*
 * There is no job control: the foreground is every process except init and the shell that it
 * started. The shell's descendants end.
 */
void process_kill_foreground(void)
{
    spinlock_acquire(&process_tree_lock);
    list_for_each(node, &all_processes)
    {
        struct process *process = container_of(node, struct process, all);
        if (process->parent && process->parent != first_process) {
            process_mark_killed(process);
            process_wake(process);
        }
    }
    spinlock_release(&process_tree_lock);
}

uint64_t process_finished(void)
{
    return __atomic_load_n(&finished, __ATOMIC_RELAXED);
}
