/* SPDX-License-Identifier: MIT */

/*
 * Tests the virtio block driver with a simulated device, which can also be absent, old, read-only,
 * without flush, small, slow, faulty or malicious.
 */

#include "device_stubs.h"

#include "kernel/device/block.c"
#include "kernel/device/virtio.c"

#include "kernel/device/virtio_block.c"

#define REGISTERS 0x10008000u
#define INTERRUPT 8
#define BLOCKS    64
#define REQUESTS  500

/* ---- the device ---- */

static struct {
    uint32_t version, kind, size_max;
    uint64_t features;
    bool refuses_features;
    uint64_t sectors;
    uint8_t answer; /* status of transfers */

    uint32_t status, feature_page, feature_page_accepted, interrupt_status;
    uint64_t accepted;
    uint32_t size, ready;
    uint64_t descriptors, available, used;
    uint16_t seen; /* position in the available ring */
    unsigned flushes;
} fake;

static char disk[BLOCKS][BLOCK_BYTES];
static void (*handler)(void *context);

static uint32_t half(uint64_t value, uint32_t which)
{
    return (uint32_t)(value >> 32 * which);
}

static void set_half(uint64_t *value, uint32_t which, uint32_t to)
{
    *value = (*value & ~(0xffffffffull << 32 * which)) | (uint64_t)to << 32 * which;
}

uint32_t mmio_read_32(physical_t address)
{
    uint32_t offset = (uint32_t)address - REGISTERS;
    switch (offset) {
    case REGISTER_MAGIC:
        return VIRTIO_MAGIC;
    case REGISTER_VERSION:
        return fake.version;
    case REGISTER_DEVICE_ID:
        return fake.kind;
    case REGISTER_DEVICE_FEATURES:
        return half(fake.features, fake.feature_page);
    case REGISTER_QUEUE_SIZE_MAX:
        return fake.size_max;
    case REGISTER_QUEUE_READY:
        return fake.ready;
    case REGISTER_INTERRUPT_STATUS:
        return fake.interrupt_status;
    case REGISTER_STATUS:
        return fake.status;
    case REGISTER_CONFIGURATION:
    case REGISTER_CONFIGURATION + 4:
        return half(fake.sectors, (offset - REGISTER_CONFIGURATION) / 4);
    }
    panic("register 0x%x is not to be read", offset);
}

void mmio_write_32(physical_t address, uint32_t value)
{
    uint32_t offset = (uint32_t)address - REGISTERS;
    switch (offset) {
    case REGISTER_DEVICE_FEATURES_SELECT:
        fake.feature_page = value;
        return;
    case REGISTER_DRIVER_FEATURES_SELECT:
        fake.feature_page_accepted = value;
        return;
    case REGISTER_DRIVER_FEATURES:
        set_half(&fake.accepted, fake.feature_page_accepted, value);
        return;
    case REGISTER_QUEUE_SELECT:
        check(value == 0);
        return;
    case REGISTER_QUEUE_SIZE:
        check(value <= fake.size_max && (value & (value - 1)) == 0);
        fake.size = value;
        return;
    case REGISTER_QUEUE_READY:
        check(fake.status == (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK));
        check(fake.descriptors % 16 == 0 && fake.available % 2 == 0 && fake.used % 4 == 0);
        fake.ready = value;
        return;
    case REGISTER_QUEUE_NOTIFY:
        check(fake.status & STATUS_DRIVER_OK);
        return;
    case REGISTER_INTERRUPT_ACKNOWLEDGE:
        fake.interrupt_status &= ~value;
        return;
    case REGISTER_STATUS:
        fake.status = value;
        if (fake.refuses_features)
            fake.status &= ~STATUS_FEATURES_OK;
        return;
    case REGISTER_QUEUE_DESCRIPTORS:
    case REGISTER_QUEUE_DESCRIPTORS + 4:
        set_half(&fake.descriptors, (offset - REGISTER_QUEUE_DESCRIPTORS) / 4, value);
        return;
    case REGISTER_QUEUE_AVAILABLE:
    case REGISTER_QUEUE_AVAILABLE + 4:
        set_half(&fake.available, (offset - REGISTER_QUEUE_AVAILABLE) / 4, value);
        return;
    case REGISTER_QUEUE_USED:
    case REGISTER_QUEUE_USED + 4:
        set_half(&fake.used, (offset - REGISTER_QUEUE_USED) / 4, value);
        return;
    }
    panic("register 0x%x is not to be written", offset);
}

void interrupt_enable(uint32_t source, void (*its_handler)(void *context), void *context)
{
    check(source == INTERRUPT && !context);
    handler = its_handler;
}

void *page_allocate_zeroed(void)
{
    static _Alignas(4096) char page[PAGE_BYTES];
    memset(page, 0, sizeof page);
    return page;
}

/* Unanswered buffers, oldest first. */
static uint32_t offered(uint16_t *heads)
{
    const struct virtio_available *ring = (void *)fake.available;
    uint32_t count = 0;
    for (uint16_t i = fake.seen; i != ring->index; i++)
        heads[count++] = ring->ring[i % fake.size];
    check(count <= fake.size / DESCRIPTORS_PER_SLOT);
    return count;
}

static void put_used(uint32_t descriptor)
{
    struct virtio_used *ring = (void *)fake.used;
    ring->ring[ring->index % fake.size] = (struct virtio_used_element){descriptor, 0};
    ring->index++;
    fake.interrupt_status |= 1;
}

/* Processes the buffer as the specification requires. */
static void serve(uint16_t head)
{
    const struct virtio_descriptor *all = (void *)fake.descriptors;
    const struct virtio_descriptor *first = &all[head];
    check(first->bytes == 16 && first->flags == VIRTIO_NEXT && first->next < fake.size);
    const struct wire_header *header = (void *)first->address;
    const struct virtio_descriptor *next = &all[first->next];

    if (header->operation == WIRE_FLUSH) {
        fake.flushes++;
    } else {
        check(next->bytes == BLOCK_BYTES && (next->flags & VIRTIO_NEXT) && next->next < fake.size);
        check(header->sector % SECTORS_PER_BLOCK == 0 && header->sector < fake.sectors);
        char *block = disk[header->sector / SECTORS_PER_BLOCK];
        check((header->operation == WIRE_READ) == !!(next->flags & VIRTIO_WRITE));
        if (header->operation == WIRE_READ)
            memcpy((void *)next->address, block, BLOCK_BYTES);
        else
            memcpy(block, (void *)next->address, BLOCK_BYTES);
        next = &all[next->next];
    }
    check(next->bytes == 1 && next->flags == VIRTIO_WRITE);
    *(uint8_t *)next->address = fake.answer;
    put_used(head);
}

/* Answers all offered buffers in a random order, and interrupts. */
static bool work(void)
{
    uint16_t heads[VIRTIO_QUEUE_SIZE];
    uint32_t count = offered(heads);
    if (count == 0)
        return false;
    fake.seen = (uint16_t)(fake.seen + count);
    for (uint32_t left = count; left > 0; left--) {
        uint32_t pick = random_below(left);
        uint16_t head = heads[pick];
        heads[pick] = heads[left - 1];
        serve(head);
    }
    handler(NULL);
    check(fake.interrupt_status == 0);
    return true;
}

/* ---- requests ---- */

int ram_disk_init(struct block_device *its_device)
{
    (void)its_device;
    return -ENODEV;
}

static struct block_request requests[REQUESTS];
static _Alignas(4096) char pages[REQUESTS][BLOCK_BYTES];
static int completions;

static void done(struct block_request *request)
{
    (void)request;
    check(locks_held == 0);
    completions++;
}

static void submit_one(int i, enum block_operation operation, uint64_t block)
{
    requests[i] = (struct block_request){
        .operation = operation, .block = block, .data = pages[i], .result = 99, .done = done};
    list_init(&requests[i].link);
    block_submit(&requests[i]);
}

static int result_of(enum block_operation operation, uint64_t block)
{
    completions = 0;
    submit_one(0, operation, block);
    while (completions == 0)
        check(work());
    return requests[0].result;
}

static void plug_in(void)
{
    memset(&fake, 0, sizeof fake);
    fake.version = 2;
    fake.kind = VIRTIO_BLOCK;
    fake.size_max = 1024;
    fake.features = FEATURE_VERSION_1 | FEATURE_FLUSH | 0xfull << 33 | 0x46;
    fake.sectors = BLOCKS * SECTORS_PER_BLOCK + 7;
    memset(slots, 0, sizeof slots);
    memset(&machine, 0, sizeof machine);
    machine.virtio_count = 1;
    machine.virtio[0] = (struct device_range){REGISTERS, 0x1000};
    machine.virtio_interrupt[0] = INTERRUPT;
}

static void start_disk(void)
{
    check(block_init() == 0);
    check(block_count() == BLOCKS);
    check(fake.status ==
          (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK));
}

/* ---- tests ---- */

static void test_one_of_each(void)
{
    plug_in();
    start_disk();
    check(fake.accepted == (FEATURE_VERSION_1 | FEATURE_FLUSH));
    memset(pages[0], 7, BLOCK_BYTES);
    check(result_of(BLOCK_WRITE, 5) == 0 && disk[5][0] == 7 && disk[5][BLOCK_BYTES - 1] == 7);
    memset(pages[0], 0, BLOCK_BYTES);
    check(result_of(BLOCK_READ, 5) == 0 && pages[0][0] == 7 && pages[0][BLOCK_BYTES - 1] == 7);
    check(result_of(BLOCK_FLUSH, ~0ull) == 0 && fake.flushes == 1);
}

static void test_errors_of_the_device(void)
{
    plug_in();
    start_disk();
    for (int answer = 1; answer <= 255; answer++) {
        fake.answer = (uint8_t)answer;
        check(result_of(BLOCK_READ, 0) == -EIO);
    }
    check(result_of(BLOCK_WRITE, 0) == -EIO && result_of(BLOCK_FLUSH, 0) == -EIO);
    fake.answer = 0;
    check(result_of(BLOCK_READ, 0) == 0);
}

static void test_range(void)
{
    plug_in();
    start_disk();
    check(result_of(BLOCK_READ, BLOCKS - 1) == 0);
    check(result_of(BLOCK_READ, BLOCKS) == -EIO); /* a block of 7 sectors is invalid */
    check(result_of(BLOCK_WRITE, ~0ull) == -EIO);
}

/* More requests than slots, answered out of order, over many rounds of the rings. */
static void many(uint32_t size_max)
{
    static char expected[BLOCKS][BLOCK_BYTES];

    plug_in();
    fake.size_max = size_max;
    start_disk();
    memcpy(expected, disk, sizeof disk);
    for (int round = 0; round < 200; round++) {
        int count = 1 + (int)random_below(REQUESTS);
        completions = 0;
        for (int i = 0; i < BLOCKS && i < count; i++) {
            memset(pages[i], (int)random_below(256), BLOCK_BYTES);
            memcpy(expected[i], pages[i], BLOCK_BYTES);
            submit_one(i, BLOCK_WRITE, (uint64_t)i);
            if (random_below(20) == 0)
                work();
        }
        while (work())
            ;
        check(memcmp(disk, expected, sizeof disk) == 0);
        for (int i = BLOCKS; i < count; i++)
            submit_one(i, BLOCK_READ, (uint64_t)i % BLOCKS);
        while (work())
            ;
        check(completions == count);
        for (int i = 0; i < count; i++)
            check(requests[i].result == 0 &&
                  memcmp(pages[i], expected[i % BLOCKS], BLOCK_BYTES) == 0);
    }
}

static void test_many(void)
{
    many(1024);
}

static void test_small_queues(void)
{
    many(32);
    check(queue.size == 32 && slot_count == 10);
    many(100); /* not a power of two */
    check(queue.size == 64);
    many(4);
    check(slot_count == 1);
    plug_in();
    fake.size_max = 2; /* too small for one request */
    check(block_init() == -ENODEV);
    fake.size_max = 0;
    check(block_init() == -ENODEV);
}

static void test_read_only(void)
{
    plug_in();
    fake.features |= FEATURE_READ_ONLY;
    start_disk();
    check(result_of(BLOCK_READ, 0) == 0 && result_of(BLOCK_WRITE, 0) == -EIO);
    check(result_of(BLOCK_FLUSH, 0) == 0);
}

static void test_no_flush(void)
{
    plug_in();
    fake.features &= ~FEATURE_FLUSH;
    start_disk();
    check(result_of(BLOCK_WRITE, 0) == 0);
    check(result_of(BLOCK_FLUSH, 0) == 0 && fake.flushes == 0); /* each write is one */
}

static void test_unusable(void)
{
    plug_in();
    fake.version = 1;
    unsigned before = notes;
    check(block_init() == -ENODEV && notes == before + 2 && fake.status == 0);
    check(block_count() == 0);

    plug_in();
    fake.features &= ~FEATURE_VERSION_1;
    check(block_init() == -ENODEV && fake.status == STATUS_FAILED);

    plug_in();
    fake.refuses_features = true;
    check(block_init() == -ENODEV && fake.status == STATUS_FAILED);

    plug_in();
    fake.kind = VIRTIO_CONSOLE;
    check(block_init() == -ENODEV && fake.status == 0);

    plug_in();
    machine.virtio_interrupt[0] = 0;
    check(block_init() == -ENODEV);
}

/* An answer without a request, or a second answer, is only logged. */
static void test_lying(void)
{
    static const uint32_t lies[] = {1, 2, 3, 126, 127, 128, 0xffff, 0x10000, 0xffffffff};

    plug_in();
    start_disk();
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        unsigned before = notes;
        completions = 0;
        put_used(lies[i]);
        handler(NULL);
        check(notes == before + 1 && completions == 0);
        check(result_of(BLOCK_READ, 3) == 0);
    }
}

int main(void)
{
    run_test(test_one_of_each);
    run_test(test_errors_of_the_device);
    run_test(test_range);
    run_test(test_many);
    run_test(test_small_queues);
    run_test(test_read_only);
    run_test(test_no_flush);
    run_test(test_unusable);
    run_test(test_lying);
    return 0;
}
