/* SPDX-License-Identifier: MIT */
#include "host.h"

#include "abi/machine_status.h"
#include "device_tree.h"
#include "host_interface.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "mmio.h"
#include "sync/spinlock.h"
#include "trace_device.h"

/* The SiFive test device, which QEMU has: one register. */
#define TEST_PASS 0x5555u
#define TEST_FAIL 0x3333u

#define STATUS_MAX 127

/* How often the shutdown polls the block in progress: about 0.1 s on either machine. */
#define PATIENCE 10000000u

/* Guards the host interface and the trace device; the CPU that ends the machine never releases
 * it. */
static struct spinlock lock = {.name = "host", .rank = LOCK_HOST};
static const struct trace_device *output; /* null: no trace leaves the machine */
static bool output_busy;

/* ---- the trace ---- */

bool trace_output_init(void)
{
    static const struct trace_device *const devices[] = {&host_file, &virtio_console};

    for (size_t i = 0; i < sizeof devices / sizeof devices[0] && !output; i++)
        if (devices[i]->init())
            output = devices[i];
    if (output)
        print("trace: to the %s\n", output->name);
    return output != NULL;
}

/* Returns false if the block in progress was lost. Needs the lock. */
static bool make_progress(void)
{
    if (!output_busy)
        return true;
    enum trace_device_state state = output->poll();
    output_busy = state == TRACE_DEVICE_BUSY;
    return state != TRACE_DEVICE_FAILED;
}

/* A trace with a gap is useless: the run ends. */
static _Noreturn void end_without_trace(void)
{
    print("trace: a block was lost\n");
    machine_power_off(MACHINE_FAILED);
}

bool trace_output_start(const void *block, size_t bytes)
{
    kernel_assert(output && bytes > 0 && bytes <= UINT32_MAX);

    spinlock_acquire(&lock);
    bool is_finished = make_progress();
    bool started = is_finished && !output_busy;
    if (started) {
        output->start(block, bytes);
        output_busy = true;
    }
    spinlock_release(&lock);

    if (!is_finished)
        end_without_trace();
    return started;
}

bool trace_output_busy(void)
{
    spinlock_acquire(&lock);
    bool is_finished = make_progress();
    bool busy = output_busy;
    spinlock_release(&lock);

    if (!is_finished)
        end_without_trace();
    return busy;
}

/* ---- the end ---- */

/*
 * The lock keeps other CPUs from starting another block. After a panic a stopped CPU may hold it;
 * then the shutdown continues without it.
 */
static bool finish_output(void)
{
    bool is_finished = true;
    for (uint32_t i = 0; i < PATIENCE && !spinlock_try(&lock); i++)
        ;
    for (uint32_t i = 0; i < PATIENCE && output_busy; i++)
        is_finished &= make_progress();
    return is_finished && !output_busy;
}

static _Noreturn void wait_for_the_end(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

_Noreturn void machine_power_off(int status)
{
    if (!finish_output() && status == MACHINE_SUCCESS)
        status = MACHINE_FAILED;
    if (status < 0 || status > STATUS_MAX)
        status = MACHINE_FAILED;

    host_end(status);
    if (machine.power.bytes >= 4)
        mmio_write_32(machine.power.start,
                      status == MACHINE_SUCCESS ? TEST_PASS : (uint32_t)status << 16 | TEST_FAIL);
    wait_for_the_end();
}
