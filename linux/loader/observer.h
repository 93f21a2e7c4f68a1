/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_OBSERVER_H
#define LINUX_LOADER_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

/* The observer (linux/bpf/observer.bpf.c) on this kernel: which of its programs are used. */

struct bpf_object;
struct bpf_program;

/* The contents of a trace. */
enum detail {
    DETAIL_NONE, /* there is none */
    DETAIL_EVENTS,
    DETAIL_EVENTS_AND_QUEUES, /* also each enqueue() of a policy */
};

/* Must be called before the object is loaded. Excludes the programs for records that the trace
 * does not have, for things that this kernel lacks, and for times that cannot be measured here. */
void observer_fit(struct bpf_object *observer, enum detail detail);

/* Must be called after the object is loaded. Makes forked threads inherit attributes. */
int observer_start(struct bpf_object *observer);

/* Returns true for a program that is attached while a trace is recorded. */
bool observes_for_trace(const struct bpf_program *program);

/* Returns the number of records lost since the load because the kernel skipped the only program
 * that writes them (see observer.bpf.c). */
uint64_t observer_skipped(const struct bpf_object *observer);

#endif
