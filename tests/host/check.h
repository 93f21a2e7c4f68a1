/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_CHECK_H
#define TESTS_HOST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/*
 * A host test is one C file, tests/host/NAME_test.c, that includes the sources under test and stubs
 * the rest. It runs under AddressSanitizer and UndefinedBehaviorSanitizer. The first failed check
 * ends it.
 */
#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Runs a test function and reports it. */
#define run_test(function)                                                                         \
    do {                                                                                           \
        function();                                                                                \
        printf("ok %s\n", #function);                                                              \
    } while (0)

#endif
