/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * What a monitor shows, computed from an event trace (docs/monitor.md): records in, frames out.
 *
 * Freestanding C: all state lies in the memory that model_begin() is given, nothing points into
 * it, and there are no variables besides it. Several models may be used at once, each by one thread
 * at a time. Times are nanoseconds of the trace.
 *
 * What has a result returns a message, which is valid until the next call of the same model, or
 * null if there is no such thing. A message describes itself; model_message.js and message.py
 * read any.
 */

struct model;

#define MODEL_MEMORY_MIN (128u << 20)

/*
 * Begins a model. `memory` is zero, aligned to 16, and at least MODEL_MEMORY_MIN bytes: as much of
 * the past is kept as there is room for. `header` is a trace's. `policy` (name or name:preset) and
 * `shares_by` (enum attribute_kind; 0: no attribute) are as the system was started; the trace's
 * POLICY and TUNABLE records rule afterwards. Null: no such header, or too little memory.
 */
struct model *model_begin(void *memory, size_t bytes, const void *header, size_t header_bytes,
                          const char *policy, size_t policy_bytes, uint32_t shares_by);

/* Makes `to` what `from` is. Both have as many bytes, and `to` may be memory not used before. */
struct model *model_copy(void *to, const struct model *from);

/* The next records, in the order of their sequence. Texts may go on in the next call. */
void model_feed(struct model *model, const void *records, size_t count);
/* It is at least so late, though nothing may have happened since. */
void model_reach(struct model *model, int64_t time);
/* How much of the past the figures cover. A longer window fills as time goes on. */
void model_set_window(struct model *model, int64_t window);
/* The processes that are there for the monitor's sake. */
void model_own(struct model *model, const uint32_t *pids, size_t count);
/* What a record takes of a CPU's time, in nanoseconds. */
void model_record_cost(struct model *model, double cost);

/* What sched_status says of a process. */
struct model_status {
    int64_t pid;
    int64_t priority; /* the weight, under a policy that shares by weight */
    int64_t tickets;
    int64_t slice; /* -1: no limit, or not known */
};

/* What the trace says later holds. */
void model_status(struct model *model, const struct model_status *rows, size_t count);

int64_t model_now(const struct model *model);
uint64_t model_events(const struct model *model);

/* What is the case, and what is new since the last frame; about `max_runs` runs at most. */
const void *model_frame(struct model *model, size_t max_runs);
/* All that is kept of what frames have told: what is newer, the next one tells. */
const void *model_history(struct model *model);
/* Why a process had to wait, in the window. Null: no such process lives, or did in the window. */
const void *model_explain(struct model *model, uint32_t pid);

/*
 * A message: this, then `columns` descriptions, then what they describe. Little-endian; places are
 * bytes from the message's begin, and multiples of 8.
 *
 * Records form a tree. The root is one record; a column of kind MODEL_LIST adds a list of records
 * to each record of the list whose name is the longest beginning of its own. All records of a list,
 * of whatever parents, stand in a row, and the list's columns have a value for each of them, or,
 * with `ends`, several.
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
    MODEL_TEXT, /* UTF-8: for each value a uint32_t where it ends, then the bytes of all */
    MODEL_LIST,
};

struct model_column {
    uint32_t name; /* "processes.pid" */
    uint32_t name_bytes;
    uint32_t kind;  /* enum model_kind */
    uint32_t width; /* 0: values; else each value is a row of so many */
    uint32_t count; /* of values or rows */
    uint32_t data;
    uint32_t ends;    /* 0: a value for each record; else for each record where its values end */
    uint32_t records; /* of the list that it belongs to */
};

#endif
