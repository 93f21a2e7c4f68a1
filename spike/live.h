// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

// A console for a user, or a program that acts as one. Its input reaches the machine. If the
// machine is paced, its time does not run ahead of the host's.
class live
{
  public:
    // `pace`: nanoseconds of the machine for each of the host; 0: unlimited.
    explicit live(double pace);

    // Waits until the host's time has reached this time of the machine. Returns true if there is
    // input, possibly earlier.
    bool catch_up(uint64_t machine_ns);

    // Returns the machine's time that corresponds to the host's time now, at most `machine_ns`.
    uint64_t machine_time(uint64_t machine_ns) const;

    // Returns the next typed character, or nothing.
    std::optional<char> take();

    // Waits for input. Returns false if there will be none any more.
    bool wait_for_input();

  private:
    bool poll_input(int64_t host_ns);

    double pace;
    int64_t origin;      // the host's time at the machine's time 0, if it had always run at this
                         // pace
    bool is_open = true; // more input is possible
};

// Returns true if input is possible: standard input is a terminal, a pipe or a socket.
bool console_is_live();
