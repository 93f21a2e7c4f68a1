/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRACING_H
#define LINUX_LOADER_TRACING_H

#include <stdint.h>

/* What the event trace is told of the scheduler. Nothing happens while there is no trace. */

/* The policy in force from here on, and the attribute that it shares by (enum attribute_kind, 0).
 */
void trace_policy(const char *name, uint32_t shares_by);
void trace_tunable(const char *name, int64_t value, uint32_t shares_by);
void trace_attribute(int32_t pid, uint32_t kind, int64_t value);

#endif
