/* SPDX-License-Identifier: MIT */

#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "scheduler.h"

static struct text problem;

int fail(int error, const char *format, ...)
{
    char reason[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    text_free(&problem);
    text_add(&problem, "%s", reason);
    return error;
}

const char *scheduler_problem(void)
{
    return problem.bytes ? problem.bytes : "";
}
