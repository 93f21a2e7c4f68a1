/* SPDX-License-Identifier: MIT */
#include "page.h"

#include "lib/panic.h"
#include "lib/string.h"
#include "poison.h"
#include "sync/spinlock.h"

/* Physical memory that the kernel can see. */
#define DIRECT_BYTES (KERNEL_DIRECT_END - KERNEL_BASE)

/* A free page begins with a link to the next. */
struct free_page {
    struct free_page *next;
};

/*
 * A page is free while it has no users. It is then on the free list, or lies at
 * `fresh` or above, if it has never been used. So pages are touched only when
 * needed, and the boot time does not grow with memory.
 */
static struct {
    struct spinlock lock; /* guards all except first and end; a count leaves or reaches 0 under
                           * it */
    physical_t first;
    physical_t end;
    physical_t fresh;
    struct free_page *free;
    uint64_t free_count;
    uint64_t promised;     /* grows only under the lock */
    uint64_t promised_max; /* at most this many of them are reserved; never changes after boot */
    uint32_t *users;       /* of each page from `first` */
} pages;

void page_init(physical_t start, physical_t end)
{
    start = round_up(start, PAGE_BYTES);
    end = round_down(end, PAGE_BYTES);
    if (end > DIRECT_BYTES)
        end = DIRECT_BYTES;
    kernel_assert(pages.end == 0 && start < end);

    uint64_t counts_bytes = round_up((end - start) / PAGE_BYTES * sizeof(*pages.users), PAGE_BYTES);
    kernel_assert(counts_bytes < end - start);

    spinlock_init(&pages.lock, "pages", LOCK_PAGES);
    pages.users = physical_to_pointer(start);
    memset(pages.users, 0, counts_bytes);
    pages.first = start + counts_bytes;
    pages.fresh = pages.first;
    pages.end = end;
    pages.free_count = page_total();
    pages.promised_max = UINT64_MAX;
}

void page_keep_promises(uint64_t most)
{
    pages.promised_max = most;
}

static uint32_t *users_of(const void *page)
{
    physical_t address = pointer_to_physical(page);

    kernel_assert(address >= pages.first && address < pages.end);
    kernel_assert(address % PAGE_BYTES == 0);
    return &pages.users[(address - pages.first) / PAGE_BYTES];
}

/* Returns the number of free pages reserved for page_allocate_promised(). */
static uint64_t reserved_pages(void)
{
    uint64_t promised = __atomic_load_n(&pages.promised, __ATOMIC_RELAXED);

    return promised < pages.promised_max ? promised : pages.promised_max;
}

/* Takes the next free page off its list. */
static void *take_page(void)
{
    struct free_page *page = pages.free;

    if (page != NULL) {
        pages.free = page->next;
    } else if (pages.fresh < pages.end) {
        page = physical_to_pointer(pages.fresh);
        pages.fresh += PAGE_BYTES;
    }
    return page;
}

/* Returns a page with one user, or null unless more than `others` are free. */
static void *allocate_above(uint64_t others)
{
    void *page = pages.free_count > others ? take_page() : NULL;

    if (page != NULL) {
        uint32_t *users = users_of(page);

        kernel_assert(*users == 0);
        __atomic_store_n(users, 1, __ATOMIC_RELAXED);
        pages.free_count--;
        unpoison(page, PAGE_BYTES);
    }
    return page;
}

void *page_allocate(void)
{
    spinlock_acquire(&pages.lock);
    void *page = allocate_above(reserved_pages());
    spinlock_release(&pages.lock);
    return page;
}

void *page_allocate_promised(void)
{
    spinlock_acquire(&pages.lock);
    void *page = allocate_above(0);
    spinlock_release(&pages.lock);
    return page;
}

bool page_promise(uint64_t count)
{
    spinlock_acquire(&pages.lock);
    bool possible = pages.promised_max < UINT64_MAX || page_free_count() >= count;
    if (possible)
        __atomic_fetch_add(&pages.promised, count, __ATOMIC_RELAXED);
    spinlock_release(&pages.lock);
    return possible;
}

void page_promise_end(uint64_t count)
{
    uint64_t before = __atomic_fetch_sub(&pages.promised, count, __ATOMIC_RELAXED);

    kernel_assert(before >= count);
}

void *page_allocate_zeroed(void)
{
    void *page = page_allocate();

    if (page != NULL)
        memset(page, 0, PAGE_BYTES);
    return page;
}

/* Returns the lowest page where a row of this many free pages may begin. If too few are free
 * below the fresh pages, the row ends among those, and the allocated pages before need no
 * search. */
static uint64_t lowest_row(size_t count)
{
    uint64_t fresh = (pages.fresh - pages.first) / PAGE_BYTES;
    uint64_t free_below = pages.free_count - (page_total() - fresh);

    return free_below < count ? fresh - free_below : 0;
}

/* Returns the first of `count` free pages in a row; page_total() if there is no such row. */
static uint64_t find_row(size_t count)
{
    uint64_t total = page_total();
    size_t row = 0;

    for (uint64_t index = lowest_row(count); index < total; index++) {
        row = pages.users[index] == 0 ? row + 1 : 0;
        if (row == count)
            return index + 1 - count;
    }
    return total;
}

/* Takes the free pages in [start, end) from the free list and from the fresh ones. */
static void take_row(physical_t start, physical_t end)
{
    struct free_page **link = &pages.free;

    while (*link != NULL) {
        physical_t address = pointer_to_physical(*link);

        if (address >= start && address < end)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    kernel_assert(start <= pages.fresh);
    if (end > pages.fresh)
        pages.fresh = end;
}

void *page_allocate_row(size_t count)
{
    void *row = NULL;

    kernel_assert(count > 0);
    spinlock_acquire(&pages.lock);
    uint64_t index = page_free_count() >= count ? find_row(count) : page_total();
    if (index < page_total()) {
        physical_t start = pages.first + index * PAGE_BYTES;

        take_row(start, start + count * PAGE_BYTES);
        for (size_t page = 0; page < count; page++)
            pages.users[index + page] = 1;
        pages.free_count -= count;
        row = physical_to_pointer(start);
        unpoison(row, count * PAGE_BYTES);
    }
    spinlock_release(&pages.lock);
    return row;
}

void page_share(void *page)
{
    uint32_t before = __atomic_fetch_add(users_of(page), 1, __ATOMIC_RELAXED);

    kernel_assert(before != 0 && before != UINT32_MAX);
}

bool page_release(void *page)
{
    uint32_t *users = users_of(page);
    uint32_t count = __atomic_load_n(users, __ATOMIC_RELAXED);

    /* All users but the last leave without the lock. If there is only one, no other can come. */
    while (count > 1) {
        if (__atomic_compare_exchange_n(users, &count, count - 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return false;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    struct free_page *free = page;
    spinlock_acquire(&pages.lock);
    kernel_assert(*users == 1);
    __atomic_store_n(users, 0, __ATOMIC_RELAXED);
    free->next = pages.free;
    pages.free = free;
    pages.free_count++;
    poison(free + 1, PAGE_BYTES - sizeof(*free));
    spinlock_release(&pages.lock);
    return true;
}

bool page_shared(const void *page)
{
    uint32_t count = __atomic_load_n(users_of(page), __ATOMIC_ACQUIRE);

    kernel_assert(count != 0);
    return count > 1;
}

uint64_t page_total(void)
{
    return (pages.end - pages.first) / PAGE_BYTES;
}

/* A promised page is taken before its promise ends: temporarily fewer may be free than promised. */
uint64_t page_free_count(void)
{
    uint64_t free_count = __atomic_load_n(&pages.free_count, __ATOMIC_RELAXED);
    uint64_t set_aside = reserved_pages();

    return free_count > set_aside ? free_count - set_aside : 0;
}
