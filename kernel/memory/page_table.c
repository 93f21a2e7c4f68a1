/* SPDX-License-Identifier: MIT */
#include "page_table.h"

#include "abi/errors.h"
#include "lib/panic.h"

uint64_t *entry_find(uint64_t *table, uint64_t address)
{
    for (int level = ROOT_LEVEL; level > 0; level--) {
        uint64_t entry = table[entry_index(address, level)];

        if (!(entry & ENTRY_VALID))
            return NULL;
        table = entry_page(entry);
    }
    return &table[entry_index(address, 0)];
}

uint64_t *entry_make(uint64_t *table, uint64_t address)
{
    for (int level = ROOT_LEVEL; level > 0; level--) {
        uint64_t *entry = &table[entry_index(address, level)];

        if (!(*entry & ENTRY_VALID)) {
            void *below = page_allocate_zeroed();

            if (below == NULL)
                return NULL;
            *entry = entry_to(below, ENTRY_VALID);
        }
        table = entry_page(*entry);
    }
    return &table[entry_index(address, 0)];
}

int page_map(uint64_t *root, uint64_t address, void *page, uint64_t flags)
{
    uint64_t *entry = entry_make(root, address);

    if (entry == NULL)
        return -ENOMEM;
    kernel_assert(!(*entry & ENTRY_VALID));
    *entry = entry_to(page, flags | ENTRY_VALID | ENTRY_ACCESSED | ENTRY_DIRTY);
    return 0;
}
