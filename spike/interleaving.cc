// SPDX-License-Identifier: MIT

#include "interleaving.h"

static constexpr uint64_t SHORT_SLICE = 40; // instructions: a few lines of the kernel
static constexpr uint64_t LONG_SLICE = 2000;
static constexpr uint64_t LONG_ONE_IN = 8;
static constexpr uint64_t LOCK_ONE_IN = 16;
static constexpr uint64_t LOCK_MAX = 20; // rounds
static constexpr uint64_t WAKEUP_ONE_IN = 16;
static constexpr uint64_t WAKEUP_MAX = 400;

interleaving::interleaving(uint64_t seed) : state(seed)
{
}

// SplitMix64 (Steele, Lea and Flood 2014). The limits are so small that the remainder's bias does
// not matter.
uint64_t interleaving::draw(uint64_t limit)
{
    uint64_t mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return (mixed ^ mixed >> 31) % limit;
}

size_t interleaving::take(std::vector<size_t> &harts)
{
    size_t &drawn = harts[draw(harts.size())];
    size_t hart = drawn;
    drawn = harts.back();
    harts.pop_back();
    return hart;
}

uint64_t interleaving::slice()
{
    return 1 + draw(draw(LONG_ONE_IN) ? SHORT_SLICE : LONG_SLICE);
}

uint64_t interleaving::delay(uint64_t one_in, uint64_t most)
{
    return draw(one_in) ? 0 : 1 + draw(most);
}

uint64_t interleaving::delay_at_lock()
{
    return delay(LOCK_ONE_IN, LOCK_MAX);
}

uint64_t interleaving::delay_of_wakeup()
{
    return delay(WAKEUP_ONE_IN, WAKEUP_MAX);
}
