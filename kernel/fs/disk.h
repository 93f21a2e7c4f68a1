/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_DISK_H
#define KERNEL_FS_DISK_H

#include "device/block.h"
#include "sync/wait_queue.h"

/*
 * Transfers that are started one by one and waited for together. The batch lives on its process's
 * stack, the requests next to their data.
 */
struct disk_batch {
    struct spinlock lock;
    struct wait_queue finished;
    uint32_t in_progress;
    int error; /* of any of them */
};

void disk_batch_init(struct disk_batch *batch);
void disk_start(struct disk_batch *batch, struct block_request *request,
                enum block_operation operation, uint64_t block, void *data);
/* Blocks until all started transfers have ended. Returns 0 or -EIO. */
int disk_wait(struct disk_batch *batch);

/* Makes one transfer and waits for it. Returns 0 or -EIO. */
int disk_read(uint64_t block, void *data);
int disk_write(uint64_t block, void *data);
/* Returns when all finished writes are on the medium: 0 or -EIO. */
int disk_flush(void);

#endif
