/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_SHARED_MAPS_H
#define LINUX_BPF_SHARED_MAPS_H

/*
 * Maps that the observer and all policies use together. Each object declares
 * them, and the loader gives the observer's maps to every policy.
 */

#include <bpf/bpf_helpers.h>

#include "shared.h"

#define EVENTS_BYTES (64 << 20)

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task_attributes);
} attributes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EVENTS_BYTES);
} events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct trace_state);
} trace_state SEC(".maps");

/* For each CPU, why it was last asked to pick again: enum preempt_reason; 0: not asked since its
 * last switch. A hint, which no lock protects. */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, HOST_CPUS);
    __type(key, uint32_t);
    __type(value, uint32_t);
} preempt_reasons SEC(".maps");

/* Only the observer writes it. */
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct observed);
} observed SEC(".maps");

#endif
