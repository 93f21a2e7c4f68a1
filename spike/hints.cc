// SPDX-License-Identifier: MIT

#include "hints.h"

#include <utility>

#include "abi/machine_hints.h"

// processor_t::step() catches it; the library's header that declares it is not in the package.
class wait_for_interrupt_t
{
};

static constexpr insn_bits_t SLTI_TO_X0 = 0x2013;
static constexpr unsigned HINT_SHIFT = 20;
static constexpr insn_bits_t ALL_BUT_RS1 = 0xfff07fff;
static constexpr insn_bits_t ALL = 0xffffffff;

static step_end ended_by; // of the one hart that is being stepped
static bool boundaries_watched;

static reg_t burn(processor_t *, insn_t instruction, reg_t pc)
{
    if (instruction.rs1() == 0)
        return pc + 4;
    ended_by.burn = static_cast<unsigned>(instruction.rs1());
    throw wait_for_interrupt_t();
}

static reg_t boundary(processor_t *processor, insn_t, reg_t pc)
{
    if (!boundaries_watched)
        return pc + 4;
    ended_by.boundary = true;
    processor->get_state()->pc = pc + 4;
    throw wait_for_interrupt_t();
}

step_end take_step_end()
{
    return std::exchange(ended_by, {});
}

void watch_boundaries()
{
    boundaries_watched = true;
}

static insn_desc_t instruction(unsigned hint, insn_bits_t mask, insn_func_t does)
{
    insn_bits_t match = SLTI_TO_X0 | hint << HINT_SHIFT;
    return {match, mask, does, does, does, does, does, does, does, does};
}

std::vector<insn_desc_t> hints_extension::get_instructions(const processor_t &)
{
    return {instruction(HINT_BURN, ALL_BUT_RS1, burn), instruction(HINT_LOCK, ALL, boundary)};
}

std::vector<disasm_insn_t *> hints_extension::get_disasms(const processor_t *)
{
    return {};
}

const char *hints_extension::name() const
{
    return "schedlab_hints";
}
