/* SPDX-License-Identifier: MIT */

#include "fs/disk.h"

#include <stddef.h>

#include "abi/errors.h"

void disk_batch_init(struct disk_batch *batch)
{
    spinlock_init(&batch->lock, "disk batch", LOCK_FILES);
    wait_queue_init(&batch->finished, "disk batch");
    batch->in_progress = 0;
    batch->error = 0;
}

/* The waiter needs the lock before it can free the batch's memory, so nothing follows it. */
static void transfer_done(struct block_request *request)
{
    struct disk_batch *batch = request->context;

    spinlock_acquire(&batch->lock);
    if (request->result != 0)
        batch->error = -EIO;
    if (--batch->in_progress == 0)
        wake_one(&batch->finished);
    spinlock_release(&batch->lock);
}

void disk_start(struct disk_batch *batch, struct block_request *request,
                enum block_operation operation, uint64_t block, void *data)
{
    spinlock_acquire(&batch->lock);
    batch->in_progress++;
    spinlock_release(&batch->lock);

    request->operation = operation;
    request->block = block;
    request->data = data;
    request->done = transfer_done;
    request->context = batch;
    block_submit(request);
}

int disk_wait(struct disk_batch *batch)
{
    spinlock_acquire(&batch->lock);
    while (batch->in_progress > 0)
        wait_on_always(&batch->finished, &batch->lock, BLOCK_DISK);
    int error = batch->error;
    spinlock_release(&batch->lock);
    return error;
}

static int transfer(enum block_operation operation, uint64_t block, void *data)
{
    struct disk_batch batch;
    struct block_request request;

    disk_batch_init(&batch);
    disk_start(&batch, &request, operation, block, data);
    return disk_wait(&batch);
}

int disk_read(uint64_t block, void *data)
{
    return transfer(BLOCK_READ, block, data);
}

int disk_write(uint64_t block, void *data)
{
    return transfer(BLOCK_WRITE, block, data);
}

int disk_flush(void)
{
    return transfer(BLOCK_FLUSH, 0, NULL);
}
