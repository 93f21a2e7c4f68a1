/* SPDX-License-Identifier: MIT */

#include "scheduler.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "load.h"
#include "machine.h"
#include "problem.h"
#include "requests.h"
#include "sys_shape.h"
#include "threads.h"
#include "trace.h"

#include "abi/attribute_names.h"
#include "abi/trace_format.h"
#include "policies/support/attributes.h"
#include "policies/support/groups.h"
#include "policies/support/hooks.h"

/* The active policy, or the fair class. */
struct in_force {
    struct policy_object *object; /* null: the fair class */
    struct policy_choice choice;
    char name[SCHEDULER_CHOICE_BYTES];
    int64_t tunable[POLICY_TUNABLES_MAX];
    enum share_attribute shares_by;
};

static struct scheduler_options options;
static struct shared_objects shared;
static struct policy_object *objects; /* one for each policy, in the order of their numbers */
static struct in_force now = {.name = FAIR_CLASS};
static char fair_since[1400]; /* "": a user chose the fair class */
static struct trace *trace;   /* null: none */
static uint32_t cpus;
static uint64_t tick_ns;
static struct machine_shape shape;
static struct scheduler kept; /* its groups are the users' settings, independent of the active
                               * policy */
static uint32_t users_groups; /* the numbers that users have named: a bit for each */

const char *scheduler_name(void)
{
    return now.name;
}

/* ---- beginning and end ---- */

int scheduler_begin(const struct scheduler_options *requested)
{
    options = *requested;
    cpus = machine_cpus();
    tick_ns = machine_tick_ns();
    sys_shape_read("/sys", cpus, &shape);
    bool can_hear =
        requests_begin(&(struct request_listener){scheduler_check_exit, scheduler_name});
    objects = calloc(policy_sources_count, sizeof(*objects));
    if (!can_hear || !objects)
        return -errno;
    for (uint32_t i = 0; i < policy_sources_count; i++)
        objects[i] = (struct policy_object){
            .policy = policies[i], .name = policy_files[i], .shared = &shared, .thread_done = -1};
    objects_init();
    load_limit(options.load_limit_s);
    return shared_objects_load(&shared, options.objects, options.detail);
}

int scheduler_begin_trace(struct trace_settings settings)
{
    char why[512];
    settings.cpus = cpus;
    settings.tick_ns = tick_ns;
    settings.seed = options.seed;
    int error = trace_begin(&trace, shared.observer, &settings, why, sizeof(why));
    if (error)
        say("%s", why);
    else
        trace_policy(trace, now.name, now.shares_by);
    return error;
}

const char *scheduler_trace_problem(void)
{
    return trace_problem(trace);
}

static int end_trace(void)
{
    struct trace_outcome outcome;
    char why[512];
    if (!trace)
        return 0;
    int error = trace_end(trace, &outcome, why, sizeof(why));
    trace = NULL;
    if (error)
        say("%s", why);
    else if (outcome.lost)
        say("trace: %" PRIu64 " records, and %" PRIu64 " were lost", outcome.records, outcome.lost);
    else
        say("trace: %" PRIu64 " records", outcome.records);
    return error;
}

int scheduler_end(void)
{
    if (!objects)
        return 0;
    if (now.object)
        policy_object_detach(now.object);
    now = (struct in_force){.name = FAIR_CLASS};
    int error = end_trace();
    load_end();
    for (uint32_t i = 0; i < policy_sources_count; i++)
        policy_object_close(&objects[i]);
    shared_objects_close(&shared);
    requests_end();
    free(objects);
    objects = NULL;
    return error;
}

/* ---- choosing ---- */

static enum share_attribute shares_of(const struct policy_choice *choice, const int64_t *tunable)
{
    uint64_t state[POLICY_SCHEDULER_BYTES / 8] = {0};
    struct scheduler scheduler = {
        .cpus = cpus, .queues = cpus, .tick_ns = tick_ns, .seed = options.seed, .state = state};
    memcpy(scheduler.tunable, tunable, sizeof(scheduler.tunable));
    if (choice->policy)
        policy_init_scheduler(choice->policy, &scheduler);
    /* Linux's own class shares by nice values, and so do nearly all schedulers of sched_ext. */
    return choice->policy ? policy_shares_by(choice->policy, &scheduler) : SHARES_BY_NICE;
}

static void set_defaults(struct in_force *requested)
{
    for (uint32_t i = 0; i < requested->choice.policy->tunable_count; i++)
        requested->tunable[i] = policy_default(&requested->choice, i);
}

static bool is_fair(const char *name)
{
    return strcmp(name, FAIR_CLASS) == 0;
}

/* Reads a policy's name. Returns 0 or -EINVAL. */
static int read_choice(const char *name, struct in_force *requested)
{
    *requested = (struct in_force){.name = FAIR_CLASS};
    if (is_fair(name))
        return 0;
    enum policy_error error = policy_choose(name, strlen(name), &requested->choice);
    if (error)
        return fail(-EINVAL, "%.60s: %s; see sched_policies", name, policy_error_text(error));
    const struct policy_choice *choice = &requested->choice;
    snprintf(requested->name, sizeof(requested->name), "%s%s%s", choice->policy->name,
             choice->preset ? ":" : "", choice->preset ? choice->preset->name : "");
    requested->object = objects ? &objects[policy_source(choice->policy)] : NULL;
    set_defaults(requested);
    return 0;
}

/* Checks whether a policy may replace the fair class, or a policy that honours more. Returns 0,
 * or a negative errno. */
static int check_limits(const struct policy *policy)
{
    struct text description = {0};
    int error = 0;
    bool loses = !now.object || (now.object->policy->by_groups == GROUPS_ALWAYS &&
                                 policy->by_groups != GROUPS_ALWAYS);
    if (loses && !options.ignore_limits &&
        limits_in_use_on_host(machine_honours(policy), &description))
        error = fail(-EPERM, LIMITS_NOT_HONOURED, description.bytes);
    text_free(&description);
    return error;
}

/* Returns 0, SCHEDULER_IS_LOADING or a negative errno. */
static int need_object(struct policy_object *object)
{
    int unfit = check_limits(object->policy);
    return unfit ? unfit : load_need(object);
}

static void describe_exit(const struct host_exit *exit, char *text, size_t size)
{
    snprintf(text, size, "%.127s%s%.1023s", exit->reason, exit->message[0] ? ": " : "",
             exit->message);
    for (char *c = text; *c; c++) {
        if (*c == '\n')
            *c = ' '; /* the text becomes a line of sched_status */
    }
}

/* Also writes the change to the trace. */
static void begin_force(const struct in_force *requested)
{
    now = *requested;
    now.shares_by = shares_of(&now.choice, now.tunable);
    trace_policy(trace, now.name, now.shares_by);
    for (uint32_t i = 0; now.object && i < now.choice.policy->tunable_count; i++)
        trace_tunable(trace, now.choice.policy->tunables[i].name, now.tunable[i], now.shares_by);
    say("policy: %s", now.name);
}

static int attach_requested(const struct in_force *requested)
{
    struct host_settings settings = {
        .cpus = cpus, .users_groups = users_groups, .tick_ns = tick_ns, .seed = options.seed};
    struct host_exit exit = {0};
    char reason[1200] = "";
    memcpy(settings.tunable, requested->tunable, sizeof(settings.tunable));
    int error = policy_object_attach(requested->object, &settings, &shape);
    bool exited =
        policy_object_has_exited(requested->object, &exit); /* even if there is no error */
    if (!error && !exited)
        return 0;
    if (exited)
        describe_exit(&exit, reason, sizeof(reason));
    else
        snprintf(reason, sizeof(reason), "%s", strerror(-error));
    if (!error)
        policy_object_detach(requested->object);
    fail(-EIO, "%s: the kernel rejects it: %s", requested->name, reason);
    snprintf(fair_since, sizeof(fair_since), "%s", scheduler_problem());
    say("%s", fair_since);
    return error == -EBUSY ? -EBUSY : -EIO;
}

/* Passes the groups to the active policy; a new policy does not know them. */
static void report_groups(void)
{
    for (uint32_t i = 0; now.object && i < kept.groups; i++) {
        const struct share_group *group = &kept.group[i];
        if (i > 0) {
            policy_object_set_group(now.object, i, GROUP_PARENT, group->parent);
            policy_object_set_group(now.object, i, GROUP_WEIGHT, group->weight);
        }
        policy_object_set_group(now.object, i, GROUP_PERIOD, (int64_t)group->period);
        policy_object_set_group(now.object, i, GROUP_QUOTA, (int64_t)group->quota);
    }
}

/* Switches from the active policy to the wanted one, whose object is loaded. */
static int switch_to(const struct in_force *requested)
{
    static const struct in_force fair = {.name = FAIR_CLASS};
    if (now.object)
        policy_object_detach(now.object);
    fair_since[0] = '\0';
    int error = requested->object ? attach_requested(requested) : 0;
    begin_force(error ? &fair : requested);
    report_groups();
    return error;
}

static int choose(const struct in_force *requested)
{
    int error = requested->object ? need_object(requested->object) : 0;
    if (error)
        return error;
    return switch_to(requested);
}

/* ---- tunables ---- */

static int set_tunable(struct in_force *requested, const char *name, int64_t value)
{
    const struct policy *policy = requested->choice.policy;
    uint32_t index = policy ? tunable_find(policy, name, strlen(name)) : NO_TUNABLE;
    if (index == NO_TUNABLE)
        return fail(-EINVAL, "%s has no tunable %.60s; see sched_tunables", requested->name, name);
    const struct tunable *tunable = &policy->tunables[index];
    if (value < tunable->minimum || value > tunable->maximum)
        return fail(-ERANGE, "%s: out of range; use %" PRId64 " to %" PRId64, name,
                    tunable->minimum, tunable->maximum);
    requested->tunable[index] = value;
    return 0;
}

/* Changes the line. */
static int read_setting(struct in_force *requested, char *line)
{
    char *name;
    char *value_text;
    int64_t value;
    if (!text_take_two(line, " \t=", &name, &value_text) || !text_to_number(value_text, &value))
        return fail(-EINVAL, "invalid setting; write NAME=VALUE with a whole number");
    return set_tunable(requested, name, value);
}

int scheduler_obey_tunables(char *line)
{
    struct in_force requested = now;
    int error = read_setting(&requested, line);
    return error ? error : choose(&requested);
}

/* Returns 0 or a negative errno. */
static int read_request(struct in_force *requested, const char *name, char *const *settings,
                        size_t count)
{
    int error = read_choice(name, requested);
    for (size_t i = 0; !error && i < count; i++) {
        char setting[256];
        snprintf(setting, sizeof(setting), "%s", settings[i]);
        error = read_setting(requested, setting);
    }
    return error;
}

bool scheduler_accepts(const char *name, char *const *settings, size_t count)
{
    struct in_force requested;
    return read_request(&requested, name, settings, count) == 0;
}

int scheduler_prepare(const char *name)
{
    struct in_force requested;
    int error = read_choice(name, &requested);
    return error || !requested.object ? error : need_object(requested.object);
}

int scheduler_choose(const char *name, char *const *settings, size_t count)
{
    struct in_force requested;
    int error = read_request(&requested, name, settings, count);
    return error ? error : choose(&requested);
}

/* ---- attributes ---- */

#define CONTROL_GROUPS_NUMBER                                                                      \
    "group %.20s is a control group (see sched_status); set it in its files. Use "                 \
    "another "                                                                                     \
    "number"

static bool exists(int64_t pid)
{
    return pid >= 1 && pid <= INT32_MAX && is_users_thread((int32_t)pid);
}

static int set_attribute(const char *pid_text, uint32_t kind, const char *value_text)
{
    int64_t pid;
    int64_t value;
    if (!kind || !text_to_number(pid_text, &pid) || !text_to_number(value_text, &value))
        return fail(-EINVAL, "of the form PID VALUE, or PID ATTRIBUTE VALUE, such as 12 tickets 3");
    if (!exists(pid))
        return fail(-ESRCH, "%" PRId64 ": no such process or thread; name a running one", pid);
    if (!attribute_allowed(kind, value))
        return fail(-ERANGE, "%s: out of range; use %" PRId64 " to %" PRId64, attribute_names[kind],
                    attribute_lowest(kind), attribute_highest(kind));
    int error = now.object ? policy_object_set_attribute(now.object, (int32_t)pid, kind, value)

                           : store_attribute(shared.attributes, (int32_t)pid, kind, value);
    if (error == -EBUSY && kind == ATTRIBUTE_TASKGROUP)
        return fail(error, CONTROL_GROUPS_NUMBER, value_text);
    if (error)
        return fail(error, "%" PRId64 ": %s", pid, strerror(-error));
    if (!now.object)
        trace_attribute(trace, (int32_t)pid, kind, value);
    if (kind == ATTRIBUTE_TASKGROUP)
        users_groups |= 1u << (uint32_t)value;
    return 0;
}

/* "PID VALUE": what the column PRIORITY shows. */
static int set_shown(const char *pid_text, const char *value_text)
{
    char taken[24];
    int64_t pid;
    int64_t value;
    if (now.shares_by != SHARES_BY_WEIGHT || !text_to_number(value_text, &value))
        return set_attribute(pid_text, ATTRIBUTE_PRIORITY, value_text);
    if (scheduler_accepts_any_pid(&now.choice) && text_to_number(pid_text, &pid) && !exists(pid))
        return 0;
    snprintf(taken, sizeof(taken), "%" PRId64, scheduler_weight(&now.choice, value));
    return set_attribute(pid_text, ATTRIBUTE_WEIGHT, taken);
}

/* "group NUMBER FIELD VALUE" */
static int set_group(const char *group_text, const char *name, const char *value_text)
{
    int64_t group;
    int64_t value;
    uint32_t field = group_field_named(name);
    if (!field || !text_to_number(group_text, &group) || !text_to_number(value_text, &value))
        return fail(-EINVAL, "of the form group NUMBER FIELD VALUE, such as group 2 weight 300");
    if (!group_value_allowed((uint64_t)group, field, value))
        return fail(-ERANGE, "group %.20s: %s", group_text, group_ranges);
    int error = now.object ? policy_object_set_group(now.object, (uint32_t)group, field, value) : 0;
    if (error == -EBUSY)
        return fail(error, CONTROL_GROUPS_NUMBER, group_text);
    if (error)
        return fail(error, "group %.20s: %s", group_text, strerror(-error));
    group_set(&kept, (uint32_t)group, field, value);
    trace_group(trace, (uint32_t)group, field, value);
    users_groups |= 1u << (uint32_t)group;
    return 0;
}

int scheduler_obey(char *line)
{
    char *word[4];
    size_t words = 0;
    while (words < 4 && (word[words] = text_take_word(&line, " \t")))
        words++;
    struct in_force requested;
    if (words == 4)
        return strcmp(word[0], "group") != 0 || text_take_word(&line, " \t")
                   ? fail(-EINVAL, "too many words")
                   : set_group(word[1], word[2], word[3]);
    if (words == 3)
        return set_attribute(word[0], attribute_named(word[1]), word[2]);
    if (words == 2)
        return set_shown(word[0], word[1]);
    const char *name = scheduler_chosen(&now.choice, word[0]);
    int error = name ? read_choice(name, &requested) : 0;
    return error || !name ? error : choose(&requested);
}

/* ---- texts ---- */

static struct scheduler_view view_now(void)
{
    return (struct scheduler_view){
        .name = now.name,
        .choice = now.choice,
        .tunable = now.tunable,
        .shares_by = now.shares_by,
        .tick_ns = tick_ns,
        .group = kept.group,
        .groups = kept.groups,
    };
}

/* Writes the groups of the active policy into `all`: those set by users, and control groups. The
 * control groups' names are added to `names`, a line each. */
static void list_groups(struct scheduler *all, struct text *names)
{
    struct control_group match;
    *all = kept;
    for (uint32_t i = 1; now.object && i < GROUPS_MAX; i++) {
        if (!policy_object_control_group(now.object, i, &match))
            continue;
        group_define(all, i);
        all->group[i] = (struct share_group){match.parent, match.weight, match.quota, match.period};
        for (char *c = match.name; *c; c++)
            *c = *c <= ' ' || *c == 0x7f ? '_' : *c; /* others name it */
        text_add(names, "%sGroup %u is the control group %.63s", names->length ? "\n" : "", i,
                 match.name);
    }
}

void scheduler_add_status(struct text *text)
{
    struct scheduler all;
    struct text names = {0};
    char remark[sizeof(fair_since) + 32];
    size_t count = 0;
    scheduler_check_exit();
    struct scheduler_view view = view_now();
    list_groups(&all, &names);
    view.group = all.group;
    view.groups = all.groups;
    snprintf(remark, sizeof(remark), "Fair class since: %s", fair_since);
    add_status_head(text, &view, fair_since[0] ? remark : names.bytes);
    text_free(&names);
    struct host_task *rows =
        read_tasks(now.object ? now.object->describe_tasks : shared.describe_tasks, &count);
    for (size_t i = 0; rows && i < count; i++)
        add_row(text, &view, &rows[i]);
    if (!rows)
        text_add(text, "(the threads cannot be read: %s)\n", strerror(errno));
    free(rows);
}

void scheduler_add_tunables(struct text *text)
{
    struct scheduler_view view = view_now();
    add_tunables(text, &view);
}

void scheduler_add_policies(struct text *text)
{
    add_policies(text);
    text_add(text, POLICIES_COLUMNS, "-", FAIR_CLASS, "the kernel's own class, without a policy");
}

void scheduler_add_problem(struct text *text)
{
    if (scheduler_problem()[0])
        text_add(text, "%s\n", scheduler_problem());
}

/* ---- events ---- */

void scheduler_handle_loaded(void)
{
    struct policy_object *loaded = load_finish();
    if (loaded)
        requests_watch(loaded);
}

/* Another program may have loaded or ended a scheduler: the trace must record it. */
static void check_others(void)
{
    struct in_force match = {.name = FAIR_CLASS};
    char name[sizeof(match.name) - sizeof(OTHERS)];
    if (machine_is_scheduled_by(name, sizeof(name)))
        snprintf(match.name, sizeof(match.name), OTHERS "%s", name);
    if (strcmp(match.name, now.name))
        begin_force(&match);
}

void scheduler_check_exit(void)
{
    static const struct in_force fair = {.name = FAIR_CLASS};
    struct host_exit exit;
    char reason[1200];
    if (!now.object)
        check_others();
    if (!now.object || !policy_object_has_exited(now.object, &exit))
        return;
    describe_exit(&exit, reason, sizeof(reason));
    snprintf(fair_since, sizeof(fair_since), "the kernel ended %s: %s", now.name, reason);
    fail(0, "%s", fair_since);
    say("%s", fair_since);
    policy_object_detach(now.object);
    begin_force(&fair);
}
