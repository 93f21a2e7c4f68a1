/* SPDX-License-Identifier: MIT */

/*
 * Uses memory to the last page, as xv6's own tests and a course's test of copy-on-write do. Also
 * tests what happens if more memory was promised than exists. If it is the first process of a disk,
 * named init, it must wait for memory; other processes are killed.
 */

#include "tests/guest/check.h"

#define PAGE 4096

static int64_t memory_pages(void)
{
    struct system_stats stats;
    check(getstats(&stats) == 0);
    return (int64_t)stats.memory_pages;
}

static void write_pages(char *start, int64_t pages, char what)
{
    for (int64_t i = 0; i < pages; i++)
        start[i * PAGE] = what;
}

static void check_pages(const char *start, int64_t pages, char what)
{
    for (int64_t i = 0; i < pages; i++)
        check(start[i * PAGE] == what);
}

static char *must_grow(int64_t pages)
{
    char *start = sbrk(pages * PAGE);
    check(start != SYSTEM_FAILED);
    return start;
}

/* Takes all available pages with the one system call. Returns their number. */
static int64_t take_all(void)
{
    int64_t count = 0;
    while (sbrk(64 * PAGE) != SYSTEM_FAILED)
        count += 64;
    while (sbrk(PAGE) != SYSTEM_FAILED)
        count++;
    return count;
}

/* Returns how many pages a process can get. */
static int64_t count_pages(void)
{
    int64_t count = take_all();
    check(sbrk(-count * PAGE) != SYSTEM_FAILED);
    return count;
}

/* Starts a child that holds all pages until a byte comes through the pipe. */
static int start_holder(int64_t left, int go[2])
{
    int ready[2];
    char byte = 'r';
    check(pipe(go) == 0 && pipe(ready) == 0);
    int pid = test_fork();
    if (pid == 0) {
        close(go[1]);
        take_all();
        sbrk(-left * PAGE);
        check(write(ready[1], &byte, 1) == 1);
        read(go[0], &byte, 1);
        exit(0);
    }
    check(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end_holder(int pid, const int go[2])
{
    check(write(go[1], "g", 1) == 1);
    check(test_wait(pid) == 0);
    close(go[0]);
    close(go[1]);
}

/* The course's test of copy-on-write. */

static void two_thirds_of_memory_fork(void)
{
    for (int round = 0; round < 2; round++) {
        int64_t pages = memory_pages() * 2 / 3;
        char *start = must_grow(pages);
        write_pages(start, pages, 'p');
        int pid = test_fork();
        if (pid == 0)
            exit(0);
        check(test_wait(pid) == 0);
        check_pages(start, pages, 'p');
        check(sbrk(-pages * PAGE) != SYSTEM_FAILED);
    }
}

/*
 * Shares a quarter of memory. A grandchild writes four fifths of it, a child one half, and this
 * process all of it.
 */
static void three_processes_write_what_they_share(void)
{
    int64_t pages = memory_pages() / 4;
    char *start = must_grow(pages);
    int pid = test_fork();
    if (pid == 0) {
        pid = test_fork();
        if (pid == 0) {
            write_pages(start, pages * 4 / 5, 'g');
            check_pages(start, pages * 4 / 5, 'g');
            exit(0);
        }
        write_pages(start, pages / 2, 'c');
        check(test_wait(pid) == 0);
        check_pages(start, pages / 2, 'c');
        exit(0);
    }
    write_pages(start, pages, 'p');
    check(test_wait(pid) == 0);
    check_pages(start, pages, 'p');
}

static char shared[4 * PAGE];

static void the_kernel_writes_to_shared_pages(void)
{
    int ends[4][2];
    memset(shared, 's', sizeof(shared));
    for (int i = 0; i < 4; i++) {
        char got = (char)('0' + i);
        check(pipe(ends[i]) == 0);
        if (test_fork() == 0) {
            sleep(1);
            check(read(ends[i][0], shared + PAGE - 1, 2) == 2);
            check(shared[PAGE - 1] == got && shared[PAGE] == got);
            exit(0);
        }
        char message[2] = {got, got};
        check(write(ends[i][1], message, 2) == 2);
    }
    wait_for_children(4);
    for (size_t i = 0; i < sizeof(shared); i++)
        check(shared[i] == 's');
}

static void forks_of_forks_share(void)
{
    must_grow(256);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++) {
            if (test_fork() == 0) {
                sleep(1);
                fork();
                fork();
                exit(0);
            }
        }
        wait_for_children(3);
    }
}

/* xv6's own tests for the end of memory. */

/* With the boot argument processes=64, which is xv6's limit. */
static void forks_come_to_an_end(void)
{
    int count = 0;
    for (int pid; count < 1000 && (pid = fork()) >= 0; count++) {
        if (pid == 0)
            exit(0);
    }
    check(last_error() == EAGAIN && count < 64);
    for (int i = 0; i < count; i++)
        check(wait(NULL) > 0);
    check(wait(NULL) == -1);
    end_child(start_sleeper());
}

static void touched_without_end_kills(void)
{
    int pid = test_fork();
    if (pid == 0) {
        int64_t pages = 2 * memory_pages();
        char *start = sbrk(pages * PAGE);
        check(start == SYSTEM_FAILED);
        write_pages(sbrk(0), pages, 'x');
        exit(0);
    }
    check(test_wait(pid) == -1);
}

/* A failed call keeps no memory: the next call gets the same amount. */
static void many_take_much(void)
{
    int64_t part = memory_pages() / 4;
    int64_t before = count_pages();
    int ready[2];
    check(pipe(ready) == 0);
    int pids[8];
    for (int i = 0; i < 8; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0) {
            sbrk(part * PAGE);
            write(ready[1], "x", 1);
            sleep(1000000000);
        }
        char byte;
        check(read(ready[0], &byte, 1) == 1);
    }
    for (int i = 0; i < 8; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < 8; i++)
        check(wait(NULL) > 0);
    close(ready[0]);
    close(ready[1]);
    check(count_pages() >= before);
}

static void exec_at_the_end_of_memory(void)
{
    for (int left = 0; left < 15; left++) {
        int pid = test_fork();
        if (pid == 0) {
            char *const arguments[] = {"true", NULL};
            take_all();
            sbrk(-left * PAGE);
            exec("/true", arguments);
            exit(0);
        }
        int status = test_wait(pid);
        check(status == 0 || status == -1);
    }
}

static void write_file(const char *path, int64_t pages)
{
    int file = open(path, OPEN_BOTH | OPEN_CREATE | OPEN_TRUNCATE);
    check(file >= 0);
    for (int64_t i = 0; i < pages; i++)
        check(write(file, shared, PAGE) == PAGE);
    close(file);
}

static void fill_caches(void)
{
    int pids[100];
    write_file("/last-page.1", 400);
    for (int i = 0; i < 100; i++)
        pids[i] = start_sleeper();
    for (int i = 0; i < 100; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < 100; i++)
        check(wait(NULL) > 0);
    write_file("/last-page.2", 20);
    check(unlink("/last-page.1") == 0);
}

/*
 * A process can get every page that caches and the journal hold. The kernel reports these pages as
 * free.
 */
static void caches_give_all_back(void)
{
    int64_t before = count_pages();
    int64_t free_before = free_pages();
    fill_caches();
    check(free_pages() >= free_before - 16);
    check(count_pages() >= before);
    check(unlink("/last-page.2") == 0);
    check(count_pages() >= before);
}

/* Overcommitted memory */

/*
 * The process that writes beyond the available memory is killed; other processes keep their pages.
 */
static void a_writer_without_a_page_is_killed(void)
{
    int64_t pages = memory_pages() * 2 / 3;
    char *start = must_grow(pages);
    write_pages(start, pages, 'p');
    int pid = test_fork();
    if (pid == 0) {
        write_pages(start, pages, 'c');
        exit(0);
    }
    check(test_wait(pid) == -1);
    check_pages(start, pages, 'p');
    write_pages(start, pages, 'q');
    pid = test_fork();
    if (pid == 0) {
        write_pages(start, 16, 'c');
        exit(0);
    }
    check(test_wait(pid) == 0);
    check_pages(start, pages, 'q');
}

/* A system call in the same situation fails. */
static void a_call_without_a_page_fails(void)
{
    int64_t pages = memory_pages() * 2 / 3;
    char *start = must_grow(pages);
    int ends[2];
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        int64_t done = 0;
        for (int result = 1; result == 1; done++) {
            check(done < pages && write(ends[1], "x", 1) == 1);
            result = read(ends[0], start + done * PAGE, 1);
        }
        check(last_error() == ENOMEM && done > 0);
        exit(0);
    }
    check(test_wait(pid) == 0);
    check_pages(start, pages, 0);
}

/* Calls that may fail leave a part of memory to processes that write to shared pages. */
static void who_takes_all_kills_nobody_else(void)
{
    int64_t pages = 32;
    int go[2];
    char *start = must_grow(pages);
    write_pages(start, pages, 'p');
    int holder = start_holder(0, go);
    write_pages(start, pages, 'q');
    check_pages(start, pages, 'q');
    end_holder(holder, go);
}

static void files_are_written_without_free_memory(void)
{
    int go[2];
    int holder = start_holder(0, go);
    write_file("/last-page.1", 300);
    check(sync() == 0);
    int file = open("/last-page.1", OPEN_READ);
    for (int i = 0; i < 300; i++) {
        shared[0] = 1;
        check(read(file, shared, PAGE) == PAGE && shared[0] == 0);
    }
    close(file);
    check(unlink("/last-page.1") == 0);
    end_holder(holder, go);
}

/* Strict accounting: each fork reserves its memory */

static void a_strict_fork_gives_what_can_be_written(void)
{
    int64_t pages = memory_pages() * 2 / 3;
    char *start = must_grow(pages);
    write_pages(start, pages, 'p');
    check_error(fork(), ENOMEM);
    check_pages(start, pages, 'p');
    check(sbrk(-pages / 2 * PAGE) != SYSTEM_FAILED);
    pages -= pages / 2;
    int pid = test_fork();
    if (pid == 0) {
        take_all();
        write_pages(start, pages, 'c');
        exit(0);
    }
    check(test_wait(pid) == 0);
    check_pages(start, pages, 'p');
}

/* As init: a child holds all of memory for a while. */
static void the_first_process_waits(void)
{
    int go[2];
    int pages = 600;
    char *start = sbrk_lazy(pages * PAGE);
    check(start != SYSTEM_FAILED && pipe(go) == 0);
    if (test_fork() == 0) {
        take_all();
        check(write(go[1], "g", 1) == 1);
        sleep(20);
        exit(0);
    }
    char byte;
    check(read(go[0], &byte, 1) == 1);
    write_pages(start, pages, 'f');
    check_pages(start, pages, 'f');
    wait_for_children(1);
    printf("ok the_first_process_waits\n");
}

static void be_first(void)
{
    mknod("/console", DEVICE_CONSOLE, 0);
    open("/console", OPEN_BOTH);
    dup(0);
    dup(0);
    the_first_process_waits();
    poweroff(0);
}

static bool forks_are_strict(void)
{
    char value[8];
    return boot_argument("overcommit", value, sizeof(value)) == 1 && value[0] == '0';
}

static bool processes_are_few(void)
{
    char value[8];
    return boot_argument("processes", value, sizeof(value)) >= 0;
}

#define TESTS_AT_THE_END_OF_MEMORY                                                                 \
    TEST(three_processes_write_what_they_share), TEST(the_kernel_writes_to_shared_pages),          \
        TEST(forks_of_forks_share), TEST(touched_without_end_kills), TEST(many_take_much),         \
        TEST(exec_at_the_end_of_memory), TEST(caches_give_all_back),                               \
        TEST(who_takes_all_kills_nobody_else), TEST(files_are_written_without_free_memory)

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TESTS_AT_THE_END_OF_MEMORY,
        TEST(two_thirds_of_memory_fork),
        TEST(a_writer_without_a_page_is_killed),
        TEST(a_call_without_a_page_fails),
    };
    static const struct test strict_tests[] = {
        TESTS_AT_THE_END_OF_MEMORY,
        TEST(a_strict_fork_gives_what_can_be_written),
    };
    static const struct test few_tests[] = {TEST(forks_come_to_an_end)};
    if (getpid() == 1)
        be_first();
    if (processes_are_few())
        return RUN_TESTS(few_tests, argc, argv);
    return forks_are_strict() ? RUN_TESTS(strict_tests, argc, argv) : RUN_TESTS(tests, argc, argv);
}
