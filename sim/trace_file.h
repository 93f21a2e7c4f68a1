/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACE_FILE_H
#define SIM_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/trace.h"

/*
 * Where a trace's bytes go: a file of the host (sim/trace_file.c). A host without files has its own
 * functions of these names instead.
 */

/* Creates what the bytes go to, and sets `trace->file`. Returns false, and sets errno, if that
 * cannot be done. */
bool trace_file_open(struct trace *trace, const char *path);
/* Returns false, and sets `trace->error`, if not all could be written, now or before. */
bool trace_file_write(struct trace *trace, const void *data, size_t bytes);
/* Sets `trace->error` if what was written is not kept. */
void trace_file_close(struct trace *trace);

#endif
