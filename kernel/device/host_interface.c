/* SPDX-License-Identifier: MIT */
#include "host_interface.h"

#include "mmio.h"

/* The host finds these words by the symbols tohost and fromhost, their physical addresses
 * (kernel.ld). */
extern volatile uint64_t tohost_word;
extern volatile uint64_t fromhost_word;
volatile uint64_t tohost_word __attribute__((section(".htif"), aligned(64)));
volatile uint64_t fromhost_word __attribute__((section(".htif"), aligned(64)));

/* The call's number and arguments; afterwards its result, in the first word. */
static volatile uint64_t call[8] __attribute__((aligned(64)));

void host_call_start(enum host_call_number number, const uint64_t arguments[5])
{
    call[0] = number;
    for (int i = 0; i < 5; i++)
        call[1 + i] = arguments[i];
    mmio_fence();
    tohost_word = pointer_to_physical((const void *)call);
}

bool host_call_done(int64_t *result)
{
    if (fromhost_word == 0)
        return false;
    mmio_fence();
    *result = (int64_t)call[0];
    mmio_fence();
    fromhost_word = 0;
    return true;
}

void host_end(int status)
{
    mmio_fence();
    tohost_word = (uint64_t)status << 1 | 1;
}
