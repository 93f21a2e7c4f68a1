/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACE_FILE_H
#define SIM_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/trace.h"

/*
 * Where a trace's bytes go: a file of the host (sim/trace_file.c). A host without files defines
 * functions of these names instead.
 */

/* Creates the bytes' destination, and sets `trace->file`. Returns false with errno on failure. */
bool trace_file_open(struct trace *trace, const char *path);
/* Returns false, and sets `trace->error`, if not everything could be written, now or before. */
bool trace_file_write(struct trace *trace, const void *data, size_t bytes);
/* Sets `trace->error` if the written bytes are not kept. */
void trace_file_close(struct trace *trace);

#endif
