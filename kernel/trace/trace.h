/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TRACE_TRACE_H
#define KERNEL_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"

/* Writes one record of this CPU, now. Cheap, and nearly free without tracing; may be called with
 * any lock held. */
void trace_record(enum trace_kind kind, uint32_t process, uint32_t first, uint64_t second);
/* Writes a record whose text is in `second`, `first` and TRACE_TEXT records after it. */
void trace_text(enum trace_kind kind, uint32_t process, const char *text);

/* TRACE_TUNABLE, with its name in TRACE_TEXT records after it. */
void trace_tunable(uint32_t shares_by, const char *name, int64_t value);

/* The boot argument trace-queues: TRACE_QUEUED is wanted. Never changes after the boot. */
extern bool trace_queues;

/* Once, at boot: allocates the CPUs' buffers. */
void trace_init(void);
/* Returns true if records of an idle CPU must leave at its ticks. */
bool trace_needs_ticks(void);
/* Called at each tick: lets full blocks leave; with the boot argument trace-delay, also older
 * records of this CPU. Never waits. */
void trace_poll(void);
/* Called before the machine ends, with the other CPUs stopped: writes all records out. */
void trace_finish(void);
/* Does the same in a panic, with the other CPUs parked anywhere: saves as much as possible. */
void trace_abandon(void);
uint64_t trace_count(void);

#endif
