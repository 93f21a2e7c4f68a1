/* SPDX-License-Identifier: MIT */
#include "address_space.h"

#include "abi/errors.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "page_table.h"
#include "process/process.h"
#include "translation.h"

/*
 * Invariants of a process's half of the tables:
 *
 *   - no page and no table lies wholly at or above space->end;
 *   - the number of address spaces that map a page equals its number of users;
 *   - an entry is writable, or it is copy-on-write, or its page is never written;
 *   - a page has one user if an entry for it is writable, unless it is shared: then all
 *     its entries are always writable;
 *   - all users but one of a copy-on-write page are promised a page;
 *   - accessed and dirty are always set: hardware may leave setting them to software.
 */

#define SATP_SV39 (8ul << 60)

#define MAP_STEP 64 /* pages mapped between two preemption points */

static uint64_t satp_of(const uint64_t *root)
{
    return SATP_SV39 | pointer_to_physical(root) / PAGE_BYTES;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the end of the last page: rights apply to whole pages, for the kernel as for the
 * hardware. */
static uint64_t pages_end(const struct address_space *space)
{
    return round_up(space->end, PAGE_BYTES);
}

int address_space_create(struct address_space *space)
{
    uint64_t *root = page_allocate();

    *space = (struct address_space){.root = root};
    if (root == NULL)
        return -ENOMEM;
    memset(root, 0, PAGE_BYTES / 2);
    memcpy(&root[ENTRIES / 2], &kernel_table[ENTRIES / 2], PAGE_BYTES / 2);
    return 0;
}

/* Releases the page of an entry. */
static void entry_release(uint64_t entry)
{
    bool last = page_release(entry_page(entry));

    if ((entry & ENTRY_COPY_ON_WRITE) && !last)
        page_promise_end(1);
}

/* Releases everything that a table maps in its first `bytes` bytes: all that it maps. Keeps the
 * table. */
static void table_release(uint64_t *table, int level, uint64_t bytes)
{
    uint64_t span = entry_span(level);

    for (uint64_t start = 0; start < bytes; start += span, table++) {
        if (!(*table & ENTRY_VALID))
            continue;
        if (level > 0)
            table_release(entry_page(*table), level - 1, smaller(bytes - start, span));
        entry_release(*table);
        if (level == 1 && bytes - start > span)
            preemption_point();
    }
}

void address_space_destroy(struct address_space *space)
{
    struct address_space old = *space;

    if (old.root == NULL)
        return;
    /* From here it contains nothing: activating it at a preemption point is harmless. */
    *space = (struct address_space){0};
    if (translation_root() == satp_of(old.root))
        address_space_activate(NULL);
    table_release(old.root, ROOT_LEVEL, old.end);
    page_release(old.root);
}

/* Returns true if a writer would get a new page. */
static bool entry_needs_copy(uint64_t entry)
{
    return (entry & ENTRY_VALID) && !(entry & PAGE_SHARED) &&
           (entry & (PAGE_WRITE | ENTRY_COPY_ON_WRITE));
}

/* Returns the pages in the first `count` entries of a level 0 table that a copy may later need. */
static uint64_t count_copies(const uint64_t *table, uint64_t count)
{
    uint64_t copies = 0;

    for (uint64_t index = 0; index < count; index++)
        copies += entry_needs_copy(table[index]);
    return copies;
}

/* Shares the pages of a level 0 table. Writable pages become copy-on-write, unless they are
 * shared for writing too. Returns 0 or -ENOMEM. */
static int pages_copy(uint64_t *to, uint64_t *from, uint64_t count)
{
    if (!page_promise(count_copies(from, count)))
        return -ENOMEM;
    for (uint64_t index = 0; index < count; index++) {
        uint64_t entry = from[index];

        if (!(entry & ENTRY_VALID))
            continue;
        if (entry_needs_copy(entry)) {
            entry = (entry & ~(uint64_t)PAGE_WRITE) | ENTRY_COPY_ON_WRITE;
            from[index] = entry;
        }
        page_share(entry_page(entry));
        to[index] = entry;
    }
    return 0;
}

/* Copies what a table maps in its first `bytes` bytes. Returns 0 or -ENOMEM. */
static int table_copy(uint64_t *to, uint64_t *from, int level, uint64_t bytes)
{
    uint64_t span = entry_span(level);

    if (level == 0)
        return pages_copy(to, from, round_up(bytes, PAGE_BYTES) / PAGE_BYTES);
    for (uint64_t start = 0; start < bytes; start += span, to++, from++) {
        if (!(*from & ENTRY_VALID))
            continue;
        uint64_t *below = page_allocate_zeroed();

        if (below == NULL)
            return -ENOMEM;
        *to = entry_to(below, ENTRY_VALID);
        if (table_copy(below, entry_page(*from), level - 1, smaller(bytes - start, span)) != 0)
            return -ENOMEM;
        if (level == 1 && bytes - start > span)
            preemption_point();
    }
    return 0;
}

int address_space_copy(struct address_space *copy, struct address_space *from)
{
    int error = address_space_create(copy);

    if (error != 0)
        return error;
    copy->heap = from->heap;
    copy->end = from->end;
    error = table_copy(copy->root, from->root, ROOT_LEVEL, from->end);
    translation_flush(); /* formerly writable pages are now read-only */
    if (error != 0)
        address_space_destroy(copy);
    return error;
}

/* Adds a zeroed user page. Returns 0 or -ENOMEM. */
static int page_add(struct address_space *space, uint64_t address, uint64_t rights)
{
    void *page = page_allocate_zeroed();

    if (page == NULL)
        return -ENOMEM;
    if (page_map(space->root, address, page, rights | PAGE_READ | ENTRY_USER) != 0) {
        page_release(page);
        return -ENOMEM;
    }
    return 0;
}

int address_space_map(struct address_space *space, uint64_t start, uint64_t end, int rights)
{
    kernel_assert(start % PAGE_BYTES == 0 && end % PAGE_BYTES == 0);
    kernel_assert(start <= end && end <= USER_END);
    kernel_assert((rights & ~(PAGE_READ | PAGE_WRITE | PAGE_EXECUTE | PAGE_SHARED)) == 0);

    if ((end - start) / PAGE_BYTES > page_free_count())
        return -ENOMEM;
    for (uint64_t address = start; address < end; address += PAGE_BYTES) {
        if (page_add(space, address, (uint64_t)rights) != 0) {
            address_space_unmap(space, start, address + PAGE_BYTES);
            return -ENOMEM;
        }
        if (address / PAGE_BYTES % MAP_STEP == MAP_STEP - 1)
            preemption_point();
    }
    if (end > space->end)
        space->end = end;
    return 0;
}

static bool table_empty(const uint64_t *table)
{
    for (int index = 0; index < ENTRIES; index++) {
        if (table[index] & ENTRY_VALID)
            return false;
    }
    return true;
}

/* Releases the pages in [start, end) of what a table maps, and tables that become empty. */
static void table_unmap(uint64_t *table, int level, uint64_t start, uint64_t end)
{
    uint64_t span = entry_span(level);

    for (uint64_t next; start < end; start = next) {
        uint64_t *entry = &table[entry_index(start, level)];

        next = smaller(round_down(start, span) + span, end);
        if (!(*entry & ENTRY_VALID))
            continue;
        if (level > 0) {
            table_unmap(entry_page(*entry), level - 1, start, next);
            if (next - start < span && !table_empty(entry_page(*entry)))
                continue;
        }
        entry_release(*entry);
        *entry = 0;
        if (level == 1 && next < end)
            preemption_point();
    }
}

void address_space_unmap(struct address_space *space, uint64_t start, uint64_t end)
{
    kernel_assert(start % PAGE_BYTES == 0 && end % PAGE_BYTES == 0);
    kernel_assert(start <= end && end <= USER_END);
    table_unmap(space->root, ROOT_LEVEL, start, end);
    translation_flush();
}

int address_space_grow(struct address_space *space, int64_t change, bool lazy)
{
    uint64_t end = space->end + (uint64_t)change;
    uint64_t old_pages_end = pages_end(space);
    uint64_t new_pages_end = round_up(end, PAGE_BYTES);

    if (change < 0 && (end > space->end || end < space->heap))
        return 0;
    if (change > 0 && (end < space->end || end > HEAP_END))
        return -EINVAL;
    if (new_pages_end > old_pages_end && !lazy) {
        int error = address_space_map(space, old_pages_end, new_pages_end, PAGE_WRITE);

        if (error != 0)
            return error;
    } else if (new_pages_end < old_pages_end) {
        address_space_unmap(space, new_pages_end, old_pages_end);
    }
    space->end = end;
    return 0;
}

int address_space_share(struct address_space *space, uint64_t bytes, uint64_t *start)
{
    uint64_t begin = pages_end(space);

    if (bytes > USER_END - begin)
        return -EINVAL;
    int error = address_space_map(space, begin, begin + round_up(bytes, PAGE_BYTES),
                                  PAGE_WRITE | PAGE_SHARED);
    *start = begin;
    return error;
}

/* Handles the first access to a promised page of the heap. */
static int fault_lazy(struct address_space *space, uint64_t address, enum page_right access)
{
    if (address < space->heap || access == PAGE_EXECUTE)
        return -EFAULT;
    int error = page_add(space, round_down(address, PAGE_BYTES), PAGE_WRITE);
    translation_flush_page(address);
    return error;
}

/* Makes a copy-on-write page the process's own: a copy, or the page itself if all other users
 * have left. */
static int fault_copy(uint64_t *entry, uint64_t address)
{
    void *page = entry_page(*entry);
    void *copy = page_shared(page) ? page_allocate_promised() : NULL;
    uint64_t flags = (*entry & ENTRY_FLAGS & ~(uint64_t)ENTRY_COPY_ON_WRITE) | PAGE_WRITE;

    if (copy != NULL) {
        memcpy(copy, page, PAGE_BYTES);
        entry_release(*entry);
        page = copy;
    } else if (page_shared(page)) {
        return -ENOMEM; /* more was promised than is available */
    }
    *entry = entry_to(page, flags);
    if (flags & PAGE_EXECUTE)
        translation_flush(); /* instructions come from a new place */
    else
        translation_flush_page(address);
    return 0;
}

int address_space_fault(struct address_space *space, uint64_t address, enum page_right access)
{
    if (address >= pages_end(space))
        return -EFAULT;
    uint64_t *entry = entry_find(space->root, address);
    if (entry == NULL || !(*entry & ENTRY_VALID))
        return fault_lazy(space, address, access);

    if (*entry & access) { /* the CPU had cached an older state */
        translation_flush_page(address);
        return 0;
    }
    if (access == PAGE_WRITE && (*entry & ENTRY_COPY_ON_WRITE))
        return fault_copy(entry, address);
    return -EFAULT;
}

/* Returns the page, or null if this access is not allowed yet. */
static void *page_ready(struct address_space *space, uint64_t address, enum page_right access)
{
    if (address >= pages_end(space))
        return NULL;
    uint64_t *entry = entry_find(space->root, address);
    if (entry == NULL || !(*entry & ENTRY_VALID) || !(*entry & access))
        return NULL;
    kernel_assert(*entry & ENTRY_USER);
    return entry_page(*entry);
}

void *address_space_page(struct address_space *space, uint64_t address, enum page_right access)
{
    void *page = page_ready(space, address, access);

    if (page == NULL && address_space_fault(space, address, access) == 0)
        page = page_ready(space, address, access);
    return page;
}

void address_space_activate(const struct address_space *space)
{
    bool none = space == NULL || space->root == NULL;
    uint64_t satp = satp_of(none ? kernel_table : space->root);

    if (translation_root() != satp)
        translation_set_root(satp);
}
