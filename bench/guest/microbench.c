/* SPDX-License-Identifier: MIT */

/*
 * Measures the cost of small operations, in instructions of this CPU, including
 * those of the kernel and of other processes on it. For an otherwise idle
 * machine with one CPU. On Spike the numbers are exact and repeatable.
 *
 *     bench NAME ITERATIONS INSTRUCTIONS_PER_ITERATION
 *
 * The costs of the loop around each operation, and of reading the counter, are
 * subtracted.
 */

#include "user/library/user.h"

static uint64_t instructions(void)
{
    uint64_t count;
    __asm__ volatile(".option push\n .option arch, +zicsr\n csrr %0, 0xc02\n .option pop"
                     : "=r"(count)::"memory");
    return count;
}

/* Measured */

static int outward[2];
static int back[2];
static char byte[1];
static char kilobyte[1024];

static void nothing(void)
{
    __asm__ volatile("");
}

static void null_call(void)
{
    getpid();
}

static void pipe_write_read(void)
{
    write(outward[1], byte, 1);
    read(outward[0], byte, 1);
}

static void round_trip(void)
{
    write(outward[1], byte, 1);
    read(back[0], byte, 1);
}

static void yield_alone(void)
{
    yield();
}

static void fork_exit_wait(void)
{
    if (fork() == 0)
        exit(0);
    wait(NULL);
}

static void fork_exec_exit_wait(void)
{
    static char *const arguments[] = {"true", NULL};
    if (fork() == 0) {
        exec("/true", arguments);
        exit(1);
    }
    wait(NULL);
}

static void open_close(void)
{
    close(open("/true", OPEN_READ));
}

static void create_write_unlink(void)
{
    int descriptor = open("/bench.file", OPEN_WRITE | OPEN_CREATE);
    write(descriptor, kilobyte, sizeof(kilobyte));
    close(descriptor);
    unlink("/bench.file");
}

/* Measuring */

static uint64_t run(void (*operation)(void), int64_t iterations)
{
    uint64_t start = instructions();
    for (int64_t i = 0; i < iterations; i++)
        operation();
    return instructions() - start;
}

static void measure(const char *name, void (*operation)(void), int64_t iterations)
{
    run(operation, iterations / 10 + 2); /* caches are warm, pages exist */
    run(nothing, 10);
    uint64_t loop = run(nothing, iterations);
    uint64_t total = run(operation, iterations);
    uint64_t net = total > loop ? total - loop : 0;
    printf("bench %s %ld %lu\n", name, iterations,
           (net + (uint64_t)iterations / 2) / (uint64_t)iterations);
}

/* Starts a process that answers each byte; it ends when there is no more to read. */
static int start_partner(void)
{
    int pid = fork();
    if (pid != 0)
        return pid;
    close(outward[1]);
    close(back[0]);
    while (read(outward[0], byte, 1) == 1)
        write(back[1], byte, 1);
    exit(0);
}

static void open_pipes(void)
{
    if (pipe(outward) < 0 || pipe(back) < 0)
        exit(complain("microbench", "pipe"));
}

static void close_pipes(void)
{
    for (int i = 0; i < 2; i++) {
        close(outward[i]);
        close(back[i]);
    }
}

static void measure_round_trip(const char *name, int64_t iterations)
{
    open_pipes();
    if (start_partner() < 0)
        exit(complain("microbench", "fork"));
    measure(name, round_trip, iterations);
    close_pipes();
    wait(NULL);
}

/* Two processes that only yield: an iteration is two calls and two switches. */
static void measure_yield_in_turn(int64_t iterations)
{
    int pid = fork();
    if (pid < 0)
        exit(complain("microbench", "fork"));
    while (pid == 0)
        yield();
    measure("yield-in-turn", yield_alone, iterations);
    kill(pid);
    wait(NULL);
}

/* The same next to processes that are blocked, each on the same empty pipe. */
static void measure_with_blocked(int64_t blocked, int64_t iterations)
{
    char name[40];
    int idle[2];
    if (pipe(idle) < 0)
        exit(complain("microbench", "pipe"));
    int64_t started = 0;
    for (; started < blocked; started++) {
        int pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            close(idle[1]);
            read(idle[0], byte, 1);
            exit(0);
        }
    }
    sleep(10); /* all of them are blocked now */
    snprintf(name, sizeof(name), "ping-pong-beside-%ld", started);
    /* The partner keeps the pipe open as well, but ends before. */
    measure_round_trip(name, iterations);
    close(idle[1]);
    while (wait(NULL) > 0)
        ;
    close(idle[0]);
}

int main(int argc, char *argv[])
{
    if (argc > 3)
        usage("microbench [ITERATIONS [BLOCKED]]");
    int64_t n = argc > 1 ? number_argument("microbench", argv[1], 10, 1000000) : 1000;
    int64_t blocked = argc > 2 ? number_argument("microbench", argv[2], 0, 100000) : 4000;

    measure("getpid", null_call, n);
    measure("yield", yield_alone, n);
    measure_yield_in_turn(n);
    open_pipes();
    measure("pipe-write-read", pipe_write_read, n);
    close_pipes();
    measure_round_trip("ping-pong", n);
    measure("fork-exit-wait", fork_exit_wait, n / 5 + 1);
    measure("fork-exec-exit-wait", fork_exec_exit_wait, n / 5 + 1);
    measure("open-close", open_close, n);
    measure("create-write-unlink", create_write_unlink, n / 10 + 1);
    if (blocked > 0)
        measure_with_blocked(blocked, n);
    return 0;
}
