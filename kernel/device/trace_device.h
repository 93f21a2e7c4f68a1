/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_TRACE_DEVICE_H
#define KERNEL_DEVICE_TRACE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* A device through which trace blocks leave the machine. host.c calls it with its lock held. */
enum trace_device_state {
    TRACE_DEVICE_BUSY,
    TRACE_DEVICE_DONE,
    TRACE_DEVICE_FAILED, /* the block did not arrive completely */
};

struct trace_device {
    const char *name;
    bool (*init)(void); /* false: the machine lacks it, or no trace is wanted */
    void (*start)(const void *block, size_t bytes);
    enum trace_device_state (*poll)(void); /* of the last started block */
};

extern const struct trace_device host_file;      /* Spike: the file named by trace=FILE */
extern const struct trace_device virtio_console; /* QEMU */

#endif
