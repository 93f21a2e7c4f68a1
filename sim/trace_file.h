/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACE_FILE_H
#define SIM_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/trace.h"

/*
 * The destination of a trace's bytes: a file of the platform (sim/trace_file.c). A platform without
 * files defines its own versions of these functions.
 */

/* Creates the destination, and sets `trace->file`. Returns false with errno on failure. */
bool trace_file_open(struct trace *trace, const char *path);
/* Writes bytes. Returns false, and sets `trace->error`, if this or an earlier write was not
 * complete. */
bool trace_file_write(struct trace *trace, const void *data, size_t bytes);
/* Closes the destination. Sets `trace->error` if the written bytes could not be stored. */
void trace_file_close(struct trace *trace);

#endif
