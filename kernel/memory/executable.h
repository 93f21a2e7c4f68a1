/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_EXECUTABLE_H
#define KERNEL_MEMORY_EXECUTABLE_H

#include <stdint.h>

#include "address_space.h"

/* The bytes of a program file, from any source. */
struct executable {
    uint64_t size;
    /* Reads [offset, offset + n) into kernel memory. Returns bytes read, or a negative error. */
    int64_t (*read)(void *context, void *destination, uint64_t offset, uint64_t n);
    void *context;
};

struct start_state {
    uint64_t entry;
    uint64_t stack;     /* the stack pointer; argv lies there */
    uint64_t arguments; /* argc */
};

/*
 * Loads an ELF file for riscv64 with xv6's layout: segments from 0, then a guard page, then one
 * page of stack with the arguments. `arguments` is an array of kernel strings that ends with null.
 * Nothing in the file is trusted. Returns 0, -ENOEXEC, -ENOMEM, -E2BIG or the error of read(); on
 * failure `space` is empty.
 */
int executable_load(struct address_space *space, const struct executable *file,
                    char *const arguments[], struct start_state *start);

#endif
