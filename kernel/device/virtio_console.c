/* SPDX-License-Identifier: MIT */
#include "lib/print.h"
#include "memory/layout.h"
#include "trace_device.h"
#include "virtio.h"

/*
 * Trace blocks through a virtio console (Virtio 1.2, 5.3), unchanged. With no feature agreed on it
 * has one port: queue 0 to the guest, which stays empty, and queue 1 from it.
 */
#define QUEUE_FROM_GUEST 1

static struct virtio_device device;
static struct virtio_queue queue;

static bool init(void)
{
    if (virtio_find(VIRTIO_CONSOLE, 0, &device) != 0)
        return false;
    if (virtio_queue_init(&queue, &device, QUEUE_FROM_GUEST, false) != 0) {
        print("trace: the virtio console cannot be used\n");
        return false;
    }
    virtio_start(&device);
    return true;
}

/* Descriptor 0 is sufficient: one block at a time. */
static void start(const void *block, size_t bytes)
{
    queue.descriptors[0] = (struct virtio_descriptor){
        .address = pointer_to_physical(block),
        .bytes = (uint32_t)bytes,
    };
    virtio_queue_offer(&queue, 0);
}

static enum trace_device_state poll(void)
{
    uint16_t descriptor;
    return virtio_queue_take(&queue, &descriptor) ? TRACE_DEVICE_DONE : TRACE_DEVICE_BUSY;
}

const struct trace_device virtio_console = {"virtio console", init, start, poll};
