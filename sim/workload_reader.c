/* SPDX-License-Identifier: MIT */

/* The words of a workload's text, and what they name. */

#include "sim/workload_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/system_calls.h"
#include "sim/machine.h"

#define LABEL_MAX 8

void complain(struct reader *reader, const char *expected, const struct word *found)
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

void *append_item(struct reader *reader, struct array *array, size_t bytes)
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

struct draft *draft_at(const struct reader *reader, uint32_t i)
{
    return &((struct draft *)reader->drafts.items)[i];
}

bool word_is(const struct word *word, const char *text)
{
    return strlen(text) == word->length && memcmp(word->text, text, word->length) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void split_line(struct reader *reader, const char *line, const char *end)
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
        if (reader->word_count == WORKLOAD_WORDS_MAX) {
            complain(reader, "the end of the line", &word);
            return;
        }
        reader->words[reader->word_count++] = word;
    }
}

const struct word *word_at(struct reader *reader, uint32_t place, const char *expected)
{
    if (place < reader->word_count)
        return &reader->words[place];
    complain(reader, expected, NULL);
    return NULL;
}

bool is_digit(char c)
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

/* Reads a word that is a number and nothing else. */
static bool parse_whole(const struct word *word, uint64_t *value)
{
    size_t used = 0;
    return parse_number(word, value, &used) && used == word->length;
}

uint64_t read_number(struct reader *reader, uint32_t place, uint64_t least, uint64_t most)
{
    char expected[80];
    uint64_t value = 0;
    snprintf(expected, sizeof(expected), "a number from %" PRIu64 " to %" PRIu64, least, most);
    const struct word *word = word_at(reader, place, expected);
    if (!word)
        return 0;
    if (!parse_whole(word, &value) || value < least || value > most) {
        complain(reader, expected, word);
        return 0;
    }
    return value;
}

int64_t read_signed(struct reader *reader, uint32_t place, int64_t least, int64_t most)
{
    char expected[80];
    uint64_t size = 0;
    snprintf(expected, sizeof(expected), "a number from %" PRId64 " to %" PRId64, least, most);
    const struct word *word = word_at(reader, place, expected);
    if (!word)
        return 0;
    size_t sign = word->length > 0 && word->text[0] == '-';
    const struct word digits = {word->text + sign, word->length - sign};
    bool read = parse_whole(&digits, &size) && size <= INT32_MAX;
    int64_t value = sign ? -(int64_t)size : (int64_t)size;
    if (!read || value < least || value > most) {
        complain(reader, expected, word);
        return 0;
    }
    return value;
}

uint64_t read_time(struct reader *reader, uint32_t place, bool *ticks)
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
    if (word->length > WORKLOAD_NAME_LENGTH_MAX) {
        complain(reader, "a name of at most 31 characters", word);
        return false;
    }
    memcpy(name, word->text, word->length);
    name[word->length] = '\0';
    return true;
}

uint64_t read_label(struct reader *reader, uint32_t place)
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

/* FNV-1a (Fowler, Noll, Vo 1991). */
static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

/* Returns where in the table the name is, or where it would be put. */
static uint32_t *seek_name(const struct name_table *table, const struct array *known, size_t bytes,
                           const struct word *word)
{
    uint32_t at = hash_of(word->text, word->length) & (table->room - 1);
    while (table->places[at] != 0 &&
           !word_is(word, (const char *)known->items + (table->places[at] - 1) * bytes))
        at = (at + 1) & (table->room - 1);
    return &table->places[at];
}

/* There is room for one more than are known. */
static bool extend_table(struct reader *reader, struct name_table *table, const struct array *known,
                         size_t bytes)
{
    if (known->count < table->room / 2)
        return true;
    uint32_t room = table->room ? 2 * table->room : 32;
    uint32_t *places = calloc(room, sizeof(*places));
    if (!places) {
        complain(reader, "less: there is no memory for so large a workload", NULL);
        return false;
    }
    free(table->places);
    *table = (struct name_table){places, room};
    for (uint32_t i = 0; i < known->count; i++) {
        const char *name = (const char *)known->items + i * bytes;
        *seek_name(table, known, bytes, &(struct word){name, strlen(name)}) = i + 1;
    }
    return true;
}

/* Returns the place of a name among items that begin with theirs; it is put there if it is new. */
static uint32_t find_name(struct reader *reader, struct name_table *table, struct array *known,
                          size_t bytes, const struct word *word)
{
    if (!extend_table(reader, table, known, bytes))
        return 0;
    uint32_t *found = seek_name(table, known, bytes, word);
    if (*found != 0)
        return *found - 1;
    char name[WORKLOAD_NAME_LENGTH_MAX + 1];
    void *item = copy_name(reader, name, word) ? append_item(reader, known, bytes) : NULL;
    if (!item)
        return 0;
    memcpy(item, name, word->length);
    *found = known->count;
    return known->count - 1;
}

uint32_t find_program(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a program's name");
    if (!word)
        return 0;
    uint32_t known = reader->drafts.count;
    uint32_t program =
        find_name(reader, &reader->draft_table, &reader->drafts, sizeof(struct draft), word);
    if (reader->drafts.count > known)
        draft_at(reader, program)->line = reader->line;
    return program;
}

uint32_t find_channel(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a channel's name");
    uint32_t channel = word ? find_name(reader, &reader->channel_table, &reader->channel_names,
                                        WORKLOAD_NAME_LENGTH_MAX + 1, word)
                            : 0;
    while (reader->channels.count < reader->channel_names.count) {
        if (!append_item(reader, &reader->channels, sizeof(uint64_t)))
            return 0;
    }
    return channel;
}

uint32_t find_timer(struct reader *reader, uint32_t place)
{
    const struct word *word = word_at(reader, place, "a timer's name");
    uint32_t timer = word ? find_name(reader, &reader->timer_table, &reader->timer_names,
                                      WORKLOAD_NAME_LENGTH_MAX + 1, word)
                          : 0;
    if (timer >= WORKLOAD_SHARED_TIMERS_MAX)
        complain(reader, "at most 65536 timers that are shared", word);
    return timer;
}

uint32_t add_text(struct reader *reader, uint32_t place, const char *expected)
{
    const struct word *word = word_at(reader, place, expected);
    char **text = word ? append_item(reader, &reader->texts, sizeof(*text)) : NULL;
    if (!text)
        return 0;
    *text = strndup(word->text, word->length);
    if (!*text)
        complain(reader, "less: there is no memory for so large a workload", NULL);
    return reader->texts.count - 1;
}
