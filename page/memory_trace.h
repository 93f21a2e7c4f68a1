/* SPDX-License-Identifier: MIT */
#ifndef PAGE_MEMORY_TRACE_H
#define PAGE_MEMORY_TRACE_H

#include <stddef.h>

#include "abi/trace_format.h"

/*
 * A page has no files: here a trace's bytes go to memory (sim/trace_file.h), in which they lie
 * until they are taken. One machine is in a program at a time.
 */

const struct trace_header *memory_trace_header(void);
/* Returns the records that have come since the last call, and sets their length in bytes. They stay
 * there until the trace goes on. */
const unsigned char *memory_trace_take(size_t *bytes);

#endif
