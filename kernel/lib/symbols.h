/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_SYMBOLS_H
#define KERNEL_LIB_SYMBOLS_H

#include <stdint.h>

/* The kernel's functions in the order of their addresses; made by tools/make_symbols.sh from the
 * kernel itself. */
struct symbol {
    uint64_t address;
    const char *name;
};

extern const struct symbol symbols[];
extern const uint64_t symbol_count;

/* Returns the function at an address and how far into it the address lies, or null if there is
 * none. */
const char *symbol_find(uint64_t address, uint64_t *offset);

#endif
