/* SPDX-License-Identifier: MIT */
#include "abi/errors.h"
#include "block_device.h"
#include "device_tree.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/layout.h"
#include "sync/spinlock.h"
#include "time/clock.h"
#include "time/timer.h"

/*
 * The initial ramdisk as a disk with latencies. It has `depth` channels. A request occupies one for
 * the latency of its kind, and waits in a queue, first come first served, while all are taken. A
 * kind of latency 0 completes at once.
 *
 * The data are moved in block_submit(). The requesting process pays for the copy with its own CPU
 * time, not the process that happens to run when the transfer ends. (A real disk moves them
 * itself.)
 *
 * The defaults are those of an entry-level NVMe SSD with single 4 KiB transfers. It takes 80 us to
 * read (one flash read, and the transfer), 20 us to write (into its memory), and 500 us to flush
 * (programming the flash once). Its 8 parallel flash chips allow 100,000 reads a second.
 */
#define READ_NS  80000u
#define WRITE_NS 20000u
#define FLUSH_NS 500000u
#define DEPTH    8u

#define CHANNELS_MAX   64u
#define LATENCY_NS_MAX 10000000000u

struct channel {
    struct timer timer;
    struct block_request *request; /* null: the channel is free */
};

static struct spinlock lock; /* guards the channels and the queue */
static struct channel channels[CHANNELS_MAX];
static struct list line; /* requests without a channel */
static uint64_t depth;
static uint64_t latency[BLOCK_FLUSH + 1]; /* by operation, nanoseconds */

static char *block_at(uint64_t block)
{
    return (char *)physical_to_pointer(machine.initial_ramdisk.start) + block * BLOCK_BYTES;
}

static void transfer(const struct block_request *request)
{
    if (request->operation == BLOCK_READ)
        memcpy(request->data, block_at(request->block), BLOCK_BYTES);
    else if (request->operation == BLOCK_WRITE)
        memcpy(block_at(request->block), request->data, BLOCK_BYTES);
}

static struct channel *free_channel(void)
{
    for (uint64_t i = 0; i < depth; i++)
        if (!channels[i].request)
            return &channels[i];
    return NULL;
}

static void expired(struct timer *timer);

/* Starts as many queued requests as there are free channels; needs the lock. */
static void start_line(void)
{
    struct channel *channel;
    while (!list_empty(&line) && (channel = free_channel())) {
        struct block_request *request = container_of(line.next, struct block_request, link);
        list_remove(&request->link);
        channel->request = request;
        timer_start(&channel->timer, clock_now() + latency[request->operation], expired);
    }
}

static void expired(struct timer *timer)
{
    struct channel *channel = container_of(timer, struct channel, timer);

    spinlock_acquire(&lock);
    struct block_request *request = channel->request;
    channel->request = NULL;
    start_line();
    spinlock_release(&lock);

    block_finish(request, 0);
}

static void submit(struct block_request *request)
{
    transfer(request);
    if (latency[request->operation] == 0) {
        block_finish(request, 0);
        return;
    }
    spinlock_acquire(&lock);
    list_append(&line, &request->link);
    start_line();
    spinlock_release(&lock);
}

static uint64_t bounded_argument(const char *name, uint64_t fallback, uint64_t least, uint64_t most)
{
    uint64_t value = boot_argument_number(name, fallback);
    if (value < least || value > most)
        panic("boot argument %s=%lu: it must be from %lu to %lu", name, value, least, most);
    return value;
}

int ram_disk_init(struct block_device *device)
{
    uint64_t blocks = machine.initial_ramdisk.bytes / BLOCK_BYTES;
    if (blocks == 0)
        return -ENODEV;

    spinlock_init(&lock, "ram disk", LOCK_BLOCK);
    list_init(&line);
    latency[BLOCK_READ] = bounded_argument("disk_read", READ_NS, 0, LATENCY_NS_MAX);
    latency[BLOCK_WRITE] = bounded_argument("disk_write", WRITE_NS, 0, LATENCY_NS_MAX);
    latency[BLOCK_FLUSH] = bounded_argument("disk_flush", FLUSH_NS, 0, LATENCY_NS_MAX);
    depth = bounded_argument("disk_depth", DEPTH, 1, CHANNELS_MAX);
    *device = (struct block_device){"initial ramdisk", blocks, submit};
    return 0;
}
