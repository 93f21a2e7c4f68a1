/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_TYPES_H
#define LINUX_BPF_TYPES_H

/*
 * The language features that policies expect, for a BPF program without vmlinux.h: clang's
 * <stdint.h> is not for this target.
 */
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;

#define bool  _Bool
#define true  1
#define false 0

#define SECTION(name) __attribute__((section(name), used))

#include "bpf/language.h"

#endif
