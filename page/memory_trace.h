/* SPDX-License-Identifier: MIT */
#ifndef PAGE_MEMORY_TRACE_H
#define PAGE_MEMORY_TRACE_H

#include <stddef.h>

#include "abi/trace_format.h"

/*
 * A page has no files, so a trace's bytes stay in memory (sim/trace_file.h) until they are taken. A
 * program has one machine at a time.
 */

const struct trace_header *memory_trace_header(void);
/* Returns the records since the last call, and sets their length in bytes. They are valid until
 * the trace continues. */
const unsigned char *memory_trace_take(size_t *bytes);

#endif
