// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// The host's side of its interface to the kernel (kernel/device/host_interface.c): ending the
// machine, and opening and writing one file. A policy is kernel code that any author may have
// written. So it can reach only standard output and that file, which is opened before the machine
// begins.
class host_calls
{
  public:
    // Returns the host's address of this many bytes of the machine's memory, or null if they do not
    // exist.
    using translation = std::function<char *(uint64_t address, uint64_t bytes)>;

    // `file`: the name that the kernel opens; "": none. The file is created again. If that fails,
    // the kernel gets the error when it opens the file.
    host_calls(translation memory, std::string file);

    // Serves the request in `*tohost`, if there is one, and acknowledges it in `*fromhost`.
    void serve(volatile uint64_t *tohost, volatile uint64_t *fromhost);

    // Returns the descriptor of the kernel's file, or the negative error of opening it.
    int64_t descriptor() const
    {
        return opened;
    }

    // Returns the machine's exit status; nothing while it runs.
    std::optional<int> ended() const
    {
        return status;
    }

  private:
    int64_t perform(const uint64_t call[]) const;
    int64_t open_file(uint64_t name, uint64_t bytes) const;
    int64_t write_file(uint64_t descriptor, uint64_t start, uint64_t bytes) const;

    translation memory;
    std::string file;
    int64_t opened = -EACCES; // its descriptor, or the negative error
    std::optional<int> status;
};
