// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// In what order harts run within a round, and for how long each: drawn anew for each seed, the same
// for the same one.
class interleaving
{
  public:
    explicit interleaving(uint64_t seed);

    // One of these harts, taken out of them.
    size_t take(std::vector<size_t> &harts);

    // How many instructions a hart has before another one is drawn: few, now and then many.
    uint64_t slice();

    // For how many rounds a hart stands still that has come to a lock; mostly 0.
    uint64_t delay_at_lock();

    // The same of a hart that slept or burnt, and is called: longer, so that a process that was
    // woken is late by more than a tick now and then.
    uint64_t delay_of_wakeup();

    // A number below the limit.
    uint64_t draw(uint64_t limit);

  private:
    uint64_t delay(uint64_t one_in, uint64_t most);

    uint64_t state;
};
