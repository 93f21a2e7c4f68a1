/* SPDX-License-Identifier: MIT */

/*
 * Workers that do everything at once, by a seed: fork, exec, kill, pipes, files, memory, sleep,
 * switches of policies. Each step checks its result. At the end, no process remains and no memory
 * is missing.
 */

#include "policies/policy.h"
#include "tests/guest/check.h"

#define USAGE "test-stress [SEED [WORKERS [STEPS]]]"
#define PAGE  4096

static char block[PAGE];
static struct random numbers;

static int number_below(uint64_t limit)
{
    return (int)random_below(&numbers, limit);
}

static void fork_and_wait(void)
{
    int expected = number_below(200);
    int pid = test_fork();
    if (pid == 0) {
        block[number_below(PAGE)] = 1;
        spin(number_below(30000));
        exit(expected);
    }
    check(test_wait(pid) == expected);
}

static void fork_and_kill(void)
{
    int pid = test_fork();
    if (pid == 0) {
        if (number_below(2))
            sleep(1000000);
        for (;;)
            spin(1000);
    }
    if (number_below(2))
        spin(number_below(50000));
    check(kill(pid) == 0);
    check(test_wait(pid) == -1);
}

static void fork_and_exec(void)
{
    static char *const arguments[] = {"false", NULL};
    int pid = test_fork();
    if (pid == 0) {
        exec("/false", arguments);
        exit(100);
    }
    check(test_wait(pid) == 1);
}

static void leave_an_orphan(void)
{
    int pid = test_fork();
    if (pid == 0) {
        if (fork() == 0)
            sleep(number_below(3));
        exit(5);
    }
    check(test_wait(pid) == 5);
}

/* Sends bytes from one child to another. */
static void send_through_a_pipe(void)
{
    int ends[2];
    int bytes = 1 + number_below(9000);
    check(pipe(ends) == 0);
    if (test_fork() == 0) {
        close(ends[0]);
        for (int left = bytes; left > 0;) {
            int n = left < PAGE ? left : PAGE;
            check(write(ends[1], block, n) == n);
            left -= n;
        }
        exit(0);
    }
    if (test_fork() == 0) {
        close(ends[1]);
        int got = 0;
        int n;
        while ((n = read(ends[0], block, sizeof(block))) > 0)
            got += n;
        exit(n == 0 && got == bytes ? 0 : 1);
    }
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

/* Uses a file of this worker only. */
static void write_and_read_a_file(void)
{
    static char name[24];
    int bytes = 1 + number_below(3 * PAGE);
    char fill = (char)number_below(256);
    snprintf(name, sizeof(name), "w%d", getpid());
    int descriptor = open(name, OPEN_BOTH | OPEN_CREATE);
    check(descriptor >= 0);
    memset(block, fill, sizeof(block));
    for (int left = bytes; left > 0; left -= PAGE) {
        int n = left < PAGE ? left : PAGE;
        check(write(descriptor, block, n) == n);
    }
    if (number_below(2))
        check(unlink(name) == 0);
    close(descriptor);
    descriptor = open(name, OPEN_READ);
    if (descriptor < 0)
        return;
    for (int left = bytes; left > 0; left -= PAGE) {
        int n = left < PAGE ? left : PAGE;
        check(read(descriptor, block, PAGE) == n);
        check(block[0] == fill && block[n - 1] == fill);
    }
    close(descriptor);
    check(unlink(name) == 0);
}

/* All workers compete for these names, so any result is valid. */
static void fight_for_names(void)
{
    static const char *const names[] = {"a", "b", "a/c", "b/c", "a/c/d"};
    const char *name = names[number_below(5)];
    switch (number_below(5)) {
    case 0:
        mkdir(name);
        break;
    case 1:
        unlink(name);
        break;
    case 2:
        link(name, names[number_below(5)]);
        break;
    default: {
        int descriptor = open(name, OPEN_BOTH | OPEN_CREATE);
        write(descriptor, block, number_below(PAGE));
        close(descriptor);
    }
    }
}

static void use_memory(void)
{
    int64_t bytes = PAGE * (1 + number_below(20)) + number_below(PAGE);
    char *start = number_below(2) ? sbrk(bytes) : sbrk_lazy(bytes);
    check(start != SYSTEM_FAILED);
    for (int64_t at = 0; at < bytes; at += 1000)
        start[at] = (char)at;
    int pid = test_fork();
    if (pid == 0) {
        for (int64_t at = 0; at < bytes; at += 1000) {
            check(start[at] == (char)at);
            start[at] = 0;
        }
        exit(0);
    }
    for (int64_t at = 0; at < bytes; at += 1000)
        check(start[at] == (char)at);
    check(test_wait(pid) == 0);
    check(sbrk(-bytes) == start + bytes);
}

static void take_a_break(void)
{
    if (number_below(2))
        yield();
    else
        sleep(number_below(3));
}

static void change_attributes(void)
{
    check(setpriority(getpid(), number_below(PRIORITY_LOWEST + 1)) == 0);
    check(settickets(1 + number_below(1000)) == 0);
    check(setweight(getpid(), 1 + number_below(WEIGHT_MAX)) == 0);
}

static void change_policy(void)
{
    if (number_below(4) == 0)
        check(setpolicy(number_below(2) ? "rr" : "rr:table-scan") == 0);
    else
        check(settunable("slice", 1 + number_below(4)) == 0);
}

static void look_at_all(void)
{
    int count;
    struct process_info *table = process_table(&count);
    check(table && count > 2);
    bool has_match = false;
    for (int i = 0; i < count; i++) {
        has_match |= table[i].pid == getpid();
        check(table[i].pid > 0 && table[i].state <= PROCESS_ZOMBIE);
    }
    check(has_match);
    free(table);
}

_Noreturn static void work(uint64_t seed, int64_t steps)
{
    static void (*const acts[])(void) = {
        fork_and_wait,         fork_and_kill,   fork_and_exec, leave_an_orphan,
        send_through_a_pipe,   fight_for_names, use_memory,    take_a_break,
        write_and_read_a_file, change_policy,   look_at_all,   change_attributes,
    };
    numbers.state = seed;
    for (int64_t i = 0; i < steps; i++)
        acts[number_below(sizeof(acts) / sizeof(acts[0]))]();
    exit(0);
}

static void clean_up(void)
{
    static const char *const names[] = {"a/c/d", "b/c/d", "a/c", "b/c", "a", "b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(names[i]);
    check(chdir("/") == 0 && unlink("/stress") == 0);
}

static void run_workers(uint64_t seed, int64_t workers, int64_t steps)
{
    int processes = getpinfo(NULL, 0);
    check(mkdir("/stress") == 0 && chdir("/stress") == 0);
    for (int64_t i = 0; i < workers; i++) {
        if (test_fork() == 0)
            work(seed << 20 | (uint64_t)i, steps);
    }
    for (int64_t i = 0; i < workers; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
    clean_up();
    for (int i = 0; i < 1000 && getpinfo(NULL, 0) > processes; i++)
        sleep(1); /* orphans */
    check(getpinfo(NULL, 0) == processes);
}

int main(int argc, char *argv[])
{
    if (argc > 4)
        usage(USAGE);
    int64_t seed = argc > 1 ? number_argument("test-stress", argv[1], 0, INT32_MAX) : 1;
    int64_t workers = argc > 2 ? number_argument("test-stress", argv[2], 1, 10000) : 12;
    int64_t steps = argc > 3 ? number_argument("test-stress", argv[3], 1, INT32_MAX) : 60;
    char policy[64];
    test_name = "test-stress";
    check(getpolicy(policy, sizeof(policy)) >= 0);
    run_workers(seed, workers, steps); /* caches are warm now */
    int64_t before = free_pages();
    run_workers(seed, workers, steps);
    check(before - free_pages() < 64);
    check(setpolicy(policy) == 0);
    printf("ok test-stress\n");
    return 0;
}
