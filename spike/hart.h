// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <processor.h>

constexpr uint64_t NEVER = UINT64_MAX;

// The share of each hart in a round of the machine.
struct turn {
    uint64_t instructions; // executed in it, and its ns of the machine's time
    bool trap_ends_it;     // a trap discards the rest, as in Spike's program
};

// A CPU, and its turns. A sleeping hart counts one instruction a turn, as in Spike.
class hart
{
  public:
    explicit hart(processor_t &processor);

    // Returns true if an enabled interrupt is pending.
    bool is_called() const;

    // Executes this many instructions, at this time of the machine's timer. Sleep ends that early,
    // and so does a boundary if boundaries are watched. A trap takes the time of an instruction.
    // Returns the remaining instructions after a boundary, else 0.
    uint64_t take_slice(uint64_t instructions, uint64_t now);

    // Does the same, but stops at the first trap.
    void take_slice_until_trap(uint64_t instructions, uint64_t now);

    // Returns true if a boundary has ended its slice.
    bool is_at_boundary() const
    {
        return at_boundary;
    }

    // Counts the boundaries that it has reached, and the instructions interpreted since. Together
    // they identify its position, regardless of its time asleep, burning or paused.
    uint64_t boundaries() const
    {
        return boundary_count;
    }
    uint64_t since_boundary() const
    {
        return since;
    }

    // Returns true if its last action was to execute an instruction, not to sleep or burn.
    bool is_executing() const
    {
        return executing;
    }

    // Returns true if it sleeps or burns, and no interrupt is pending: its turns need not be
    // simulated one by one.
    bool rests() const;

    // Returns how many turns it rests without an interrupt; NEVER: it sleeps.
    uint64_t turns_of_rest(uint64_t instructions) const;

    // Returns the timer's value that interrupts the hart; NEVER: none.
    uint64_t alarm() const;

    // Returns true if it runs in supervisor mode, and has not taken its timer's interrupt for so
    // long that it never will (abi/machine_overdue.h). `now`: the machine's timer.
    bool is_overdue(uint64_t now) const;

    // Continues it with the exception for that.
    void say_overdue();

    // Lets this many turns of rest pass.
    void rest(uint64_t turns, uint64_t instructions);

    // Sends it the software interrupt, or clears it.
    void set_software_interrupt(bool sent);

  private:
    void begin(uint64_t now);
    uint64_t step(uint64_t instructions);
    uint64_t burn(uint64_t instructions);
    void count(uint64_t instructions);
    void note(uint64_t executed);

    processor_t &processor;
    state_t &state;
    unsigned burning = 0; // the register with the remaining count; 0: it does not burn
    bool at_boundary = false;
    bool executing = false;
    uint64_t boundary_count = 0;
    uint64_t since = 0;
};
