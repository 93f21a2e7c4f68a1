/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_BLOCK_DEVICE_H
#define KERNEL_DEVICE_BLOCK_DEVICE_H

#include <stdint.h>

#include "block.h"

/* The interface of a driver for block.c, which has checked a request's block number before
 * `submit`. */
struct block_device {
    const char *name;
    uint64_t blocks;
    void (*submit)(struct block_request *request);
};

/* Each returns 0 and fills `device`, or returns -ENODEV. */
int virtio_block_init(struct block_device *device);
int ram_disk_init(struct block_device *device);

/* Ends a request, with no lock held. */
static inline void block_finish(struct block_request *request, int result)
{
    request->result = result;
    request->done(request);
}

#endif
