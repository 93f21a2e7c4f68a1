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

// A hart stands still for some rounds. The place is told by what it has done, and not by the time:
// so it is the same one if others are left out that came before.
struct hold {
    uint64_t boundaries;   // that it has come to
    uint64_t instructions; // since the last of them
    bool called;           // it slept or burnt there, and has just been called
    uint64_t rounds;

    bool is_before(const hold &other) const;
};

// Turns of other than normal length: drawn by a seed, or those of a list. All other turns are as
// without it. What is drawn can be kept as a list, under which the run is the same.
class holds
{
  public:
    // Those of a file, as `keep` writes them. Throws std::runtime_error.
    static holds of_file(const std::string &path);

    explicit holds(uint64_t seed);

    // Writes each hold that takes place as a line: hart, the four members of the hold, its address
    // and that to which its function returns, and the kernel's time.
    void keep_in(const std::string &path);
    void keep(size_t hart, const hold &taken, uint64_t address, uint64_t caller,
              uint64_t kernel_ns);

    // A hart's turn begins. Returns how many of its instructions are left until it is cut, if a
    // seed cuts it; `turn` if it is not.
    uint64_t cut(uint64_t turn);

    // How many instructions the hart has left until the list has it stand still; NEVER if it is not
    // known yet.
    uint64_t until_listed(size_t hart, uint64_t boundaries, uint64_t instructions);

    // For how many rounds the hart stands still here; 0: it does not.
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
    FILE *kept = nullptr; // open to the end of the process
};
