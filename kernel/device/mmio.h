/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_MMIO_H
#define KERNEL_DEVICE_MMIO_H

#include <stdint.h>

#include "memory/layout.h"

/*
 * Device registers, by physical address. The fence orders memory and device
 * accesses both ways. The device sees all stores before a register write, and
 * loads after a register read see the device's stores.
 */
static inline void mmio_fence(void)
{
#ifdef HOST_TEST
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#else
    __asm__ volatile("fence iorw, iorw" ::: "memory");
#endif
}

static inline uint8_t mmio_read_8(physical_t address)
{
    uint8_t value = *(volatile uint8_t *)physical_to_pointer(address);
    mmio_fence();
    return value;
}

static inline uint32_t mmio_read_32(physical_t address)
{
    uint32_t value = *(volatile uint32_t *)physical_to_pointer(address);
    mmio_fence();
    return value;
}

static inline void mmio_write_8(physical_t address, uint8_t value)
{
    mmio_fence();
    *(volatile uint8_t *)physical_to_pointer(address) = value;
}

static inline void mmio_write_32(physical_t address, uint32_t value)
{
    mmio_fence();
    *(volatile uint32_t *)physical_to_pointer(address) = value;
}

#endif
