// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// The host's side of the interface by which the kernel reaches the host
// (kernel/device/host_interface.c): the end of the machine, and the opening and writing of one
// file. A policy is kernel code, and anyone may have written it: it reaches standard output and
// that file, which is opened before the machine begins.
class host_calls
{
  public:
    // Returns the host's address of so many bytes of the machine's memory, or null if they are not
    // there.
    using translation = std::function<char *(uint64_t address, uint64_t bytes)>;

    // `file`: the name by which the kernel opens it; "": there is none. It is made anew. If it
    // cannot be, the kernel is told so when it opens it.
    host_calls(translation memory, std::string file);

    // Serves the request that lies in `*tohost`, if there is one. `*fromhost` then says that it
    // was.
    void serve(volatile uint64_t *tohost, volatile uint64_t *fromhost);

    // What the kernel writes its file to, or the negative error with which it was not opened.
    int64_t descriptor() const
    {
        return opened;
    }

    // With what status the machine has ended; nothing as long as it goes on.
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
