/* SPDX-License-Identifier: MIT */

#include "boot/inject.h"

#include <stdbool.h>

#include "device/device_tree.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "sync/spinlock.h"
#include "trap/csr.h"

#define WHEN_STANDARD 50000000ul

static uint64_t overflow_stack(uint64_t depth)
{
    volatile uint64_t frame[8] = {depth};
    return depth < UINT32_MAX ? overflow_stack(depth + 1) + frame[depth % 8] : 0;
}

static void read_null(void)
{
    volatile uint64_t *nowhere = NULL;
    __asm__ volatile("" : "+r"(nowhere));
    (void)*nowhere;
}

static void take_in_wrong_order(void)
{
    struct spinlock inner, outer;
    spinlock_init(&inner, "inner", LOCK_PRINT);
    spinlock_init(&outer, "outer", LOCK_FILES);
    spinlock_acquire(&inner);
    spinlock_acquire(&outer);
}

static void wait_for_ever(void)
{
    struct spinlock lost;
    spinlock_init(&lost, "lost", LOCK_FILES);
    lost.locked = 1;
    spinlock_acquire(&lost);
}

static void serve_nothing(void)
{
    csr_write(sie, 0);
    for (;;)
        wait_for_interrupt();
}

void inject_fault(uint64_t now)
{
    static uint64_t when;
    static char kind[16];
    if (when == 0) {
        boot_argument_text("inject", kind, sizeof(kind));
        when = boot_argument_number("inject_at", WHEN_STANDARD);
    }
    if (!kind[0] || now < when)
        return;
    if (strcmp(kind, "panic") == 0)
        panic("injected");
    else if (strcmp(kind, "null") == 0)
        read_null();
    else if (strcmp(kind, "stack") == 0)
        overflow_stack(0);
    else if (strcmp(kind, "order") == 0)
        take_in_wrong_order();
    else if (strcmp(kind, "deadlock") == 0)
        wait_for_ever();
    else if (strcmp(kind, "hang") == 0)
        serve_nothing();
}
