/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_TYPES_H
#define LINUX_BPF_TYPES_H

/*
 * What policies expect of the language, for a BPF program that has no vmlinux.h:
 * clang's own <stdint.h> is not for this target.
 */
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;

#define bool       _Bool
#define true       1
#define false      0
#define NULL       ((void *)0)
#define INT64_MAX  __INT64_MAX__
#define INT64_MIN  (-__INT64_MAX__ - 1)
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX __UINT64_MAX__

#define SECTION(name) __attribute__((section(name), used))

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

#endif
