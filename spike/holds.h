// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "hart_set.h"
#include "interleaving.h"

// A pause of a hart for some rounds. Its place is given by the hart's progress, and not by time, so
// it is the same if earlier pauses are removed.
struct hold {
    uint64_t boundaries;   // boundaries reached
    uint64_t instructions; // since the last of them
    bool called;           // it slept or burnt there, and has just been interrupted
    uint64_t rounds;

    bool is_before(const hold &other) const;
};

// Turns of abnormal length: drawn from a seed, or from a list. All other turns are unchanged. Drawn
// pauses can be saved as a list, which reproduces the run.
class holds
{
  public:
    // Reads a file that `keep` wrote. Throws std::runtime_error.
    static holds of_file(const std::string &path);

    explicit holds(uint64_t seed);

    // Writes each pause that occurs as a line: hart, the four members of the hold, its address and
    // its function's return address, and the kernel's time.
    void keep_in(const std::string &path);
    void keep(size_t hart, const hold &taken, uint64_t address, uint64_t caller,
              uint64_t kernel_ns);

    // Starts a hart's turn. Returns the number of its instructions until a cut by the seed; `turn`
    // if there is none.
    uint64_t cut(uint64_t turn);

    // Returns how many instructions remain until the list pauses the hart; NEVER if that is not
    // known yet.
    uint64_t until_listed(size_t hart, uint64_t boundaries, uint64_t instructions);

    // Returns for how many rounds the hart pauses here; 0: it does not.
    uint64_t when_called(size_t hart, uint64_t boundaries, uint64_t instructions);
    uint64_t when_cut();
    uint64_t at_boundary();
    uint64_t listed(size_t hart, uint64_t boundaries, uint64_t instructions, bool called = false);

  private:
    holds() = default;

    std::optional<interleaving> draws; // none: there is a list
    uint64_t cut_one_in = 0, boundary_one_in = 0;
    std::array<std::vector<hold>, HARTS_MAX> lists; // in the order of places
    std::array<size_t, HARTS_MAX> next{};
    FILE *kept = nullptr; // open until the process ends
};
