// SPDX-License-Identifier: MIT

/*
 * Faster instruction decoding for CPUs. Decoding took most of a short run's time: the library
 * discards all decoded instructions of a CPU at each change of privilege, and each CPU decodes
 * separately. The functions here replace the library's (the linker prefers the program's
 * functions), and do the same with less work:
 *
 * - Discarded entries are only marked, and become valid again if the same bits are found at their
 *   addresses.
 * - The first CPU that decodes an instruction's bits stores their meaning for all.
 * - No CPU creates a disassembler.
 */

#include <array>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>

#include <disasm.h>
#include <mmu.h>
#include <processor.h>

#include "hart_set.h"

// Set in the tag of a discarded entry. Tags are addresses of instructions, which are even; the high
// bit distinguishes it from the small odd numbers that the library uses as addresses.
static constexpr reg_t FORGOTTEN = 1ull << 62 | 1;
static constexpr reg_t EMPTY = ~(1ull << 62); // not the tag of any address, even a discarded one
static constexpr size_t KNOWN = 1 << 14;      // instructions

// The valid entries of one CPU.
struct held {
    const mmu_t *mmu; // the CPU's; another one: it has never discarded, and its entries are not set
    size_t decoded; // entries that were filled; more than recorded: the library filled some itself
    size_t noted;
    std::array<uint16_t, mmu_t::ICACHE_ENTRIES> entries;
};

static std::array<held, HARTS_MAX> pages_of;
static processor_t *decoder; // the first CPU

// Returns the library's function of this name.
template <typename function> static function upstream(const char *name)
{
    return reinterpret_cast<function>(dlsym(RTLD_NEXT, name));
}

// Returns the meaning of an instruction. The CPUs are alike, and it means the same in each of their
// modes, which are all of 64 bits.
static insn_func_t meaning_of(insn_bits_t bits)
{
    static const auto decode =
        upstream<insn_func_t (*)(processor_t *, insn_t)>("_ZN11processor_t11decode_insnE6insn_t");
    static struct {
        insn_bits_t bits;
        insn_func_t meaning;
    } known[KNOWN];
    auto &entry = known[(bits ^ bits >> 14) % KNOWN];

    if (!entry.meaning || entry.bits != bits)
        entry = {bits, decode(decoder, bits)};
    return entry.meaning;
}

// Fills an entry with the instruction at an address. Returns false if this CPU has not fetched from
// the page since its last discard. Also returns false for an instruction that is not one of 2 or 4
// bytes in one page.
static bool fill(mmu_t &mmu, reg_t address, icache_entry_t &entry)
{
    auto [is_known, host, physical] = mmu.access_tlb(mmu.tlb_insn, address);
    uint32_t word = 0;

    if (!is_known || address % PGSIZE > PGSIZE - sizeof word)
        return false;
    memcpy(&word, reinterpret_cast<const void *>(host), sizeof word);
    unsigned length = insn_length(word);
    insn_bits_t bits = length == 2 ? word & 0xffff : word;
    if (length > sizeof word)
        return false;
    if (entry.tag != (address | FORGOTTEN) || entry.data.insn.bits() != bits) {
        entry.data = {meaning_of(bits), bits};
        entry.next = &mmu.icache[mmu.icache_index(address + length)];
    }
    entry.tag = address;
    return true;
}

#define REFILL "_ZN5mmu_t13refill_icacheEmP14icache_entry_t"

// Replaces mmu_t::refill_icache(), which the header defines, so that it cannot have a second
// definition.
extern "C" icache_entry_t *refill(mmu_t *mmu, reg_t address, icache_entry_t *entry) __asm__(REFILL);

extern "C" icache_entry_t *refill(mmu_t *mmu, reg_t address, icache_entry_t *entry)
{
    static const auto fetch_and_decode = upstream<decltype(&refill)>(REFILL);
    held &pages = pages_of[mmu->proc->id];

    if (fill(*mmu, address, *entry))
        pages.decoded++;
    else
        fetch_and_decode(mmu, address, entry);
    if (pages.noted < pages.entries.size())
        pages.entries[pages.noted] = static_cast<uint16_t>(entry - mmu->icache);
    pages.noted++;
    return entry;
}

// The library's MMU without a CPU fetches nothing, and discards everything.
void mmu_t::flush_icache()
{
    held *pages = proc ? &pages_of[proc->id] : nullptr;
    bool all = !pages || pages->mmu != this || pages->noted != pages->decoded ||
               pages->noted > pages->entries.size();

    for (size_t i = 0; !all && i < pages->noted; i++)
        icache[pages->entries[i]].tag |= FORGOTTEN;
    for (size_t i = 0; all && i < ICACHE_ENTRIES; i++)
        icache[i].tag = EMPTY;
    if (!pages)
        return;
    pages->noted = pages->decoded = 0;
    pages->mmu = this;
}

insn_func_t processor_t::decode_insn(insn_t instruction)
{
    pages_of[id].decoded++;
    return meaning_of(instruction.bits());
}

void processor_t::register_base_instructions()
{
    static const auto register_all =
        upstream<void (*)(processor_t *)>("_ZN11processor_t26register_base_instructionsEv");
    if (decoder)
        return;
    decoder = this;
    register_all(this);
}

void disassembler_t::add_instructions(const isa_parser_t *, bool)
{
}
