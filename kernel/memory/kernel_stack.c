/* SPDX-License-Identifier: MIT */
#include "kernel_stack.h"

#include "lib/panic.h"
#include "page_table.h"
#include "sync/spinlock.h"
#include "translation.h"

/*
 * Kernel stacks, in slots of the area above KERNEL_STACKS. The first entry of a slot's guard is
 * never valid: in a free slot, it links to the next free slot.
 */
enum {
    SLOTS_PER_ROOT_ENTRY = (PAGE_BYTES << 18) / KERNEL_STACK_STRIDE,
    SLOT_FREE = 1 << 1, /* in a link, below the number of the next slot + 1 */
    SLOT_NEXT_SHIFT = 2,
    SPARE_STACKS = 64,  /* stacks of ended processes that keep their pages for reuse */
    TABLES_AT_BOOT = 8, /* level 0 tables, each for 512 pages: a peak of processes leaves no
                         * tables behind */
};

uint64_t *kernel_table;

static struct {
    struct spinlock lock; /* guards all fields below, and the level 1 and 0 tables of the area */
    uint64_t limit;       /* slots with level 1 tables */
    uint64_t made;        /* slots that were ever used: 0 to made - 1 */
    uint64_t spare;       /* the first of them that is free and has its pages, + 1; 0: none */
    uint64_t empty;       /* the first of them that is free and has no pages, + 1; 0: none */
    uint64_t spare_count;
} stacks;

/*
 * Creates the root entries for all stacks that could ever fill the memory, because address spaces
 * copy them. One level 1 table covers the stacks of 512 MiB.
 */
void kernel_address_space_init(uint64_t *root)
{
    uint64_t slots_needed = page_total() / (KERNEL_STACK_BYTES / PAGE_BYTES);
    unsigned first = entry_index(KERNEL_STACKS, ROOT_LEVEL);

    kernel_assert(kernel_table == NULL);
    kernel_table = root;
    spinlock_init(&stacks.lock, "kernel stacks", LOCK_OBJECTS);
    for (unsigned index = first; index < ENTRIES && stacks.limit < slots_needed; index++) {
        void *table = page_allocate_zeroed();

        kernel_assert(table != NULL);
        kernel_assert(!(root[index] & ENTRY_VALID));
        root[index] = entry_to(table, ENTRY_VALID);
        stacks.limit += SLOTS_PER_ROOT_ENTRY;
    }
    for (uint64_t table = 0; table < TABLES_AT_BOOT; table++)
        kernel_assert(entry_make(root, KERNEL_STACKS + table * entry_span(1)) != NULL);
}

static uint64_t slot_address(uint64_t slot)
{
    return KERNEL_STACKS + slot * KERNEL_STACK_STRIDE;
}

static bool stack_map_page(uint64_t address)
{
    void *page = page_allocate();

    if (page == NULL)
        return false;
    if (page_map(kernel_table, address, page, PAGE_READ | PAGE_WRITE) != 0) {
        page_release(page);
        return false;
    }
    translation_flush_page(address);
    return true;
}

static void stack_unmap_page(uint64_t address)
{
    uint64_t *entry = entry_find(kernel_table, address);

    page_release(entry_page(*entry));
    *entry = 0;
    translation_flush_page(address);
}

/* Maps the slot's pages: all or none. */
static bool stack_map(uint64_t slot)
{
    uint64_t top = slot_address(slot) + KERNEL_STACK_STRIDE;
    uint64_t bottom = top - KERNEL_STACK_BYTES;

    for (uint64_t address = bottom; address < top; address += PAGE_BYTES) {
        if (stack_map_page(address))
            continue;
        while (address > bottom) {
            address -= PAGE_BYTES;
            stack_unmap_page(address);
        }
        return false;
    }
    return true;
}

static void stack_unmap(uint64_t slot)
{
    uint64_t top = slot_address(slot) + KERNEL_STACK_STRIDE;

    for (uint64_t address = top - KERNEL_STACK_BYTES; address < top; address += PAGE_BYTES)
        stack_unmap_page(address);
}

/* The link to the next free slot, in the guard. */
static uint64_t *slot_link(uint64_t slot)
{
    uint64_t *link = entry_find(kernel_table, slot_address(slot));

    kernel_assert(link != NULL && !(*link & ENTRY_VALID));
    return link;
}

static void push_slot(uint64_t *list, uint64_t slot)
{
    kernel_assert(slot < stacks.made && *slot_link(slot) == 0);
    *slot_link(slot) = *list << SLOT_NEXT_SHIFT | SLOT_FREE;
    *list = slot + 1;
}

static uint64_t pop_slot(uint64_t *list)
{
    uint64_t slot = *list - 1;

    *list = *slot_link(slot) >> SLOT_NEXT_SHIFT;
    *slot_link(slot) = 0;
    return slot;
}

/* Gives pages to a slot without them. Returns false if memory or slots are short. */
static bool fill_slot(uint64_t *slot)
{
    if (stacks.empty != 0) {
        *slot = pop_slot(&stacks.empty);
        if (stack_map(*slot))
            return true;
        push_slot(&stacks.empty, *slot);
        return false;
    }
    *slot = stacks.made;
    if (*slot == stacks.limit || !stack_map(*slot))
        return false;
    stacks.made++;
    return true;
}

/*
 * The address of a freed stack may be reused, with other pages. No CPU then has the old pages in
 * its cached translations. Each CPU that ran on the stack, or wrote to it for a new process, has
 * changed its address space since. Or it is this CPU, which flushes them when it maps the new
 * pages.
 */
void *kernel_stack_create(void)
{
    uint64_t slot;
    bool made = true;

    spinlock_acquire(&stacks.lock);
    if (stacks.spare != 0) {
        slot = pop_slot(&stacks.spare);
        stacks.spare_count--;
    } else {
        made = fill_slot(&slot);
    }
    spinlock_release(&stacks.lock);
    return made ? (void *)(slot_address(slot) + KERNEL_STACK_STRIDE) : NULL;
}

void kernel_stack_destroy(void *top)
{
    uint64_t slot = ((uintptr_t)top - KERNEL_STACKS) / KERNEL_STACK_STRIDE - 1;

    kernel_assert((uintptr_t)top % KERNEL_STACK_STRIDE == 0);
    spinlock_acquire(&stacks.lock);
    if (stacks.spare_count < SPARE_STACKS) {
        push_slot(&stacks.spare, slot);
        stacks.spare_count++;
    } else {
        stack_unmap(slot);
        push_slot(&stacks.empty, slot);
    }
    spinlock_release(&stacks.lock);
}

uint64_t kernel_stacks_spare_pages(void)
{
    return __atomic_load_n(&stacks.spare_count, __ATOMIC_RELAXED) * KERNEL_STACK_BYTES / PAGE_BYTES;
}

uint64_t kernel_stacks_give_spare(void)
{
    uint64_t given = 0;

    spinlock_acquire(&stacks.lock);
    while (stacks.spare != 0) {
        uint64_t slot = pop_slot(&stacks.spare);

        stack_unmap(slot);
        push_slot(&stacks.empty, slot);
        given += KERNEL_STACK_BYTES / PAGE_BYTES;
    }
    stacks.spare_count = 0;
    spinlock_release(&stacks.lock);
    return given;
}
