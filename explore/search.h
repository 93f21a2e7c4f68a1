/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Visits all states that sequences of operations lead to, each once: first all states after one
 * operation, then after two, and so on.
 *
 * So the first broken rule is found with a shortest sequence. If there are several such sequences,
 * the result is always the same one, however many processes search.
 */

struct search_limits {
    uint32_t depth; /* maximum number of operations in a sequence */
    uint32_t seconds;
    uint64_t bytes; /* bytes of memory for states */
    uint32_t workers;
};

enum search_end {
    SEARCH_COMPLETE, /* no longer sequence leads to another state */
    SEARCH_DEPTH,
    SEARCH_TIME,
    SEARCH_MEMORY,
    SEARCH_BROKEN, /* a rule was broken; search_print() shows how */
    SEARCH_FAILED, /* the host is short of memory, or cannot start more processes */
};

struct search_result {
    enum search_end end;
    uint32_t depth;       /* all sequences of up to this many operations were tried */
    uint64_t states;      /* until then */
    uint64_t transitions; /* operations performed, including those of an incomplete level */
};

/* Searches. machine_begin() must have succeeded. Prints each level on stdout. */
struct search_result search(const struct search_limits *limits);
/* Performs and prints the operations that lead to the broken rule. Does not return if the rule
 * is broken again. */
void search_print(void);

#endif
