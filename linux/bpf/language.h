/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_LANGUAGE_H
#define LINUX_BPF_LANGUAGE_H

/* Macros that policies need: vmlinux.h contains only types. */

#ifndef NULL
#define NULL ((void *)0)
#endif
#define INT64_MAX  __INT64_MAX__
#define INT64_MIN  (-__INT64_MAX__ - 1)
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX __UINT64_MAX__

/*
 * True while the program may continue looping. The instruction `may_goto`
 * counts, and jumps when the kernel's limit is reached. So the verifier accepts
 * a loop whose end it cannot prove.
 */
#define can_loop                                                                                   \
    ({                                                                                             \
        __label__ limit_reached, known;                                                            \
        bool may_loop = true;                                                                      \
        asm volatile goto("may_goto %l[limit_reached]" : : : : limit_reached);                     \
        goto known;                                                                                \
    limit_reached:                                                                                 \
        may_loop = false;                                                                          \
    known:;                                                                                        \
        may_loop;                                                                                  \
    })

/*
 * Returns the same number, but hides its value from the verifier: an atomic addition makes the
 * verifier forget what is on the stack. If it knows a loop's counter or result, it follows each
 * iteration, with all code after it, until it gives up. If it does not know the number, it proves
 * at once that every iteration is safe.
 */

static __attribute__((always_inline, unused)) uint64_t unseen(uint64_t number)
{
    uint64_t place = number;
    __sync_fetch_and_add(&place, 0);
    return *(volatile uint64_t *)&place;
}

#endif
