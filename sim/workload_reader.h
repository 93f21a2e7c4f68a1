/* SPDX-License-Identifier: MIT */
#ifndef SIM_WORKLOAD_READER_H
#define SIM_WORKLOAD_READER_H

#include "sim/workload.h"

/*
 * How a workload's text is read: a line's words, the numbers, times and names among them, and
 * what has been read so far. After an error the reader goes on with zeroes; the first error is
 * kept.
 */

#define WORKLOAD_WORDS_MAX       4
#define WORKLOAD_NAME_LENGTH_MAX 31

/* An array that grows: the items are moved, and found by their place. */
struct array {
    void *items;
    uint32_t count;
    uint32_t room;
};

/* Finds the items of an array by the names with which they begin, in a time that does not grow with
 * their number: a table of their places, each 1 more, at the hash of the name or behind it. */
struct name_table {
    uint32_t *places;
    uint32_t room; /* a power of two, more than half of which is free; or 0 */
};

struct word {
    const char *text;
    size_t length;
};

/* A program that is being read; it may have been named by a step before its own line comes. */
struct draft {
    char name[WORKLOAD_NAME_LENGTH_MAX + 1];
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
    struct word words[WORKLOAD_WORDS_MAX];
    uint32_t word_count;
    struct array drafts;
    struct name_table draft_table;
    struct array texts;         /* of char * */
    struct array channels;      /* of uint64_t */
    struct array channel_names; /* of char[WORKLOAD_NAME_LENGTH_MAX + 1] */
    struct array timer_names;   /* of the same: of timers that are shared */
    struct name_table channel_table;
    struct name_table timer_table;
    uint32_t present; /* program */
    struct loop loops[WORKLOAD_LOOPS_MAX];
    uint32_t depth;
    bool failed;
    struct simulator_error *error;
};

/* The first error is kept. `found`: the word that is wrong, or null if one is missing. */
void complain(struct reader *reader, const char *expected, const struct word *found);

/* Returns room for one more item, zeroed, or null if there is no memory; the reader has failed
 * then. */
void *append_item(struct reader *reader, struct array *array, size_t bytes);
struct draft *draft_at(const struct reader *reader, uint32_t i);

bool is_digit(char c);
bool word_is(const struct word *word, const char *text);
/* The words of a line, up to a #. */
void split_line(struct reader *reader, const char *line, const char *end);

/* Returns what stands at a place of the line. Each complains and returns 0 or null if it is not
 * there. */
const struct word *word_at(struct reader *reader, uint32_t place, const char *expected);
uint64_t read_number(struct reader *reader, uint32_t place, uint64_t least, uint64_t most);
int64_t read_signed(struct reader *reader, uint32_t place, int64_t least, int64_t most);
/* Nanoseconds; sets `*ticks` if the time was given in ticks. */
uint64_t read_time(struct reader *reader, uint32_t place, bool *ticks);
/* Up to 8 characters, as the value of a mark. */
uint64_t read_label(struct reader *reader, uint32_t place);

/* Returns the number of what is named, which is made if the name is new. */
uint32_t find_program(struct reader *reader, uint32_t place);
uint32_t find_channel(struct reader *reader, uint32_t place);
/* Of timers that all processes share. */
uint32_t find_timer(struct reader *reader, uint32_t place);
uint32_t add_text(struct reader *reader, uint32_t place, const char *expected);

/* Reads all lines, by the meaning of their first words (sim/workload_lines.c). */
void read_lines(struct reader *reader, const char *text);

#endif
