// SPDX-License-Identifier: MIT

#include "machine.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "abi/machine_commands.h"
#include "abi/machine_overdue.h"
#include "abi/machine_status.h"
#include "hints.h"

static constexpr uint64_t TIMER_TICK = sim_t::INSNS_PER_RTC_TICK; // instructions
static constexpr int INTERRUPTED = 130;                           // as in a shell
static constexpr uint64_t LISTENS_EVERY = 1000000;                // instructions of a hart
static constexpr size_t SERIAL_ROOM = 32; // characters that may wait in the console's device
// Bits of its registers FCR, which lets it accept characters, and LSR: it has some.
static constexpr uint8_t SERIAL_TAKES = 1;
static constexpr uint8_t SERIAL_HAS = 1;
static constexpr size_t RETURN_ADDRESS = 1;           // the register
static constexpr size_t SOFTWARE_INTERRUPT_BYTES = 4; // of its register in the CLINT

machine::machine(const machine_parts &parts)
    : sim_t(&parts.configuration, false, {{DRAM_BASE, &parts.memory}}, {}, false, {parts.program},
            {}, nullptr, true, nullptr, false, nullptr, std::nullopt),
      memory(parts.memory), turn(parts.turn),
      calls(
          [&memory = parts.memory](uint64_t address, uint64_t bytes) {
              bool inside = address >= DRAM_BASE && address - DRAM_BASE <= memory.size() &&
                            bytes <= memory.size() - (address - DRAM_BASE);
              return inside ? memory.contents(address - DRAM_BASE) : nullptr;
          },
          parts.file),
      order(parts.order), holds(parts.holds), console(parts.console),
      typed_before(parts.typed_before), futures(parts.futures), rested_since(procs.size()),
      wakes_at(procs.size(), NEVER), left(procs.size())
{
    for (size_t i = 0; i < procs.size(); i++) {
        procs[i]->register_extension(new hints_extension);
        hart_list.emplace_back(*procs[i]);
        active.add(i);
    }
    if (order || holds)
        watch_boundaries();
    for (auto &device : devices)
        if (auto *match = dynamic_cast<ns16550_t *>(device.get()))
            serial = match;
    if (!parts.typed_to.empty())
        typed_to.emplace(parts.typed_to);
}

// The library would look the page up in a table, at each step of a translation.
char *machine::addr_to_mem(reg_t address)
{
    if (address >= DRAM_BASE && address - DRAM_BASE < memory.size())
        return memory.contents(address - DRAM_BASE);
    return sim_t::addr_to_mem(address);
}

uint64_t machine::time_of(uint64_t round) const
{
    return round * turn.instructions / TIMER_TICK;
}

// Returns the first round at or after this value of the timer.
uint64_t machine::round_of(uint64_t time) const
{
    auto instructions = static_cast<unsigned __int128>(time) * TIMER_TICK + turn.instructions - 1;
    return static_cast<uint64_t>(
        std::min<unsigned __int128>(instructions / turn.instructions, NEVER - 1));
}

// A write to a software interrupt makes the library check the timer of each hart; that is skipped.
bool machine::mmio_store(reg_t address, size_t count, const uint8_t *source)
{
    size_t hart = (address - CLINT_BASE) / SOFTWARE_INTERRUPT_BYTES;

    if (address >= CLINT_BASE && hart < hart_list.size() && count == SOFTWARE_INTERRUPT_BYTES) {
        hart_list[hart].set_software_interrupt(source[0] & 1);
        poked.add(hart);
        return true;
    }
    touched = true;
    return sim_t::mmio_store(address, count, source);
}

void machine::wake(size_t hart, uint64_t in_round)
{
    bool stood_still = delayed.has(hart);
    if (active.has(hart) || (stood_still && in_round < wakes_at[hart]))
        return;
    delayed.remove(hart);
    assert(in_round >= rested_since[hart]);
    hart_list[hart].rest(in_round - rested_since[hart], turn.instructions);
    wakes_at[hart] = NEVER;
    active.add(hart);
    if (order && !stood_still)
        hold_up(hart, in_round + order->delay_of_wakeup());
    if (holds && !stood_still)
        called.add(hart);
}

void machine::wake_due()
{
    if (next_wake > round)
        return;
    next_wake = NEVER;
    for (size_t i = 0; i < hart_list.size(); i++) {
        if (wakes_at[i] <= round)
            wake(i, round);
        next_wake = std::min(next_wake, wakes_at[i]);
    }
}

// Handles a hart after its turn: if it rests, it leaves the rounds until an event.
void machine::let_rest(size_t i)
{
    const hart &resting = hart_list[i];
    if (!resting.rests())
        return;
    uint64_t next = round + 1;
    uint64_t wakes = NEVER;
    if (resting.alarm() != NEVER)
        wakes = round_of(resting.alarm());
    if (resting.turns_of_rest(turn.instructions) != NEVER)
        wakes = std::min(wakes, next + resting.turns_of_rest(turn.instructions));
    if (wakes <= next)
        return;
    rested_since[i] = next;
    wakes_at[i] = wakes;
    next_wake = std::min(next_wake, wakes);
    active.remove(i);
}

// A hart's writes to devices may interrupt others: later ones in this round, earlier ones in the
// next. In a mixed round none is later.
void machine::notice_devices(size_t by)
{
    auto joins = [&](size_t i) { return i > by && !order ? round : round + 1; };

    for (size_t i = poked.first(0); i < HARTS_MAX; i = poked.first(i + 1)) {
        poked.remove(i);
        wake(i, joins(i));
    }
    if (!touched)
        return;
    touched = false;
    for (size_t i = 0; i < hart_list.size(); i++)
        if (hart_list[i].is_called())
            wake(i, joins(i));
}

void machine::take_round()
{
    for (size_t i = active.first(0); i < HARTS_MAX && !calls.ended(); i = active.first(i + 1)) {
        if (turn.trap_ends_it)
            hart_list[i].take_slice_until_trap(turn.instructions, clint->mtime);
        else
            hart_list[i].take_slice(turn.instructions, clint->mtime);
        notice_devices(i);
        let_rest(i);
        calls.serve(tohost, fromhost);
    }
}

// Pauses the hart until this round: none of its time passes, and nothing wakes it.
void machine::hold_up(size_t i, uint64_t until)
{
    if (until <= round)
        return;
    rested_since[i] = wakes_at[i] = until;
    next_wake = std::min(next_wake, wakes_at[i]);
    delayed.add(i);
    active.remove(i);
}

// Runs the hart's turn, or the part before a pause. Returns the pause in rounds.
uint64_t machine::take_part(size_t i)
{
    hart &current = hart_list[i];
    uint64_t rounds = 0, done = 0;
    uint64_t cut = holds->cut(turn.instructions);

    while (done < turn.instructions && !rounds) {
        uint64_t listed = holds->until_listed(i, current.boundaries(), current.since_boundary());
        uint64_t end = done < cut ? cut : turn.instructions;
        uint64_t slice = std::max<uint64_t>(1, std::min(end - done, listed));
        done += slice - current.take_slice(slice, clint->mtime);
        if (current.is_at_boundary())
            rounds = holds->at_boundary();
        else if (done == cut && cut < turn.instructions && current.is_executing())
            rounds = holds->when_cut();
        if (!rounds && current.is_executing())
            rounds = holds->listed(i, current.boundaries(), current.since_boundary());
    }
    return rounds;
}

void machine::take_stopped_turn(size_t i)
{
    const hart &current = hart_list[i];
    bool was_called = called.has(i);
    uint64_t rounds = 0;

    called.remove(i);
    if (was_called)
        rounds = holds->when_called(i, current.boundaries(), current.since_boundary());
    bool at_once = rounds > 0;
    if (!at_once)
        rounds = take_part(i);
    notice_devices(i);
    if (!rounds) {
        let_rest(i);
        return;
    }
    const state_t &state = *procs[i]->get_state();
    holds->keep(i, {current.boundaries(), current.since_boundary(), at_once, rounds}, state.pc,
                state.XPR[RETURN_ADDRESS], *clock_began ? kernel_ns() : 0);
    hold_up(i, round + 1 + rounds);
}

void machine::take_stopped_round()
{
    for (size_t i = active.first(0); i < HARTS_MAX && !calls.ended(); i = active.first(i + 1)) {
        take_stopped_turn(i);
        calls.serve(tohost, fromhost);
    }
}

// Runs a round with alternating harts, as drawn by `order`, until each has had its turn.
void machine::take_mixed_round()
{
    std::vector<size_t> waiting;
    for (size_t i = active.first(0); i < HARTS_MAX; i = active.first(i + 1)) {
        left[i] = turn.instructions;
        waiting.push_back(i);
    }
    while (!waiting.empty() && !calls.ended()) {
        size_t i = order->take(waiting);
        uint64_t slice = std::min(order->slice(), left[i]);
        uint64_t spared = hart_list[i].take_slice(slice, clint->mtime);
        bool at_boundary = hart_list[i].is_at_boundary();
        left[i] -= slice - spared;
        notice_devices(i);
        uint64_t delay = at_boundary ? order->delay_at_lock() : 0;
        if (delay)
            hold_up(i, round + 1 + delay);
        else if (left[i] > 0 && !hart_list[i].rests())
            waiting.push_back(i);
        else
            let_rest(i);
        calls.serve(tohost, fromhost);
    }
}

// Takes typed input, as much as the kernel has space for. Before its clock begins it has none,
// because that clock identifies moments.
void machine::listen()
{
    std::string text;
    if (*clock_began == 0 || !(serial->fcr & SERIAL_TAKES))
        return;
    while (serial->rx_queue.size() + text.size() < SERIAL_ROOM) {
        auto character = console->take();
        if (!character)
            break;
        text += *character;
    }
    if (!text.empty())
        type(text);
}

void machine::keep_typed(const std::string &text)
{
    if (typed_to && *clock_began)
        typed_to->add({kernel_ns(), text});
}

void machine::type(const std::string &text)
{
    keep_typed(text);
    for (char character : text)
        serial->rx_queue.push(static_cast<uint8_t>(character));
    serial->lsr |= SERIAL_HAS;
    serial->update_interrupt();
    for (size_t i = 0; i < hart_list.size(); i++)
        if (hart_list[i].is_called())
            wake(i, round);
}

// Types the input of this moment again. Returns false if the machine was ended then.
bool machine::type_again()
{
    const std::string &text = typed_before[typed_again++].text;
    if (text.empty())
        keep_typed(text);
    else
        type(text);
    return !text.empty();
}

// Returns true if the machine was asked to end.
bool machine::is_interrupted()
{
    // The library has handlers for the signals that ask a process to end.
    if (!ctrlc_pressed && !should_exit())
        return false;
    keep_typed("");
    return true;
}

// Advances to the next round with an active hart. Returns false if there will be none.
bool machine::find_round()
{
    wake_due();
    if (console)
        return find_live_round();
    if (!active.is_empty())
        return true;
    uint64_t next = std::min(next_wake, typing_round());
    if (next == NEVER)
        return false;
    round = std::min(next, branching_round());
    wake_due();
    return true;
}

// Does the same if input is possible, which must be handled at once: the machine's time only
// advances to the present.
bool machine::find_live_round()
{
    uint64_t target = active.is_empty() ? next_wake : round;
    if (target == NEVER) {
        bool typed = console->wait_for_input();
        listen();
        return typed || ctrlc_pressed || should_exit();
    }
    if (target - listened < LISTENS_EVERY / turn.instructions && target == round)
        return true;
    listened = target;
    bool typed = console->catch_up(target * turn.instructions);
    round = std::max(round, console->machine_time(target * turn.instructions) / turn.instructions);
    if (typed)
        listen();
    wake_due();
    return true;
}

// Raises the exception in overdue harts. Returns false if one already got it, and has not ended the
// machine.
bool machine::watch()
{
    static constexpr uint64_t WATCHES_EVERY = MACHINE_OVERDUE_NS; // instructions of a hart
    uint64_t now = time_of(round);
    bool answers = true;

    next_watch = round + WATCHES_EVERY / turn.instructions;
    for (size_t i = 0; i < hart_list.size(); i++) {
        if (!hart_list[i].is_overdue(now))
            continue;
        answers = answers && !reported_overdue.has(i);
        reported_overdue.add(i);
        hart_list[i].say_overdue();
    }
    return answers;
}

void machine::load_symbols(std::map<std::string, uint64_t> &match)
{
    symbols = match;
    sim_t::load_symbols(match);
}

// Returns the host's address of the kernel's data at the address of a symbol; null: it has none.
char *machine::place_if_any(const char *symbol)
{
    auto match = symbols.find(symbol);
    return match == symbols.end() ? nullptr : addr_to_mem(match->second);
}

char *machine::place_of(const char *symbol)
{
    char *place = place_if_any(symbol);
    if (!place)
        throw std::runtime_error(std::string("the kernel has no symbol ") + symbol);
    return place;
}

// Returns the first round at or after a time of the kernel's clock. That starts a moment after the
// machine.
uint64_t machine::round_at(uint64_t kernel_ns) const
{
    return round_of(*clock_began + (kernel_ns + TIMER_TICK - 1) / TIMER_TICK);
}

// Returns the kernel's time in this round, once its clock has started.
uint64_t machine::kernel_ns() const
{
    return (time_of(round) - *clock_began) * TIMER_TICK;
}

// Returns the first round of the branches.
uint64_t machine::branching_round() const
{
    return futures ? round_at(futures->begin_ns()) : NEVER;
}

// Returns the round when input is typed again.
uint64_t machine::typing_round() const
{
    bool has_next = typed_again < typed_before.size() && *clock_began;
    return has_next ? round_at(typed_before[typed_again].at_ns) : NEVER;
}

// Writes the commands where the kernel reads them, and interrupts its first CPU.
void machine::send_to_kernel(const std::string &text)
{
    memcpy(commands, text.c_str(), text.size() + 1);
    received_commands = true;
    procs[0]->get_state()->mip->backdoor_write_with_mask(MIP_SEIP, MIP_SEIP);
    wake(0, round);
}

// Forks, in the machine's own process. Returns true in a branch.
bool machine::begin_branch()
{
    const branch *current = futures->begin(static_cast<int>(calls.descriptor()));
    bool is_branch = current;
    if (current && !current->commands.empty())
        send_to_kernel(current->commands);
    futures.reset();
    return is_branch;
}

// Returns the exit status, if nothing was left undone.
int machine::checked(int status) const
{
    if (futures)
        throw std::runtime_error("the machine ended before its branches began");
    if (!received_commands || !*commands)
        return status;
    fprintf(stderr, "spike: the kernel did not accept a command\n");
    return MACHINE_REFUSED;
}

int machine::run_to_end()
{
    set_expected_xlen(64);
    start();
    tohost = reinterpret_cast<uint64_t *>(place_of("tohost"));
    fromhost = reinterpret_cast<uint64_t *>(place_of("fromhost"));
    // A program without a kernel's clock runs, too: it never reaches any time of that clock.
    if (char *clock = futures ? place_of(MACHINE_CLOCK_SYMBOL) : place_if_any(MACHINE_CLOCK_SYMBOL))
        clock_began = reinterpret_cast<uint64_t *>(clock);
    if (futures)
        commands = place_of(MACHINE_COMMANDS_SYMBOL);

    for (; !calls.ended(); round++) {
        if (is_interrupted())
            return INTERRUPTED;
        if (!find_round()) {
            fprintf(stderr, "spike: deadlock: every CPU sleeps, and nothing can wake one\n");
            return checked(MACHINE_STUCK);
        }
        if (round >= typing_round() && !type_again())
            return INTERRUPTED;
        if (round >= branching_round() && !begin_branch())
            return 0;
        clint->mtime = time_of(round);
        if (round >= next_watch && !watch()) {
            fprintf(stderr, "spike: a CPU is in an endless loop\n");
            return checked(MACHINE_STUCK);
        }
        order ? take_mixed_round() : holds ? take_stopped_round() : take_round();
    }
    return checked(*calls.ended());
}
