/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Visits all states that sequences of operations lead to, level by level: first all states after
 * one operation, then after two, and so on; each state once. So the first broken rule is found by a
 * shortest sequence. Of several such sequences it is always the same one, regardless of the number
 * of processes.
 */

struct search_limits {
    uint32_t depth; /* operations in a sequence */
    uint32_t seconds;
    uint64_t bytes; /* of memory, for states */
    uint32_t workers;
};

enum search_end {
    SEARCH_COMPLETE, /* no sequence, however long, leads to another state */
    SEARCH_DEPTH,
    SEARCH_TIME,
    SEARCH_MEMORY,
    SEARCH_BROKEN, /* a rule was broken; search_tell() shows it */
    SEARCH_FAILED, /* the host lacks memory, or cannot start more processes */
};

struct search_result {
    enum search_end end;
    uint32_t depth;       /* all sequences up to this length were tried */
    uint64_t states;      /* until then */
    uint64_t transitions; /* operations done, including those of an unfinished level */
};

/* The machine must have begun. Prints each level on stdout. */
struct search_result search(const struct search_limits *limits);
/* Repeats and prints the operations that lead to the broken rule. Does not return if that breaks
 * it again. */
void search_print(void);

#endif
