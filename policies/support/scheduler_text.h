/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_SCHEDULER_TEXT_H
#define SCHEDLAB_SCHEDULER_TEXT_H

/*
 * The texts of sched_status, sched_tunables and sched_policies, for all hosts that offer these
 * files: docs/system-calls.md describes them. Columns are aligned for readability. Only the last
 * entry of a line may contain blanks, so that programs can split it.
 *
 * A file that includes this must first declare, as the kernel's fs/text_file.h and lib/print.h do:
 * `struct text`, text_add() and format_text().
 */

#include "policies/registry.h"
#include "policies/support/command_text.h"

/* text_add() formats of int64_t and uint64_t: a long on some hosts, a long long on others. */
#define INTEGER  __INT64_FMTd__
#define UNSIGNED __UINT64_FMTu__

#define POLICY_NUMBERS_MAX     10000 /* above the highest number of a policy */
#define SCHEDULER_NAME_BYTES   16    /* of a task, with its final 0 */
#define SCHEDULER_CHOICE_BYTES 64    /* of a policy's name and preset, with the final 0 */

/* A machine's policy and settings. */
struct scheduler_view {
    const char *name;            /* "rr:table-scan" */
    struct policy_choice choice; /* no policy: it is not one of schedlab's */
    const int64_t *tunable;      /* values now */
    enum share_attribute shares_by;
    uint64_t tick_ns;
    const struct share_group *group; /* the groups that were set, starting with the root */
    uint32_t groups;
};

struct task_view {
    const char *name;
    int32_t pid;
    const char *state;
    int32_t priority;
    uint32_t weight;
    uint64_t slice;   /* ticks; 0: the policy does not know the task yet */
    uint64_t tickets; /* the tickets that it draws with */
};

/* ---- sched_status ---- */

/* Returns the commands of the active preset, or null if they are the common ones. */
TEXT_FUNCTION const struct preset_commands *scheduler_commands(const struct policy_choice *choice)
{
    const struct preset_commands *commands = choice->policy ? choice->policy->commands : NULL;
    bool uses_preset = commands && choice->preset &&
                       preset_find(choice->policy, commands->preset,
                                   text_length(commands->preset)) == choice->preset;
    return uses_preset ? commands : NULL;
}

/* Returns the name of the policy that `word` selects: usually the word itself. Null: a number
 * without a policy under the active preset. */
TEXT_FUNCTION const char *scheduler_chosen(const struct policy_choice *choice, const char *word)
{
    const struct preset_commands *commands = scheduler_commands(choice);
    bool negative = *word == '-';
    uint32_t number = 0;
    if (!commands || !text_is_number(word + negative))
        return word;
    for (const char *c = word + negative; *c && number < POLICY_NUMBERS_MAX; c++)
        number = number * 10 + (uint32_t)(*c - '0');
    for (uint32_t i = 0; !negative && commands->numbered[i]; i++) {
        if (i == number)
            return commands->numbered[i];
    }
    return NULL;
}

/* Returns the attribute that a value in the column PRIORITY sets. */
TEXT_FUNCTION int64_t scheduler_weight(const struct policy_choice *choice, int64_t value)
{
    const struct preset_commands *commands = scheduler_commands(choice);
    return commands && (value < 1 || value > WEIGHT_MAX) ? commands->weight : value;
}

/* True if a value for the column PRIORITY of a task that does not exist is accepted, without
 * effect. */
TEXT_FUNCTION bool scheduler_accepts_any_pid(const struct policy_choice *choice)
{
    return scheduler_commands(choice);
}

/* Study 5's priority is schedlab's weight: with a policy that shares by weight, the column
 * PRIORITY shows the weight. */
TEXT_FUNCTION bool scheduler_shows_weight(const struct scheduler_view *view)
{
    return view->shares_by == SHARES_BY_WEIGHT;
}

/* Writes the name as one word: a file's name, and so a task's, may contain any characters. */
TEXT_FUNCTION void write_name(char name[SCHEDULER_NAME_BYTES], const char *from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < SCHEDULER_NAME_BYTES; i++)
        name[i] = from[i] <= ' ' || from[i] == 0x7f ? '_' : from[i];
    if (i == 0)
        name[i++] = '-';
    name[i] = '\0';
}

/* Writes milliseconds, with as many decimals as needed, down to microseconds. */
TEXT_FUNCTION void write_slice(char *slice, size_t size, uint64_t ticks, uint64_t tick_ns)
{
    uint64_t tick_us = tick_ns / 1000;
    if (ticks == 0 || ticks > UINT64_MAX / tick_us) {
        format_text(slice, size, "%s", ticks == 0 ? "?" : "-");
        return;
    }
    uint64_t us = ticks * tick_us;
    format_text(slice, size, us % 1000 ? "%" UNSIGNED ".%03" UNSIGNED : "%" UNSIGNED, us / 1000,
                us % 1000);
}

TEXT_FUNCTION void add_task(struct text *text, const struct scheduler_view *view,
                            const struct task_view *task)
{
    char name[SCHEDULER_NAME_BYTES];
    char slice[32];
    write_name(name, task->name);
    write_slice(slice, sizeof(slice), task->slice, view->tick_ns);
    text_add(text, "%-15s %7d %-8s %8d %9s %7" UNSIGNED "\n", name, task->pid, task->state,
             scheduler_shows_weight(view) ? (int)task->weight : task->priority, slice,
             task->tickets);
}

/* Adds the tunables that differ from the values of the policy or preset. */
TEXT_FUNCTION void add_changes(struct text *text, const struct scheduler_view *view)
{
    const struct policy *policy = view->choice.policy;
    const char *before = "Changed: ";
    for (uint32_t i = 0; policy && i < policy->tunable_count; i++) {
        if (view->tunable[i] == policy_default(&view->choice, i))
            continue;
        text_add(text, "%s%s=%" INTEGER, before, policy->tunables[i].name, view->tunable[i]);
        before = " ";
    }
    if (*before == ' ')
        text_add(text, "\n");
}

TEXT_FUNCTION void add_groups(struct text *text, const struct scheduler_view *view)
{
    for (uint32_t i = 0; i < view->groups; i++) {
        const struct share_group *group = &view->group[i];
        text_add(text, "Group %u: parent %u, weight %u, ", i, group->parent, group->weight);
        if (group->quota)
            text_add(text, "quota %" UNSIGNED " of %" UNSIGNED " us\n", group->quota / 1000,
                     group->period / 1000);
        else
            text_add(text, "no quota\n");
    }
}

/* Adds the lines before the tasks. `remark`: one more line; null: none. */
TEXT_FUNCTION void add_status_head(struct text *text, const struct scheduler_view *view,
                                   const char *remark)
{
    text_add(text, "Scheduler status\nPolicy: %s\n", view->name);
    add_changes(text, view);
    add_groups(text, view);
    if (remark)
        text_add(text, "%s\n", remark);
    if (scheduler_shows_weight(view))
        text_add(text, "PRIORITY: the weight, 1 to %d; shares go by it\n", WEIGHT_MAX);
    else
        text_add(text, "PRIORITY: %d, the highest, to %d\n", PRIORITY_HIGHEST, PRIORITY_LOWEST);
    text_add(text, "TIMESLICE: milliseconds; -: no limit; ?: not seen by this policy yet\n");
    text_add(text, "\n%-15s %7s %-8s %8s %9s %7s\n", "NAME", "PID", "STATE", "PRIORITY",
             "TIMESLICE", "TICKETS");
}

/* ---- sched_tunables ---- */

TEXT_FUNCTION void add_tunables(struct text *text, const struct scheduler_view *view)
{
    const struct policy *policy = view->choice.policy;
    text_add(text, "%-23s %7s %7s %7s %7s %s\n", "NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT",
             "MEANING");
    for (uint32_t i = 0; policy && i < policy->tunable_count; i++) {
        const struct tunable *tunable = &policy->tunables[i];
        text_add(text, "%-23s %7" INTEGER " %7" INTEGER " %7" INTEGER " %7" INTEGER " %s\n",
                 tunable->name, view->tunable[i], tunable->minimum, tunable->maximum,
                 tunable->standard, tunable->meaning);
    }
}

/* ---- sched_policies ---- */

#define POLICIES_COLUMNS "%6s %-28s %s\n"

TEXT_FUNCTION void add_presets(struct text *text, uint32_t number, const struct policy *source)
{
    for (uint32_t i = 0; i < source->preset_count; i++) {
        char name[SCHEDULER_CHOICE_BYTES];
        format_text(name, sizeof(name), "%s:%s", source->name, source->presets[i].name);
        text_add(text, "%6u %-28s %s\n", number, name, source->presets[i].meaning);
    }
}

TEXT_FUNCTION void add_policies(struct text *text)
{
    text_add(text, POLICIES_COLUMNS, "NUMBER", "NAME", "MEANING");
    for (uint32_t number = 0; number < policies_count; number++) {
        const struct policy *policy = policies[number];
        text_add(text, "%6u %-28s %s\n", number, policy->name, policy->meaning);
        for (; policy; policy = policy_next_source(policy))
            add_presets(text, number, policy);
    }
}

#endif
