/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_BLOCK_H
#define KERNEL_DEVICE_BLOCK_H

#include <stdint.h>

#include "lib/list.h"

#define BLOCK_BYTES 4096u

enum block_operation {
    BLOCK_READ,
    BLOCK_WRITE,
    BLOCK_FLUSH, /* all writes that completed before it are on the medium when it completes */
};

/*
 * One transfer of one block. Any number may be in progress. They complete in any order, and reach
 * the medium in any order except for BLOCK_FLUSH. `done` is called in an interrupt handler, or
 * already within block_submit(), with no lock held.
 */
struct block_request {
    enum block_operation operation;
    uint64_t block;
    void *data; /* BLOCK_BYTES, aligned to 8, in one page */
    int result; /* 0 or -EIO, set before done() */
    void (*done)(struct block_request *request);
    struct list link; /* the driver's while in progress */
    void *context;    /* the caller's */
};

/* Finds the disk in the device tree (virtio-blk, or the initial ramdisk). Returns 0 or -ENODEV. */
int block_init(void);
uint64_t block_count(void);
void block_submit(struct block_request *request);

#endif
