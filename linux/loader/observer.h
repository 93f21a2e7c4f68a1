/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_OBSERVER_H
#define LINUX_LOADER_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

/* The observer (linux/bpf/observer.bpf.c) on this kernel: which of its programs serve here. */

struct bpf_object;
struct bpf_program;

/* What a trace is told of. */
enum told {
    TOLD_NOTHING, /* there is none */
    TOLD_EVENTS,
    TOLD_EVENTS_AND_QUEUES, /* also of each enqueue() of a policy */
};

/* Before the object is loaded: leaves out what no trace is told of, what watches things that this
 * kernel does not have, and what cannot be timed here. */
void observer_fit(struct bpf_object *observer, enum told told);

/* After it was loaded: from now on, forked threads inherit attributes. */
int observer_start(struct bpf_object *observer);

/* Returns true for a program that is attached while a trace is made. */
bool observes_for_trace(const struct bpf_program *program);

/* Returns how many records are missing because the kernel skipped the one program that writes them
 * (see observer.bpf.c), since the object was loaded. */
uint64_t observer_skipped(const struct bpf_object *observer);

#endif
