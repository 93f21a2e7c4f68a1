/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_MACHINE_MODE_H
#define KERNEL_BOOT_MACHINE_MODE_H

#include <stdint.h>

#include "device/device_tree.h"

/* Machine mode's data for a hart, in an array indexed by hart. boot/entry.S knows this layout. */
struct machine_mode_state {
    uint64_t saved;             /* a register of the code that was interrupted */
    volatile uint64_t software; /* physical address of this hart's software-interrupt register */
    volatile uint64_t halt;     /* park permanently at the next software interrupt */
    volatile uint64_t halted;   /* parked */
};

extern struct machine_mode_state machine_mode[CPUS_MAX];

#endif
