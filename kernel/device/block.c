/* SPDX-License-Identifier: MIT */
#include "block.h"

#include "abi/errors.h"
#include "block_device.h"
#include "lib/panic.h"
#include "lib/print.h"

/* Written at boot, before the first request. */
static struct block_device device;

int block_init(void)
{
    if (virtio_block_init(&device) != 0 && ram_disk_init(&device) != 0) {
        device = (struct block_device){0};
        print("disk: none; neither a virtio block device nor an initial ramdisk\n");
        return -ENODEV;
    }
    print("disk: %s, %lu blocks of %u bytes\n", device.name, device.blocks, BLOCK_BYTES);
    return 0;
}

uint64_t block_count(void)
{
    return device.blocks;
}

void block_submit(struct block_request *request)
{
    bool transfers = request->operation != BLOCK_FLUSH;
    kernel_assert(request->operation <= BLOCK_FLUSH && request->done);
    kernel_assert(!transfers || (uint64_t)request->data % 8 == 0);

    if (!device.submit || (transfers && request->block >= device.blocks))
        block_finish(request, -EIO);
    else
        device.submit(request);
}
