/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_USER_H
#define USER_LIBRARY_USER_H

/*
 * All of the C library. A program's stack is one page of 4 KiB, as in xv6: make large variables
 * static, or allocate them with malloc().
 */
#include "user/library/heap.h"
#include "user/library/print.h"
#include "user/library/program.h"
#include "user/library/random.h"
#include "user/library/system.h"
#include "user/library/text.h"

#endif
