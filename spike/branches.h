// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A future of the machine, in a folder of its own. There lie `commands`, which is what the kernel
// is told when it begins (abi/machine_commands.h; an empty file: nothing), and after it
// `console.log`, the trace under its name, and `status`: how its process ended, as a number; of a
// signal, negative.
struct branch {
    std::string folder;
    std::string commands;
    int console;
    int trace; // -1: the kernel writes none
};

// The machine's process forks at a moment, and each child goes on as a branch. A child has its own
// copy of the memory, the disk in it, the console and the trace.
class branches
{
  public:
    // `jobs`: so many go on side by side. `trace`: the file that the kernel may write; "": none.
    // All files are opened here, so that what cannot be is told before the machine begins. Raises
    // std::runtime_error.
    branches(uint64_t at_ns, size_t jobs, const std::vector<std::string> &folders,
             const std::string &trace);

    // The kernel's time at which they begin.
    uint64_t begin_ns() const
    {
        return at_ns;
    }

    // Forks. Returns in each child, with its branch; in the parent null, once all have ended.
    // `trace`: what the kernel writes to.
    const branch *begin(int trace) const;

  private:
    void become(const branch &chosen, int trace, pid_t parent) const;

    uint64_t at_ns;
    size_t jobs;
    std::vector<branch> list;
};
