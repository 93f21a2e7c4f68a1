/* SPDX-License-Identifier: MIT */

/*
 * Priority inheritance. A process of low priority holds what an urgent process needs: a lock, bytes
 * that it must write into a pipe, or its end. Under a policy with inheritance, a process of medium
 * priority must not delay them. Also, processes take nested locks, are killed and change their
 * attributes while the policy changes.
 */

#include "policies/policy.h"
#include "tests/guest/check.h"

enum { LOWLY = 9, MIDDLE = 5, URGENT = 1, LOCK = 0, BEGUN = 1, LOCKS = 4 };

static struct board {
    int64_t order; /* order of arrival */
    int64_t urgent;
    int64_t middle;
    int64_t all_there; /* the middle processes have started */
    int64_t units;
} *board;

static int64_t next_place(void)
{
    return __atomic_add_fetch(&board->order, 1, __ATOMIC_SEQ_CST);
}

static void take_lock(int lock, int as)
{
    check(channel_take(lock, RELEASE_NONE, as) == 0);
}

static void give(int channel)
{
    check(channel_give(channel, 1, GIVE_KEEP) == 0);
}

/* The low-priority process works until all processes have started, and then for a while. */
static void work(void)
{
    while (!__atomic_load_n(&board->all_there, __ATOMIC_SEQ_CST))
        spin(100);
    spin(2000000);
}

/*
 * Starts two processes per CPU, so that each CPU is busy. They compute for a hundred ticks.
 * `middle` records the place of the first that ends.
 */
static void start_middle(void)
{
    struct system_stats stats;
    check(getstats(&stats) == 0);
    for (uint32_t i = 0; i < 2 * stats.cpus; i++) {
        if (test_fork() == 0) {
            check(setpriority(0, MIDDLE) == 0);
            spin(20000000);
            int64_t place = next_place();
            if (__atomic_load_n(&board->middle, __ATOMIC_SEQ_CST) == 0)
                __atomic_store_n(&board->middle, place, __ATOMIC_SEQ_CST);
            exit(0);
        }
    }
}

/*
 * `urgent` waits for an act of `lowly` while others compute; the race records which is first. The
 * parent is more urgent than all three.
 */
static void race(const char *policy, void (*lowly)(void), void (*urgent)(void))
{
    board = shared_memory(sizeof(*board));
    check(board != SYSTEM_FAILED && channels_make(2) == 0);
    check(setpolicy(policy) == 0 && settunable("aging_interval", 0) == 0);
    check(setpriority(0, 0) == 0);
    give(LOCK);
    if (test_fork() == 0) {
        check(setpriority(0, LOWLY) == 0);
        lowly();
        exit(0);
    }
    check(channel_take(BEGUN, RELEASE_NONE, TAKE_ANY) == 0);
    if (test_fork() == 0) {
        check(setpriority(0, URGENT) == 0);
        urgent();
        board->urgent = next_place();
        exit(0);
    }
    sleep(2);
    start_middle();
    __atomic_store_n(&board->all_there, 1, __ATOMIC_SEQ_CST);
    while (wait(NULL) > 0)
        ;
    check(board->urgent > 0 && board->middle > 0);
    check(setpolicy("rr") == 0);
}

static int as; /* enum take_as, of the lock */

static void hold_the_lock(void)
{
    take_lock(LOCK, as);
    give(BEGUN);
    work();
    give(LOCK);
}

static void want_the_lock(void)
{
    take_lock(LOCK, as);
    give(LOCK);
}

static void without_inheritance_the_middle_comes_first(void)
{
    as = TAKE_LOCK;
    race("priority", hold_the_lock, want_the_lock);
    check(board->middle < board->urgent);
}

static void a_lock_lends_the_priority_of_those_that_wait(void)
{
    as = TAKE_LOCK;
    race("priority:inheritance", hold_the_lock, want_the_lock);
    check(board->urgent < board->middle);
}

static void a_lock_gives_its_ceiling(void)
{
    as = TAKE_CEILING + URGENT;
    race("priority:ceiling", hold_the_lock, want_the_lock);
    check(board->urgent < board->middle);
}

static int ends[2];

static void write_late(void)
{
    char c = 0;
    check(write(ends[1], &c, 1) == 1);
    give(BEGUN);
    work();
    check(write(ends[1], &c, 1) == 1);
}

/* The reader's wait names its writer once the writer has written. */
static void read_both(void)
{
    char c;
    check(read(ends[0], &c, 1) == 1 && read(ends[0], &c, 1) == 1);
}

static void a_pipe_lends_the_priority_of_its_reader(void)
{
    check(pipe(ends) == 0);
    race("priority:inheritance", write_late, read_both);
    check(board->urgent < board->middle);
}

static void begin(void)
{
    give(BEGUN);
}

static void wait_for_a_lowly_child(void)
{
    int pid = test_fork();
    if (pid == 0) {
        check(setpriority(0, LOWLY) == 0);
        work();
        exit(0);
    }
    check(test_wait(pid) == 0);
}

static void a_parent_lends_its_priority_to_its_child(void)
{
    race("priority:inheritance", begin, wait_for_a_lowly_child);
    check(board->urgent < board->middle);
}

/* Takes locks in their order, two or three at a time. */
static _Noreturn void take_locks_for_ever(uint64_t seed)
{
    struct random numbers = {seed};
    for (;;) {
        int taken[LOCKS];
        int count = 0;
        for (int lock = 0; lock < LOCKS; lock++) {
            if (random_below(&numbers, 2)) {
                take_lock(lock, TAKE_CEILING + lock);
                taken[count++] = lock;
            }
        }
        spin((int64_t)random_below(&numbers, 2000));
        while (count > 0)
            give(taken[--count]);
        if (random_below(&numbers, 4) == 0)
            setpriority(0, (int)random_below(&numbers, PRIORITY_LOWEST + 1));
        __atomic_add_fetch(&board->units, 1, __ATOMIC_SEQ_CST);
    }
}

static void locks_within_locks_survive_switches_and_kills(void)
{
    static const char *const policies[] = {"priority:inheritance", "rr", "priority:ceiling",
                                           "hybrid"};
    enum { TAKERS = 8, SWITCHES = 100 };
    int pids[TAKERS];
    board = shared_memory(sizeof(*board));
    check(board != SYSTEM_FAILED && channels_make(LOCKS) == 0 && setpriority(0, 0) == 0);
    for (int lock = 0; lock < LOCKS; lock++)
        give(lock);
    for (int i = 0; i < TAKERS; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0)
            take_locks_for_ever((uint64_t)i + 1);
    }
    for (int i = 0; i < SWITCHES; i++) {
        int64_t before = __atomic_load_n(&board->units, __ATOMIC_SEQ_CST);
        check(setpolicy(policies[i % 4]) == 0);
        check(i % 4 != 3 || settunable("inherit", 1 + i / 4 % 2) == 0);
        check(setpriority(pids[i % TAKERS], i % (PRIORITY_LOWEST + 1)) == 0);
        for (int tries = 0; __atomic_load_n(&board->units, __ATOMIC_SEQ_CST) == before; tries++) {
            check(tries < 1000);
            sleep(1);
        }
    }
    for (int i = 0; i < TAKERS; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < TAKERS; i++)
        check(wait(NULL) > 0);
    check(setpolicy("rr") == 0);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(without_inheritance_the_middle_comes_first),
        TEST(a_lock_lends_the_priority_of_those_that_wait),
        TEST(a_lock_gives_its_ceiling),
        TEST(a_pipe_lends_the_priority_of_its_reader),
        TEST(a_parent_lends_its_priority_to_its_child),
        TEST(locks_within_locks_survive_switches_and_kills),
    };
    return RUN_TESTS(tests, argc, argv);
}
