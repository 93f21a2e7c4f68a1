// SPDX-License-Identifier: MIT

#include "burn.h"

// Which processor_t::step() catches: the library's header with it is not in the package.
class wait_for_interrupt_t
{
};

static constexpr insn_bits_t SLTI_TO_X0 = 0x2013;
static constexpr insn_bits_t BURN = SLTI_TO_X0 | 1u << 20;
static constexpr insn_bits_t ALL_BUT_RS1 = 0xfff07fff;

static unsigned register_of_burn; // of the one hart that is stepped now

static reg_t burn(processor_t *, insn_t instruction, reg_t pc)
{
    if (instruction.rs1() == 0)
        return pc + 4;
    register_of_burn = static_cast<unsigned>(instruction.rs1());
    throw wait_for_interrupt_t();
}

unsigned take_burn()
{
    unsigned taken = register_of_burn;
    register_of_burn = 0;
    return taken;
}

std::vector<insn_desc_t> burn_extension::get_instructions(const processor_t &)
{
    return {{BURN, ALL_BUT_RS1, burn, burn, burn, burn, burn, burn, burn, burn}};
}

std::vector<disasm_insn_t *> burn_extension::get_disasms(const processor_t *)
{
    return {};
}

const char *burn_extension::name() const
{
    return "schedlab_burn";
}
