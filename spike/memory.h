// SPDX-License-Identifier: MIT
#pragma once

#include <devices.h>

// All of the machine's memory as one mapping: the host allocates a page at its first access, and
// the disk is mapped into it instead of being copied.
class flat_memory : public abstract_mem_t
{
  public:
    // Raises std::runtime_error if the host's memory is insufficient.
    explicit flat_memory(reg_t bytes);

    // Maps the file at `offset`, privately: the machine's writes do not reach it.
    void lay(reg_t offset, int file, reg_t file_bytes);

    bool load(reg_t address, size_t count, uint8_t *to) override;
    bool store(reg_t address, size_t count, const uint8_t *from) override;
    char *contents(reg_t address) override;
    reg_t size() override;
    void dump(std::ostream &) override;

  private:
    bool holds(reg_t address, size_t count) const;

    const reg_t bytes;
    char *base;
};
