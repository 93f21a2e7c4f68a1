/* SPDX-License-Identifier: MIT */

/*
 * The texts of sched_status, sched_tunables and sched_policies, and their commands, as in
 * kernel/process/scheduler_files.c. policies/support/scheduler_text.h defines their format.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "policies/support/hooks.h"
#include "sim/control.h"
#include "sim/process.h"

#define COMMAND_BYTES 128

/* The beginning of a text, as much as fits. `length` is the length of the full text. */
struct text {
    char *buffer;
    size_t size;
    size_t length;
};

#define format_text snprintf

__attribute__((format(printf, 2, 3))) static void text_add(struct text *text, const char *format,
                                                           ...)
{
    va_list arguments;
    bool any = text->length < text->size;
    va_start(arguments, format);
    int length = vsnprintf(any ? text->buffer + text->length : NULL,
                           any ? text->size - text->length : 0, format, arguments);
    va_end(arguments);
    text->length += length > 0 ? (size_t)length : 0;
}

#include "policies/support/scheduler_text.h"

/* ---- displayed texts ---- */

static struct scheduler_view view_of(const struct simulator *simulator)
{
    struct scheduler_view view = {
        .name = simulator->policy_name,
        .choice = {.policy = simulator->engine->policy},
        .tunable = simulator->scheduler.tunable,
        .shares_by = policy_shares_by(simulator->engine->policy, &simulator->scheduler),
        .tick_ns = simulator->scheduler.tick_ns,
        .group = simulator->scheduler.group,
        .groups = simulator->scheduler.groups,
    };
    policy_choose(view.name, strlen(view.name), &view.choice);
    return view;
}

static void add_process(struct text *text, const struct scheduler_view *view,
                        const struct simulator *simulator, const struct process *process)
{
    static const char *const states[] = {
        [PLACE_QUEUED] = "runnable",
        [PLACE_RUNNING] = "running",
        [PLACE_BLOCKED] = "blocked",
        [PLACE_ZOMBIE] = "zombie",
    };
    const struct policy *policy = simulator->engine->policy;
    const struct scheduler *scheduler = &simulator->scheduler;
    const struct task_view task = {
        .name = name_of(simulator, program_of(simulator, process)),
        .pid = process->task.pid,
        .state = states[process->place],
        .priority = process->task.priority,
        .weight = process->task.weight,
        .slice = process->known ? policy->time_slice(scheduler, &process->task) : 0,
        .tickets = policy_tickets(policy, scheduler, &process->task),
    };
    add_task(text, view, &task);
}

static int by_pid(const void *a, const void *b)
{
    int32_t first = (*(const struct process *const *)a)->task.pid;
    int32_t second = (*(const struct process *const *)b)->task.pid;
    return (first > second) - (first < second);
}

/* Lists processes in the order of their PIDs. Returns false if memory is short. */
static bool add_processes(struct text *text, const struct scheduler_view *view,
                          const struct simulator *simulator)
{
    uint32_t match = 0;
    const struct process **sorted =
        (const struct process **)calloc(simulator->counts.processes + 1, sizeof(*sorted));
    if (!sorted)
        return false;
    for (uint32_t slot = 0; match < simulator->counts.processes; slot++) {
        const struct process *process = process_at(simulator, slot);
        if (process->place != PLACE_FREE)
            sorted[match++] = process;
    }
    qsort((void *)sorted, match, sizeof(*sorted), by_pid);
    for (uint32_t i = 0; i < match; i++)
        add_process(text, view, simulator, sorted[i]);
    free((void *)sorted);
    return true;
}

size_t simulator_text(const struct simulator *simulator, const char *file, char *buffer,
                      size_t size)
{
    struct text text = {.buffer = buffer, .size = size};
    struct scheduler_view view = view_of(simulator);
    bool good = true;
    if (strcmp(file, "sched_status") == 0) {
        add_status_head(&text, &view, NULL);
        good = add_processes(&text, &view, simulator);
    } else if (strcmp(file, "sched_tunables") == 0) {
        add_tunables(&text, &view);
    } else if (strcmp(file, "sched_policies") == 0) {
        add_policies(&text);
    } else {
        good = false;
    }
    return good ? text.length : SIZE_MAX;
}

/* ---- commands ---- */

static bool parse_number(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool lives(const struct simulator *simulator, int64_t pid)
{
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        const struct process *process = process_at(simulator, slot);
        if (process->task.pid == pid && process->place != PLACE_FREE &&
            process->place != PLACE_ZOMBIE)
            return true;
    }
    return false;
}

static bool set_priority_shown(struct simulator *simulator, const char *pid_text,
                               const char *value_text, struct simulator_error *error)
{
    struct scheduler_view view = view_of(simulator);
    bool weight = scheduler_shows_weight(&view);
    int64_t pid;
    int64_t value;
    bool numbers = parse_number(pid_text, &pid) && parse_number(value_text, &value);
    if (numbers && scheduler_accepts_any_pid(&view.choice) && !lives(simulator, pid))
        return true;
    if (!numbers || pid < 1 || pid > INT32_MAX) {
        set_error(error, "%.40s %.40s: expected POLICY[:PRESET], or PID PRIORITY in numbers",
                  pid_text, value_text);
        return false;
    }
    if (weight)
        value = scheduler_weight(&view.choice, value);
    return simulator_set_attribute(simulator, (int32_t)pid,
                                   weight ? ATTRIBUTE_WEIGHT : ATTRIBUTE_PRIORITY, (uint64_t)value,
                                   error);
}

static bool set_policy(struct simulator *simulator, const char *word, struct simulator_error *error)
{
    struct scheduler_view view = view_of(simulator);
    const char *name = scheduler_chosen(&view.choice, word);
    return !name || simulator_set_policy(simulator, name, error);
}

static bool obey_status(struct simulator *simulator, char *line, struct simulator_error *error)
{
    char *first;
    char *second;
    if (text_take_two(line, " \t", &first, &second))
        return set_priority_shown(simulator, first, second, error);
    if (first && !second)
        return set_policy(simulator, first, error);
    set_error(error, "expected POLICY[:PRESET], or PID PRIORITY");
    return false;
}

static bool obey_tunables(struct simulator *simulator, char *line, struct simulator_error *error)
{
    char setting[COMMAND_BYTES + 1];
    char *name;
    char *value;
    if (!text_take_two(line, " \t=", &name, &value)) {
        set_error(error, "expected NAME VALUE");
        return false;
    }
    snprintf(setting, sizeof(setting), "%s=%s", name, value);
    return simulator_set_tunable(simulator, setting, error);
}

bool simulator_command(struct simulator *simulator, const char *file, const char *line,
                       struct simulator_error *error)
{
    char copy[COMMAND_BYTES];
    if (strlen(line) >= sizeof(copy)) {
        set_error(error, "a command has at most %zu characters", sizeof(copy) - 1);
        return false;
    }
    strcpy(copy, line);
    if (strcmp(file, "sched_status") == 0)
        return obey_status(simulator, copy, error);
    if (strcmp(file, "sched_tunables") == 0)
        return obey_tunables(simulator, copy, error);
    set_error(error, "%s: expected sched_status or sched_tunables", file);
    return false;
}
