// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A branch of the machine, with a separate directory. The directory contains `commands`, the
// kernel's commands at the branch's start (abi/machine_commands.h; an empty file: none). Afterwards
// it also contains `console.log`, the trace under its name, and `status`: the exit status of its
// process as a number; negative for a signal.
struct branch {
    std::string folder;
    std::string commands;
    int console;
    int trace; // -1: the kernel writes none
};

// The machine's process forks at a given moment, and each child continues as a branch. A child has
// a separate copy of the memory, including the disk, of the console and of the trace.
class branches
{
  public:
    // `jobs`: the number of branches that run in parallel. `trace`: the file that the kernel may
    // write; "": none. All files are opened here, so that errors are reported before the machine
    // begins. Raises std::runtime_error.
    branches(uint64_t at_ns, size_t jobs, const std::vector<std::string> &folders,
             const std::string &trace);

    // Returns the kernel's time when the branches begin.
    uint64_t begin_ns() const
    {
        return at_ns;
    }

    // Forks. Returns in each child, with its branch; in the parent null, once all have ended.
    // `trace`: the kernel's output file.
    const branch *begin(int trace) const;

  private:
    void become(const branch &chosen, int trace, pid_t parent) const;

    uint64_t at_ns;
    size_t jobs;
    std::vector<branch> list;
};
