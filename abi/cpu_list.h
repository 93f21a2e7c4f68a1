/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ABI_CPU_LIST_H
#define SCHEDLAB_ABI_CPU_LIST_H

/* Sets of CPUs as words of 64 bits, and in Linux's format: "0-3,8". */

#include <stdbool.h>
#include <stdint.h>

#define CPU_LIST_WORDS 16 /* of the widest set: of 1,024 CPUs */
#define CPU_LIST_CPUS  (64 * CPU_LIST_WORDS)

/* Reads a number at *text, and advances it. Returns CPU_LIST_CPUS if there is none below that. */
static inline uint32_t cpu_list_number(const char **text)
{
    uint32_t number = **text >= '0' && **text <= '9' ? 0 : CPU_LIST_CPUS;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        number = number * 10 + (uint32_t)(**text - '0');
        if (number > CPU_LIST_CPUS)
            number = CPU_LIST_CPUS;
    }
    return number;
}

/* Returns false if the text is not a list, or names a CPU above 1,023. */
static inline bool cpu_list_read(const char *text, uint64_t words[CPU_LIST_WORDS])
{
    for (uint32_t i = 0; i < CPU_LIST_WORDS; i++)
        words[i] = 0;
    for (bool more = true; more; text += more) {
        uint32_t first = cpu_list_number(&text);
        uint32_t last = first;
        if (*text == '-') {
            text++;
            last = cpu_list_number(&text);
        }
        if (last >= CPU_LIST_CPUS || first > last)
            return false;
        for (uint32_t cpu = first; cpu <= last; cpu++)
            words[cpu / 64] |= 1ull << cpu % 64;
        more = *text == ',';
    }
    return *text == '\0';
}

#endif
