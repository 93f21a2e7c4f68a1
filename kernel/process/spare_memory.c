/* SPDX-License-Identifier: MIT */

#include "process/spare_memory.h"

#include "fs/block_cache.h"
#include "fs/journal.h"
#include "lib/panic.h"
#include "memory/kernel_stack.h"
#include "scheduler/cpu.h"

enum { BLOCKS_AT_ONCE = 64 };

uint64_t spare_memory_pages(void)
{
    return block_cache_spare_pages() + kernel_stacks_spare_pages();
}

/* Blocks that the journal still holds can be freed when they are at their homes. */
bool spare_memory_give(bool again)
{
    kernel_assert(!this_cpu()->held);
    bool stacks = !again && kernel_stacks_give_spare() > 0;
    if (block_cache_give(BLOCKS_AT_ONCE) > 0 || stacks)
        return true;
    return journal_holds_blocks() && journal_sync() == 0 && block_cache_give(BLOCKS_AT_ONCE) > 0;
}
