/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRACE_H
#define LINUX_LOADER_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The trace that the observer makes (observer.h): a thread of real-time priority takes the records
 * from the kernel's ring. There is one trace at a time, and one in an object's life.
 *
 *     object = bpf_object__open_file(…);
 *     observer_fit(object, false);
 *     bpf_object__load(object);
 *     observer_start(object);
 *     trace_begin(&trace, object, &settings, …);   if one is wanted
 *     trace_policy(trace, "rr", 0);                whenever it changes; null: there is no trace
 *     trace_end(trace, …);
 *
 * Functions that can fail return 0 or a negative errno, and write the reason into `problem`, a
 * buffer of `size` bytes.
 */

struct bpf_object;
struct trace;

struct trace_settings {
    const char *path;
    uint32_t cpus;
    uint64_t tick_ns;
    uint64_t seed;
    bool in_memory;       /* nothing is written until the trace ends */
    uint64_t limit_bytes; /* the most that records may use; in memory, also at most half of the
                           * free memory */
    /* The longest time that a record may wait before it goes to the file, in milliseconds. */
    uint32_t delay_ms;
};

#define TRACE_LIMIT_MIB     4096
#define TRACE_LIMIT_MIB_MAX (1 << 30)

/*
 * The ring holds 64 MiB, at 40 bytes a record: at a million records a second, that is 1.5 seconds.
 * A thread that wakes more often appears more often in the trace itself.
 */
#define TRACE_DELAY_MS     50
#define TRACE_DELAY_MS_MAX 1000

/* Creates the file, writes the existing threads, and starts recording events. */
int trace_begin(struct trace **trace, struct bpf_object *observer,
                const struct trace_settings *settings, char *problem, size_t size);

/* Records that this policy, "name" or "name:preset", is now active; `shares_by`: enum
 * share_attribute of policies/policy.h. */
void trace_policy(struct trace *trace, const char *policy, uint32_t shares_by);
/* Records a tunable's value for that policy. */
void trace_tunable(struct trace *trace, const char *name, int64_t value, uint32_t shares_by);
/* Records that a thread's attribute was set. `kind`: enum attribute_kind. */
void trace_attribute(struct trace *trace, int32_t pid, uint32_t kind, int64_t value);

/* Records the new value of a group's field. `field`: enum group_field. */
void trace_group(struct trace *trace, uint32_t group, uint32_t field, int64_t value);

/* Returns why the trace has to end now; null: it continues. */
const char *trace_problem(const struct trace *trace);

/* The outcome of a trace. */
struct trace_outcome {
    uint64_t records;
    uint64_t lost;        /* the ring, or the memory, was full; or see observer_skipped() */
    uint64_t unexplained; /* wake-ups without a record */
};

/* Ends the trace, if there is one, and completes its file. The trace is freed even on failure. */
int trace_end(struct trace *trace, struct trace_outcome *outcome, char *problem, size_t size);

#endif
