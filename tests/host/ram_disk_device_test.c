/* SPDX-License-Identifier: MIT */

/* Tests the initial ramdisk's times and data, with a simulated clock and timers. */

#include "device_stubs.h"

#define KERNEL_TIME_CLOCK_H /* replaces kernel/time/clock.h */
static uint64_t now;
static inline uint64_t clock_now(void)
{
    return now;
}

#include "kernel/device/block.c"
#include "kernel/device/boot_arguments.c"
#include "kernel/device/ram_disk.c"

#define BLOCKS   40
#define REQUESTS 30

/* ---- timers ---- */

static struct timer *running[CHANNELS_MAX];
static uint64_t starts;

void timer_start(struct timer *timer, uint64_t when, void (*expired_function)(struct timer *timer))
{
    check(!timer->pending && when > now);
    timer->when = when;
    timer->expired = expired_function;
    timer->order = starts++;
    timer->pending = true;
    for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
        if (!running[i]) {
            running[i] = timer;
            return;
        }
    }
    panic("more timers than channels");
}

/* Lets the next timer expire; returns false if there is none. */
static bool next_event(void)
{
    uint32_t next = CHANNELS_MAX;
    for (uint32_t i = 0; i < CHANNELS_MAX; i++)
        if (running[i] &&
            (next == CHANNELS_MAX || running[i]->when < running[next]->when ||
             (running[i]->when == running[next]->when && running[i]->order < running[next]->order)))
            next = i;
    if (next == CHANNELS_MAX)
        return false;
    struct timer *timer = running[next];
    running[next] = NULL;
    now = timer->when;
    timer->pending = false;
    timer->expired(timer);
    return true;
}

/* ---- requests ---- */

int virtio_block_init(struct block_device *its_device)
{
    (void)its_device;
    return -ENODEV;
}

static char image[BLOCKS * BLOCK_BYTES + 100];
static struct block_request requests[REQUESTS];
static _Alignas(4096) char pages[REQUESTS][BLOCK_BYTES];
static uint64_t completed[REQUESTS]; /* when */
static int completions;

static void done(struct block_request *request)
{
    check(locks_held == 0);
    completed[request - requests] = now;
    completions++;
}

static void submit_one(int i, enum block_operation operation, uint64_t block)
{
    requests[i] = (struct block_request){
        .operation = operation, .block = block, .data = pages[i], .result = 99, .done = done};
    list_init(&requests[i].link);
    completed[i] = UINT64_MAX;
    block_submit(&requests[i]);
}

static void finish_all(int expected)
{
    while (next_event())
        ;
    check(completions == expected);
    completions = 0;
}

static void start_disk(size_t offset, size_t bytes, const char *boot_arguments)
{
    machine.initial_ramdisk = (struct device_range){(uint64_t)(image + offset), bytes};
    snprintf(machine.boot_arguments, sizeof machine.boot_arguments, "%s", boot_arguments);
    check(block_init() == 0);
    check(block_count() == bytes / BLOCK_BYTES);
    now = 1000;
}

/* ---- tests ---- */

static void test_latency(void)
{
    start_disk(0, sizeof image, "disk_read=70us disk_write=30us disk_flush=1ms");
    submit_one(0, BLOCK_READ, 0);
    submit_one(1, BLOCK_WRITE, 1);
    submit_one(2, BLOCK_FLUSH, ~0ull);
    check(completions == 0);
    finish_all(3);
    check(completed[0] == 71000 && completed[1] == 31000 && completed[2] == 1001000);
    check(requests[0].result == 0 && requests[1].result == 0 && requests[2].result == 0);
}

static void test_channels(void)
{
    start_disk(0, sizeof image, "disk_write=10us disk_depth=3");
    for (int i = 0; i < 8; i++)
        submit_one(i, BLOCK_WRITE, 0);
    finish_all(8);
    for (int i = 0; i < 8; i++)
        check(completed[i] == 1000 + 10000 * (uint64_t)(1 + i / 3)); /* in order, three at a time */
}

static void test_no_latency(void)
{
    start_disk(0, sizeof image, "disk_read=0 disk_write=5us disk_flush=0 disk_depth=1");
    submit_one(0, BLOCK_WRITE, 0);
    submit_one(1, BLOCK_WRITE, 1);
    submit_one(2, BLOCK_READ, 2);
    submit_one(3, BLOCK_FLUSH, 0);
    check(completions == 2 && completed[2] == 1000 && completed[3] == 1000);
    finish_all(4);
    check(completed[0] == 6000 && completed[1] == 11000);
}

static void test_out_of_range(void)
{
    start_disk(0, sizeof image, "");
    submit_one(0, BLOCK_READ, BLOCKS);
    submit_one(1, BLOCK_WRITE, ~0ull);
    check(completions == 2 && requests[0].result == -EIO && requests[1].result == -EIO);
    completions = 0;
    submit_one(2, BLOCK_READ, BLOCKS - 1);
    finish_all(1);
    check(requests[2].result == 0);
}

static const char *arguments;

static void start_with_arguments(void)
{
    start_disk(0, sizeof image, arguments);
}

static void test_bad_arguments(void)
{
    static const char *const bad[] = {"disk_read=11s", "disk_write=quick", "disk_flush=-1",
                                      "disk_depth=0", "disk_depth=65"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        arguments = bad[i];
        check(panics(start_with_arguments));
    }
    arguments = "";
    check(!panics(start_with_arguments));
    check(latency[BLOCK_READ] == READ_NS && latency[BLOCK_WRITE] == WRITE_NS && depth == DEPTH);
}

static void test_no_disk(void)
{
    machine.initial_ramdisk = (struct device_range){(uint64_t)image, BLOCK_BYTES - 1};
    check(block_init() == -ENODEV && block_count() == 0);
    submit_one(0, BLOCK_READ, 0);
    submit_one(1, BLOCK_FLUSH, 0);
    check(completions == 2 && requests[0].result == -EIO && requests[1].result == -EIO);
    completions = 0;
}

/* Many concurrent random transfers, on a disk at any start address. */
static void test_data(void)
{
    static char expected[BLOCKS][BLOCK_BYTES];

    for (int round = 0; round < 100; round++) {
        size_t offset = random_below(100);
        memset(image, 0x5a, sizeof image);
        memset(expected, 0x5a, sizeof expected);
        start_disk(offset, BLOCKS * BLOCK_BYTES, "disk_depth=4");
        for (int batch = 0; batch < 10; batch++) {
            for (int i = 0; i < REQUESTS; i++) {
                uint64_t block = (uint64_t)i + random_below(2) * (BLOCKS - REQUESTS);
                if (random_below(2)) {
                    memset(pages[i], (int)random_below(256), BLOCK_BYTES);
                    memcpy(expected[block], pages[i], BLOCK_BYTES);
                    submit_one(i, BLOCK_WRITE, block);
                } else {
                    submit_one(i, BLOCK_READ, block);
                    next_event();
                    check(memcmp(pages[i], expected[block], BLOCK_BYTES) == 0);
                }
            }
            while (next_event())
                ;
            check(completions == REQUESTS);
            completions = 0;
        }
        check(memcmp(image + offset, expected, sizeof expected) == 0);
        for (size_t i = 0; i < sizeof image; i++)
            check((i >= offset && i < offset + sizeof expected) || image[i] == 0x5a);
    }
}

int main(void)
{
    run_test(test_latency);
    run_test(test_channels);
    run_test(test_no_latency);
    run_test(test_out_of_range);
    run_test(test_bad_arguments);
    run_test(test_no_disk);
    run_test(test_data);
    return 0;
}
