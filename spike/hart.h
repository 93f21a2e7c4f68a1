// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <processor.h>

constexpr uint64_t NEVER = UINT64_MAX;

// The share of each hart in a round of the machine.
struct turn {
    uint64_t
        instructions;  // that are executed in it, and how many ns of the machine's time it takes
    bool trap_ends_it; // what is left of it is lost then, as in Spike's own program
};

// A CPU, and how its turns go. A sleeping hart counts one instruction a turn, as Spike has it.
class hart
{
  public:
    explicit hart(processor_t &processor);

    // An interrupt waits that it has enabled.
    bool is_called() const;

    // Lets it execute so many instructions, at this time of the machine's timer. Sleep ends that
    // early, or a boundary if they are watched. A trap takes the time of an instruction. Returns
    // what is left of the instructions after a boundary, else 0.
    uint64_t take_slice(uint64_t instructions, uint64_t now);

    // The same, but the first trap ends it.
    void take_slice_until_trap(uint64_t instructions, uint64_t now);

    // A boundary has ended its slice.
    bool is_at_boundary() const
    {
        return at_boundary;
    }

    // Boundaries that it has come to, and instructions that were interpreted since: where it is,
    // for whatever long it slept, burnt or stood still.
    uint64_t boundaries() const
    {
        return boundary_count;
    }
    uint64_t since_boundary() const
    {
        return since;
    }

    // What it did last was to execute an instruction, and not to sleep or burn.
    bool is_executing() const
    {
        return executing;
    }

    // It sleeps or burns, and no interrupt waits: its turns need not be taken one by one.
    bool rests() const;

    // How many turns it rests if no interrupt comes; NEVER: it sleeps.
    uint64_t turns_of_rest(uint64_t instructions) const;

    // The timer's value at which the hart is interrupted; NEVER: there is none.
    uint64_t alarm() const;

    // It runs in supervisor mode, where it has not taken its timer's interrupt for so long that it
    // never will (abi/machine_overdue.h). `now`: the machine's timer.
    bool is_overdue(uint64_t now) const;

    // It goes on with the exception that tells so.
    void say_overdue();

    // So many turns pass in which it rests.
    void rest(uint64_t turns, uint64_t instructions);

    // Sends it the software interrupt, or takes that back.
    void set_software_interrupt(bool sent);

  private:
    void begin(uint64_t now);
    uint64_t step(uint64_t instructions);
    uint64_t burn(uint64_t instructions);
    void count(uint64_t instructions);
    void note(uint64_t executed);

    processor_t &processor;
    state_t &state;
    unsigned burning = 0; // the register that says what is left; 0: it does not burn
    bool at_boundary = false;
    bool executing = false;
    uint64_t boundary_count = 0;
    uint64_t since = 0;
};
