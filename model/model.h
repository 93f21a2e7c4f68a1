/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Computes what the monitor shows from an event trace (docs/monitor.md): records go in, frames come
 * out.
 *
 * This is freestanding C. All state is in the memory passed to model_begin(), without pointers into
 * it; there are no global variables. Several models may be used at once, each by one thread at a
 * time. Times are nanoseconds of the trace.
 *
 * Functions with a result return a message, or null if there is none. A message is valid until the
 * next call for the same model. Messages describe themselves; model_message.js and model.py read
 * any message.
 */

struct model;

#define MODEL_MEMORY_MIN (128u << 20)

/*
 * Initialises a model. `memory` must be zero, aligned to 16, and have at least MODEL_MEMORY_MIN
 * bytes; with more memory, more of the past is kept. `header`: the trace's header. `policy` (name
 * or name:preset) and `shares_by` (enum attribute_kind; 0: no attribute): the initial values, which
 * POLICY and TUNABLE records override. Returns null if the header is invalid or memory is too
 * small.
 */
struct model *model_begin(void *memory, size_t bytes, const void *header, size_t header_bytes,
                          const char *policy, size_t policy_bytes, uint32_t shares_by);

/* Processes the next records, in sequence order. A text may be continued in the next call. */
void model_feed(struct model *model, const void *records, size_t count);
/* Advances the model's clock to `time`, if it is not later already. */
void model_reach(struct model *model, int64_t time);
/* Sets the length (ns) of the window of the metrics. A longer window takes time to fill. */
void model_set_window(struct model *model, int64_t window);
/* Sets which processes belong to the monitor itself. */
void model_own(struct model *model, const uint32_t *pids, size_t count);
/* Sets how much CPU time one record costs (ns). */
void model_record_cost(struct model *model, double cost);

/* A process's row in sched_status. */
struct model_status {
    int64_t pid;
    int64_t priority; /* its weight, if the policy shares by weight */
    int64_t tickets;
    int64_t slice; /* time slice (ns); -1: unlimited or unknown */
};

/* Takes attributes of processes from sched_status; later records override them. */
void model_status(struct model *model, const struct model_status *rows, size_t count);

/* Returns the present state, and the events since the last frame, with at most about `max_runs`
 * runs. */
const void *model_frame(struct model *model, size_t max_runs);
/* Returns the events that were in earlier frames, if they are still kept. */
const void *model_history(struct model *model);
/* Explains why a process had to wait in the window. Returns null if there was no such process in
 * the window. */
const void *model_explain(struct model *model, uint32_t pid);

/*
 * The layout of messages: this header, then `columns` descriptions of columns, then their data.
 *
 * Numbers are little-endian. Positions are bytes from the message's start, and multiples of 8.
 * Records form a tree, whose root is one record. A column of kind MODEL_LIST adds a list of records
 * to each record of its parent: the list whose name is the longest prefix of the column's name. All
 * records of a list are in one sequence, regardless of their parents. A list's columns have a value
 * for each of these records or, with `ends`, several.
 */
struct model_message {
    uint32_t bytes;
    uint32_t columns;
};

enum model_kind {
    MODEL_NULL, /* no value, in every record */
    MODEL_I64,
    MODEL_I32,
    MODEL_BOOL, /* a byte: 0 or 1 */
    MODEL_F64,
    MODEL_TEXT, /* UTF-8: for each value a uint32_t with its end, then the bytes of all values */
    MODEL_LIST,
};

struct model_column {
    uint32_t name; /* "processes.pid" */
    uint32_t name_bytes;
    uint32_t kind;  /* enum model_kind */
    uint32_t width; /* 0: single values; otherwise the number of values in a row */
    uint32_t count; /* number of values or rows */
    uint32_t data;
    uint32_t ends;    /* 0: one value per record; otherwise where the ends of each record's
                       * values are */
    uint32_t records; /* of its list */
};

#endif
