/* SPDX-License-Identifier: MIT */
#include "abi/errors.h"
#include "block_device.h"
#include "interrupt_controller.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "sync/spinlock.h"
#include "virtio.h"

/*
 * A virtio block device (Virtio 1.2, 5.2). A request takes three descriptors:
 * the operation, the block, and the status from the device. Slot i owns
 * descriptors 3 i to 3 i + 2 permanently; requests without a slot wait in a
 * queue.
 */
#define SECTOR_BYTES      512u
#define SECTORS_PER_BLOCK (BLOCK_BYTES / SECTOR_BYTES)

#define FEATURE_READ_ONLY (1ull << 5)
#define FEATURE_FLUSH     (1ull << 9)

#define CONFIGURATION_CAPACITY 0 /* in sectors */

enum wire_operation { WIRE_READ = 0, WIRE_WRITE = 1, WIRE_FLUSH = 4 };
enum { WIRE_SUCCESS = 0, WIRE_NO_ANSWER = 0xff };

struct wire_header {
    uint32_t operation;
    uint32_t reserved;
    uint64_t sector;
};

struct slot {
    struct wire_header header;
    uint8_t status;
    struct block_request *request; /* null: the slot is free */
};

#define DESCRIPTORS_PER_SLOT 3
#define SLOTS_MAX            (VIRTIO_QUEUE_SIZE / DESCRIPTORS_PER_SLOT)

static struct spinlock lock; /* guards the virtqueue, the slots and the waiting requests */
static struct virtio_device virtio;
static struct virtio_queue queue;
static struct slot slots[SLOTS_MAX];
static uint32_t slot_count;
static struct list line; /* requests without a slot */

static struct slot *free_slot(void)
{
    for (uint32_t i = 0; i < slot_count; i++)
        if (!slots[i].request)
            return &slots[i];
    return NULL;
}

static enum wire_operation wire_operation(enum block_operation operation)
{
    switch (operation) {
    case BLOCK_READ:
        return WIRE_READ;
    case BLOCK_WRITE:
        return WIRE_WRITE;
    case BLOCK_FLUSH:
        return WIRE_FLUSH;
    }
    panic("a request of no known kind: %u", (unsigned)operation);
}

/* Hands a request to the device; needs the lock. */
static void start(struct slot *slot, struct block_request *request)
{
    bool transfers = request->operation != BLOCK_FLUSH;
    uint16_t first = (uint16_t)(DESCRIPTORS_PER_SLOT * (slot - slots));
    uint16_t last = (uint16_t)(first + 2);

    slot->request = request;
    slot->status = WIRE_NO_ANSWER;
    slot->header = (struct wire_header){
        .operation = wire_operation(request->operation),
        .sector = transfers ? request->block * SECTORS_PER_BLOCK : 0,
    };
    queue.descriptors[first] = (struct virtio_descriptor){
        .address = pointer_to_physical(&slot->header),
        .bytes = sizeof slot->header,
        .flags = VIRTIO_NEXT,
        .next = transfers ? (uint16_t)(first + 1) : last,
    };
    if (transfers)
        queue.descriptors[first + 1] = (struct virtio_descriptor){
            .address = pointer_to_physical(request->data),
            .bytes = BLOCK_BYTES,
            .flags = VIRTIO_NEXT | (request->operation == BLOCK_READ ? VIRTIO_WRITE : 0),
            .next = last,
        };
    queue.descriptors[last] = (struct virtio_descriptor){
        .address = pointer_to_physical(&slot->status),
        .bytes = sizeof slot->status,
        .flags = VIRTIO_WRITE,
    };
    virtio_queue_offer(&queue, first);
}

/* Starts as many waiting requests as there are free slots; needs the lock. */
static void start_line(void)
{
    struct slot *slot;
    while (!list_empty(&line) && (slot = free_slot())) {
        struct block_request *request = container_of(line.next, struct block_request, link);
        list_remove(&request->link);
        start(slot, request);
    }
}

static void submit(struct block_request *request)
{
    if (request->operation == BLOCK_WRITE && (virtio.features & FEATURE_READ_ONLY)) {
        block_finish(request, -EIO);
        return;
    }
    /* Without the feature, a write is on the medium when it completes. */
    if (request->operation == BLOCK_FLUSH && !(virtio.features & FEATURE_FLUSH)) {
        block_finish(request, 0);
        return;
    }
    spinlock_acquire(&lock);
    list_append(&line, &request->link);
    start_line();
    spinlock_release(&lock);
}

/* Moves the finished requests to a list; needs the lock. */
static void collect(struct list *done)
{
    uint16_t descriptor;
    while (virtio_queue_take(&queue, &descriptor)) {
        uint32_t place = descriptor / DESCRIPTORS_PER_SLOT;
        if (descriptor % DESCRIPTORS_PER_SLOT != 0 || place >= slot_count ||
            !slots[place].request) {
            print("disk: the device answered what it was not asked\n");
            continue;
        }
        struct block_request *request = slots[place].request;
        request->result = slots[place].status == WIRE_SUCCESS ? 0 : -EIO;
        slots[place].request = NULL;
        list_append(done, &request->link);
    }
}

static void interrupt(void *context)
{
    (void)context;
    struct list done;
    list_init(&done);

    spinlock_acquire(&lock);
    virtio_acknowledge(&virtio);
    collect(&done);
    start_line();
    spinlock_release(&lock);

    while (!list_empty(&done)) {
        struct block_request *request = container_of(done.next, struct block_request, link);
        list_remove(&request->link);
        request->done(request);
    }
}

int virtio_block_init(struct block_device *device)
{
    int error = virtio_find(VIRTIO_BLOCK, FEATURE_READ_ONLY | FEATURE_FLUSH, &virtio);
    if (!error && virtio.interrupt == 0)
        error = -ENODEV;
    if (!error)
        error = virtio_queue_init(&queue, &virtio, 0, true);
    if (error || queue.size < DESCRIPTORS_PER_SLOT)
        return -ENODEV;

    spinlock_init(&lock, "virtio block", LOCK_BLOCK);
    list_init(&line);
    slot_count = queue.size / DESCRIPTORS_PER_SLOT;
    interrupt_enable(virtio.interrupt, interrupt, NULL);
    virtio_start(&virtio);

    bool read_only = virtio.features & FEATURE_READ_ONLY;
    *device = (struct block_device){
        .name = read_only ? "virtio, read-only" : "virtio",
        .blocks = virtio_configuration_64(&virtio, CONFIGURATION_CAPACITY) / SECTORS_PER_BLOCK,
        .submit = submit,
    };
    return 0;
}
