// SPDX-License-Identifier: MIT
#pragma once

#include <extension.h>

// BURN: so many instructions' worth of time pass as its register says, itself among them, without
// being interpreted; then the register is 0 and the next instruction follows. An interrupt is taken
// in between: the register then says what is left, and the instruction begins anew with that.
//
// It is `slti x0, register, 1`, which the instruction set leaves to custom use as a hint: a machine
// that does not know it does nothing there, and the register keeps its number. A program so learns
// of it by executing it (workloads/api/common.c).
class burn_extension : public extension_t
{
  public:
    std::vector<insn_desc_t> get_instructions(const processor_t &) override;
    std::vector<disasm_insn_t *> get_disasms(const processor_t *) override;
    const char *name() const override;
};

// The register of the BURN that ended the step of a hart just now; 0: none did. It is forgotten.
unsigned take_burn();
