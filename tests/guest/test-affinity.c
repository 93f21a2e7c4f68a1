/* SPDX-License-Identifier: MIT */

/*
 * CPU affinity: the calls that set and read it, and processes that compute, fork, wait and wake
 * while others change their affinity and the policy. The kernel's assertions and the trace's
 * invariants detect a process on a CPU outside its mask.
 */

#include "abi/cpu_list.h"
#include "tests/guest/check.h"

enum { PLAYERS = 6, ROUNDS = 12, ALL_THERE = 0 };

static uint32_t cpus;

/* Returns the CPU of a process. */
static uint32_t cpu_of(int pid)
{
    struct process_info row;
    check(find_process(pid, &row));
    return row.cpu;
}

static void allow(int pid, uint64_t set)
{
    check(setaffinity(pid, &set, 1) == 0);
}

static uint64_t allowed(int pid)
{
    uint64_t set[2] = {0, 1};
    check(getaffinity(pid, set, 2) == 0 && set[1] == 0);
    return set[0];
}

static void what_is_set_is_told(void)
{
    uint64_t all = cpus == 64 ? UINT64_MAX : (1ull << cpus) - 1;
    check(allowed(0) == all);
    allow(0, 1);
    check(allowed(0) == 1 && allowed(getpid()) == 1 && cpu_of(getpid()) == 0);
    allow(0, UINT64_MAX);
    check(allowed(0) == all);
    allow(0, 1ull << (cpus - 1));
    check(cpu_of(getpid()) == cpus - 1);
    int child = test_fork();
    if (child == 0) {
        check(allowed(0) == 1ull << (cpus - 1) && cpu_of(getpid()) == cpus - 1);
        exit(0);
    }
    check(test_wait(child) == 0);
    allow(0, all);
}

static void what_cannot_be_is_refused(void)
{
    uint64_t set = 0;
    check_error(setaffinity(0, &set, 1), EINVAL);
    set = cpus < 64 ? 1ull << cpus : 0;
    check_error(setaffinity(0, &set, 1), EINVAL);
    set = 1;
    check_error(setaffinity(0, &set, 0), EINVAL);
    check_error(setaffinity(0, &set, CPU_LIST_WORDS + 1), EINVAL);
    check_error(setaffinity(99999, &set, 1), ESRCH);
    check_error(setaffinity(0, (const uint64_t *)-8l, 1), EFAULT);
    check_error(getaffinity(0, &set, 0), EINVAL);
    check_error(getaffinity(99999, &set, 1), ESRCH);
    check_error(getaffinity(0, (uint64_t *)-8l, 1), EFAULT);
}

static void lists_are_read(void)
{
    uint64_t words[CPU_LIST_WORDS];
    check(cpu_list_read("0-3,8,1023", words));
    check(words[0] == 0x10f && words[1] == 0 && words[15] == 1ull << 63);
    static const char *const none[] = {"", ",", "3-1", "1024", "0,", "0--1", "a", "1 ", "-"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        check(!cpu_list_read(none[i], words));
}

/* Acts as one of several processes that change each other's affinity. */
static void play(const int *players, uint32_t number)
{
    uint64_t state = number + 1;
    check(channel_take(ALL_THERE, RELEASE_NONE, TAKE_ANY) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t set = (state >> 40) & ((1ull << cpus) - 1);
        int other = players[(state >> 33) % PLAYERS];
        if (set && setaffinity(round % 2 ? other : 0, &set, 1) < 0)
            check(last_error() == ESRCH);
        spin(20000);
        if (round % 3 == 0)
            sleep_ns(700000);
        if (round % 4 == 0 && test_fork() == 0)
            exit(0);
    }
    while (wait(NULL) > 0)
        ;
}

static void sets_change_under(const char *policy, const char *other)
{
    int *players = shared_memory(PLAYERS * sizeof(*players));
    check(players != SYSTEM_FAILED && channels_make(1) == 0 && setpolicy(policy) == 0);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        int child = test_fork();
        if (child == 0) {
            play(players, i);
            exit(0);
        }
        players[i] = child;
    }
    check(channel_give(ALL_THERE, PLAYERS, GIVE_KEEP) == 0);
    sleep(3);
    check(setpolicy(other) == 0);
    for (uint32_t i = 0; i < PLAYERS; i++)
        check(wait(NULL) > 0);
    check(setpolicy("rr") == 0);
}

static void sets_change_under_round_robin(void)
{
    sets_change_under("rr", "rr:table-scan");
}

static void sets_change_under_deadlines(void)
{
    sets_change_under("edf:global", "mlfq");
}

static void sets_change_under_fair_shares(void)
{
    sets_change_under("stride", "eevdf");
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(lists_are_read),
        TEST(what_is_set_is_told),
        TEST(what_cannot_be_is_refused),
        TEST(sets_change_under_round_robin),
        TEST(sets_change_under_deadlines),
        TEST(sets_change_under_fair_shares),
    };
    struct system_stats stats;
    check(getstats(&stats) == 0);
    cpus = stats.cpus;
    return RUN_TESTS(tests, argc, argv);
}
