/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_OBSERVER_H
#define LINUX_LOADER_OBSERVER_H

#include <stdbool.h>

/* The observer (linux/bpf/observer.bpf.c) on this kernel: which of its programs serve here. */

struct bpf_object;
struct bpf_program;

/* Before the object is loaded: leaves out what watches things that this kernel does not have, that
 * cannot be timed here, or that are of no use unless the trace is told of queues. */
void observer_fit(struct bpf_object *observer, bool tell_queues);

/* After it was loaded: from now on, forked threads inherit attributes. */
int observer_start(struct bpf_object *observer);

/* Returns true for a program that is attached while a trace is made. */
bool observes_for_trace(const struct bpf_program *program);

#endif
