// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// The order of harts within a round, and the length of their slices: drawn from a seed, so that the
// same seed gives the same order.
class interleaving
{
  public:
    explicit interleaving(uint64_t seed);

    // Draws one of these harts, and removes it.
    size_t take(std::vector<size_t> &harts);

    // Draws the number of a hart's instructions before another hart is drawn: usually few,
    // occasionally many.
    uint64_t slice();

    // Draws for how many rounds a hart pauses that has reached a lock; usually 0.
    uint64_t delay_at_lock();

    // Draws the same for a hart that slept or burnt, and is interrupted. It is longer, so that a
    // woken process is occasionally late by more than a tick.
    uint64_t delay_of_wakeup();

    // Draws a number below the limit.
    uint64_t draw(uint64_t limit);

  private:
    uint64_t delay(uint64_t one_in, uint64_t most);

    uint64_t state;
};
