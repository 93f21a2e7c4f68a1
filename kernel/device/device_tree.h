/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_DEVICE_TREE_H
#define KERNEL_DEVICE_DEVICE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 256

struct device_range {
    uint64_t start; /* physical; 0 bytes: there is none */
    uint64_t bytes;
};

#define VIRTIO_SLOTS_MAX 16

#define INTERRUPT_SOURCES      1024 /* of a PLIC; source 0 means none */
#define INTERRUPT_CONTEXT_NONE 0xffffffffu

/* The machine's hardware, as described by its flattened device tree (version 17). */
struct machine {
    uint32_t cpus;
    uint64_t hart[CPUS_MAX];              /* the hardware's number: ascending, below CPUS_MAX */
    uint32_t interrupt_context[CPUS_MAX]; /* its S-mode context at the interrupt controller */
    struct device_range memory;           /* the largest, if there are several */
    struct device_range initial_ramdisk;  /* inside memory */
    uint64_t timebase_hz;
    bool has_supervisor_timer; /* Sstc on all CPUs */
    struct device_range clint; /* software interrupts */
    struct device_range interrupt_controller;
    struct device_range console;
    uint32_t console_interrupt; /* 0: none; else below INTERRUPT_SOURCES */
    uint32_t virtio_count;
    struct device_range virtio[VIRTIO_SLOTS_MAX];
    uint32_t virtio_interrupt[VIRTIO_SLOTS_MAX];
    struct device_range power; /* sifive,test0 */
    bool has_host_interface;   /* HTIF: Spike */
    char boot_arguments[1024];
};

extern struct machine machine;

/* Reads the tree at `blob` into `machine`. Returns 0, or -EINVAL with a message in the log; any
 * bytes may be in the blob after its header. */
int device_tree_read(const void *blob, struct machine *machine);

/*
 * Reads the value of name=value among the boot arguments. They are separated by spaces; a value
 * with spaces is in double quotes; a name alone has an empty value. If a name is given twice, the
 * last one counts. Returns false, with `value` unchanged, if it is missing. A value that does not
 * fit causes a panic: a run must never be measured with settings that differ from the request.
 */
bool boot_argument_text(const char *name, char *value, size_t size);
/* Returns the same as a number, with an optional suffix ns, us, ms or s (then in nanoseconds).
 * Returns `fallback` if it is missing; a value that is not a number causes a panic. */
uint64_t boot_argument_number(const char *name, uint64_t fallback);

#endif
