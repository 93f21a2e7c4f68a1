/* SPDX-License-Identifier: MIT */

/*
 * What the scheduler does, as text to read and commands to write: the files
 * sched_status, sched_tunables and sched_policies in /proc. How they look is said
 * in policies/support/scheduler_text.h.
 */

#include "process/scheduler_files.h"

#include "abi/errors.h"
#include "fs/text_file.h"
#include "lib/print.h"
#include "lib/string.h"
#include "process/lifecycle.h"
#include "process/process_table.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"

#include "policies/support/scheduler_text.h"

_Static_assert(POLICY_TEXT_BYTES == SCHEDULER_CHOICE_BYTES, "a choice that is shown is obeyed");

/* ---- what is shown ---- */

static void view_scheduler(struct scheduler_view *view, struct policy_in_use *use)
{
    scheduler_describe(use);
    *view = (struct scheduler_view){
        .name = use->text,
        .choice = {.policy = use->policy},
        .tunable = use->tunable,
        .shares_by = use->shares_by,
        .tick_ns = clock_tick_ns(),
    };
    policy_choose(use->text, strlen(use->text), &view->choice);
}

/* ---- sched_status ---- */

/* A moment's view: the scheduler goes on meanwhile. */
static void add_process(struct text *text, const struct scheduler_view *view,
                        const struct process *process)
{
    struct task_view task = {
        .name = process->name,
        .pid = process->pid,
        .state = process_state_name(process->state),
        .priority = process->task.priority,
        .weight = process->task.weight,
        .slice = scheduler_time_slice(process),
        .tickets = scheduler_tickets(process),
    };
    add_task(text, view, &task);
}

/* The process after the one of PID *last. False: there is none. */
static bool add_next_process(struct text *text, const struct scheduler_view *view, int *last)
{
    spinlock_acquire(&process_tree_lock);
    const struct process *process = process_table_after(*last);
    if (process) {
        add_process(text, view, process);
        *last = process->pid;
    }
    spinlock_release(&process_tree_lock);
    return process;
}

static void make_status(struct text *text)
{
    struct policy_in_use use;
    struct scheduler_view view;
    int last = 0;
    view_scheduler(&view, &use);
    add_status_head(text, &view, NULL);
    while (add_next_process(text, &view, &last))
        preemption_point();
}

static int set_priority_shown(const char *pid_text, const char *value_text)
{
    struct policy_in_use use;
    struct scheduler_view view;
    int64_t pid;
    int64_t value;
    if (!text_to_number(pid_text, &pid) || !text_to_number(value_text, &value))
        return -EINVAL;
    if (pid < 1 || pid > INT32_MAX)
        return -ESRCH;
    view_scheduler(&view, &use);
    return (int)process_set_attribute(
        (int)pid, scheduler_shows_weight(&view) ? ATTRIBUTE_WEIGHT : ATTRIBUTE_PRIORITY, value);
}

/* "POLICY[:PRESET]" or "PID VALUE" */
static int obey_status(char *line)
{
    char *first;
    char *second;
    if (text_take_two(line, " \t", &first, &second))
        return set_priority_shown(first, second);
    return second ? -EINVAL : scheduler_set_policy(first);
}

/* ---- sched_tunables ---- */

static void make_tunables(struct text *text)
{
    struct policy_in_use use;
    struct scheduler_view view;
    view_scheduler(&view, &use);
    add_tunables(text, &view);
}

/* "NAME VALUE" or "NAME=VALUE" */
static int obey_tunables(char *line)
{
    char *name;
    char *value_text;
    int64_t value;
    if (!text_take_two(line, " \t=", &name, &value_text) || !text_to_number(value_text, &value))
        return -EINVAL;
    return scheduler_set_tunable(name, value);
}

/* The order is that of the numbers on the disk, which stay as they are. */
static const struct text_file scheduler_files[] = {
    {"sched_status", make_status, obey_status},
    {"sched_tunables", make_tunables, obey_tunables},
    {"sched_policies", add_policies, NULL},
};

void scheduler_files_init(void)
{
    text_files_init(scheduler_files, sizeof(scheduler_files) / sizeof(scheduler_files[0]));
}
