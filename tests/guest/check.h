/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GUEST_CHECK_H
#define TESTS_GUEST_CHECK_H

#include "abi/machine_hints.h"
#include "user/library/user.h"

/*
 * Framework for tests that run on the schedlab kernel. A program is a list of tests. Each test runs
 * in a separate process with a limit in guest time, and prints "ok NAME" or "FAILED NAME: why".
 * With arguments, only the named tests run; with -NAME, all other tests run.
 */

#define TEST_LIMIT_SECONDS 120

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(function) {#function, function}

static const char *test_name = "?";
static int test_keeper;   /* the process that started the test */
static int test_watchdog; /* ends a test that takes too long */

/* Ends the test's process or a child of it. */
_Noreturn __attribute__((noinline)) static void check_failed(const char *file, int line,
                                                             const char *condition)
{
    int error = last_error();
    printf("FAILED %s: %s:%d: %s (last error: %s)\n", test_name, file, line, condition,
           error_text(error));
    exit(1);
}

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)

/* Requires that the call returns -1 for this reason. */
#define check_error(call, reason)                                                                  \
    do {                                                                                           \
        check((call) == -1);                                                                       \
        check(last_error() == (reason));                                                           \
    } while (0)

/* Calls fork(), which must succeed. */
static inline int test_fork(void)
{
    int pid = fork();
    check(pid >= 0);
    return pid;
}

/* Waits for the only child, and returns its status. */
static inline int test_wait(int pid)
{
    int status;
    check(wait(&status) == pid);
    return status;
}

/* Finds the row of a process; returns false if there is none. */
static inline bool find_process(int pid, struct process_info *row)
{
    int count;
    struct process_info *table = process_table(&count);
    check(table);
    bool has_match = false;
    for (int i = 0; i < count && !has_match; i++) {
        has_match = table[i].pid == pid;
        if (has_match)
            *row = table[i];
    }
    free(table);
    return has_match;
}

/* Waits for `count` children; each must succeed. */
static inline void wait_for_children(int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

/* Starts a child that only waits, and returns its PID. */
static inline int start_sleeper(void)
{
    int pid = test_fork();
    if (pid == 0) {
        sleep(1000000000);
        exit(0);
    }
    return pid;
}

/* Ends the only child. */
static inline void end_child(int pid)
{
    check(kill(pid) == 0);
    check(test_wait(pid) == -1);
}

/* Waits until a process is blocked for a reason. */
static inline void wait_until_blocked(int pid, enum block_reason reason)
{
    struct process_info row;
    for (int i = 0; i < 10000; i++) {
        check(find_process(pid, &row));
        if (row.state == PROCESS_BLOCKED && row.reason == (uint32_t)reason)
            return;
        sleep(1);
    }
    check(!"the process blocks");
}

static inline int64_t free_pages(void)
{
    struct system_stats stats;
    check(getstats(&stats) == 0);
    return (int64_t)stats.free_pages;
}

/*
 * Computes in a loop of two instructions. A machine that knows the preceding hint lets the same
 * time pass at once.
 */
static inline void spin(int64_t iterations)
{
    int64_t time = 2 * iterations + 1;
    if (iterations <= 0)
        return;
    __asm__ volatile("   slti x0, %[time], %[burn]\n"
                     "   beqz %[time], 2f\n"
                     "1: addi %[left], %[left], -1\n"
                     "   bnez %[left], 1b\n"
                     "2:\n"
                     : [time] "+r"(time), [left] "+r"(iterations)
                     : [burn] "i"(HINT_BURN));
}

static inline int start_watchdog(void)
{
    struct system_stats stats;
    getstats(&stats);
    int pid = fork();
    if (pid == 0) {
        sleep((int)(TEST_LIMIT_SECONDS * 1000000000ul / stats.tick_ns));
        exit(0);
    }
    return pid;
}

/* Waits until only the test's processes are active, so that page counts depend on them alone. */
static inline void wait_until_others_rest(void)
{
    wait_until_blocked(test_watchdog, BLOCK_SLEEP);
    wait_until_blocked(test_keeper, BLOCK_CHILD);
}

/* Returns true if the test passed. */
static inline bool run_test(const struct test *test)
{
    test_name = test->name;
    test_keeper = getpid();
    /* Forked before the test starts to count pages or processes. */
    int watchdog = test_watchdog = start_watchdog();
    int pid = fork();
    if (pid == 0) {
        test->run();
        exit(0);
    }
    int status = -1;
    bool timed_out = wait(&status) == watchdog;
    kill(timed_out ? pid : watchdog);
    wait(NULL);

    bool passed = !timed_out && status == 0;
    if (passed)
        printf("ok %s\n", test->name);
    else if (timed_out)
        printf("FAILED %s: not done within %d seconds\n", test->name, TEST_LIMIT_SECONDS);
    else if (status != 1)
        printf("FAILED %s: ended with status %d\n", test->name, status);
    return passed;
}

static inline bool test_selected(const char *name, int argc, char *argv[])
{
    bool others = argc == 1 || argv[1][0] == '-';
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i] + others, name) == 0)
            return !others;
    }
    return others;
}

/* Returns the exit status for main(). */
static inline int run_tests(const struct test *tests, int count, int argc, char *argv[])
{
    int run = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        if (!test_selected(tests[i].name, argc, argv))
            continue;
        run++;
        failed += !run_test(&tests[i]);
    }
    printf("%s: %d tests, %d failed\n", argv[0], run, failed);
    return failed == 0 && run > 0 ? 0 : 1;
}

#define RUN_TESTS(tests, argc, argv)                                                               \
    run_tests(tests, (int)(sizeof(tests) / sizeof((tests)[0])), argc, argv)

#endif
