/* SPDX-License-Identifier: MIT */

/* Reads workloads from text: see docs/simulator.md. */

#include "sim/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "policies/support/attributes.h"
#include "sim/machine.h"

#define WORDS_MAX       4
#define LABEL_MAX       8
#define NAME_LENGTH_MAX 31

/* An array that grows: the items are moved, and found by their place. */
struct array {
    void *items;
    uint32_t count;
    uint32_t room;
};

struct word {
    const char *text;
    size_t length;
};

/* A program that is being read; it may have been named by a step before its own line comes. */
struct draft {
    char name[NAME_LENGTH_MAX + 1];
    struct array steps;
    uint32_t line; /* that names it first */
    bool begun;
};

struct loop {
    uint32_t first;
    uint64_t rounds;
    uint32_t line;
};

struct reader {
    const char *name;
    uint64_t tick_ns;
    uint32_t line;
    struct word words[WORDS_MAX];
    uint32_t word_count;
    struct array drafts;
    struct array texts;         /* of char * */
    struct array channels;      /* of uint64_t */
    struct array channel_names; /* of char[NAME_LENGTH_MAX + 1] */
    struct array timer_names;   /* of the same: of timers that are shared */
    uint32_t present;           /* program */
    struct loop loops[WORKLOAD_LOOPS_MAX];
    uint32_t depth;
    bool failed;
    struct simulator_error *error;
};

/* ---- errors ---- */

/* The first error is kept. */
static void complain(struct reader *reader, const char *expected, const struct word *found)
{
    if (reader->failed)
        return;
    reader->failed = true;
    if (found)
        set_error(reader->error, "%s:%" PRIu32 ": %.*s: expected %s", reader->name, reader->line,
                  (int)(found->length < 60 ? found->length : 60), found->text, expected);
    else
        set_error(reader->error, "%s:%" PRIu32 ": expected %s", reader->name, reader->line,
                  expected);
}

/* ---- arrays ---- */

/* Room for one more item, zeroed; null: there is no memory, and the reader has failed. */
static void *append(struct reader *reader, struct array *array, size_t bytes)
{
    if (array->count == array->room) {
        uint32_t room = array->room ? 2 * array->room : 16;
        void *items = realloc(array->items, room * bytes);
        if (!items) {
            complain(reader, "less: there is no memory for so large a workload", NULL);
            return NULL;
        }
        array->items = items;
        array->room = room;
    }
    return memset((char *)array->items + array->count++ * bytes, 0, bytes);
}

static struct draft *draft_at(const struct reader *reader, uint32_t i)
{
    return &((struct draft *)reader->drafts.items)[i];
}

/* ---- words ---- */

static bool word_is(const struct word *word, const char *text)
{
    return strlen(text) == word->length && memcmp(word->text, text, word->length) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The words of a line, up to a #. */
static void split(struct reader *reader, const char *line, const char *end)
{
    reader->word_count = 0;
    while (line < end && *line != '#') {
        if (is_space(*line)) {
            line++;
            continue;
        }
        const char *start = line;
        while (line < end && !is_space(*line) && *line != '#')
            line++;
        struct word word = {start, (size_t)(line - start)};
        if (reader->word_count == WORDS_MAX) {
            complain(reader, "the end of the line", &word);
            return;
        }
        reader->words[reader->word_count++] = word;
    }
}

/* The word at a place, or null and an error: there is none. */
static const struct word *word_at(struct reader *reader, uint32_t place, const char *expected)
{
    if (place < reader->word_count)
        return &reader->words[place];
    complain(reader, expected, NULL);
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_number(const struct word *word, uint64_t *value, size_t *used)
{
    char *end;
    if (word->length == 0 || !is_digit(word->text[0]))
        return false;
    errno = 0;
    *value = strtoull(word->text, &end, 10);
    *used = (size_t)(end - word->text);
    return errno == 0 && *used <= word->length;
}

static uint64_t read_number(struct reader *reader, uint32_t place, uint64_t least, uint64_t most)
{
    char expected[80];
    uint64_t value = 0;
    size_t used = 0;
    snprintf(expected, sizeof(expected), "a number from %" PRIu64 " to %" PRIu64, least, most);
    const struct word *word = word_at(reader, place, expected);
    if (!word)
        return 0;
    if (!parse_number(word, &value, &used) || used != word->length || value < least ||
        value > most) {
        complain(reader, expected, word);
        return 0;
    }
    return value;
}

/* Nanoseconds; `*ticks`: the time was given in ticks. */
static uint64_t read_time(struct reader *reader, uint32_t place, bool *ticks)
{
    static const char *const expected = "a time: a number and ns, us, ms, s or ticks";
    const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", 1000000000},
                 {"tick", reader->tick_ns},
                 {"ticks", reader->tick_ns}};
    uint64_t value = 0;
    size_t used = 0;
    const struct word *word = word_at(reader, place, expected);
    if (!word)
        return 0;
    if (parse_number(word, &value, &used)) {
        struct word unit = {word->text + used, word->length - used};
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            if (!word_is(&unit, units[i].unit))
                continue;
            *ticks = i >= 4;
            if (value <= UINT64_MAX / 4 / units[i].ns)
                return value * units[i].ns;
        }
    }
    complain(reader, expected, word);
    return 0;
}

static bool copy_name(struct reader *reader, char *name, const struct word *word)
{
    if (word->length > NAME_LENGTH_MAX) {
        complain(reader, "a name of at most 31 characters", word);
        return false;
    }
    memcpy(name, word->text, word->length);
    name[word->length] = '\0';
    return true;
}

/* Up to 8 characters as the value of a mark. */
static uint64_t read_label(struct reader *reader, uint32_t place)
{
    static const char *const expected = "a name of at most 8 characters";
    const struct word *word = word_at(reader, place, expected);
    uint64_t label = 0;
    if (word && word->length > LABEL_MAX)
        complain(reader, expected, word);
    for (size_t i = 0; word && i < word->length && i < LABEL_MAX; i++)
        label |= (uint64_t)(unsigned char)word->text[i] << (8 * i);
    return label;
}

/* ---- what is named ---- */

static uint32_t find_program(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a program's name");
    if (!word)
        return 0;
    for (uint32_t i = 0; i < reader->drafts.count; i++) {
        if (word_is(word, draft_at(reader, i)->name))
            return i;
    }
    struct draft *draft = append(reader, &reader->drafts, sizeof(*draft));
    if (draft)
        draft->line = reader->line;
    return draft && copy_name(reader, draft->name, word) ? reader->drafts.count - 1 : 0;
}

/* The place of a name among those, where it is put if it is new. */
static uint32_t find_name(struct reader *reader, struct array *known, const struct word *word)
{
    char(*names)[NAME_LENGTH_MAX + 1] = known->items;
    for (uint32_t i = 0; i < known->count; i++) {
        if (word_is(word, names[i]))
            return i;
    }
    char *name = append(reader, known, NAME_LENGTH_MAX + 1);
    return name && copy_name(reader, name, word) ? known->count - 1 : 0;
}

static uint32_t find_channel(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a channel's name");
    uint32_t channel = word ? find_name(reader, &reader->channel_names, word) : 0;
    while (reader->channels.count < reader->channel_names.count) {
        if (!append(reader, &reader->channels, sizeof(uint64_t)))
            return 0;
    }
    return channel;
}

/* One that is shared. */
static uint32_t find_timer(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a timer's name");
    uint32_t timer = word ? find_name(reader, &reader->timer_names, word) : 0;
    if (timer >= WORKLOAD_SHARED_TIMERS_MAX)
        complain(reader, "at most 65536 timers that are shared", word);
    return timer;
}

static uint32_t add_text(struct reader *reader, uint32_t place, const char *expected)
{
    const struct word *word = word_at(reader, place, expected);
    char **text = word ? append(reader, &reader->texts, sizeof(*text)) : NULL;
    if (!text)
        return 0;
    *text = strndup(word->text, word->length);
    if (!*text)
        complain(reader, "less: there is no memory for so large a workload", NULL);
    return reader->texts.count - 1;
}

/* ---- lines ---- */

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
        append(reader, &draft_at(reader, reader->present)->steps, sizeof(*added));
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

static void read_meet(struct reader *reader)
{
    struct workload_step step = {.kind = STEP_MEET, .target = find_channel(reader, 1)};
    step.value = read_number(reader, 2, 1, SIMULATOR_PROCESSES_MAX);
    add_step(reader, step);
}

/* `priority 3`, or `priority 3 PROGRAM`: of the latest process that plays it. */
static void read_attribute(struct reader *reader, enum attribute_kind kind)
{
    struct workload_step step = {
        .kind = STEP_ATTRIBUTE, .detail = (uint8_t)kind, .target = WORKLOAD_SELF};
    step.value =
        read_number(reader, 1, (uint64_t)attribute_lowest(kind), (uint64_t)attribute_highest(kind));
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

static void read_wait(struct reader *reader)
{
    add_step(reader, (struct workload_step){.kind = STEP_WAIT});
}

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

static void read_group(struct reader *reader)
{
    uint64_t label = read_label(reader, 1);
    add_step(reader,
             (struct workload_step){.kind = STEP_MARK, .detail = MARK_GROUP, .value = label});
}

static void read_priority(struct reader *reader)
{
    read_attribute(reader, ATTRIBUTE_PRIORITY);
}

static void read_tickets(struct reader *reader)
{
    read_attribute(reader, ATTRIBUTE_TICKETS);
}

static void read_weight(struct reader *reader)
{
    read_attribute(reader, ATTRIBUTE_WEIGHT);
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
    {"meet", read_meet, 3},         {"program", read_program, 2}, {"channel", read_channel, 3},
    {"run", read_run, 3},           {"sleep", read_sleep, 3},     {"yield", read_yield, 1},
    {"fork", read_fork, 2},         {"wait", read_wait, 1},       {"take", read_take, 4},
    {"give", read_give, 3},         {"loop", read_loop, 2},       {"end", read_end, 1},
    {"priority", read_priority, 3}, {"tickets", read_tickets, 3}, {"weight", read_weight, 3},
    {"mark", read_mark, 3},         {"group", read_group, 2},     {"policy", read_policy, 2},
    {"set", read_tunable, 2},       {"timer", read_timer, 4},     {"kill", read_kill, 2},
    {"exit", read_exit, 2},
};

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
    complain(reader,
             "program, channel, run, sleep, timer, yield, fork, wait, take, give, meet, loop, end, "
             "priority, "
             "tickets, weight, mark, group, policy, set, kill or exit",
             &reader->words[0]);
}

static void read_lines(struct reader *reader, const char *text)
{
    while (*text && !reader->failed) {
        const char *end = text + strcspn(text, "\n");
        reader->line++;
        split(reader, text, end);
        if (reader->word_count > 0 && !reader->failed)
            read_line(reader);
        text = *end ? end + 1 : end;
    }
    if (!reader->failed)
        end_program(reader);
}

/* ---- all together ---- */

static void check_drafts(struct reader *reader)
{
    if (reader->drafts.count == 0)
        complain(reader, "a program: `program NAME`", NULL);
    for (uint32_t i = 0; i < reader->drafts.count && !reader->failed; i++) {
        const struct draft *draft = draft_at(reader, i);
        if (!draft->begun) {
            reader->failed = true;
            set_error(reader->error, "%s:%" PRIu32 ": %s: expected the name of a program",
                      reader->name, draft->line, draft->name);
        }
    }
}

static void hand_over(struct reader *reader, struct simulator_workload *workload)
{
    struct simulator_program *programs = calloc(reader->drafts.count, sizeof(*programs));
    if (!programs) {
        complain(reader, "less: there is no memory for so large a workload", NULL);
        return;
    }
    for (uint32_t i = 0; i < reader->drafts.count; i++) {
        struct draft *draft = draft_at(reader, i);
        programs[i] =
            (struct simulator_program){strdup(draft->name), draft->steps.items, draft->steps.count};
        draft->steps.items = NULL;
    }
    *workload = (struct simulator_workload){
        .programs = programs,
        .program_count = reader->drafts.count,
        .texts = (const char *const *)reader->texts.items,
        .text_count = reader->texts.count,
        .channels = reader->channels.items,
        .channel_count = reader->channels.count,
    };
    reader->texts = reader->channels = (struct array){0};
}

static void free_reader(struct reader *reader)
{
    for (uint32_t i = 0; i < reader->drafts.count; i++)
        free(draft_at(reader, i)->steps.items);
    for (uint32_t i = 0; i < reader->texts.count; i++)
        free(((char **)reader->texts.items)[i]);
    free(reader->drafts.items);
    free(reader->texts.items);
    free(reader->channels.items);
    free(reader->channel_names.items);
    free(reader->timer_names.items);
}

bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const char *text, uint64_t tick_ns, struct simulator_error *error)
{
    struct reader reader = {.name = name, .tick_ns = tick_ns, .error = error};
    read_lines(&reader, text);
    if (!reader.failed)
        check_drafts(&reader);
    if (!reader.failed)
        hand_over(&reader, workload);
    free_reader(&reader);
    return !reader.failed;
}

void simulator_free_workload(struct simulator_workload *workload)
{
    for (uint32_t i = 0; i < workload->program_count; i++) {
        free((void *)(uintptr_t)workload->programs[i].name);
        free((void *)(uintptr_t)workload->programs[i].steps);
    }
    for (uint32_t i = 0; i < workload->text_count; i++)
        free((void *)(uintptr_t)workload->texts[i]);
    free((void *)(uintptr_t)workload->programs);
    free((void *)(uintptr_t)workload->texts);
    free((void *)(uintptr_t)workload->channels);
    *workload = (struct simulator_workload){0};
}

/* Everything that is left in the file, with a 0 after it; null: see errno. */
static char *read_all(FILE *file, size_t *bytes)
{
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    while (!feof(file)) {
        if (*bytes + 1 >= room) {
            room = room ? 2 * room : 65536;
            char *more = realloc(text, room);
            if (!more)
                break;
            text = more;
        }
        *bytes += fread(text + *bytes, 1, room - *bytes - 1, file);
        if (ferror(file))
            break;
    }
    if (!feof(file)) {
        free(text);
        return NULL;
    }
    text[*bytes] = '\0';
    return text;
}

/* The whole file as text; null: an error. */
static char *read_file(const char *path, struct simulator_error *error)
{
    size_t bytes = 0;
    bool standard_input = strcmp(path, "-") == 0;
    FILE *file = standard_input ? stdin : fopen(path, "rb");
    char *text = file ? read_all(file, &bytes) : NULL;
    if (!text)
        set_error(error, "%s: it cannot be read: %s", path, strerror(errno));
    if (file && !standard_input)
        fclose(file);
    if (text && memchr(text, '\0', bytes)) {
        set_error(error, "%s: it is no text: it has bytes of value 0", path);
        free(text);
        return NULL;
    }
    return text;
}

bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error)
{
    char *text = read_file(path, error);
    bool read = text && simulator_read_workload(workload, path, text, tick_ns, error);
    free(text);
    return read;
}
