/* SPDX-License-Identifier: MIT */
#include "interrupt_controller.h"

#include "device_tree.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "mmio.h"
#include "scheduler/cpu.h"

/*
 * RISC-V PLIC 1.0. Each source has a priority. Each context (a CPU in one mode)
 * has an enable bit per source, a threshold, and a claim register. Reading it
 * claims the next source; writing it completes the source. Sources are enabled
 * only for CPU 0: one CPU serves all devices, so handlers do not race.
 */
#define PRIORITY_OFFSET 0x0u
#define ENABLE_OFFSET   0x2000u
#define ENABLE_STRIDE   0x80u
#define CONTEXT_OFFSET  0x200000u
#define CONTEXT_STRIDE  0x1000u
#define CONTEXT_CLAIM   0x4u

struct handler {
    void (*function)(void *context);
    void *context;
};

/* Written at boot, before the source is enabled. The entry of source 0 is for interrupts without
 * a source. */
static struct handler handlers[INTERRUPT_SOURCES];

/* Returns the CPU's registers there, or 0 if devices cannot interrupt it. */
static physical_t context_registers(uint32_t cpu)
{
    const struct device_range *controller = &machine.interrupt_controller;
    uint32_t context = machine.interrupt_context[cpu];
    if (context == INTERRUPT_CONTEXT_NONE || controller->bytes < CONTEXT_OFFSET ||
        context >= (controller->bytes - CONTEXT_OFFSET) / CONTEXT_STRIDE)
        return 0;
    return controller->start + CONTEXT_OFFSET + (physical_t)CONTEXT_STRIDE * context;
}

static physical_t enable_word(uint32_t context, uint32_t source)
{
    return machine.interrupt_controller.start + ENABLE_OFFSET +
           (physical_t)ENABLE_STRIDE * context + 4 * (source / 32);
}

void interrupt_controller_init(void)
{
    if (context_registers(0) == 0) {
        print("interrupt controller: none that leads to CPU 0; devices cannot interrupt\n");
        return;
    }
    uint32_t context = machine.interrupt_context[0];
    for (uint32_t source = 0; source < INTERRUPT_SOURCES; source += 32)
        mmio_write_32(enable_word(context, source), 0);
}

void interrupt_controller_init_cpu(void)
{
    physical_t registers = context_registers(this_cpu()->id);
    if (registers != 0)
        mmio_write_32(registers, 0);
}

void interrupt_enable(uint32_t source, void (*handler)(void *context), void *context)
{
    kernel_assert(source > 0 && source < INTERRUPT_SOURCES && !handlers[source].function);
    if (context_registers(0) == 0)
        return;

    handlers[source] = (struct handler){handler, context};
    mmio_write_32(machine.interrupt_controller.start + PRIORITY_OFFSET + 4 * source, 1);
    physical_t word = enable_word(machine.interrupt_context[0], source);
    mmio_write_32(word, mmio_read_32(word) | 1u << source % 32);
}

void interrupt_unclaimed(void (*handler)(void *context), void *context)
{
    handlers[0] = (struct handler){handler, context};
}

void interrupt_controller_handle(void)
{
    physical_t registers = context_registers(this_cpu()->id);
    if (registers == 0)
        return;

    uint32_t source = mmio_read_32(registers + CONTEXT_CLAIM);
    if (source == 0 && handlers[0].function)
        handlers[0].function(handlers[0].context);
    for (; source != 0; source = mmio_read_32(registers + CONTEXT_CLAIM)) {
        if (source < INTERRUPT_SOURCES && handlers[source].function)
            handlers[source].function(handlers[source].context);
        mmio_write_32(registers + CONTEXT_CLAIM, source);
    }
}
