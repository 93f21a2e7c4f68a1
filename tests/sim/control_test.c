/* SPDX-License-Identifier: MIT */

/*
 * Tests external acts: the effect of each, the refusal of each impossible one, and that a machine
 * stays sound under many random acts.
 *
 * usage: `control_test` runs all tests; `control_test POLICY CPUS SEED TRACE` runs random acts
 * once and writes the trace.
 */

#include "sim/control.h"

#include "abi/system_calls.h"
#include "tests/sim/machines.h"

#define PROCESSES_MAX 600

static struct simulator_error error;

static struct simulator *machine(const char *policy, uint32_t cpus, const char *text)
{
    struct simulator_setup setup = setup_of(policy, cpus);
    return create(&setup, text);
}

static void audit(const struct simulator *simulator)
{
    if (!simulator_audit(simulator, &error))
        fprintf(stderr, "%s: %s\n", simulator->engine->policy->name, error.text);
    check(error.text[0] == '\0');
}

static void expect_done(bool done, const struct simulator *simulator)
{
    if (!done)
        fprintf(stderr, "%s\n", error.text);
    check(done);
    audit(simulator);
}

static void expect_refused(bool done, const struct simulator *simulator, const char *words)
{
    check(!done);
    if (!strstr(error.text, words))
        fprintf(stderr, "%s\nexpected: %s\n", error.text, words);
    check(strstr(error.text, words));
    error.text[0] = '\0';
    audit(simulator);
}

static enum simulator_status run_to(struct simulator *simulator, uint64_t time)
{
    enum simulator_status status = simulator_run(simulator, time, &error);
    if (status == SIMULATOR_FAILED)
        fprintf(stderr, "%s\n", error.text);
    check(status != SIMULATOR_FAILED);
    audit(simulator);
    return status;
}

/* All zero: the process does not exist. */
static struct simulator_process look(const struct simulator *simulator, int32_t pid)
{
    static struct simulator_process processes[PROCESSES_MAX];
    uint32_t count = simulator_processes(simulator, processes, PROCESSES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (processes[i].pid == pid)
            return processes[i];
    }
    return (struct simulator_process){0};
}

static bool is_gone(const struct simulator *simulator, int32_t pid)
{
    return look(simulator, pid).pid == 0;
}

static uint64_t time_of_end(struct simulator *simulator)
{
    struct simulator_counts counts;
    check(run_to(simulator, 10000 * MS) == SIMULATOR_DONE);
    simulator_count(simulator, &counts);
    simulator_destroy(simulator);
    return counts.now;
}

/* ---- inspection ---- */

static void test_processes(void)
{
    struct simulator *simulator = machine("rr", 1,
                                          "program root\n priority 3\n fork a\n fork b\n"
                                          " run 5ms\n wait\n wait\n"
                                          "program a\n sleep 50ms\n"
                                          "program b\n run 3ms\n");
    struct simulator_process one[1];
    run_to(simulator, 2500000);
    check(simulator_processes(simulator, one, 1) == 4 && one[0].pid == 1);
    check(one[0].parent == 0 && one[0].program == UINT32_MAX && one[0].place == SIMULATOR_BLOCKED);
    struct simulator_process root = look(simulator, 2);
    struct simulator_process a = look(simulator, 3);
    struct simulator_process b = look(simulator, 4);
    check(root.place == SIMULATOR_RUNNING && root.parent == 1 && root.program == 0);
    check(root.priority == 3 && root.tickets == 1 && root.weight == 5);
    check(a.place == SIMULATOR_BLOCKED && a.parent == 2 && a.program == 1 && a.run_time == 0);
    check(b.place == SIMULATOR_QUEUED && b.program == 2 && b.priority == 3);
    check(root.run_time + b.run_time == 2500000);
    run_to(simulator, 4500000);
    check(look(simulator, 2).run_time + look(simulator, 4).run_time == 4500000);
    run_to(simulator, 8 * MS - 1);
    check(look(simulator, 4).place == SIMULATOR_ENDED);
    simulator_destroy(simulator);
}

/* ---- fork ---- */

static void test_fork(void)
{
    struct simulator *simulator = machine("rr", 2,
                                          "program root\n priority 2\n run 9ms\n"
                                          "program a\n run 2ms\n exit 3\n");
    run_to(simulator, MS);
    check(simulator_fork(simulator, 1, &error) == 3);
    audit(simulator);
    check(look(simulator, 3).parent == 1 && look(simulator, 3).place == SIMULATOR_QUEUED);
    check(look(simulator, 3).priority == PRIORITY_DEFAULT);
    run_to(simulator, MS);
    check(look(simulator, 3).place == SIMULATOR_RUNNING);
    run_to(simulator, 3 * MS - 1);
    check(look(simulator, 3).place == SIMULATOR_RUNNING);
    run_to(simulator, 3 * MS);
    check(is_gone(simulator, 3));
    expect_refused(simulator_fork(simulator, 2, &error), simulator,
                   "program 2: the workload has only 2");
    check(time_of_end(simulator) == 9 * MS);
}

static void test_no_room(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.processes = 3;
    struct simulator *simulator = create(&setup, "program root\n run 9ms\n");
    run_to(simulator, MS);
    check(simulator_fork(simulator, 0, &error) == 3);
    expect_refused(simulator_fork(simulator, 0, &error), simulator, "at most 3 processes at once");
    simulator_destroy(simulator);
}

/* ---- kill ---- */

static const char *const one_of_each = "channel c 0\n"
                                       "program root\n"
                                       " fork runs\n fork sleeps\n fork takes\n fork waits\n"
                                       " fork takes\n fork takes\n fork dozes\n"
                                       " sleep 1s\n"
                                       "program runs\n run 500ms\n"
                                       "program sleeps\n sleep 400ms\n run 1ms\n"
                                       "program takes\n take c\n run 1ms\n"
                                       "program waits\n fork sleeps\n wait\n run 1ms\n"
                                       "program dozes\n loop\n sleep 2ticks\n end\n";

enum { ROOT = 2, RUNS, SLEEPS, TAKES, WAITS, TAKES_TOO, TAKES_LAST, DOZES, CHILD };

static void test_kill_what_waits(uint32_t cpus)
{
    struct simulator *simulator = machine("rr", cpus, one_of_each);
    const int32_t waiting[] = {SLEEPS, WAITS, TAKES_TOO, TAKES_LAST};
    run_to(simulator, 10500000);
    check(look(simulator, CHILD).parent == WAITS);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        check(look(simulator, waiting[i]).place == SIMULATOR_BLOCKED);
        expect_done(simulator_kill(simulator, waiting[i], &error), simulator);
        check(look(simulator, waiting[i]).place == SIMULATOR_QUEUED);
    }
    run_to(simulator, 13 * MS);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
        check(look(simulator, waiting[i]).place == SIMULATOR_ENDED);
    expect_refused(simulator_kill(simulator, SLEEPS, &error), simulator, "pid 4 has ended");
    /* init adopts the child of a killed process, and the child ends normally. */
    check(look(simulator, CHILD).parent == 1);
    /* A killed process that is still queued still receives events. */
    expect_done(simulator_give(simulator, 0, 2, &error), simulator);
    run_to(simulator, 16 * MS);
    check(look(simulator, TAKES).place == SIMULATOR_ENDED);
    run_to(simulator, 500 * MS);
    check(is_gone(simulator, CHILD));
    check(time_of_end(simulator) == 1000 * MS);
}

/* A killed process that is queued or running computes only until its next tick. */
static void test_kill_what_computes(void)
{
    struct simulator *simulator = machine("rr", 1,
                                          "program root\n fork a\n fork a\n run 20ms\n"
                                          "program a\n run 100ms\n");
    run_to(simulator, 1500000);
    check(look(simulator, 3).place == SIMULATOR_RUNNING);
    check(look(simulator, 4).place == SIMULATOR_QUEUED);
    expect_done(simulator_kill(simulator, 3, &error), simulator);
    expect_done(simulator_kill(simulator, 4, &error), simulator);
    check(look(simulator, 3).place == SIMULATOR_RUNNING);
    run_to(simulator, 2 * MS - 1);
    check(look(simulator, 3).place == SIMULATOR_RUNNING);
    run_to(simulator, 2 * MS); /* its tick */
    check(look(simulator, 3).place == SIMULATOR_ENDED);
    check(look(simulator, 4).place == SIMULATOR_ENDED && look(simulator, 4).run_time == 0);
    check(time_of_end(simulator) == 21 * MS);
}

static void test_kill_is_refused(void)
{
    struct simulator *simulator = machine("rr", 1, "program root\n run 9ms\n");
    run_to(simulator, MS);
    expect_refused(simulator_kill(simulator, 1, &error), simulator, "pid 1: init cannot be killed");
    expect_refused(simulator_kill(simulator, 7, &error), simulator, "pid 7: no such process");
    expect_refused(simulator_kill(simulator, -1, &error), simulator, "pid -1: no such process");
    expect_done(simulator_kill(simulator, 2, &error), simulator);
    struct simulator_counts counts;
    check(run_to(simulator, 9 * MS) == SIMULATOR_DONE);
    simulator_count(simulator, &counts);
    check(counts.exit_status == -1 && counts.now == 2 * MS);
    expect_refused(simulator_fork(simulator, 0, &error), simulator, "the first process has ended");
    simulator_destroy(simulator);
}

/* Many timers, most of them cancelled; the remaining ones expire in order. */
static void test_cancelled_timers(void)
{
    struct simulator *simulator =
        machine("rr", 1,
                "program root\n loop 250\n run 10us\n fork a\n end\n loop 250\n wait\n"
                " end\nprogram a\n sleep 20ms\n run 1ns\n");
    run_to(simulator, 5 * MS);
    for (int32_t pid = 3; pid < 253; pid++) {
        if (pid % 5 != 0)
            expect_done(simulator_kill(simulator, pid, &error), simulator);
    }
    check(simulator->timers.count < 120);
    run_to(simulator, 6 * MS);
    for (int32_t pid = 3; pid < 253; pid++)
        check((look(simulator, pid).place == SIMULATOR_BLOCKED) == (pid % 5 == 0));
    uint64_t end = time_of_end(simulator);
    check(end > 20 * MS && end < 24 * MS);
}

static void test_kill_by_a_process(void)
{
    /* It runs on another CPU: until its tick. */
    struct simulator *simulator =
        machine("rr", 2,
                "program root\n fork a\n run 1500us\n kill a\n kill a\n wait\n"
                "program a\n loop\n run 100ms\n end\n");
    check(time_of_end(simulator) == 2 * MS);
    /* It waits: at once. */
    simulator = machine("rr", 1,
                        "program root\n fork a\n run 1500us\n kill a\n wait\n kill a\n"
                        "program a\n sleep 100ms\n run 1s\n");
    check(time_of_end(simulator) == 1500000);
    /* A process that kills itself takes no further step. */
    simulator = machine("rr", 1,
                        "program root\n fork a\n wait\n"
                        "program a\n run 1ms\n kill a\n run 100ms\n run until 1s\n");
    check(time_of_end(simulator) == MS);
}

/* ---- wake, give, migrate ---- */

static void test_wake(uint32_t cpus)
{
    struct simulator *simulator = machine("rr", cpus, one_of_each);
    run_to(simulator, 10500000);
    const int32_t waiting[] = {SLEEPS, WAITS, TAKES_TOO};
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        expect_done(simulator_wake(simulator, waiting[i], &error), simulator);
        expect_refused(simulator_wake(simulator, waiting[i], &error), simulator, "does not wait");
    }
    run_to(simulator, 30 * MS);
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        check(look(simulator, waiting[i]).place == SIMULATOR_ENDED);
        check(look(simulator, waiting[i]).run_time == MS);
    }
    expect_refused(simulator_wake(simulator, 1, &error), simulator, "pid 1 is init");
    expect_refused(simulator_wake(simulator, RUNS, &error), simulator, "pid 3 does not wait");
    expect_done(simulator_wake(simulator, ROOT, &error), simulator);
    check(time_of_end(simulator) <= 32 * MS);
}

/* All tasks sleep for long, so ticks are skipped; waking a task restarts the ticks. */
static void test_ticks_come_back(void)
{
    struct simulator *simulator = machine("rr", 1,
                                          "program root\n fork a\n fork a\n sleep 1s\n"
                                          "program a\n sleep 900ms\n run 10ms\n");
    struct simulator_counts counts;
    run_to(simulator, 100500000);
    expect_done(simulator_wake(simulator, 3, &error), simulator);
    expect_done(simulator_wake(simulator, 4, &error), simulator);
    run_to(simulator, 110 * MS);
    simulator_count(simulator, &counts);
    check(counts.ticks == 10);
    check(look(simulator, 3).run_time + look(simulator, 4).run_time == 9500000);
    check(look(simulator, 3).run_time > 4 * MS && look(simulator, 4).run_time > 4 * MS);
    simulator_destroy(simulator);
}

static void test_give(void)
{
    struct simulator *simulator = machine("rr", 1,
                                          "channel c 0\n"
                                          "program root\n fork a\n fork a\n fork a\n"
                                          " sleep 20ms\n"
                                          "program a\n take c\n run 1ms\n");
    run_to(simulator, MS);
    expect_done(simulator_give(simulator, 0, 1, &error), simulator);
    check(look(simulator, 3).place == SIMULATOR_QUEUED);
    check(look(simulator, 4).place == SIMULATOR_BLOCKED);
    expect_done(simulator_give(simulator, 0, 0, &error), simulator);
    check(look(simulator, 5).place == SIMULATOR_QUEUED && simulator->channels[0].count == 0);
    expect_done(simulator_give(simulator, 0, 4, &error), simulator);
    check(simulator->channels[0].count == 4);
    expect_refused(simulator_give(simulator, 1, 1, &error), simulator, "channel 1: ");
    expect_refused(simulator_give(simulator, 0, 1ull << 40, &error), simulator, "too many");
    check(time_of_end(simulator) == 20 * MS);
}

static void test_migrate(void)
{
    const char *text = "program root\n fork a\n fork a\n fork a\n run 9ms\n"
                       "program a\n run 90ms\n";
    struct simulator *simulator = machine("rr", 2, text);
    run_to(simulator, 2500000);
    for (int32_t pid = 2; pid < 6; pid++) {
        struct simulator_process process = look(simulator, pid);
        if (process.place != SIMULATOR_QUEUED) {
            expect_refused(simulator_migrate(simulator, pid, 0, &error), simulator, "not queued");
            continue;
        }
        expect_refused(simulator_migrate(simulator, pid, process.cpu, &error), simulator,
                       "already");
        expect_refused(simulator_migrate(simulator, pid, 2, &error), simulator, "CPU 2: ");
        expect_done(simulator_migrate(simulator, pid, !process.cpu, &error), simulator);
        check(look(simulator, pid).cpu == !process.cpu);
    }
    simulator_destroy(simulator);
    simulator = machine("rr:table-scan", 2, text);
    run_to(simulator, 2500000);
    if (simulator->scheduler.queues == 1)
        expect_refused(simulator_migrate(simulator, 3, 1, &error), simulator, "one queue");
    simulator_destroy(simulator);
}

/* ---- attributes, policies ---- */

static void test_attributes(void)
{
    struct simulator *simulator = machine("priority", 1, one_of_each);
    run_to(simulator, 10500000);
    expect_done(simulator_set_attribute(simulator, RUNS, ATTRIBUTE_PRIORITY, 9, &error), simulator);
    expect_done(simulator_set_attribute(simulator, SLEEPS, ATTRIBUTE_TICKETS, 70, &error),
                simulator);
    expect_done(simulator_set_attribute(simulator, RUNS, ATTRIBUTE_WEIGHT, 2, &error), simulator);
    check(look(simulator, RUNS).priority == 9 && look(simulator, RUNS).weight == 2);
    check(look(simulator, SLEEPS).tickets == 70);
    expect_refused(simulator_set_attribute(simulator, RUNS, ATTRIBUTE_PRIORITY, 11, &error),
                   simulator, "priority 11: expected a number from 0 to 10");
    expect_refused(simulator_set_attribute(simulator, RUNS, 99, 1, &error), simulator,
                   "attribute 99");
    simulator_destroy(simulator);
}

/* From a policy with little memory per process to each policy with more, and back. */
static void test_policies(const char *policy)
{
    struct simulator *simulator = machine("rr", 3, one_of_each);
    run_to(simulator, 10500000);
    expect_done(simulator_set_policy(simulator, policy, &error), simulator);
    run_to(simulator, 20500000);
    expect_done(simulator_set_policy(simulator, "rr", &error), simulator);
    expect_done(simulator_set_tunable(simulator, "slice=3", &error), simulator);
    run_to(simulator, 30500000);
    expect_done(simulator_set_policy(simulator, policy, &error), simulator);
    expect_refused(simulator_set_policy(simulator, "best", &error), simulator, "policy best");
    expect_refused(simulator_set_tunable(simulator, "best=1", &error), simulator, "best=1");
    expect_refused(simulator_set_tunable(simulator, "slice", &error), simulator, "slice");
    check(time_of_end(simulator) == 1000 * MS);
}

/* ---- at random ---- */

static const char *const busy =
    "channel c 1\nchannel d 0\n"
    "program root\n loop\n sleep 100s\n end\n"
    "program computes\n loop\n run 7300us\n end\n"
    "program sleeps\n loop\n run 300us\n sleep 2ticks\n sleep 130us\n end\n"
    "program takes\n loop\n take c\n run 500us\n give c\n run 200us\n take d\n end\n"
    "program forks\n loop 6\n fork sleeps\n fork computes\n run 100us\n end\n"
    " kill sleeps\n loop 12\n wait\n end\n"
    "program ends\n run 1ms\n yield\n run 1ms\n";

struct dice {
    uint64_t state;
};

/* 0 to below - 1. */
static uint32_t draw(struct dice *dice, uint32_t below)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice->state >> 33) % below);
}

static const char *draw_policy(struct dice *dice, char *text, size_t bytes)
{
    const struct policy *policy = policies[draw(dice, policy_sources_count)];
    uint32_t preset = draw(dice, policy->preset_count + 1);
    if (preset == policy->preset_count)
        return policy->name;
    snprintf(text, bytes, "%s:%s", policy->name, policy->presets[preset].name);
    return text;
}

/* Starts the same programs again until no process slot is free. */
static void add_busy(struct simulator *simulator, struct dice *dice)
{
    struct simulator_workload workload = read_text(busy);
    uint32_t first = simulator_add_workload(simulator, &workload, &error);
    simulator_free_workload(&workload);
    if (first != SIMULATOR_NO_PROGRAM)
        simulator_fork(simulator, first + 1 + draw(dice, 3), &error);
}

/* Any act on any process; it may be refused. */
static void act_at_random(struct simulator *simulator, struct dice *dice, bool switches)
{
    static struct simulator_process processes[PROCESSES_MAX];
    char text[128];
    uint32_t count = simulator_processes(simulator, processes, PROCESSES_MAX);
    int32_t pid = processes[draw(dice, count)].pid;
    switch (draw(dice, switches ? 13 : 12)) {
    case 0:
    case 1:
    case 2:
        simulator_fork(simulator, 1 + draw(dice, 5), &error);
        break;
    case 3:
    case 4:
        if (pid != 2)
            simulator_kill(simulator, pid, &error);
        break;
    case 5:
    case 6:
        simulator_wake(simulator, pid, &error);
        break;
    case 7:
    case 8:
        simulator_migrate(simulator, pid, draw(dice, simulator->scheduler.cpus), &error);
        break;
    case 9:
        simulator_give(simulator, draw(dice, 2), draw(dice, 3), &error);
        break;
    case 10:
        simulator_set_attribute(simulator, pid, ATTRIBUTE_PRIORITY + draw(dice, 3),
                                1 + draw(dice, 10), &error);
        break;
    case 11:
        add_busy(simulator, dice);
        break;
    case 12:
        simulator_set_policy(simulator, draw_policy(dice, text, sizeof(text)), &error);
        break;
    }
    error.text[0] = '\0';
    audit(simulator);
}

static void run_at_random(struct simulator *simulator, uint64_t seed, uint32_t acts, bool switches)
{
    struct dice dice = {seed};
    uint64_t time = 100000; /* init has forked the first process */
    run_to(simulator, time);
    for (uint32_t i = 0; i < acts; i++) {
        if (draw(&dice, 3) == 0) {
            time += draw(&dice, 4) == 0 ? TICK : draw(&dice, 700000);
            run_to(simulator, time);
        }
        act_at_random(simulator, &dice, switches);
    }
    check(run_to(simulator, time + 20 * MS) == SIMULATOR_TIME);
    if (!simulator_drain(simulator, &error))
        fprintf(stderr, "%s\n", error.text);
    check(error.text[0] == '\0');
}

static void test_at_random(const char *policy)
{
    static const uint32_t cpus[] = {1, 2, 16};
    for (uint32_t i = 0; i < 6; i++) {
        struct simulator_setup setup = setup_of(policy, cpus[i % 3]);
        setup.processes = PROCESSES_MAX;
        setup.added_steps = 600;
        if (i >= 3)
            setup.costs = simulator_costs_kernel();
        if (i % 3 == 2)
            setup.shape = TEST_SHAPE;
        struct simulator *simulator = create(&setup, busy);
        run_at_random(simulator, i, 200, i % 2);
        simulator_destroy(simulator);
    }
}

static void write_trace(char **arguments)
{
    struct simulator_setup setup = setup_of(arguments[1], (uint32_t)atoi(arguments[2]));
    setup.seed = (uint64_t)atoi(arguments[3]);
    setup.trace = arguments[4];
    setup.trace_queues = true;
    setup.added_steps = 600;
    setup.costs = simulator_costs_kernel();
    struct simulator *simulator = create(&setup, busy);
    struct dice dice = {setup.seed};
    for (uint64_t time = 100000; time < 40 * MS; time += draw(&dice, 400000)) {
        run_to(simulator, time);
        act_at_random(simulator, &dice, true);
    }
    check(simulator_finish(simulator, &error));
    simulator_destroy(simulator);
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 5) {
        write_trace(arguments);
        return 0;
    }
    test_processes();
    test_fork();
    test_no_room();
    for (uint32_t cpus = 1; cpus <= 3; cpus++) {
        test_kill_what_waits(cpus);
        test_wake(cpus);
    }
    test_kill_what_computes();
    test_kill_is_refused();
    test_cancelled_timers();
    test_kill_by_a_process();
    test_ticks_come_back();
    test_give();
    test_migrate();
    test_attributes();
    for_each_policy(test_policies);
    for_each_policy(test_at_random);
    return 0;
}
