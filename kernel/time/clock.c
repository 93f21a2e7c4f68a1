/* SPDX-License-Identifier: MIT */

#include "time/clock.h"

#include "abi/machine_hints.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "time/tick.h"
#include "trap/csr.h"

#define SECOND_NS      1000000000ul
#define TICK_STANDARD  10000000ul
#define TICK_SHORTEST  100000ul
#define CALIBRATION_NS 2000000ul

struct clock_base clock_base;
static uint64_t tick_ns;

void clock_init(void)
{
    if (machine.timebase_hz == 0 || SECOND_NS % machine.timebase_hz != 0)
        panic("the timer runs at %lu Hz, which is no whole number of nanoseconds",
              machine.timebase_hz);
    clock_base.step = SECOND_NS / machine.timebase_hz;
    clock_base.boot = csr_read(time);
    tick_ns = boot_argument_number("tick", TICK_STANDARD);
    if (tick_ns < TICK_SHORTEST || tick_ns > SECOND_NS)
        panic("boot argument tick=%lu ns: it must be from 100us to 1s", tick_ns);
}

uint64_t clock_hardware(uint64_t ns)
{
    return clock_base.boot + (ns + clock_base.step - 1) / clock_base.step;
}

/*
 * On Spike a CPU is a model that does one cycle a nanosecond. On other machines
 * the counter's speed varies, and is measured.
 */
uint64_t clock_cycles_per_second(void)
{
    if (machine.has_host_interface)
        return SECOND_NS;
    uint64_t start = clock_now();
    uint64_t cycles = clock_cycles();
    while (clock_now() - start < CALIBRATION_NS)
        ;
    return (clock_cycles() - cycles) * (SECOND_NS / CALIBRATION_NS);
}

/* On Spike, where an instruction takes a nanosecond, a hint makes them pass at once. */
void clock_pass(uint64_t ns)
{
    uint64_t end = clock_now() + ns;
    for (uint64_t now = clock_now(); now < end; now = clock_now()) {
        uint64_t left = end - now;
        __asm__ volatile("slti x0, %[left], %[burn]" : [left] "+r"(left) : [burn] "i"(HINT_BURN));
    }
}

uint64_t clock_tick_ns(void)
{
    return tick_ns;
}

uint64_t clock_ticks(void)
{
    return clock_now() / tick_ns;
}
