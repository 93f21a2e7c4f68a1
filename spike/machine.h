// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sim.h>

#include "branches.h"
#include "hart.h"
#include "hart_set.h"
#include "holds.h"
#include "host_calls.h"
#include "interleaving.h"
#include "live.h"
#include "typed.h"

// The parts of the machine; the rest is Spike's.
struct machine_parts {
    const cfg_t &configuration;
    abstract_mem_t &memory;
    const char *program;
    struct turn turn;
    std::optional<interleaving> order; // none: harts have whole turns, in their order
    std::string file;                  // that the kernel may write, as in host_calls
    std::optional<live> console;       // none: there is no input, and time passes as fast as
                                       // possible
    std::string typed_to;              // the file that saves input; "": none
    std::vector<typed> typed_before;   // the input to repeat, and its times
    std::optional<branches> futures;   // none: the machine does not fork
    std::optional<class holds> holds;  // none: all turns have full length
};

// Spike's machine. As in its own program, each hart has a turn in each round, in their order, and
// the timer advances between two rounds. It skips only what changes nothing: the turns of harts
// that sleep or burn, and rounds when all harts do.
class machine : public sim_t
{
  public:
    explicit machine(const machine_parts &parts);

    // Runs the machine until it ends. Returns its status (abi/machine_status.h); with branches, in
    // the process that has forked, 0 once they have ended.
    int run_to_end();

    // Returns the device tree for the kernel.
    const std::string &device_tree() const
    {
        return dtb;
    }

  private:
    char *addr_to_mem(reg_t address) override;
    bool mmio_store(reg_t address, size_t count, const uint8_t *source) override;
    bool find_round();
    bool find_live_round();
    void take_round();
    void take_mixed_round();
    void take_stopped_round();
    uint64_t take_part(size_t hart);
    void take_stopped_turn(size_t hart);
    void notice_devices(size_t hart);
    void hold_up(size_t hart, uint64_t until);
    void let_rest(size_t hart);
    void wake(size_t hart, uint64_t in_round);
    void wake_due();
    void listen();
    void type(const std::string &text);
    void keep_typed(const std::string &text);
    bool type_again();
    bool is_interrupted();
    void load_symbols(std::map<std::string, uint64_t> &match) override;
    uint64_t branching_round() const;
    uint64_t typing_round() const;
    uint64_t round_at(uint64_t kernel_ns) const;
    uint64_t kernel_ns() const;
    bool begin_branch();
    char *place_if_any(const char *symbol);
    char *place_of(const char *symbol);
    void send_to_kernel(const std::string &text);
    int checked(int status) const;
    bool watch();
    uint64_t time_of(uint64_t round) const;
    uint64_t round_of(uint64_t time) const;

    abstract_mem_t &memory;
    const struct turn turn;
    std::vector<hart> hart_list;
    host_calls calls;
    std::optional<interleaving> order;
    std::optional<class holds> holds;
    std::optional<live> console;
    std::optional<typed_file> typed_to;
    std::vector<typed> typed_before;
    size_t typed_again = 0;          // the number typed so far
    std::optional<branches> futures; // until they have begun
    ns16550_t *serial = nullptr;     // the console's device
    std::map<std::string, uint64_t> symbols;

    uint64_t round = 0;
    hart_set active;                    // these take part in the round
    std::vector<uint64_t> rested_since; // for resting harts: the first round that they have not
                                        // counted
    std::vector<uint64_t> wakes_at; // for resting harts: the round when they must take part again
    std::vector<uint64_t> left;     // of each hart's turn, in a mixed round
    uint64_t next_wake = NEVER;     // the earliest of wakes_at
    hart_set delayed;               // harts that do not rest, but pause
    hart_set called;                // they rested, and have a turn now; used only with holds
    hart_set poked;                 // their software interrupt was written in this turn
    uint64_t next_watch = 0;        // the round of the next check for overdue harts
    hart_set reported_overdue;      // these already got the exception
    uint64_t listened = 0;          // the round of the last check of the console
    bool touched = false;           // another device was written in this turn
    char *commands = nullptr;       // where the kernel reads commands; it clears the text that it
                                    // has taken
    bool received_commands = false; // there were some
    // The timer when the kernel's clock began; 0: not yet.
    const volatile uint64_t *clock_began = &NOT_STARTED;
    static constexpr uint64_t NOT_STARTED = 0;
    volatile uint64_t *tohost = nullptr;
    volatile uint64_t *fromhost = nullptr;
};
