// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

// A console at which a person types, or a program for one. What is typed reaches the machine, and
// its time does not run ahead of ours if it is paced.
class live
{
  public:
    // `pace`: nanoseconds of the machine for each of ours; 0: as many as it can.
    explicit live(double pace);

    // Lets our time catch up with this time of the machine. True: something was typed, maybe before
    // that.
    bool catch_up(uint64_t machine_ns);

    // The machine's time that fits ours now, at most `machine_ns`.
    uint64_t machine_time(uint64_t machine_ns) const;

    // Returns the next character that was typed, or nothing if none was.
    std::optional<char> take();

    // Waits until something is typed. False: nothing will be any more.
    bool wait_for_input();

  private:
    bool poll_input(int64_t host_ns);

    double pace;
    int64_t origin;      // our time at the machine's 0, if it had always been at this pace
    bool is_open = true; // something may still be typed
};

// Whether somebody may type: standard input is a terminal, a pipe or a socket.
bool console_is_live();
