/* SPDX-License-Identifier: MIT */

#include "lib/symbols.h"

#include <stddef.h>

extern char kernel_start[], kernel_writable[];

const char *symbol_find(uint64_t address, uint64_t *offset)
{
    const struct symbol *match = NULL;
    if (address < (uint64_t)kernel_start || address >= (uint64_t)kernel_writable)
        return NULL;
    for (uint64_t i = 0; i < symbol_count && symbols[i].address <= address; i++)
        match = &symbols[i];
    if (!match)
        return NULL;
    *offset = address - match->address;
    return match->name;
}
