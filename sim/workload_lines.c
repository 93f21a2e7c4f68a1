/* SPDX-License-Identifier: MIT */

/* What each line of a workload says: docs/simulator.md has the words. */

#include "sim/workload_reader.h"

#include <string.h>

#include "abi/attribute_names.h"
#include "abi/cpu_list.h"
#include "abi/trace_format.h"
#include "policies/support/attributes.h"
#include "policies/support/groups.h"
#include "sim/machine.h"

/* Has the line a program that it belongs to? */
static bool is_in_program(struct reader *reader)
{
    bool begun = reader->drafts.count > 0 && draft_at(reader, reader->present)->begun;
    if (!begun)
        complain(reader, "`program NAME` before the first step", &reader->words[0]);
    return begun;
}

static void add_step(struct reader *reader, struct workload_step step)
{
    if (!is_in_program(reader))
        return;
    struct workload_step *added =
        append_item(reader, &draft_at(reader, reader->present)->steps, sizeof(*added));
    if (added)
        *added = step;
}

static void end_program(struct reader *reader)
{
    if (reader->depth > 0) {
        reader->line = reader->loops[reader->depth - 1].line;
        complain(reader, "an `end` for the loop that begins here", NULL);
    }
    if (reader->drafts.count == 0 || reader->failed)
        return;
    struct draft *draft = draft_at(reader, reader->present);
    const struct workload_step *steps = draft->steps.items;
    if (draft->steps.count == 0 || steps[draft->steps.count - 1].kind != STEP_EXIT)
        add_step(reader, (struct workload_step){.kind = STEP_EXIT});
}

static void read_program(struct reader *reader)
{
    end_program(reader);
    uint32_t program = find_program(reader, 1);
    if (reader->failed)
        return;
    if (draft_at(reader, program)->begun)
        complain(reader, "another name: there is a program of this one", &reader->words[1]);
    reader->present = program;
    draft_at(reader, program)->begun = true;
}

static void read_channel(struct reader *reader)
{
    uint32_t channel = find_channel(reader, 1);
    uint64_t count = read_number(reader, 2, 0, UINT32_MAX);
    if (!reader->failed)
        ((uint64_t *)reader->channels.items)[channel] = count;
}

/* Checks that the line has no more than this many words. */
static void expect_end(struct reader *reader, uint32_t words)
{
    if (reader->word_count > words)
        complain(reader, "the end of the line", &reader->words[words]);
}

/* `TIME` or `until TIME`. */
static uint64_t read_duration(struct reader *reader, bool *until, bool *ticks)
{
    *until = reader->word_count > 1 && word_is(&reader->words[1], "until");
    uint32_t place = *until ? 2 : 1;
    uint64_t value = read_time(reader, place, ticks);
    expect_end(reader, place + 1);
    return value;
}

static void read_run(struct reader *reader)
{
    bool until;
    bool ticks;
    uint64_t value = read_duration(reader, &until, &ticks);
    add_step(reader,
             (struct workload_step){.kind = until ? STEP_RUN_UNTIL : STEP_RUN, .value = value});
}

static void read_sleep(struct reader *reader)
{
    bool until;
    bool ticks = false;
    uint64_t value = read_duration(reader, &until, &ticks);
    struct workload_step step = {.kind = until ? STEP_SLEEP_UNTIL : STEP_SLEEP, .value = value};
    if (ticks && !until)
        step = (struct workload_step){.kind = STEP_SLEEP_TICKS, .value = value / reader->tick_ns};
    add_step(reader, step);
}

static void read_fork(struct reader *reader)
{
    uint32_t program = find_program(reader, 1);
    add_step(reader, (struct workload_step){.kind = STEP_FORK, .target = program});
}

/* `arrive PROGRAM TIME`, `arrive TIME` */
static void read_arrive(struct reader *reader)
{
    bool ticks;
    bool itself = reader->word_count == 2;
    struct workload_step step = {.kind = STEP_ARRIVE, .detail = ARRIVE_CHILD};
    if (itself)
        step.detail = ARRIVE_SELF;
    else
        step.target = find_program(reader, 1);
    step.value = read_time(reader, itself ? 1 : 2, &ticks);
    add_step(reader, step);
}

/* `deliver CHANNEL TIME` */
static void read_deliver(struct reader *reader)
{
    bool ticks;
    uint32_t channel = find_channel(reader, 1);
    uint64_t time = read_time(reader, 2, &ticks);
    add_step(reader,
             (struct workload_step){
                 .kind = STEP_ARRIVE, .detail = ARRIVE_THING, .target = channel, .value = time});
}

static void read_kill(struct reader *reader)
{
    uint32_t program = find_program(reader, 1);
    add_step(reader, (struct workload_step){.kind = STEP_KILL, .target = program});
}

static void read_give(struct reader *reader)
{
    struct workload_step step = {.kind = STEP_GIVE, .target = find_channel(reader, 1), .value = 1};
    if (reader->word_count > 2 && word_is(&reader->words[2], "all"))
        step.value = 0;
    else if (reader->word_count > 2 && word_is(&reader->words[2], "waiting"))
        step.detail = 1;
    else if (reader->word_count > 2)
        step.value = read_number(reader, 2, 1, UINT32_MAX);
    add_step(reader, step);
}

/* `timer 0 TIME`, its own, or `timer NAME TIME`, which all share; then perhaps `absolute`. */
static void read_timer(struct reader *reader)
{
    bool ticks;
    struct workload_step step;
    const struct word *timer = word_at(reader, 1, "a number from 0 to 7, or a timer's name");
    bool absolute = reader->word_count > 3;
    if (absolute && !word_is(&reader->words[3], "absolute"))
        complain(reader, "absolute, or the end of the line", &reader->words[3]);
    if (timer && is_digit(timer->text[0]))
        step = (struct workload_step){
            .kind = STEP_TIMER,
            .detail = (uint8_t)read_number(reader, 1, 0, WORKLOAD_TIMERS_MAX - 1),
            .target = absolute,
        };
    else
        step = (struct workload_step){
            .kind = STEP_SHARED_TIMER,
            .detail = absolute,
            .target = find_timer(reader, 1),
        };
    step.value = read_time(reader, 2, &ticks);
    add_step(reader, step);
}

/* `job 0 TIME`, with the words of a timer of its own, or `job none`. */
static void read_job(struct reader *reader)
{
    bool ticks;
    if (reader->word_count > 1 && word_is(&reader->words[1], "none")) {
        expect_end(reader, 2);
        add_step(reader, (struct workload_step){.kind = STEP_JOB, .target = JOB_NONE});
        return;
    }
    bool absolute = reader->word_count > 3;
    struct workload_step step = {.kind = STEP_JOB, .target = absolute};
    if (absolute && !word_is(&reader->words[3], "absolute"))
        complain(reader, "absolute, or the end of the line", &reader->words[3]);
    step.detail = (uint8_t)read_number(reader, 1, 0, WORKLOAD_TIMERS_MAX - 1);
    step.value = read_time(reader, 2, &ticks);
    add_step(reader, step);
}

static void read_meet(struct reader *reader)
{
    struct workload_step step = {.kind = STEP_MEET, .target = find_channel(reader, 1)};
    step.value = read_number(reader, 2, 1, SIMULATOR_PROCESSES_MAX);
    add_step(reader, step);
}

static bool word_is_zero(const struct reader *reader, uint32_t place)
{
    return reader->word_count > place && word_is(&reader->words[place], "0");
}

/* What begins with a digit and is a time has its unit; 0 needs none. */
static uint64_t read_attribute_value(struct reader *reader, uint32_t kind)
{
    int64_t lowest = attribute_lowest(kind);
    int64_t highest = attribute_highest(kind);
    bool ticks;
    if (lowest < 0)
        return (uint64_t)read_signed(reader, 1, lowest, highest);
    bool is_time = highest == TASK_TIME_MAX;
    if (!is_time || word_is_zero(reader, 1))
        return read_number(reader, 1, (uint64_t)lowest, (uint64_t)highest);
    uint64_t time = read_time(reader, 1, &ticks);
    if (time > TASK_TIME_MAX)
        complain(reader, "a time of at most 1000s", &reader->words[1]);
    return time;
}

/* `priority 3`, or `priority 3 PROGRAM`: of the latest process that plays it. */
static void read_attribute(struct reader *reader, uint32_t kind)
{
    struct workload_step step = {
        .kind = STEP_ATTRIBUTE, .detail = (uint8_t)kind, .target = WORKLOAD_SELF};
    step.value = read_attribute_value(reader, kind);
    if (reader->word_count > 2)
        step.target = find_program(reader, 2);
    add_step(reader, step);
}

/* `cpus 0-3,8`, or `cpus 0-3,8 PROGRAM`, as an attribute. */
static void read_affinity(struct reader *reader)
{
    static const char *const expected = "CPUs below 1024: 0-3,8";
    struct workload_step step = {.kind = STEP_AFFINITY, .target = WORKLOAD_SELF};
    uint64_t cpus[CPU_LIST_WORDS];
    step.value = add_text(reader, 1, expected);
    if (!reader->failed && !cpu_list_read(((char **)reader->texts.items)[step.value], cpus))
        complain(reader, expected, &reader->words[1]);
    if (reader->word_count > 2)
        step.target = find_program(reader, 2);
    add_step(reader, step);
}

static void read_mark(struct reader *reader)
{
    const struct word *word = word_at(reader, 1, "begin, end or note");
    struct workload_step step = {.kind = STEP_MARK};
    if (!word)
        return;
    if (word_is(word, "begin"))
        step.detail = MARK_BEGIN;
    else if (word_is(word, "end"))
        step.detail = MARK_END;
    else if (word_is(word, "note"))
        step.detail = MARK_NOTE;
    else
        complain(reader, "begin, end or note", word);
    if (step.detail == MARK_NOTE)
        step.value = read_number(reader, 2, 0, UINT64_MAX);
    expect_end(reader, step.detail == MARK_NOTE ? 3 : 2);
    add_step(reader, step);
}

static void read_loop(struct reader *reader)
{
    bool for_ever = reader->word_count == 1;
    uint64_t rounds = for_ever ? 0 : read_number(reader, 1, 1, UINT32_MAX);
    if (is_in_program(reader) && reader->depth == WORKLOAD_LOOPS_MAX)
        complain(reader, "at most 8 loops within each other", &reader->words[0]);
    if (reader->failed)
        return;
    reader->loops[reader->depth++] =
        (struct loop){draft_at(reader, reader->present)->steps.count, rounds, reader->line};
}

static void read_end(struct reader *reader)
{
    if (reader->depth == 0) {
        complain(reader, "a loop that this ends", &reader->words[0]);
        return;
    }
    const struct loop *loop = &reader->loops[--reader->depth];
    if (loop->first == draft_at(reader, reader->present)->steps.count)
        complain(reader, "a step within the loop", &reader->words[0]);
    add_step(reader, (struct workload_step){.kind = STEP_LOOP,
                                            .detail = (uint8_t)reader->depth,
                                            .target = loop->first,
                                            .value = loop->rounds});
}

static void read_exit(struct reader *reader)
{
    uint64_t status = reader->word_count > 1 ? read_number(reader, 1, 0, INT32_MAX) : 0;
    add_step(reader, (struct workload_step){.kind = STEP_EXIT, .value = status});
}

static void read_text_step(struct reader *reader, enum workload_step_kind kind,
                           const char *expected)
{
    uint32_t text = add_text(reader, 1, expected);
    add_step(reader, (struct workload_step){.kind = (uint8_t)kind, .target = text});
}

static void read_yield(struct reader *reader)
{
    add_step(reader, (struct workload_step){.kind = STEP_YIELD});
}

/* `wait [all]` */
static void read_wait(struct reader *reader)
{
    bool all = reader->word_count > 1;
    if (all && !word_is(&reader->words[1], "all"))
        complain(reader, "all, or the end of the line", &reader->words[1]);
    add_step(reader, (struct workload_step){.kind = STEP_WAIT, .detail = all});
}

/* `take CHANNEL [releasing OTHER]` */
static void read_take(struct reader *reader)
{
    struct workload_step step = {.kind = STEP_TAKE, .target = find_channel(reader, 1)};
    if (reader->word_count > 2) {
        if (!word_is(&reader->words[2], "releasing"))
            complain(reader, "releasing, or the end of the line", &reader->words[2]);
        step.value = (uint64_t)find_channel(reader, 3) + 1;
    }
    add_step(reader, step);
}

/* `lock CHANNEL [ceiling PRIORITY]` */
static void read_lock(struct reader *reader)
{
    struct workload_step step = {
        .kind = STEP_TAKE, .target = find_channel(reader, 1), .detail = TAKE_LOCK};
    if (reader->word_count > 2) {
        if (!word_is(&reader->words[2], "ceiling"))
            complain(reader, "ceiling, or the end of the line", &reader->words[2]);
        uint64_t ceiling = read_number(reader, 3, PRIORITY_HIGHEST, PRIORITY_LOWEST);
        step.detail = (uint8_t)(TAKE_CEILING + ceiling);
    }
    add_step(reader, step);
}

static void read_group(struct reader *reader)
{
    uint64_t label = read_label(reader, 1);
    add_step(reader,
             (struct workload_step){.kind = STEP_MARK, .detail = MARK_GROUP, .value = label});
}

/* Of how many nanoseconds the window is to be: a figure that is told by this name. */
static void read_window(struct reader *reader)
{
    static const char name[] = "window";
    bool ticks;
    uint64_t label = 0;
    uint64_t length = read_time(reader, 1, &ticks);
    memcpy(&label, name, sizeof(name) - 1);
    add_step(reader,
             (struct workload_step){.kind = STEP_MARK, .detail = MARK_NAME, .value = label});
    add_step(reader,
             (struct workload_step){.kind = STEP_MARK, .detail = MARK_VALUE, .value = length});
}

/* `setgroup NUMBER FIELD VALUE`, which is a time of a quota and a period */
static void read_set_group(struct reader *reader)
{
    struct workload_step step = {.kind = STEP_SETGROUP};
    step.target = (uint32_t)read_number(reader, 1, 0, GROUPS_MAX - 1);
    const struct word *field = word_at(reader, 2, "parent, weight, quota or period");
    for (uint8_t i = 1; field && i < GROUP_FIELDS; i++)
        step.detail = word_is(field, group_field_names[i]) ? i : step.detail;
    if (field && step.detail == 0)
        complain(reader, "parent, weight, quota or period", field);
    bool is_number = step.detail <= GROUP_WEIGHT || word_is_zero(reader, 3);
    bool ticks;
    step.value = is_number ? read_number(reader, 3, 0, UINT32_MAX) : read_time(reader, 3, &ticks);
    if (!reader->failed && !group_value_allowed(step.target, step.detail, (int64_t)step.value))
        complain(reader, group_ranges, &reader->words[3]);
    add_step(reader, step);
}

static void read_policy(struct reader *reader)
{
    read_text_step(reader, STEP_SET_POLICY, "a policy: NAME or NAME:PRESET");
}

static void read_tunable(struct reader *reader)
{
    read_text_step(reader, STEP_SET_TUNABLE, "NAME=VALUE");
}

/* Lines by their first word, and how many words they have at most. */
static const struct line {
    const char *word;
    void (*read)(struct reader *reader);
    uint32_t words;
} lines[] = {
    {"meet", read_meet, 3},       {"program", read_program, 2},
    {"channel", read_channel, 3}, {"run", read_run, 3},
    {"sleep", read_sleep, 3},     {"yield", read_yield, 1},
    {"fork", read_fork, 2},       {"wait", read_wait, 2},
    {"take", read_take, 4},       {"give", read_give, 3},
    {"loop", read_loop, 2},       {"end", read_end, 1},
    {"mark", read_mark, 3},       {"group", read_group, 2},
    {"policy", read_policy, 2},   {"set", read_tunable, 2},
    {"timer", read_timer, 4},     {"kill", read_kill, 2},
    {"exit", read_exit, 2},       {"window", read_window, 2},
    {"lock", read_lock, 4},       {"setgroup", read_set_group, 4},
    {"job", read_job, 4},         {"cpus", read_affinity, 3},
    {"arrive", read_arrive, 3},   {"deliver", read_deliver, 3},
};

static uint32_t attribute_of_word(const struct word *word)
{
    for (uint32_t kind = 1; kind < ATTRIBUTE_KINDS; kind++) {
        if (word_is(word, attribute_names[kind]))
            return kind;
    }
    return 0;
}

static void read_line(struct reader *reader)
{
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (!word_is(&reader->words[0], lines[i].word))
            continue;
        expect_end(reader, lines[i].words);
        if (!reader->failed)
            lines[i].read(reader);
        return;
    }
    uint32_t attribute = attribute_of_word(&reader->words[0]);
    if (attribute) {
        expect_end(reader, 3);
        if (!reader->failed)
            read_attribute(reader, attribute);
        return;
    }
    complain(
        reader,
        "program, channel, run, sleep, timer, yield, fork, arrive, deliver, wait, take, give, "
        "meet, loop, "
        "end, "
        "mark, job, group, window, policy, set, setgroup, kill, exit, cpus, priority or another "
        "attribute",
        &reader->words[0]);
}

void read_lines(struct reader *reader, const char *text)
{
    while (*text && !reader->failed) {
        const char *end = text + strcspn(text, "\n");
        reader->line++;
        split_line(reader, text, end);
        if (reader->word_count > 0 && !reader->failed)
            read_line(reader);
        text = *end ? end + 1 : end;
    }
    if (!reader->failed)
        end_program(reader);
}
