/* SPDX-License-Identifier: MIT */
#ifndef SIM_SLOTS_H
#define SIM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The set of free numbers from 0 to a limit of at most 2^24. A tree of bits, with 64 bits per node,
 * finds the lowest free number in a few steps: a bit is set if some number in its subtree is free.
 */
#define SLOT_LEVELS 4

struct slots {
    uint64_t *level[SLOT_LEVELS]; /* level 0 has a bit for each number; the last level is one word;
                                   * each has slots_words() words */
};

static inline uint32_t slots_words(uint32_t limit, uint32_t level)
{
    uint64_t words = limit;
    for (uint32_t i = 0; i <= level; i++)
        words = (words + 63) / 64;
    return (uint32_t)words;
}

static inline void slots_give_back(struct slots *slots, uint32_t slot)
{
    for (uint32_t i = 0; i < SLOT_LEVELS; i++, slot /= 64)
        slots->level[i][slot / 64] |= 1ull << (slot % 64);
}

static inline bool slots_any(const struct slots *slots)
{
    return slots->level[SLOT_LEVELS - 1][0] != 0;
}

/* Marks all numbers as free. The words of each level must exist and be zero. */
static inline void slots_fill(struct slots *slots, uint32_t limit)
{
    for (uint32_t slot = 0; slot < limit; slot++)
        slots_give_back(slots, slot);
}

/* Takes the lowest free number. Returns UINT32_MAX if there is none. */
static inline uint32_t slots_take(struct slots *slots)
{
    uint32_t slot = 0;
    if (!slots_any(slots))
        return UINT32_MAX;
    for (uint32_t i = SLOT_LEVELS; i > 0; i--)
        slot = slot * 64 + (uint32_t)__builtin_ctzll(slots->level[i - 1][slot]);
    for (uint32_t i = 0, rest = slot; i < SLOT_LEVELS; i++, rest /= 64) {
        slots->level[i][rest / 64] &= ~(1ull << (rest % 64));
        if (slots->level[i][rest / 64])
            break;
    }
    return slot;
}

#endif
