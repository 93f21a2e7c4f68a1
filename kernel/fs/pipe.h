/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_PIPE_H
#define KERNEL_FS_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/user_copy.h"

/* A ring of one page between writers and readers. */
struct pipe;

void pipe_init(void);
/* Returns a pipe that is open at both ends, or null if memory is short. */
struct pipe *pipe_create(void);
/* No process has this end open any more; closing both ends frees the pipe. */
void pipe_close(struct pipe *pipe, bool write_end);

/* Returns the bytes read: at least one, or 0 if there is no writer any more; or -EINTR, -EFAULT,
 * -ENOMEM. */
int64_t pipe_read(struct pipe *pipe, struct buffer *destination, uint64_t n);
/* Returns all n bytes, or fewer if the source ended in invalid memory; or -EPIPE, -EINTR,
 * -EFAULT, -ENOMEM. */
int64_t pipe_write(struct pipe *pipe, struct buffer *source, uint64_t n);

#endif
