/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_VIRTIO_H
#define KERNEL_DEVICE_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/layout.h"

/*
 * The part that all virtio devices share: finding one, agreeing on features,
 * and a queue of buffers (Virtio 1.2: split virtqueues over memory-mapped
 * registers). Locking is the driver's task.
 */
enum virtio_kind {
    VIRTIO_BLOCK = 2,
    VIRTIO_CONSOLE = 3,
};

#define VIRTIO_QUEUE_SIZE 128 /* descriptors of a queue, at most; a power of two */

struct virtio_device {
    physical_t registers;
    uint32_t interrupt; /* 0: none */
    uint64_t features;  /* supported by both sides */
};

/* A part of a buffer; the device reads these. */
struct virtio_descriptor {
    uint64_t address; /* physical */
    uint32_t bytes;
    uint16_t flags;
    uint16_t next;
};

enum virtio_descriptor_flag {
    VIRTIO_NEXT = 1,  /* the buffer continues in `next` */
    VIRTIO_WRITE = 2, /* the device writes it; otherwise it reads it */
};

struct virtio_available;
struct virtio_used;

struct virtio_queue {
    struct virtio_device *device;
    uint32_t index; /* of the queue, in the device */
    uint32_t size;
    struct virtio_descriptor *descriptors;
    struct virtio_available *available; /* buffers offered by the driver */
    struct virtio_used *used;           /* buffers that the device has finished */
    uint16_t taken;                     /* number of `used` entries already taken */
};

/* Finds the first device of a kind, resets it, and agrees on the features of `requested` that it
 * has. Returns 0 or -ENODEV. */
int virtio_find(enum virtio_kind kind, uint64_t requested, struct virtio_device *device);

/* Must precede virtio_start(). Returns 0; -ENODEV: the device has no such queue; -ENOMEM. */
int virtio_queue_init(struct virtio_queue *queue, struct virtio_device *device, uint32_t index,
                      bool interrupts);
void virtio_start(struct virtio_device *device);

/* Returns a number of the device's configuration space, which begins at offset 0; no device
 * changes it here. */
uint64_t virtio_configuration_64(const struct virtio_device *device, uint32_t offset);

/* Hands the buffer with this first descriptor to the device. */
void virtio_queue_offer(struct virtio_queue *queue, uint16_t descriptor);
/* Takes the first descriptor of a finished buffer. Returns false if there is none. */
bool virtio_queue_take(struct virtio_queue *queue, uint16_t *descriptor);

/* Called in an interrupt handler, before the queues are read. */
void virtio_acknowledge(struct virtio_device *device);

#endif
