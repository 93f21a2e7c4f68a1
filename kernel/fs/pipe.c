/* SPDX-License-Identifier: MIT */

#include "fs/pipe.h"

#include <stddef.h>

#include "abi/errors.h"
#include "lib/panic.h"
#include "memory/object.h"
#include "memory/page.h"
#include "process/process.h"
#include "sync/wait_queue.h"

#define PIPE_BYTES  PAGE_BYTES
#define NOT_WAITING UINT64_MAX

struct pipe {
    struct spinlock lock; /* guards all */
    char *ring;
    uint64_t read;    /* bytes taken out so far */
    uint64_t written; /* bytes put in so far */
    bool read_open;
    bool write_open;
    uint32_t readers;            /* that wait */
    uint64_t writers_need;       /* the least space that is useful to one of the waiting writers */
    struct wait_queue can_read;  /* its owner is the last writer, even if it has only begun; */
    struct wait_queue can_write; /* here, the last reader */
};

static struct object_cache pipes;

void pipe_init(void)
{
    object_cache_init(&pipes, "pipe", sizeof(struct pipe));
}

struct pipe *pipe_create(void)
{
    struct pipe *pipe = object_allocate(&pipes);
    if (!pipe)
        return NULL;
    pipe->ring = page_allocate();
    if (!pipe->ring) {
        object_free(&pipes, pipe);
        return NULL;
    }
    spinlock_init(&pipe->lock, "pipe", LOCK_FILES);
    wait_queue_init(&pipe->can_read, "pipe readers");
    wait_queue_init(&pipe->can_write, "pipe writers");
    pipe->read_open = true;
    pipe->write_open = true;
    pipe->writers_need = NOT_WAITING;
    return pipe;
}

void pipe_close(struct pipe *pipe, bool write_end)
{
    spinlock_acquire(&pipe->lock);
    *(write_end ? &pipe->write_open : &pipe->read_open) = false;
    bool is_unused = !pipe->write_open && !pipe->read_open;
    wake_all(&pipe->can_read);
    wake_all(&pipe->can_write);
    spinlock_release(&pipe->lock);
    if (!is_unused)
        return;
    page_release(pipe->ring);
    object_free(&pipes, pipe);
}

static uint64_t used(const struct pipe *pipe)
{
    return pipe->written - pipe->read;
}

static uint64_t room(const struct pipe *pipe)
{
    return PIPE_BYTES - used(pipe);
}

/* Wakes one reader for the available bytes; if it leaves some, it wakes the next. */
static void wake_reader(struct pipe *pipe)
{
    if (pipe->readers > 0 && used(pipe) > 0)
        wake_one(&pipe->can_read);
}

/* Wakes writers, once one of them can finish its call or do a good part of it. */
static void wake_writers(struct pipe *pipe)
{
    if (room(pipe) < pipe->writers_need)
        return;
    pipe->writers_need = NOT_WAITING;
    wake_all(&pipe->can_write);
}

static uint64_t smallest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Both move as many bytes as possible now, in at most two pieces: the ring may wrap between
 * them. */
static int64_t take_out(struct pipe *pipe, struct buffer *destination, uint64_t n)
{
    uint64_t done = 0;

    while (done < n && used(pipe) > 0) {
        uint64_t at = pipe->read % PIPE_BYTES;
        uint64_t bytes = smallest(n - done, used(pipe), PIPE_BYTES - at);
        int error = buffer_put(destination, pipe->ring + at, bytes);
        if (error)
            return done > 0 ? (int64_t)done : error;
        pipe->read += bytes;
        done += bytes;
    }
    return (int64_t)done;
}

static int64_t put_in(struct pipe *pipe, struct buffer *source, uint64_t n)
{
    uint64_t done = 0;

    while (done < n && room(pipe) > 0) {
        uint64_t at = pipe->written % PIPE_BYTES;
        uint64_t bytes = smallest(n - done, room(pipe), PIPE_BYTES - at);
        int error = buffer_take(source, pipe->ring + at, bytes);
        if (error)
            return done > 0 ? (int64_t)done : error;
        pipe->written += bytes;
        done += bytes;
    }
    return (int64_t)done;
}

static int wait_to_read(struct pipe *pipe)
{
    int error = 0;

    while (used(pipe) == 0 && pipe->write_open && !error) {
        pipe->readers++;
        error = wait_on(&pipe->can_read, &pipe->lock, BLOCK_PIPE);
        pipe->readers--;
    }
    return error;
}

int64_t pipe_read(struct pipe *pipe, struct buffer *destination, uint64_t n)
{
    spinlock_acquire(&pipe->lock);
    pipe->can_write.owner = current_process()->pid;
    int64_t result = n > 0 ? wait_to_read(pipe) : 0;
    if (result == 0)
        result = take_out(pipe, destination, n);
    wake_reader(pipe);
    wake_writers(pipe);
    spinlock_release(&pipe->lock);
    return result;
}

/* `left`: bytes that the call has still to write. */
static int wait_to_write(struct pipe *pipe, uint64_t left)
{
    int error = 0;

    while (room(pipe) == 0 && pipe->read_open && !error) {
        pipe->writers_need = smallest(pipe->writers_need, left, PIPE_BYTES / 2);
        wake_reader(pipe);
        error = wait_on(&pipe->can_write, &pipe->lock, BLOCK_PIPE);
    }
    return error;
}

int64_t pipe_write(struct pipe *pipe, struct buffer *source, uint64_t n)
{
    uint64_t done = 0;
    int64_t moved = 1;
    int error = 0;

    spinlock_acquire(&pipe->lock);
    pipe->can_read.owner = current_process()->pid;
    while (done < n && moved > 0 && !error) {
        error = wait_to_write(pipe, n - done);
        if (!error && !pipe->read_open)
            error = -EPIPE;
        moved = error ? 0 : put_in(pipe, source, n - done);
        if (moved > 0)
            done += (uint64_t)moved;
        if (moved < 0 && done == 0)
            error = (int)moved;
    }
    wake_reader(pipe);
    wake_writers(pipe);
    spinlock_release(&pipe->lock);
    return error ? error : (int64_t)done;
}
