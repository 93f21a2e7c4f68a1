/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * The data that a monitor shows, computed from an event trace (docs/monitor.md): records in, frames
 * out.
 *
 * Freestanding C: all state lies in the memory that model_begin() receives, without pointers into
 * it, and there are no other variables. Several models may be used at once, each by one thread at a
 * time. Times are nanoseconds of the trace.
 *
 * A function with a result returns a message, or null if there is none. A message is valid until
 * the next call of the same model. It describes itself; model_message.js and message.py read any
 * message.
 */

struct model;

#define MODEL_MEMORY_MIN (128u << 20)

/*
 * Initializes a model. `memory` is zero, aligned to 16, and at least MODEL_MEMORY_MIN bytes; more
 * memory keeps more of the past. `header` is a trace's. `policy` (name or name:preset) and
 * `shares_by` (enum attribute_kind; 0: no attribute) are the initial ones; the trace's POLICY and
 * TUNABLE records override them later. Returns null if the header is invalid or memory is too
 * small.
 */
struct model *model_begin(void *memory, size_t bytes, const void *header, size_t header_bytes,
                          const char *policy, size_t policy_bytes, uint32_t shares_by);

/* Copies `from` to `to`. Both have the same size, and `to` may be unused memory. */
struct model *model_copy(void *to, const struct model *from);

/* Processes the next records, in the order of their sequence. Texts may continue in the next
 * call. */
void model_feed(struct model *model, const void *records, size_t count);
/* Advances the model to at least this time, even without events. */
void model_reach(struct model *model, int64_t time);
/* Sets how much of the past the metrics cover. A longer window fills up over time. */
void model_set_window(struct model *model, int64_t window);
/* Sets the processes that exist only for the monitor. */
void model_own(struct model *model, const uint32_t *pids, size_t count);
/* Sets the CPU time that a record costs, in nanoseconds. */
void model_record_cost(struct model *model, double cost);

/* A process's line of sched_status. */
struct model_status {
    int64_t pid;
    int64_t priority; /* the weight, under a policy that shares by weight */
    int64_t tickets;
    int64_t slice; /* -1: no limit, or not known */
};

/* Later records of the trace override it. */
void model_status(struct model *model, const struct model_status *rows, size_t count);

int64_t model_now(const struct model *model);
uint64_t model_events(const struct model *model);

/* Returns the present state, and events since the last frame, with about `max_runs` runs at
 * most. */
const void *model_frame(struct model *model, size_t max_runs);
/* Returns all kept data of earlier frames: the next frame contains newer data. */
const void *model_history(struct model *model);
/* Explains why a process had to wait, in the window. Returns null if no such process lives, or
 * lived in the window. */
const void *model_explain(struct model *model, uint32_t pid);

/*
 * A message: this header, then `columns` descriptions, then their data. Little-endian; positions
 * are bytes from the message's start, and multiples of 8.
 *
 * Records form a tree. The root is one record. A column of kind MODEL_LIST adds a list of records
 * to each record of its parent list, whose name is the longest prefix of the column's name. All
 * records of a list, for all parents, are in one sequence. The list's columns have a value for each
 * of them, or several with `ends`.
 */
struct model_message {
    uint32_t bytes;
    uint32_t columns;
};

enum model_kind {
    MODEL_NULL, /* no value; for each record */
    MODEL_I64,
    MODEL_I32,
    MODEL_BOOL, /* a byte, 0 or 1 */
    MODEL_F64,
    MODEL_TEXT, /* UTF-8: for each value a uint32_t with its end, then the bytes of all */
    MODEL_LIST,
};

struct model_column {
    uint32_t name; /* "processes.pid" */
    uint32_t name_bytes;
    uint32_t kind;  /* enum model_kind */
    uint32_t width; /* 0: values; else each value is a row of this many */
    uint32_t count; /* of values or rows */
    uint32_t data;
    uint32_t ends;    /* 0: a value for each record; else for each record the end of its values */
    uint32_t records; /* of its list */
};

#endif
