/* SPDX-License-Identifier: MIT */

/*
 * Study 5's CPU benchmark, which is sysbench's. Processes repeat the same piece of work, an event,
 * for a given time. An event finds the primes up to a limit by trial division. The results are
 * events per second, and the duration of an event from start to end, including interruptions.
 *
 * One event is done first. Where all events take the same time, a machine may let the time of the
 * others pass without executing their instructions.
 */

#include "workloads/api/workload.h"

/* Latencies are counted in buckets, 32 to each power of two: with a resolution of three
 * hundredths or finer. */
enum { FRACTION_BITS = 5, FRACTIONS = 1 << FRACTION_BITS, BUCKETS = 60 * FRACTIONS };

/* A process's report when it ends: kind or bucket above, value below. */
enum message { EVENTS = BUCKETS, TIME_SUM, TIME_MOST, LAST, ENDED, MESSAGES };
enum { VALUE_BITS = 48 };

static int64_t processes = 1;
static int64_t milliseconds = 500;
static int64_t limit = 10000;
static struct workload_channel results;
static int64_t totals[MESSAGES]; /* of a process; then, in the parent, of all */
static uint32_t primes;          /* of an event */
static uint64_t event_instructions;

/* Returns the number of primes from 3 to the limit. */
static uint32_t find_primes(void)
{
    uint32_t match = 0;
    for (uint32_t number = 3; number <= (uint32_t)limit; number++) {
        uint32_t divisor = 2;
        while (divisor * divisor <= number && number % divisor != 0)
            divisor++;
        match += divisor * divisor > number;
    }
    return match;
}

static int bucket_of(int64_t time)
{
    int power = 0;
    while (time >> power >= 2 * FRACTIONS)
        power++;
    return power * FRACTIONS + (int)(time >> power);
}

/* Returns the longest time of a bucket. */
static int64_t bucket_end(int bucket)
{
    int power = bucket / FRACTIONS - (bucket >= FRACTIONS);
    int64_t fraction = bucket - power * FRACTIONS;
    return ((fraction + 1) << power) - 1;
}

static void report(int kind, int64_t value)
{
    workload_send(&results, (int64_t)kind << VALUE_BITS | value);
}

static void note_event(int64_t time)
{
    totals[EVENTS]++;
    totals[TIME_SUM] += time;
    if (time > totals[TIME_MOST])
        totals[TIME_MOST] = time;
    totals[bucket_of(time)]++;
    workload_tell("latency", time);
}

/* At the beginning of a tick, because a tick would interrupt it. */
static void measure_event(void)
{
    workload_sleep(1);
    uint64_t begin = workload_instructions();
    primes = find_primes();
    event_instructions = workload_instructions() - begin;
}

static void do_events(int64_t argument)
{
    (void)argument;
    workload_group("event");
    int64_t end = workload_gate_wait() + milliseconds * 1000000;
    int64_t now;
    do {
        int64_t before = workload_nanoseconds();
        if (!workload_pass(event_instructions) && find_primes() != primes)
            workload_fail("an event found other primes than the one before");
        now = workload_nanoseconds();
        note_event(now - before);
    } while (now < end);
    totals[LAST] = now;
    for (int kind = 0; kind < ENDED; kind++) {
        if (totals[kind] > 0)
            report(kind, totals[kind]);
    }
    report(ENDED, 1);
}

/* Sums up all reports. */
static void collect(void)
{
    while (totals[ENDED] < processes) {
        int64_t message = workload_receive(&results);
        int64_t kind = message >> VALUE_BITS;
        int64_t value = message & (((int64_t)1 << VALUE_BITS) - 1);
        if (kind != TIME_MOST && kind != LAST)
            totals[kind] += value;
        else if (value > totals[kind])
            totals[kind] = value;
    }
}

/* Returns the time that this many hundredths of all events did not exceed. */
static int64_t percentile(int64_t hundredths)
{
    int bucket = 0;
    int64_t counted = totals[0];
    while (counted * 100 < totals[EVENTS] * hundredths)
        counted += totals[++bucket];
    int64_t end = bucket_end(bucket);
    return end < totals[TIME_MOST] ? end : totals[TIME_MOST];
}

static void print_latency(const char *what, int64_t nanoseconds)
{
    int64_t microseconds = nanoseconds / 1000;
    workload_print("%-16s %6ld.%03ld ms\n", what, microseconds / 1000, microseconds % 1000);
}

static void print_report(int64_t elapsed)
{
    int64_t hundredths = totals[EVENTS] * 100 * 1000000000 / elapsed;
    workload_tell("events", totals[EVENTS]);
    workload_tell("elapsed", elapsed);
    workload_print("events           %6ld\n", totals[EVENTS]);
    workload_print("events a second  %6ld.%02ld\n", hundredths / 100, hundredths % 100);
    print_latency("latency, mean", totals[TIME_SUM] / totals[EVENTS]);
    print_latency("latency, 95th", percentile(95));
    print_latency("latency, longest", totals[TIME_MOST]);
}

/* All start at the beginning of a tick. The time ends with the last event, not when the parent
 * next runs. */
int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "processes", &processes, 1, 1000},
        {'t', "milliseconds", &milliseconds, 1, 1000000},
        {'p', "an event finds the primes up to this", &limit, 10, 60000},
    };
    workload_init(argc, argv, "CPU benchmark: events that find primes, for a given time.", options,
                  sizeof(options) / sizeof(options[0]));
    workload_channel_make(&results);
    workload_gate_make();
    measure_event();
    for (int64_t i = 0; i < processes; i++)
        workload_start(do_events, i);
    workload_gate_gather(processes);
    workload_sleep(1);
    workload_begin();
    int64_t start = workload_nanoseconds();
    workload_gate_open(processes, start);
    collect();
    int status = workload_finish();
    if (status == 0)
        print_report(totals[LAST] - start);
    return status;
}
