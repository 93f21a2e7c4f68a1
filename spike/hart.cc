// SPDX-License-Identifier: MIT

#include "hart.h"

#include <algorithm>

#include <mmu.h>

#include "burn.h"

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

// Burns at most so many instructions. Returns how many it burnt.
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

// Interprets until a trap, WFI, BURN or so many instructions. Returns what is left of these.
uint64_t hart::step(uint64_t instructions)
{
    uint64_t before = state.minstret->val;

    processor.step(instructions);
    burning = take_burn();
    if (!burning)
        return 0;
    // The library took it for WFI, and counted it.
    processor.in_wfi = false;
    state.minstret->val--;
    state.mcycle->val--;
    return instructions - (state.minstret->val - before);
}

void hart::take_turn(uint64_t instructions, uint64_t now)
{
    if (state.time->shadow_val != now)
        state.time->sync(now);

    uint64_t left = instructions;
    if (processor.in_wfi && !is_called()) {
        count(1);
        left = 0;
    } else if (burning && is_called()) {
        // If the interrupt is taken, BURN begins anew after it; if it is masked, at once.
        left = step(left);
    }
    while (left > 0)
        left = burning ? left - burn(left) : step(left);
    processor.get_mmu()->yield_load_reservation();
}
