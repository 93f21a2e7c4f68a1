/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_ADDRESS_SPACE_H
#define KERNEL_MEMORY_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/*
 * A process's memory: pages from address 0 to `end`, as in xv6: program, guard,
 * stack, heap. Only its own process changes it, so it needs no lock.
 *
 * Functions that take time in proportion to memory (all except create and
 * fault) call preemption_point(): no spin lock may be held.
 */
struct address_space {
    uint64_t *root; /* Sv39 root page table; the upper half is shared with all */
    uint64_t heap;  /* where the heap begins; below `end`, or at it */
    uint64_t end;   /* first address past the heap; sbrk() moves it */
};

enum page_right {
    PAGE_READ = 1 << 1, /* the bits of a Sv39 page-table entry */
    PAGE_WRITE = 1 << 2,
    PAGE_EXECUTE = 1 << 3,
    PAGE_SHARED = 1 << 9, /* not a right: children have this page itself, and no copy of it */
};

/* Makes an empty address space. Returns 0 or -ENOMEM (then `space` holds nothing). */
int address_space_create(struct address_space *space);
/* Frees all memory; `space` is empty then. An empty one may be destroyed, too. */
void address_space_destroy(struct address_space *space);

/*
 * Makes a copy that shares all pages until one side writes; memory for that is promised
 * to it (memory/page.h). Returns 0 or -ENOMEM (then `copy` holds nothing).
 */
int address_space_copy(struct address_space *copy, struct address_space *from);

/*
 * Adds zeroed pages for [start, end), with these rights, readable by the user.
 * `end` of the address space rises to the new pages' end. Returns 0 or -ENOMEM.
 */
int address_space_map(struct address_space *space, uint64_t start, uint64_t end, int rights);
void address_space_unmap(struct address_space *space, uint64_t start, uint64_t end);

/*
 * Moves `end` by `change` bytes; fails if the heap is smaller than the decrease. lazy: pages are
 * added on first access. Returns 0, -ENOMEM, or -EINVAL (beyond HEAP_END); changes nothing on
 * failure.
 */
int address_space_grow(struct address_space *space, int64_t change, bool lazy);

/*
 * Adds zeroed pages after all others, which later children share for reading and writing. Returns 0
 * and their start; -ENOMEM, or -EINVAL (beyond USER_END).
 */
int address_space_share(struct address_space *space, uint64_t bytes, uint64_t *start);

/*
 * Handles a failed user access at `address`, by copy-on-write or the lazy heap.
 * Returns 0: the access is retried; -EFAULT: the process has no such right;
 * -ENOMEM: there is no page for it.
 */
int address_space_fault(struct address_space *space, uint64_t address, enum page_right access);

/* Returns the kernel's view of a user page, made accessible in this way if necessary, or null if
 * that is not allowed. */
void *address_space_page(struct address_space *space, uint64_t address, enum page_right access);

/*
 * Makes this CPU use the address space; null or an empty one: the kernel's, without a user half. A
 * CPU that leaves a process, even to be idle, must activate another address space first. Only then
 * may that process run on another CPU or be destroyed. So a CPU that still uses an address space
 * has seen all its changes, and this does nothing.
 */
void address_space_activate(const struct address_space *space);

#endif
