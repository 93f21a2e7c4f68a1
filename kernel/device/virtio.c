/* SPDX-License-Identifier: MIT */
#include "virtio.h"

#include "abi/errors.h"
#include "device_tree.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "memory/page.h"
#include "mmio.h"

enum virtio_register {
    REGISTER_MAGIC = 0x000,
    REGISTER_VERSION = 0x004,
    REGISTER_DEVICE_ID = 0x008,
    REGISTER_DEVICE_FEATURES = 0x010,
    REGISTER_DEVICE_FEATURES_SELECT = 0x014,
    REGISTER_DRIVER_FEATURES = 0x020,
    REGISTER_DRIVER_FEATURES_SELECT = 0x024,
    REGISTER_QUEUE_SELECT = 0x030,
    REGISTER_QUEUE_SIZE_MAX = 0x034,
    REGISTER_QUEUE_SIZE = 0x038,
    REGISTER_QUEUE_READY = 0x044,
    REGISTER_QUEUE_NOTIFY = 0x050,
    REGISTER_INTERRUPT_STATUS = 0x060,
    REGISTER_INTERRUPT_ACKNOWLEDGE = 0x064,
    REGISTER_STATUS = 0x070,
    REGISTER_QUEUE_DESCRIPTORS = 0x080,
    REGISTER_QUEUE_AVAILABLE = 0x090,
    REGISTER_QUEUE_USED = 0x0a0,
    REGISTER_CONFIGURATION = 0x100,
};

#define VIRTIO_MAGIC   0x74726976u /* "virt" */
#define VIRTIO_VERSION 2u

#define STATUS_ACKNOWLEDGE 1u
#define STATUS_DRIVER      2u
#define STATUS_DRIVER_OK   4u
#define STATUS_FEATURES_OK 8u
#define STATUS_FAILED      128u

#define FEATURE_VERSION_1 (1ull << 32)

#define AVAILABLE_NO_INTERRUPT 1u

struct virtio_available {
    uint16_t flags;
    uint16_t index; /* never reset; its place is modulo the queue's size */
    uint16_t ring[VIRTIO_QUEUE_SIZE];
};

struct virtio_used_element {
    uint32_t descriptor;
    uint32_t bytes;
};

struct virtio_used {
    uint16_t flags;
    uint16_t index;
    struct virtio_used_element ring[VIRTIO_QUEUE_SIZE];
};

/* One queue lies in one page; the three parts need alignments of 16, 2 and 4. */
#define AVAILABLE_OFFSET (VIRTIO_QUEUE_SIZE * sizeof(struct virtio_descriptor))
#define USED_OFFSET      2560
_Static_assert(AVAILABLE_OFFSET + sizeof(struct virtio_available) <= USED_OFFSET, "no overlap");
_Static_assert(USED_OFFSET + sizeof(struct virtio_used) <= PAGE_BYTES, "a queue fits a page");

static uint32_t get(const struct virtio_device *device, uint32_t offset)
{
    return mmio_read_32(device->registers + offset);
}

static void set(const struct virtio_device *device, uint32_t offset, uint32_t value)
{
    mmio_write_32(device->registers + offset, value);
}

static void set_64(const struct virtio_device *device, uint32_t offset, uint64_t value)
{
    set(device, offset, (uint32_t)value);
    set(device, offset + 4, (uint32_t)(value >> 32));
}

static uint64_t offered_features(const struct virtio_device *device)
{
    set(device, REGISTER_DEVICE_FEATURES_SELECT, 0);
    uint64_t low = get(device, REGISTER_DEVICE_FEATURES);
    set(device, REGISTER_DEVICE_FEATURES_SELECT, 1);
    return (uint64_t)get(device, REGISTER_DEVICE_FEATURES) << 32 | low;
}

static void accept_features(const struct virtio_device *device)
{
    set(device, REGISTER_DRIVER_FEATURES_SELECT, 0);
    set(device, REGISTER_DRIVER_FEATURES, (uint32_t)device->features);
    set(device, REGISTER_DRIVER_FEATURES_SELECT, 1);
    set(device, REGISTER_DRIVER_FEATURES, (uint32_t)(device->features >> 32));
}

static int negotiate(struct virtio_device *device, uint64_t requested)
{
    set(device, REGISTER_STATUS, 0);
    set(device, REGISTER_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
    device->features = offered_features(device) & (requested | FEATURE_VERSION_1);
    accept_features(device);
    set(device, REGISTER_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK);
    if ((device->features & FEATURE_VERSION_1) &&
        (get(device, REGISTER_STATUS) & STATUS_FEATURES_OK))
        return 0;
    set(device, REGISTER_STATUS, STATUS_FAILED);
    print("virtio: the device at 0x%lx does not accept the driver\n", device->registers);
    return -ENODEV;
}

/* Returns true if a slot has a device of the kind. An empty slot has kind 0. */
static bool slot_has(uint32_t slot, enum virtio_kind kind)
{
    physical_t registers = machine.virtio[slot].start;
    if (machine.virtio[slot].bytes <= REGISTER_CONFIGURATION ||
        mmio_read_32(registers + REGISTER_MAGIC) != VIRTIO_MAGIC ||
        mmio_read_32(registers + REGISTER_DEVICE_ID) != (uint32_t)kind)
        return false;
    uint32_t version = mmio_read_32(registers + REGISTER_VERSION);
    if (version == VIRTIO_VERSION)
        return true;
    print("virtio: the device at 0x%lx has version %u of the interface, not 2; "
          "start QEMU with -global virtio-mmio.force-legacy=false\n",
          registers, version);
    return false;
}

int virtio_find(enum virtio_kind kind, uint64_t requested, struct virtio_device *device)
{
    for (uint32_t slot = 0; slot < machine.virtio_count; slot++) {
        if (!slot_has(slot, kind))
            continue;
        device->registers = machine.virtio[slot].start;
        device->interrupt = machine.virtio_interrupt[slot];
        return negotiate(device, requested);
    }
    return -ENODEV;
}

int virtio_queue_init(struct virtio_queue *queue, struct virtio_device *device, uint32_t index,
                      bool interrupts)
{
    set(device, REGISTER_QUEUE_SELECT, index);
    uint32_t size_max = get(device, REGISTER_QUEUE_SIZE_MAX);
    if (size_max == 0 || get(device, REGISTER_QUEUE_READY) != 0)
        return -ENODEV;
    char *page = page_allocate_zeroed();
    if (!page)
        return -ENOMEM;

    uint32_t size = VIRTIO_QUEUE_SIZE;
    while (size > size_max)
        size /= 2;

    *queue = (struct virtio_queue){
        .device = device,
        .index = index,
        .size = size,
        .descriptors = (struct virtio_descriptor *)page,
        .available = (struct virtio_available *)(page + AVAILABLE_OFFSET),
        .used = (struct virtio_used *)(page + USED_OFFSET),
    };
    queue->available->flags = interrupts ? 0 : AVAILABLE_NO_INTERRUPT;
    set(device, REGISTER_QUEUE_SIZE, queue->size);
    set_64(device, REGISTER_QUEUE_DESCRIPTORS, pointer_to_physical(queue->descriptors));
    set_64(device, REGISTER_QUEUE_AVAILABLE, pointer_to_physical(queue->available));
    set_64(device, REGISTER_QUEUE_USED, pointer_to_physical(queue->used));
    set(device, REGISTER_QUEUE_READY, 1);
    return 0;
}

void virtio_start(struct virtio_device *device)
{
    set(device, REGISTER_STATUS, get(device, REGISTER_STATUS) | STATUS_DRIVER_OK);
}

uint64_t virtio_configuration_64(const struct virtio_device *device, uint32_t offset)
{
    uint64_t low = get(device, REGISTER_CONFIGURATION + offset);
    return (uint64_t)get(device, REGISTER_CONFIGURATION + offset + 4) << 32 | low;
}

void virtio_queue_offer(struct virtio_queue *queue, uint16_t descriptor)
{
    struct virtio_available *available = queue->available;
    kernel_assert(descriptor < queue->size);

    available->ring[available->index % queue->size] = descriptor;
    mmio_fence();
    *(volatile uint16_t *)&available->index = (uint16_t)(available->index + 1);
    set(queue->device, REGISTER_QUEUE_NOTIFY, queue->index);
}

bool virtio_queue_take(struct virtio_queue *queue, uint16_t *descriptor)
{
    const struct virtio_used *used = queue->used;
    while (queue->taken != *(const volatile uint16_t *)&used->index) {
        mmio_fence();
        uint32_t done = used->ring[queue->taken % queue->size].descriptor;
        queue->taken++;
        if (done < queue->size) {
            *descriptor = (uint16_t)done;
            return true;
        }
        print("virtio: the device at 0x%lx gave back a buffer that it never had\n",
              queue->device->registers);
    }
    return false;
}

void virtio_acknowledge(struct virtio_device *device)
{
    set(device, REGISTER_INTERRUPT_ACKNOWLEDGE, get(device, REGISTER_INTERRUPT_STATUS));
}
