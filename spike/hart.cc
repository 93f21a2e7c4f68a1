// SPDX-License-Identifier: MIT

#include "hart.h"

#include <algorithm>

#include <mmu.h>
#include <sim.h>

#include "abi/machine_overdue.h"
#include "hints.h"

static constexpr uint64_t OVERDUE = MACHINE_OVERDUE_NS / sim_t::INSNS_PER_RTC_TICK;

hart::hart(processor_t &processor) : processor(processor), state(*processor.get_state())
{
}

bool hart::is_called() const
{
    return (state.mip->read() & state.mie->read()) != 0;
}

bool hart::rests() const
{
    return (processor.in_wfi || burning) && !is_called();
}

uint64_t hart::alarm() const
{
    return state.mie->read() & MIP_STIP ? state.stimecmp->read() : NEVER;
}

bool hart::is_overdue(uint64_t now) const
{
    uint64_t due = alarm();
    return state.prv == PRV_S && due < now && now - due > OVERDUE && !rests();
}

void hart::say_overdue()
{
    burning = 0;
    processor.in_wfi = false;
    state.sepc->write(state.pc);
    state.scause->write(MACHINE_OVERDUE_CAUSE);
    state.stval->write(0);
    state.pc = state.stvec->read();
}

uint64_t hart::turns_of_rest(uint64_t instructions) const
{
    return burning ? state.XPR[burning] / instructions : NEVER;
}

void hart::count(uint64_t instructions)
{
    state.minstret->bump(instructions);
    state.mcycle->bump(instructions);
}

void hart::rest(uint64_t turns, uint64_t instructions)
{
    if (!burning) {
        count(turns);
        return;
    }
    burn(turns * instructions);
}

void hart::set_software_interrupt(bool sent)
{
    state.mip->backdoor_write_with_mask(MIP_MSIP, sent ? MIP_MSIP : 0);
}

// Burns at most this many instructions. Returns the number burnt.
uint64_t hart::burn(uint64_t instructions)
{
    uint64_t left = state.XPR[burning];
    uint64_t burnt = std::min(left, instructions);

    state.XPR.write(burning, left - burnt);
    count(burnt);
    if (burnt == left) {
        state.pc += 4;
        burning = 0;
    }
    return burnt;
}

// Interprets until a trap, WFI, a hint or this many instructions. Returns the number executed.
uint64_t hart::step(uint64_t instructions)
{
    uint64_t before = state.minstret->val;

    processor.step(instructions);
    step_end end = take_step_end();
    burning = end.burn;
    at_boundary = end.boundary;
    if (burning || at_boundary)
        processor.in_wfi = false; // the library took the hint for WFI
    if (burning) {
        state.minstret->val--;
        state.mcycle->val--;
    }
    return state.minstret->val - before;
}

void hart::begin(uint64_t now)
{
    if (state.time->shadow_val != now)
        state.time->sync(now);
    // BURN starts again after the interrupt; at once, if that is masked.
    if (is_called())
        burning = 0;
}

void hart::take_slice_until_trap(uint64_t instructions, uint64_t now)
{
    begin(now);
    if (processor.in_wfi && !is_called()) {
        count(1);
        instructions = 0;
    }
    while (instructions > 0) {
        if (burning) {
            instructions -= burn(instructions);
            continue;
        }
        uint64_t executed = step(instructions);
        instructions = burning ? instructions - executed : 0;
    }
    processor.get_mmu()->yield_load_reservation();
}

// Counts instructions that were executed; the last of them may have reached a boundary.
void hart::note(uint64_t executed)
{
    since = at_boundary ? 0 : since + executed;
    boundary_count += at_boundary;
    executing = !burning && !processor.in_wfi;
}

uint64_t hart::take_slice(uint64_t instructions, uint64_t now)
{
    begin(now);
    at_boundary = false;
    executing = false;
    while (instructions > 0 && !at_boundary && !(processor.in_wfi && !is_called())) {
        if (burning) {
            instructions -= burn(instructions);
            executing = false;
            continue;
        }
        uint64_t executed = step(instructions);
        bool is_trap = executed < instructions && !burning && !at_boundary && !processor.in_wfi;
        instructions -= executed + is_trap;
        note(executed + is_trap);
    }
    processor.get_mmu()->yield_load_reservation();
    return at_boundary ? instructions : 0;
}
