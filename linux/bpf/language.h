/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_LANGUAGE_H
#define LINUX_BPF_LANGUAGE_H

/* What policies expect of the language and vmlinux.h does not give: that has types, no macros. */

#ifndef NULL
#define NULL ((void *)0)
#endif
#define INT64_MAX  __INT64_MAX__
#define INT64_MIN  (-__INT64_MAX__ - 1)
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX __UINT64_MAX__

/*
 * True while the program may go on looping: the instruction `may_goto` counts
 * and jumps when the kernel's limit is reached, which lets the verifier accept
 * a loop whose end it cannot see.
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
 * A number that the verifier does not see. A loop up to a number that it does see
 * it walks through, turn by turn; of another one it proves that every turn is safe.
 */
#define UNSEEN(number)                                                                             \
    ({                                                                                             \
        static volatile uint32_t unseen = (number);                                                \
        unseen;                                                                                    \
    })

/*
 * The same value, of which the verifier knows nothing: what a loop chose among its
 * turns. If it is compared with a constant afterwards, the verifier would else
 * follow each turn by itself.
 */
static __always_inline uint32_t forget(uint32_t value)
{
    return value ^ UNSEEN(0);
}

#endif
