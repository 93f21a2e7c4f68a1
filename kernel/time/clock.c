/* SPDX-License-Identifier: MIT */

#include "time/clock.h"

#include "device/device_tree.h"
#include "lib/panic.h"
#include "time/tick.h"
#include "trap/csr.h"

#define SECOND_NS     1000000000ul
#define TICK_STANDARD 10000000ul
#define TICK_SHORTEST 100000ul

static uint64_t boot_time; /* of the hardware's counter */
static uint64_t tick_ns;

void clock_init(void)
{
    if (machine.timebase_hz == 0 || SECOND_NS % machine.timebase_hz != 0)
        panic("the timer runs at %lu Hz, which is no whole number of nanoseconds",
              machine.timebase_hz);
    boot_time = csr_read(time);
    tick_ns = boot_argument_number("tick", TICK_STANDARD);
    if (tick_ns < TICK_SHORTEST || tick_ns > SECOND_NS)
        panic("boot argument tick=%lu ns: it must be from 100us to 1s", tick_ns);
}

uint64_t clock_now(void)
{
    return (csr_read(time) - boot_time) * (SECOND_NS / machine.timebase_hz);
}

/* The hardware counter's value at a time. */
uint64_t clock_hardware(uint64_t ns)
{
    uint64_t step = SECOND_NS / machine.timebase_hz;
    return boot_time + (ns + step - 1) / step;
}

uint64_t clock_cycles(void)
{
    return csr_read(cycle);
}

uint64_t clock_tick_ns(void)
{
    return tick_ns;
}

uint64_t clock_ticks(void)
{
    return clock_now() / tick_ns;
}
