/* SPDX-License-Identifier: MIT */

/* Tests the CPU benchmark's arithmetic: primes, buckets and percentiles. */

#include "check.h"

#include <string.h>

#include "workloads/api/common.c"
#include "workloads/api/linux_host.c"

#define main cpubench_main
#include "workloads/cpubench.c"
#undef main

static void primes_are_found(void)
{
    limit = 10;
    check(find_primes() == 3); /* 3, 5 and 7 */
    limit = 1000;
    check(find_primes() == 167);
    limit = 10000;
    check(find_primes() == 1228);
}

static void check_bucket(int64_t time)
{
    int bucket = bucket_of(time);
    check(bucket >= 0 && bucket < BUCKETS);
    check(time <= bucket_end(bucket));
    check(bucket == 0 || time > bucket_end(bucket - 1));
    check(bucket_end(bucket) - time <= time / FRACTIONS);
}

static void every_time_has_its_bucket(void)
{
    for (int64_t time = 0; time < 100000; time++)
        check_bucket(time);
    for (int power = 17; power < VALUE_BITS; power++) {
        for (int64_t offset = -3; offset <= 3; offset++)
            check_bucket(((int64_t)1 << power) + offset);
    }
}

static void count_events(int64_t time, int64_t count)
{
    totals[EVENTS] += count;
    totals[bucket_of(time)] += count;
    if (time > totals[TIME_MOST])
        totals[TIME_MOST] = time;
}

static void percentiles_are_of_all_events(void)
{
    memset(totals, 0, sizeof(totals));
    count_events(40, 95);
    count_events(50000, 5);
    check(percentile(95) == 40);
    check(percentile(100) == 50000);
    count_events(40000, 1);
    check(percentile(95) >= 40000 && percentile(95) < 50000);
}

/* The order of the processes' reports is irrelevant. */
static void what_processes_report_is_added_up(void)
{
    memset(totals, 0, sizeof(totals));
    workload_channel_make(&results);
    processes = 2;
    report(EVENTS, 7);
    report(TIME_MOST, ((int64_t)1 << VALUE_BITS) - 1);
    report(ENDED, 1);
    report(bucket_of(1000), 3);
    report(TIME_MOST, 5);
    report(EVENTS, 2);
    report(ENDED, 1);
    collect();
    check(totals[EVENTS] == 9);
    check(totals[TIME_MOST] == ((int64_t)1 << VALUE_BITS) - 1);
    check(totals[bucket_of(1000)] == 3);
}

int main(void)
{
    run_test(primes_are_found);
    run_test(every_time_has_its_bucket);
    run_test(percentiles_are_of_all_events);
    run_test(what_processes_report_is_added_up);
    return 0;
}
