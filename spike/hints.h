// SPDX-License-Identifier: MIT
#pragma once

#include <extension.h>

// The hints of abi/machine_hints.h, as instructions that end a hart's step where they are.
//
// BURN: so many instructions' worth of time pass as its register says, itself among them, without
// being interpreted; then the register is 0 and the next instruction follows. An interrupt is taken
// in between: the register then says what is left, and the instruction begins anew with that.
//
// LOCK ends a step only if boundaries are watched.
class hints_extension : public extension_t
{
  public:
    std::vector<insn_desc_t> get_instructions(const processor_t &) override;
    std::vector<disasm_insn_t *> get_disasms(const processor_t *) override;
    const char *name() const override;
};

// What ended a hart's step: the register of a BURN, which has not been passed, or a boundary, which
// has.
struct step_end {
    unsigned burn = 0; // 0: none did
    bool boundary = false;
};

// Of the step that was made last, by whichever hart. It is forgotten then.
step_end take_step_end();

// From now on, LOCK ends a step.
void watch_boundaries();
