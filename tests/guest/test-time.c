/* SPDX-License-Identifier: MIT */

/* Ticks and the clock. */

#include "tests/guest/check.h"

/*
 * A sleep is never shorter than asked, and at least one of many is not longer. Others are longer
 * only because another process or the host had the CPU.
 */
static void sleep_lasts_its_ticks(void)
{
    static const int lengths[] = {1, 2, 3, 5, 10};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        int shortest = INT32_MAX;
        for (int try = 0; try < 40 && shortest > lengths[i] + 1; try++) {
            int before = uptime();
            check(sleep(lengths[i]) == 0);
            int passed = uptime() - before;
            check(passed >= lengths[i]);
            shortest = passed < shortest ? passed : shortest;
        }
        check(shortest <= lengths[i] + 1);
    }
}

static void sleep_of_nothing_returns(void)
{
    int shortest = INT32_MAX;
    for (int try = 0; try < 40 && shortest > 1; try++) {
        int before = uptime();
        check(sleep(0) == 0);
        check(sleep(-1) == 0);
        check(sleep(INT32_MIN) == 0);
        int passed = uptime() - before;
        shortest = passed < shortest ? passed : shortest;
    }
    check(shortest <= 1);
}

static void ticks_and_nanoseconds_agree(void)
{
    struct system_stats stats;
    check(getstats(&stats) == 0);
    int64_t tick = (int64_t)stats.tick_ns;
    for (int i = 0; i < 5; i++) {
        int64_t before = clock_ns();
        int64_t ticks = uptime();
        int64_t after = clock_ns();
        check(before / tick - 1 <= ticks && ticks <= after / tick + 1);
        sleep(3);
    }
}

/* With one CPU, the order of execution is also the order of the wake-ups. */
static void sleepers_wake_in_order(void)
{
    enum { SLEEPERS = 20 };
    int ends[2];
    struct system_stats stats;
    check(getstats(&stats) == 0);
    check(pipe(ends) == 0);
    int start = uptime() + 20;
    for (int i = 0; i < SLEEPERS; i++) {
        if (test_fork() != 0)
            continue;
        char number = (char)((i * 7) % SLEEPERS);
        int until = start + 3 * number;
        sleep(until - uptime());
        check(uptime() >= until);
        check(write(ends[1], &number, 1) == 1);
        exit(0);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        char number;
        int status;
        check(read(ends[0], &number, 1) == 1);
        check(stats.cpus > 1 || number == i);
        check(wait(&status) > 0 && status == 0);
    }
}

static void many_sleep_to_the_same_tick(void)
{
    enum { SLEEPERS = 200 };
    int until = uptime() + 60;
    for (int i = 0; i < SLEEPERS; i++) {
        if (test_fork() != 0)
            continue;
        sleep(until - uptime());
        exit(uptime() >= until ? 0 : 1);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

static void the_clock_never_goes_back(void)
{
    for (int i = 0; i < 6; i++) {
        if (test_fork() != 0)
            continue;
        int64_t last = clock_ns();
        int ticks = uptime();
        for (int j = 0; j < 2000; j++) {
            int64_t now = clock_ns();
            check(now >= last);
            last = now;
            check(uptime() >= ticks);
            ticks = uptime();
            if (j % 100 == 0)
                yield(); /* may change the CPU */
        }
        exit(0);
    }
    for (int i = 0; i < 6; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

/* A time from another process, on any CPU, is not in the future. */
static void clocks_agree_across_cpus(void)
{
    enum { RING = 5, ROUNDS = 100 };
    static int ends[RING][2];
    int64_t time;
    for (int i = 0; i < RING; i++)
        check(pipe(ends[i]) == 0);
    for (int i = 0; i < RING; i++) {
        if (test_fork() != 0)
            continue;
        for (int j = 0; j < ROUNDS; j++) {
            check(read(ends[i][0], &time, sizeof(time)) == sizeof(time));
            int64_t now = clock_ns();
            check(now >= time);
            check(write(ends[(i + 1) % RING][1], &now, sizeof(now)) == sizeof(now));
        }
        exit(0);
    }
    time = clock_ns();
    check(write(ends[0][1], &time, sizeof(time)) == sizeof(time));
    for (int i = 0; i < RING; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

static void cycles_count(void)
{
    int64_t before = cycles();
    spin(100000);
    check(cycles() != before);
}

static void time_passes_while_one_computes(void)
{
    int ticks = uptime();
    for (int i = 0; i < 10000 && uptime() < ticks + 5; i++)
        spin(100000);
    check(uptime() >= ticks + 5);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(sleep_lasts_its_ticks),          TEST(sleep_of_nothing_returns),
        TEST(ticks_and_nanoseconds_agree),    TEST(sleepers_wake_in_order),
        TEST(many_sleep_to_the_same_tick),    TEST(the_clock_never_goes_back),
        TEST(clocks_agree_across_cpus),       TEST(cycles_count),
        TEST(time_passes_while_one_computes),
    };
    return RUN_TESTS(tests, argc, argv);
}
