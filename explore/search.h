/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * All states of the machine that sequences of operations lead to, level by level: first all that
 * one operation leads to, then two, and so on; each state once. So the first rule that is found
 * broken is broken by a sequence of which none is shorter. Of several such sequences it is always
 * the same one, however many processes share the work.
 */

struct search_limits {
    uint32_t depth; /* operations in a sequence */
    uint32_t seconds;
    uint64_t bytes; /* of memory, for states */
    uint32_t workers;
};

enum search_end {
    SEARCH_COMPLETE, /* no sequence leads to another state, however long */
    SEARCH_DEPTH,
    SEARCH_TIME,
    SEARCH_MEMORY,
    SEARCH_BROKEN, /* a rule was; search_tell() shows it */
    SEARCH_FAILED, /* the host has not the memory, or no more processes */
};

struct search_result {
    enum search_end end;
    uint32_t depth;       /* to which all sequences were tried */
    uint64_t states;      /* until then */
    uint64_t transitions; /* operations that were done, of a level that was not finished, too */
};

/* The machine has begun. Tells each level on stdout. */
struct search_result search(const struct search_limits *limits);
/* Does the operations that lead to the broken rule once more, and tells them. Does not return if
 * that breaks it again. */
void search_tell(void);

#endif
