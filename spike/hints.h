// SPDX-License-Identifier: MIT
#pragma once

#include <extension.h>

// The hints of abi/machine_hints.h, as instructions that end a hart's step.
//
// BURN lets as many instructions' worth of time pass as its register says, including itself,
// without interpreting any. Then the register is 0 and the next instruction follows. An interrupt
// may come in between: the register then contains the rest, and the instruction starts again with
// that.
//
// LOCK ends a step only if boundaries are watched.
class hints_extension : public extension_t
{
  public:
    std::vector<insn_desc_t> get_instructions(const processor_t &) override;
    std::vector<disasm_insn_t *> get_disasms(const processor_t *) override;
    const char *name() const override;
};

// The cause of the end of a hart's step: the register of an unfinished BURN, or a boundary, which
// the hart has passed.
struct step_end {
    unsigned burn = 0; // 0: none did
    bool boundary = false;
};

// Returns the cause for the last step of any hart, and clears it.
step_end take_step_end();

// Makes LOCK end a step.
void watch_boundaries();
