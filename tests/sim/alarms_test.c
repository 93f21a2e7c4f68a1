/* SPDX-License-Identifier: MIT */

/*
 * Tests that the simulator calls alarm() at the time that the policy set last, on whichever CPU,
 * and at once if that time has passed. The policy under test replaces round-robin. It has one
 * queue for all CPUs, and its alarm is set on CPU 0; each of its decisions asks for a call after
 * `asks_after`.
 */

#define ENGINE engine_rr
#define POLICY policy_rr

#include "policies/policy.h"
#include "policies/task_list.h"
#include "tests/host/check.h"

static int64_t asks_after; /* ns */
static uint64_t expected;  /* time of the next alarm() call; 0: none */
static uint64_t latest;
static uint32_t alarms;

static void see_time(const run_queue_t *queue)
{
    check(queue->now >= latest);
    latest = queue->now;
}

static void alarming_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    see_time(queue);
    task_list_append(STATE_OF(queue, struct task_list), task);
}

static void alarming_dequeue(run_queue_t *queue, task_t *task)
{
    see_time(queue);
    task_list_remove(STATE_OF(queue, struct task_list), task);
}

static task_t *alarming_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = STATE_OF(queue, struct task_list)->first;
    (void)cpu;
    if (!task)
        return NULL;
    alarming_dequeue(queue, task);
    if ((int64_t)queue->now + asks_after <= 0)
        return task;
    queue->alarm = (uint64_t)((int64_t)queue->now + asks_after);
    expected = asks_after > 0 ? queue->alarm : queue->now;
    return task;
}

static task_t *alarming_alarm(run_queue_t *queue)
{
    see_time(queue);
    check(queue->now == expected);
    expected = 0;
    alarms++;
    return NULL;
}

static enum tick_verdict alarming_tick(run_queue_t *queue, task_t *task)
{
    (void)task;
    see_time(queue);
    return TICK_PREEMPT;
}

static uint64_t alarming_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

static bool alarming_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_rr = {
    .name = "rr",
    .meaning = "in turns of a tick, with an alarm after each decision",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = alarming_enqueue,
    .dequeue = alarming_dequeue,
    .pick = alarming_pick,
    .tick = alarming_tick,
    .time_slice = alarming_time_slice,
    .alarm = alarming_alarm,
    .shared_queue = alarming_shared_queue,
};

#include "sim/engine.c"

#include "tests/sim/machines.h"

/* Returns when the run ended. */
static uint64_t end_of(const char *policy, uint32_t cpus, const char *text)
{
    struct simulator_setup setup = setup_of(policy, cpus);
    struct simulator *simulator = create(&setup, text);
    struct simulator_error error = {""};
    check(simulator_run(simulator, 1000 * TICK, &error) == SIMULATOR_DONE);
    uint64_t now = simulator->now;
    simulator_destroy(simulator);
    return now;
}

/* CPU 1 decides at each tick and between ticks; CPU 0 idles. Returns the number of alarm() calls.
 */
static uint32_t alarms_after(int64_t after)
{
    asks_after = after;
    expected = latest = 0;
    alarms = 0;
    check(end_of("rr", 2, "program a\n run 10300us\n yield\n run 9700us\n") == 20 * MS);
    return alarms;
}

static void test_an_alarm_is_heard_on_time(void)
{
    check(alarms_after(TICK / 2) == 20);
}

/* CPU 0 does not wake for the superseded alarm. */
static void test_an_alarm_that_is_put_off(void)
{
    check(alarms_after(TICK + TICK / 2) == 0);
}

static void test_an_alarm_that_has_passed_is_due_now(void)
{
    check(alarms_after(-(int64_t)TICK / 2) == 21);
}

/* A budget exhausted on one CPU is restored at the start of the next period, and the other CPU is
 * notified. */
static void test_a_budget_is_full_again_on_time(void)
{
    const char *text = "program a\n fork hog\n fork served\n wait\n"
                       "program hog\n run 10ms\n"
                       "program served\n period 700us\n runtime 300us\n run 400us\n";
    check(end_of("edf:global", 2, text) == 800000);
}

int main(void)
{
    run_test(test_an_alarm_is_heard_on_time);
    run_test(test_an_alarm_that_is_put_off);
    run_test(test_an_alarm_that_has_passed_is_due_now);
    run_test(test_a_budget_is_full_again_on_time);
    return 0;
}
