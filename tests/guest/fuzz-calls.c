/* SPDX-License-Identifier: MIT */

/*
 * Makes random system calls with random arguments from a seed, in children that may die of them.
 * The kernel and the parent must survive, and nothing may leak. Excluded calls, because they work:
 * poweroff, and kill of other processes.
 */

#include "tests/guest/check.h"

#define USAGE "fuzz-calls [SEED [CHILDREN [CALLS]]]"

static char area[8192]; /* valid memory that calls may read and write */

static uint64_t random_pointer(struct random *random)
{
    static const uint64_t bad[] = {0,
                                   1,
                                   4095,
                                   1ul << 38,
                                   1ul << 39,
                                   (1ul << 38) - 1,
                                   UINT64_MAX,
                                   0x80000000,
                                   0xffffffc000000000ul,
                                   1ul << 63,
                                   0xffffffc080000000ul,
                                   0xffffffe000000000ul};
    switch (random_below(random, 4)) {
    case 0:
        return bad[random_below(random, sizeof(bad) / sizeof(bad[0]))];
    case 1: /* near the end of the heap */
        return (uint64_t)sbrk(0) - random_below(random, 64);
    case 2:
        return random_next(random);
    default:
        return (uint64_t)area + random_below(random, sizeof(area));
    }
}

static uint64_t random_path(struct random *random)
{
    static const char *const paths[] = {"a",       "b",  "c",  "a/b", "a/b/c",
                                        ".",       "..", "",   "./a", "a/..",
                                        "/fuzz/p", "/",  "//", "a/",  "/fuzz/b"};
    return (uint64_t)paths[random_below(random, sizeof(paths) / sizeof(paths[0]))];
}

static uint64_t random_number(struct random *random)
{
    static const int64_t numbers[] = {0,    1,     2,         3,         4,         10,
                                      15,   16,    17,        64,        100,       4096,
                                      8192, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                      -1,   -2,    -4096,     0x200,     0x401,     0x602};
    if (random_below(random, 8) == 0)
        return random_next(random);
    return (uint64_t)numbers[random_below(random, sizeof(numbers) / sizeof(numbers[0]))];
}

static uint64_t random_argument(struct random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return random_pointer(random);
    case 1:
        return random_path(random);
    default:
        return random_number(random);
    }
}

static int64_t system_call(int64_t number, const uint64_t arguments[4])
{
    register int64_t a7 __asm__("a7") = number;
    register uint64_t a0 __asm__("a0") = arguments[0];
    register uint64_t a1 __asm__("a1") = arguments[1];
    register uint64_t a2 __asm__("a2") = arguments[2];
    register uint64_t a3 __asm__("a3") = arguments[3];
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3) : "memory");
    return (int64_t)a0;
}

/* Makes calls harmless that would affect other processes or block without end. */
static bool tame(int64_t number, uint64_t arguments[4], struct random *random)
{
    switch (number) {
    case SYSTEM_CALL_POWEROFF:
        return false;
    case SYSTEM_CALL_EXIT:
        return random_below(random, 50) == 0;
    case SYSTEM_CALL_KILL:
    case SYSTEM_CALL_SETPRIORITY:
    case SYSTEM_CALL_SETTICKETS_PID:
    case SYSTEM_CALL_SETWEIGHT: {
        int64_t pid = (int64_t)arguments[0];
        if (pid > 0 || (int32_t)pid > 0)
            arguments[0] = INT32_MAX;
        return true;
    }
    case SYSTEM_CALL_MKNOD: /* the console's output is unpredictable */
        if ((int32_t)arguments[1] == DEVICE_CONSOLE)
            arguments[1] = DEVICE_CONSOLE + 1;
        return true;
    case SYSTEM_CALL_SLEEP:
        if ((int32_t)arguments[0] > 2)
            arguments[0] = 1;
        return true;
    case SYSTEM_CALL_SLEEP_NS:
        arguments[0] &= 0xfffff;
        return true;
    case SYSTEM_CALL_SLEEP_UNTIL:
        return (int64_t)arguments[0] < 1000000000;
    case SYSTEM_CALL_SBRK:
    case SYSTEM_CALL_SHARED_MEMORY:
        if ((int64_t)arguments[0] > 0 && (int64_t)arguments[0] < 1ll << 40)
            arguments[0] &= 0xfffff;
        return true;
    default:
        return true;
    }
}

_Noreturn static void fuzz(uint64_t seed, int64_t calls)
{
    struct random random = {seed};
    for (int i = 0; i < FILES_PER_PROCESS; i++)
        close(i); /* prevents input and output */
    for (int64_t i = 0; i < calls; i++) {
        uint64_t arguments[4];
        int64_t number = (int64_t)random_below(&random, SYSTEM_CALL_SETURGENT + 1);
        for (int j = 0; j < 4; j++)
            arguments[j] = random_argument(&random);
        if (random_below(&random, 100) == 0)
            number = (int64_t)random_number(&random);
        if (!tame(number, arguments, &random))
            continue;
        int64_t result = system_call(number, arguments);
        if (number == SYSTEM_CALL_FORK && result == 0)
            exit(0);
    }
    exit(0);
}

/* Runs one child for a limited time, because it may block on its pipe without end. */
static bool run_child(uint64_t seed, int64_t calls)
{
    int pid = test_fork();
    if (pid == 0)
        fuzz(seed, calls);
    int guard = test_fork();
    if (guard == 0) {
        sleep(20);
        exit(0);
    }
    int ended = wait(NULL);
    kill(ended == pid ? guard : pid);
    wait(NULL);
    return ended == pid;
}

/*
 * Processes that the children forked hold pages until they run and end. On a busy host, they end
 * after the children.
 */
static bool comes_back(int64_t before)
{
    for (int i = 0; i < 100 && before - free_pages() >= 256; i++)
        sleep_ns(100000000);
    return before - free_pages() < 256;
}

/* A program that may be overwritten. */
static void copy_program(const char *from, const char *to)
{
    int in = open(from, OPEN_READ);
    int out = open(to, OPEN_WRITE | OPEN_CREATE);
    int n;
    check(in >= 0 && out >= 0);
    while ((n = read(in, area, sizeof(area))) > 0)
        check(write(out, area, n) == n);
    close(in);
    close(out);
}

int main(int argc, char *argv[])
{
    if (argc > 4)
        usage(USAGE);
    int64_t seed = argc > 1 ? number_argument("fuzz-calls", argv[1], 0, INT64_MAX) : 1;
    int64_t children = argc > 2 ? number_argument("fuzz-calls", argv[2], 1, INT32_MAX) : 150;
    int64_t calls = argc > 3 ? number_argument("fuzz-calls", argv[3], 1, INT32_MAX) : 400;
    char policy[64];
    test_name = "fuzz-calls";
    check(getpolicy(policy, sizeof(policy)) >= 0);
    check(mkdir("/fuzz") == 0 && chdir("/fuzz") == 0);
    copy_program("/true", "p");

    int64_t ended = 0;
    int64_t before = 0;
    for (int64_t i = 0; i < children; i++) {
        if (i == children / 3)
            before = free_pages(); /* caches are warm */
        ended += run_child((uint64_t)seed << 32 | (uint64_t)i, calls);
    }
    check(comes_back(before));

    /* Checks that the kernel still works. */
    static const char *const left[] = {"a/b/c", "a/b", "a", "b", "c", "p"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        unlink(left[i]);
    check(chdir("/") == 0);
    check(setpolicy(policy) == 0);
    int pid = test_fork();
    if (pid == 0) {
        char *const arguments[] = {"true", NULL};
        exec("/true", arguments);
    }
    check(test_wait(pid) == 0);
    unlink("/fuzz");
    printf("# fuzz-calls: %ld of %ld children ended by themselves\n", ended, children);
    printf("ok fuzz-calls\n");
    return 0;
}
