/* SPDX-License-Identifier: MIT */

/*
 * The scheduler's state, as text to read and commands to write: the files sched_status,
 * sched_tunables and sched_policies in /proc. policies/support/scheduler_text.h defines their
 * format.
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

#include "abi/attribute_names.h"
#include "abi/cpu_list.h"
#include "policies/support/groups.h"

#include "policies/support/scheduler_text.h"

_Static_assert(POLICY_TEXT_BYTES == SCHEDULER_CHOICE_BYTES, "a choice that is shown is obeyed");

/* ---- displayed texts ---- */

static void view_scheduler(struct scheduler_view *view, struct policy_in_use *use)
{
    scheduler_describe(use);
    *view = (struct scheduler_view){
        .name = use->text,
        .choice = {.policy = use->policy},
        .tunable = use->tunable,
        .shares_by = use->shares_by,
        .tick_ns = clock_tick_ns(),
        .group = use->group,
        .groups = use->groups,
    };
    policy_choose(use->text, strlen(use->text), &view->choice);
}

/* ---- sched_status ---- */

/* A snapshot: the scheduler continues during the call. */
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

/* Adds the process after the one of PID *last. Returns false if there is none. */
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

static bool is_pid(int64_t number)
{
    return number >= 1 && number <= INT32_MAX;
}

/* Sets the attribute that the column PRIORITY shows. */
static int set_shown(int64_t pid, int64_t value)
{
    struct policy_in_use use;
    struct scheduler_view view;
    view_scheduler(&view, &use);
    bool weight = scheduler_shows_weight(&view);
    int error = -ESRCH;
    if (is_pid(pid))
        error = (int)process_set_attribute((int)pid, weight ? ATTRIBUTE_WEIGHT : ATTRIBUTE_PRIORITY,
                                           weight ? scheduler_weight(&view.choice, value) : value);
    return error == -ESRCH && scheduler_accepts_any_pid(&view.choice) ? 0 : error;
}

static int set_policy(const char *word)
{
    struct policy_in_use use;
    struct scheduler_view view;
    view_scheduler(&view, &use);
    const char *name = scheduler_chosen(&view.choice, word);
    return name ? scheduler_set_policy(name) : 0;
}

static int set_affinity(int64_t pid, const char *list)
{
    struct cpu_set cpus;
    if (!cpu_list_read(list, cpus.words))
        return -EINVAL;
    return (int)process_set_affinity((int)pid, &cpus);
}

/* `name`: null for the displayed attribute. */
static int set_attribute(const char *pid_text, const char *name, const char *value_text)
{
    int64_t pid;
    int64_t value;
    bool is_cpus = name && strcmp(name, "cpus") == 0;
    if (!text_to_number(pid_text, &pid) || (!is_cpus && !text_to_number(value_text, &value)))
        return -EINVAL;
    if (!name)
        return set_shown(pid, value);
    if (!is_pid(pid))
        return -ESRCH;
    if (is_cpus)
        return set_affinity(pid, value_text);
    uint32_t kind = attribute_named(name);
    return kind ? (int)process_set_attribute((int)pid, kind, value) : -EINVAL;
}

static int set_seed(const char *text)
{
    int64_t seed;
    if (!text_to_number(text, &seed))
        return -EINVAL;
    if (seed < 0)
        return -ERANGE;
    scheduler_set_seed((uint64_t)seed);
    return 0;
}

static int set_group(const char *group_text, const char *name, const char *value_text)
{
    int64_t group;
    int64_t value;
    if (!text_to_number(group_text, &group) || !text_to_number(value_text, &value))
        return -EINVAL;
    return group < 0 ? -ERANGE
                     : scheduler_set_group((uint64_t)group, group_field_named(name), value);
}

/* "POLICY[:PRESET]", "seed VALUE", "PID VALUE", "PID ATTRIBUTE VALUE", "PID cpus LIST" or
 * "group NUMBER FIELD VALUE" */
static int obey_status(char *line)
{
    const char *word[4];
    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
        word[i] = text_take_word(&line, " \t");
    bool is_group = word[0] && strcmp(word[0], "group") == 0;
    if (text_take_word(&line, " \t") || (word[3] && !is_group))
        return -EINVAL;
    if (!word[1])
        return set_policy(word[0]);
    if (is_group)
        return word[3] ? set_group(word[1], word[2], word[3]) : -EINVAL;
    if (word[2])
        return set_attribute(word[0], word[1], word[2]);
    return strcmp(word[0], "seed") == 0 ? set_seed(word[1]) : set_attribute(word[0], NULL, word[1]);
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

/* The order is that of the numbers on the disk, which never change. */
static const struct text_file scheduler_files[] = {
    {"sched_status", make_status, obey_status},
    {"sched_tunables", make_tunables, obey_tunables},
    {"sched_policies", add_policies, NULL},
};

void scheduler_files_init(void)
{
    text_files_init(scheduler_files, sizeof(scheduler_files) / sizeof(scheduler_files[0]));
}
