/* SPDX-License-Identifier: MIT */

#include "sim/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool trace_file_open(struct trace *trace, const char *path)
{
    trace->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return trace->file >= 0;
}

bool trace_file_write(struct trace *trace, const void *data, size_t bytes)
{
    const char *rest = data;
    while (bytes > 0 && !trace->error) {
        ssize_t written = write(trace->file, rest, bytes);
        if (written < 0 && errno != EINTR)
            trace->error = errno;
        if (written > 0) {
            rest += written;
            bytes -= (size_t)written;
        }
    }
    return !trace->error;
}

void trace_file_close(struct trace *trace)
{
    if (close(trace->file) != 0 && !trace->error)
        trace->error = errno;
}
