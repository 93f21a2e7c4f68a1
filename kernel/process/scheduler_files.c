/* SPDX-License-Identifier: MIT */

/*
 * What the scheduler does, as text to read and commands to write: the files
 * sched_status, sched_tunables and sched_policies in /proc. Columns are aligned
 * for people, and no entry but the last of a line has blanks in it, for programs.
 */

#include "process/scheduler_files.h"

#include "abi/errors.h"
#include "fs/text_file.h"
#include "lib/print.h"
#include "lib/string.h"
#include "policies/registry.h"
#include "process/lifecycle.h"
#include "process/process_table.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"

/* ---- commands ---- */

/* The next word of the line, ended by a 0; null: there is none. The line moves on. */
static char *take_word(char **line, const char *separators)
{
    char *word = *line;
    while (*word && text_has(separators, *word))
        word++;
    char *end = word;
    while (*end && !text_has(separators, *end))
        end++;
    *line = *end ? end + 1 : end;
    *end = '\0';
    return *word ? word : NULL;
}

/* Splits the line into two words. False: it has more, or fewer. */
static bool take_two(char *line, const char *separators, char **first, char **second)
{
    *first = take_word(&line, separators);
    *second = take_word(&line, separators);
    return *second && !take_word(&line, separators);
}

/* ---- sched_status ---- */

/* Study 5 calls priority what we call weight: with a policy that shares by weight, PRIORITY is
 * that. */
static enum attribute_kind priority_shown(const struct policy_in_use *use)
{
    return use->shares_by == SHARES_BY_WEIGHT ? ATTRIBUTE_WEIGHT : ATTRIBUTE_PRIORITY;
}

/* As one word: a file's name, and so a process's, may have any characters. */
static void write_name(char name[PROCESS_NAME_BYTES], const char *from)
{
    text_copy(name, from[0] ? from : "-", PROCESS_NAME_BYTES);
    for (; *name; name++) {
        if (*name <= ' ' || *name == 0x7f)
            *name = '_';
    }
}

/* Milliseconds, with as many decimals as it takes down to microseconds. */
static void write_slice(char *slice, size_t size, uint64_t ticks)
{
    uint64_t tick_us = clock_tick_ns() / 1000;
    if (ticks == 0) {
        text_copy(slice, "?", size);
        return;
    }
    if (ticks > UINT64_MAX / tick_us) {
        text_copy(slice, "-", size);
        return;
    }
    uint64_t us = ticks * tick_us;
    format_text(slice, size, us % 1000 ? "%lu.%03lu" : "%lu", us / 1000, us % 1000);
}

/* A moment's view: the scheduler goes on meanwhile. */
static void add_process(struct text *text, const struct policy_in_use *use,
                        const struct process *process)
{
    char name[PROCESS_NAME_BYTES];
    char slice[32];
    bool by_weight = priority_shown(use) == ATTRIBUTE_WEIGHT;
    write_name(name, process->name);
    write_slice(slice, sizeof(slice), scheduler_time_slice(process));
    text_add(text, "%-15s %7d %-8s %8d %9s %7lu\n", name, process->pid,
             process_state_name(process->state),
             by_weight ? (int)process->task.weight : process->task.priority, slice,
             scheduler_tickets(process));
}

/* The process after the one of PID *last. False: there is none. */
static bool add_next_process(struct text *text, const struct policy_in_use *use, int *last)
{
    spinlock_acquire(&process_tree_lock);
    const struct process *process = process_table_after(*last);
    if (process) {
        add_process(text, use, process);
        *last = process->pid;
    }
    spinlock_release(&process_tree_lock);
    return process;
}

/* The tunables that have been set to something else than the policy or preset says. */
static void add_changes(struct text *text, const struct policy_in_use *use)
{
    struct policy_choice choice;
    const char *before = "Changed: ";
    if (policy_choose(use->text, strlen(use->text), &choice))
        return;
    for (uint32_t i = 0; i < use->policy->tunable_count; i++) {
        if (use->tunable[i] == policy_default(&choice, i))
            continue;
        text_add(text, "%s%s=%ld", before, use->policy->tunables[i].name, use->tunable[i]);
        before = " ";
    }
    if (*before == ' ')
        text_add(text, "\n");
}

static void make_status(struct text *text)
{
    struct policy_in_use use;
    int last = 0;
    scheduler_describe(&use);
    text_add(text, "Scheduler status\nPolicy: %s\n", use.text);
    add_changes(text, &use);
    if (priority_shown(&use) == ATTRIBUTE_WEIGHT)
        text_add(text, "PRIORITY: the weight, 1 to %d; shares go by it\n", WEIGHT_MAX);
    else
        text_add(text, "PRIORITY: %d, the highest, to %d\n", PRIORITY_HIGHEST, PRIORITY_LOWEST);
    text_add(text, "TIMESLICE: milliseconds; -: no limit; ?: not seen by this policy yet\n");
    text_add(text, "\n%-15s %7s %-8s %8s %9s %7s\n", "NAME", "PID", "STATE", "PRIORITY",
             "TIMESLICE", "TICKETS");
    while (add_next_process(text, &use, &last))
        preemption_point();
}

static int set_priority_shown(const char *pid_text, const char *value_text)
{
    struct policy_in_use use;
    int64_t pid;
    int64_t value;
    if (!text_to_number(pid_text, &pid) || !text_to_number(value_text, &value))
        return -EINVAL;
    if (pid < 1 || pid > INT32_MAX)
        return -ESRCH;
    scheduler_describe(&use);
    return (int)process_set_attribute((int)pid, priority_shown(&use), value);
}

/* "POLICY[:PRESET]" or "PID VALUE" */
static int obey_status(char *line)
{
    char *first;
    char *second;
    if (take_two(line, " \t", &first, &second))
        return set_priority_shown(first, second);
    return second ? -EINVAL : scheduler_set_policy(first);
}

/* ---- sched_tunables ---- */

static void make_tunables(struct text *text)
{
    static const char heading[] = "%-23s %7s %7s %7s %7s %s\n";
    struct policy_in_use use;
    scheduler_describe(&use);
    text_add(text, heading, "NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT", "MEANING");
    for (uint32_t i = 0; i < use.policy->tunable_count; i++) {
        const struct tunable *tunable = &use.policy->tunables[i];
        text_add(text, "%-23s %7ld %7ld %7ld %7ld %s\n", tunable->name, use.tunable[i],
                 tunable->minimum, tunable->maximum, tunable->standard, tunable->meaning);
    }
}

/* "NAME VALUE" or "NAME=VALUE" */
static int obey_tunables(char *line)
{
    char *name;
    char *value_text;
    int64_t value;
    if (!take_two(line, " \t=", &name, &value_text) || !text_to_number(value_text, &value))
        return -EINVAL;
    return scheduler_set_tunable(name, value);
}

/* ---- sched_policies ---- */

static void add_preset(struct text *text, uint32_t number, const struct preset *preset)
{
    char name[POLICY_TEXT_BYTES];
    format_text(name, sizeof(name), "%s:%s", policies[number]->name, preset->name);
    text_add(text, "%6u %-28s %s\n", number, name, preset->meaning);
}

static void make_policies(struct text *text)
{
    text_add(text, "%6s %-28s %s\n", "NUMBER", "NAME", "MEANING");
    for (uint32_t number = 0; number < policies_count; number++) {
        const struct policy *policy = policies[number];
        text_add(text, "%6u %-28s %s\n", number, policy->name, policy->meaning);
        for (uint32_t i = 0; i < policy->preset_count; i++)
            add_preset(text, number, &policy->presets[i]);
    }
}

/* The order is that of the numbers on the disk, which stay as they are. */
static const struct text_file scheduler_files[] = {
    {"sched_status", make_status, obey_status},
    {"sched_tunables", make_tunables, obey_tunables},
    {"sched_policies", make_policies, NULL},
};

void scheduler_files_init(void)
{
    text_files_init(scheduler_files, sizeof(scheduler_files) / sizeof(scheduler_files[0]));
}
