/* SPDX-License-Identifier: MIT */

#include "tracing.h"

void trace_policy(const char *name, uint32_t shares_by)
{
    (void)name;
    (void)shares_by;
}

void trace_tunable(const char *name, int64_t value, uint32_t shares_by)
{
    (void)name;
    (void)value;
    (void)shares_by;
}

void trace_attribute(int32_t pid, uint32_t kind, int64_t value)
{
    (void)pid;
    (void)kind;
    (void)value;
}
