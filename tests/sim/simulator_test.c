/* SPDX-License-Identifier: MIT */

/* Tests the simulator through its header: measurements, refusals, repeatability. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/machines.h"

/* Runs until the end, and checks everything after each tick. */
static struct simulator_counts run_to_end(const struct simulator_setup *setup,
                                          struct simulator *simulator)
{
    struct simulator_counts counts;
    struct simulator_error error = {""};
    enum simulator_status status = SIMULATOR_TIME;
    for (uint64_t tick = 1; status == SIMULATOR_TIME && tick < 100000; tick++) {
        status = simulator_run(simulator, tick * TICK, &error);
        if (!simulator_audit(simulator, &error))
            status = SIMULATOR_FAILED;
    }
    if (status == SIMULATOR_FAILED)
        fprintf(stderr, "%s: %s\n", setup->policy, error.text);
    check(status == SIMULATOR_DONE);
    simulator_count(simulator, &counts);
    simulator_destroy(simulator);
    return counts;
}

static struct simulator_counts run(const struct simulator_setup *setup, const char *text)
{
    return run_to_end(setup, create(setup, text));
}

/* The run must fail with an error that contains these words. Acts that take no time are counted in
 * advance: ten million are slow under sanitizers. */
static void check_fails_at_once(const char *text, uint32_t idle_acts, const char *words)
{
    struct simulator_setup setup = setup_of("rr", 1);
    struct simulator *simulator = create(&setup, text);
    simulator->idle_acts = idle_acts;
    struct simulator_error error = {""};
    check(simulator_run(simulator, 1000000 * TICK, &error) == SIMULATOR_FAILED);
    if (!strstr(error.text, words))
        fprintf(stderr, "%s\nexpected: %s\n", error.text, words);
    check(strstr(error.text, words));
    check(simulator_run(simulator, 2000000 * TICK, &error) == SIMULATOR_FAILED);
    simulator_destroy(simulator);
}

static void check_fails(const char *text, const char *words)
{
    check_fails_at_once(text, 0, words);
}

static void check_no_machine(struct simulator_setup setup, const char *words)
{
    struct simulator_error error = {""};
    struct simulator_workload workload = read_text("program a\n run 1ms\n");
    check(!simulator_create(&setup, &workload, &error));
    if (!strstr(error.text, words))
        fprintf(stderr, "%s\nexpected: %s\n", error.text, words);
    check(strstr(error.text, words));
    simulator_free_workload(&workload);
}

/* ---- durations ---- */

static void test_time_of_acts(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    check(run(&setup, "program a\n run 2500us\n").now == 2500000);
    check(run(&setup, "program a\n run until 7ticks\n run 1us\n").now == 7 * TICK + 1000);
    check(run(&setup, "program a\n run 300us\n sleep 2ticks\n").now == 2 * TICK);
    check(run(&setup, "program a\n run 300us\n sleep 2ms\n").now == 2300000);
    check(run(&setup, "program a\n run 300us\n sleep until 5ms\n").now == 5 * MS);
    check(run(&setup, "program a\n run 6ms\n sleep until 5ms\n").now == 6 * MS);
    check(run(&setup, "program a\n loop 3\n loop 2\n run 1ms\n end\n sleep 1ms\n end\n").now ==
          9 * MS);
    check(run(&setup, "program a\n exit 7\n").exit_status == 7);
}

/* The longest times do not wrap. */
static void test_longest_times(void)
{
    static const uint8_t kinds[] = {STEP_RUN, STEP_RUN_UNTIL, STEP_SLEEP, STEP_SLEEP_TICKS,
                                    STEP_SLEEP_UNTIL};
    for (size_t i = 0; i < sizeof(kinds); i++) {
        struct simulator_error error = {""};
        const struct workload_step steps[] = {{.kind = STEP_RUN, .value = 1},
                                              {.kind = kinds[i], .value = 1ull << 61},
                                              {.kind = STEP_EXIT}};
        const struct simulator_program program = {"p", steps, 3};
        const struct simulator_workload workload = {.programs = &program, .program_count = 1};
        const struct simulator_setup setup = setup_of("rr", 1);
        struct simulator *simulator = simulator_create(&setup, &workload, &error);
        check(simulator);
        check(simulator_run(simulator, 1000 * TICK, &error) == SIMULATOR_TIME);
        simulator_destroy(simulator);
    }
}

/* Years are simulated quickly if nothing happens in them. */
static void test_idle_time_is_skipped(void)
{
    const uint64_t year = 365ull * 86400 * 1000000000;
    struct simulator_setup setup = setup_of("rr", 256);
    struct simulator_counts counts;
    struct simulator_error error = {""};
    struct simulator *simulator = create(&setup, "program a\n sleep 31536000s\n run 1ms\n");
    check(simulator_run(simulator, year / 2, &error) == SIMULATOR_TIME);
    check(simulator_run(simulator, 2 * year, &error) == SIMULATOR_DONE);
    simulator_count(simulator, &counts);
    check(counts.now == year + MS && counts.idle_time == 256 * counts.now - MS);
    simulator_destroy(simulator);
}

static void test_costs(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.costs = (struct simulator_costs){.scheduler = 300, .context_switch = 100, .fork = 8000};
    struct simulator_counts counts = run(&setup, "program a\n run 500us\n");
    /* 400 until init runs, its fork, 400 until a runs, its work, 400 until init reaps it. */
    check(counts.now == 400 + 8000 + 400 + 500000 + 400);
    setup.costs = (struct simulator_costs){.tick = 1000};
    counts = run(&setup, "program a\n run 5ms\n");
    check(counts.now == 5 * MS + 5 * 1000); /* the fifth tick comes before the work is done */
    check(counts.ticks == 5);
}

static void test_costs_of_a_child(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.costs = (struct simulator_costs){
        .fork = 1000, .fork_new = 100, .fork_return = 20, .first_run = 7, .exit = 300, .reap = 40};
    struct simulator_counts counts =
        run(&setup, "program a\n loop 3\n fork b\n wait\n end\nprogram b\n");
    /* init and a; then three children, one after the other in the same slot; a ends. */
    uint64_t begin = 7 + 1100 + 20 + 7;
    check(counts.now == begin + 100 + 3 * (1000 + 20 + 7 + 300 + 40) + 300);
}

static void test_costs_of_a_policy(void)
{
    struct simulator_error error;
    struct simulator_setup setup = setup_of("rr", 1);
    check(simulator_read_costs(&setup.costs,
                               "none,scheduler=300,scheduler.rr=201,scheduler.rr:table-scan=100,"
                               "crowd.lottery=5000",
                               &error));
    check(setup.costs.policy_count == 3);
    check(run(&setup, "program a\n run 1us\n").now == 3 * 201 + 1000);
    setup.policy = "rr:table-scan";
    check(run(&setup, "program a\n run 1us\n").now == 3 * 100 + 1000);
    setup.policy = "lottery";
    check(run(&setup, "program a\n run 1us\n").now == 3 * 300 + 1000);
    const char *two = "program a\n fork b\n run 1us\n fork b\n wait\n wait\nprogram b\n run 1us\n";
    uint64_t crowded = run(&setup, two).now;
    setup.costs.policies[2].value = 0;
    /* 5,000 / 100 for each pick while another process waits: b, and then b or a. */
    uint64_t more = crowded - run(&setup, two).now;
    check(more == 2 * 50 || more == 3 * 50);
    check(!simulator_read_costs(&setup.costs, "none,fork.frr=7", &error) &&
          strstr(error.text, "cost fork.frr: expected a policy"));
    check(!simulator_read_costs(&setup.costs, "none,fork.rr:x=7", &error));
    check(!simulator_read_costs(&setup.costs, "none,frok.rr=7", &error));
}

static void test_what_is_said_last_holds(void)
{
    static const struct {
        const char *changes;
        uint64_t rr, table_scan, lottery;
    } cases[] = {
        {"", 10, 20, 30},
        {",fork=5", 5, 5, 5},
        {",fork.rr=5", 5, 5, 30},
        {",fork.rr:table-scan=5", 10, 5, 30},
        {",fork=5,fork.lottery=6", 5, 5, 6},
        {",fork+=5", 15, 25, 35},
        {",fork+=5,fork=7,fork+=1", 8, 8, 8},
    };
    struct simulator_error error;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const char *const policies[] = {"rr", "rr:table-scan", "lottery"};
        const uint64_t expected[] = {cases[i].rr, cases[i].table_scan, cases[i].lottery};
        char text[200];
        snprintf(text, sizeof(text),
                 "none,fork=1,fork.rr=10,fork.rr:table-scan=20,fork.lottery=30%s",
                 cases[i].changes);
        for (unsigned j = 0; j < 3; j++) {
            struct simulator_setup setup = setup_of(policies[j], 1);
            check(simulator_read_costs(&setup.costs, text, &error));
            check(run(&setup, "program a\n run 1us\n").now == expected[j] + 1000);
        }
    }
}

static void test_the_machine_boots(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.costs = (struct simulator_costs){.boot = 4 * MS};
    check(run(&setup, "program a\n sleep until 2ms\n run until 3ms\n").now == 7 * MS);
}

static void test_a_tick_waits_until_the_kernel_is_left(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.costs.context_switch = 200000;
    /* It wakes at 0.9 ms and starts at 1.1 ms, when the tick of 1 ms is handled. It ends at 4.1
     * ms, and init runs 0.2 ms later. */
    struct simulator_counts counts =
        run(&setup, "program a\n run 100us\n sleep until 900us\n run 3ms\n");
    check(counts.ticks == 4);
    check(counts.now == 4300000);
}

/* ---- channels, children ---- */

static void test_channels(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    /* Two waiting processes are served in order; the lock exists once. */
    const char *text = "channel lock 1\n"
                       "channel go 0\n"
                       "program root\n"
                       " fork a\n fork a\n"
                       " run 5ms\n"
                       " give go all\n"
                       " wait\n wait\n"
                       "program a\n"
                       " take go\n"
                       " take lock\n run 1ms\n sleep 3ms\n give lock\n";
    struct simulator_counts counts = run(&setup, text);
    check(counts.now == 5 * MS + 2 * 4 * MS);
    setup.cpus = 4;
    check(run(&setup, text).now == 5 * MS + 2 * 4 * MS);
    check_fails("program a\n take nothing\n", "nothing can wake one");
}

static void test_a_signal_is_for_who_waits(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    /* The first signal is lost; the second wakes one of two processes. */
    check(run(&setup, "program root\n give c waiting\n fork a\n fork a\n sleep 1ms\n"
                      " give c waiting\n wait\n"
                      "program a\n take c\n run 1ms\n")
              .now == 2 * MS);
    check_fails("program a\n give c waiting\n take c\n", "nothing can wake one");
}

static void test_who_waits_releases(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    const char *text = "channel lock 1\n"
                       "program root\n fork a\n sleep 1ms\n"
                       " take lock\n give c waiting\n run 2ms\n give lock\n wait\n"
                       "program a\n"
                       " take lock\n take c releasing lock\n take lock\n run 1ms\n give lock\n";
    check(run(&setup, text).now == 4 * MS);
    setup.cpus = 2;
    check(run(&setup, text).now == 4 * MS);
}

static void test_a_process_has_timers(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    check(run(&setup, "program a\n loop 3\n run 1ms\n timer 0 5ms\n end\n").now == 15 * MS);
    /* Only an absolute sleep makes up for missed time. */
    check(run(&setup, "program a\n run 7ms\n timer 0 5ms\n run 1ms\n timer 0 5ms\n").now ==
          12 * MS);
    check(run(&setup, "program a\n run 7ms\n timer 0 5ms absolute\n run 1ms\n"
                      " timer 0 5ms absolute\n")
              .now == 10 * MS);
    /* Each timer counts separately, for each process, from its fork. */
    check(run(&setup, "program root\n loop 2\n sleep 4ms\n fork a\n wait\n end\n"
                      "program a\n timer 0 5ms\n timer 7 7ms\n timer 0 5ms\n")
              .now == 2 * 14 * MS);
}

static void test_processes_meet(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    /* Three, twice: the last arrival continues at once, the others in order. */
    const char *text = "program root\n fork a\n fork b\n"
                       " loop 2\n run 5ms\n meet c 3\n end\n wait\n wait\n"
                       "program a\n loop 2\n sleep 1ms\n meet c 3\n end\n run 1ms\n"
                       "program b\n loop 2\n meet c 3\n end\n run 1ms\n";
    check(run(&setup, text).now == 12 * MS);
    setup.cpus = 3;
    check(run(&setup, text).now == 11 * MS);
    check(run(&setup, "program a\n meet c 1\n run 1ms\n").now == MS);
    /* A killed process does not arrive. */
    check(run(&setup, "program root\n fork b\n sleep 1ms\n kill b\n fork a\n sleep 1ms\n"
                      " meet c 2\n wait\n wait\n"
                      "program a\n meet c 2\n run 1ms\nprogram b\n meet c 2\n run 9ms\n")
              .now == 3 * MS);
    check_fails("program a\n fork b\n meet c 3\nprogram b\n meet c 3\n", "nothing can wake one");
}

static void test_timers_are_shared(void)
{
    struct simulator_setup setup = setup_of("rr", 2);
    /* Each use advances it by a period: of two processes, each runs every second period. */
    check(run(&setup, "program root\n sleep 4ms\n fork a\n fork a\n wait\n wait\n"
                      "program a\n loop 3\n timer beat 5ms\n end\n")
              .now == 4 * MS + 6 * 5 * MS);
    /* It counts from the fork of the process that uses it first; a late timer continues from the
     * present. */
    check(run(&setup, "program a\n run 7ms\n timer t 5ms\n run 1ms\n timer t 5ms\n").now ==
          12 * MS);
    check(run(&setup, "program a\n run 7ms\n timer t 5ms absolute\n run 1ms\n"
                      " timer t 5ms absolute\n timer 0 12ms\n")
              .now == 12 * MS);
}

static void test_orphans_are_reaped(void)
{
    struct simulator_setup setup = setup_of("rr", 2);
    struct simulator_counts counts = run(&setup, "program root\n fork a\n run 20ms\n"
                                                 "program a\n loop 5\n fork b\n end\n run 1ms\n"
                                                 "program b\n run 4ms\n");
    check(counts.forks == 8);
    check(counts.processes == 1); /* init, which has reaped all orphans */
}

static void test_slots_are_used_again(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.processes = 3;
    check(run(&setup, "program a\n loop 1000\n fork b\n wait\n end\nprogram b\n run 1us\n").forks ==
          1002);
    check_fails("program a\n loop 400\n fork b\n end\nprogram b\n sleep 1s\n",
                "at most 300 at once");
}

static void test_no_time_passes(void)
{
    check_fails_at_once("program a\n loop\n yield\n end\n", 9900000, "take no time");
}

/* ---- every policy ---- */

/* Every kind of step, on a machine with several CPUs. */
#define EVERYTHING                                                                                 \
    "channel turn 2\n"                                                                             \
    "program root\n"                                                                               \
    " loop 12\n fork busy\n fork sleepy\n fork parent\n run 200us\n"                               \
    " end\n"                                                                                       \
    " run 3ms\n priority 2 busy\n tickets 50 sleepy\n weight 9 parent\n"                           \
    " loop 36\n wait\n end\n sleep 40ticks\n"                                                      \
    "program busy\n run 7300us\n yield\n run 4ms\n"                                                \
    "program sleepy\n loop 9\n run 370us\n sleep 2ticks\n end\n"                                   \
    " loop 3\n take turn\n run 300us\n sleep 90us\n give turn\n end\n"                             \
    "program parent\n priority 7\n loop 3\n fork leaf\n run 100us\n end\n"                         \
    " wait\n wait\n"                                                                               \
    "program leaf\n tickets 3\n run 1400us\n"

static void test_policy(const char *policy)
{
    static const uint32_t cpus[] = {1, 2, 7, 64, 65, 1024};
    bool many = strcmp(policy, policies[0]->name) == 0;
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]) - !many; i++) {
        struct simulator_setup setup = setup_of(policy, cpus[i]);
        struct simulator_counts plain = run(&setup, EVERYTHING);
        check(plain.forks == 2 + 36 + 36);
        /* The work is 186 ms; a CPU completes at most one nanosecond of work per nanosecond. */
        check(plain.now * cpus[i] - plain.idle_time >= 170 * MS);
        setup.costs = simulator_costs_kernel();
        struct simulator_counts costly = run(&setup, EVERYTHING);
        check(costly.forks == 2 + 36 + 36);
        check(costly.now * cpus[i] - costly.idle_time > plain.now * cpus[i] - plain.idle_time);
    }
}

/* Switches from policy to policy while everything runs. */
static void test_switches(const char *policy)
{
    static const char text[] = "program first\n fork root\n loop 8\n sleep 3ticks\n policy rr\n"
                               " sleep 2ticks\n policy priority\n end\n wait\n" EVERYTHING;
    for (uint32_t cpus = 1; cpus <= 4; cpus++) {
        struct simulator_setup setup = setup_of("mlfq", cpus);
        struct simulator_workload workload = read_text(text);
        const char *const texts[] = {policy, workload.texts[1]};
        workload.texts = texts;
        check(run_to_end(&setup, create_of(&setup, &workload)).forks == 3 + 36 + 36);
    }
}

/* When a run is cut off, the policy returns each queued task exactly once. */
static void test_drain(const char *policy)
{
    struct simulator_setup setup = setup_of(policy, 3);
    for (uint64_t time = 500000; time < 60 * MS; time += 7300000) {
        struct simulator_error error = {""};
        struct simulator *simulator = create(&setup, EVERYTHING);
        simulator_run(simulator, time, &error);
        if (!simulator_drain(simulator, &error))
            fprintf(stderr, "%s at %llu: %s\n", policy, (unsigned long long)time, error.text);
        check(error.text[0] == '\0');
        simulator_destroy(simulator);
    }
}

/* ---- the trace ---- */

static size_t read_file(const char *path, char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    check(file);
    size_t length = fread(bytes, 1, most, file);
    check(length < most && fclose(file) == 0);
    return length;
}

static void write_trace(const char *path, uint64_t seed, uint64_t step)
{
    struct simulator_error error = {""};
    struct simulator_setup setup = setup_of("lottery", 3);
    setup.costs = simulator_costs_kernel();
    setup.seed = seed;
    setup.trace = path;
    struct simulator *simulator = create(&setup, EVERYTHING);
    uint64_t until = step;
    while (simulator_run(simulator, until, &error) == SIMULATOR_TIME)
        until += step;
    check(simulator_finish(simulator, &error) && simulator_finish(simulator, &error));
    simulator_destroy(simulator);
}

static void test_trace_is_repeatable(void)
{
    static char one[1 << 22];
    static char other[1 << 22];
    char path[] = "/tmp/schedlab-simulator-XXXXXX";
    int file = mkstemp(path);
    check(file >= 0);
    write_trace(path, 1, 1000000 * MS);
    size_t length = read_file(path, one, sizeof(one));
    check(length > 64 + 32 * 1000 && (length - 64) % 32 == 0);
    write_trace(path, 1, 1000000 * MS);
    check(read_file(path, other, sizeof(other)) == length && memcmp(one, other, length) == 0);
    write_trace(path, 1, 12345); /* in many pieces */
    check(read_file(path, other, sizeof(other)) == length && memcmp(one, other, length) == 0);
    write_trace(path, 2, 1000000 * MS);
    size_t second = read_file(path, other, sizeof(other));
    check(second != length || memcmp(one + 64, other + 64, length - 64) != 0);
    check(close(file) == 0 && unlink(path) == 0);
}

static void test_trace_that_cannot_be_written(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    setup.trace = "/nowhere/trace.bin";
    check_no_machine(setup, "/nowhere/trace.bin cannot be created");
    setup.trace = "/dev/full";
    check_no_machine(setup, "/dev/full cannot be written: No space left");
}

/* ---- refusals ---- */

static void test_wrong_setups(void)
{
    check_no_machine(setup_of("nonsense", 1), "policy nonsense: no such policy");
    check_no_machine(setup_of("rr:nonsense", 1), "policy rr:nonsense: ");
    check_no_machine(setup_of("rr", 0), "0 CPUs: out of range; use 1 to 1024");
    check_no_machine(setup_of("rr", 1025), "1025 CPUs");
    struct simulator_setup setup = setup_of("rr", 1);
    setup.tick_ns = 10;
    check_no_machine(setup, "tick of 10 ns");
    setup = setup_of("rr", 1);
    setup.tunables = "slice=2,slice=0";
    check_no_machine(setup, "tunable slice=0 of policy rr");
    setup.tunables = "size=2";
    check_no_machine(setup, "tunable size=2 of policy rr");
    setup = setup_of("rr", 1);
    setup.costs.tick = TICK;
    check_no_machine(setup, "too short");
    setup = setup_of("rr", 1);
    setup.processes = (1 << 24) + 1;
    check_no_machine(setup, "16777217 processes");
}

static void test_wrong_steps(void)
{
    const struct workload_step wrong[] = {
        {.kind = STEP_COUNT},
        {.kind = STEP_FORK, .target = 1},
        {.kind = STEP_TAKE},
        {.kind = STEP_SET_POLICY},
        {.kind = STEP_LOOP, .target = 0},
        {.kind = STEP_RUN, .value = UINT64_MAX},
        {.kind = STEP_ATTRIBUTE, .detail = ATTRIBUTE_TASKGROUP + 1, .target = WORKLOAD_SELF},
        {.kind = STEP_SETGROUP, .detail = GROUP_PARENT, .target = 1, .value = 1},
        {.kind = STEP_ATTRIBUTE, .detail = ATTRIBUTE_WEIGHT, .target = 1, .value = 1},
        {.kind = STEP_MARK},
        {.kind = STEP_KILL, .target = WORKLOAD_SELF},
        {.kind = STEP_MEET},
        {.kind = STEP_SHARED_TIMER, .target = WORKLOAD_SHARED_TIMERS_MAX},
        {.kind = STEP_JOB, .detail = WORKLOAD_TIMERS_MAX},
        {.kind = STEP_RUN}, /* and no exit after it */
    };
    struct simulator_setup setup = setup_of("rr", 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct simulator_error error = {""};
        const struct workload_step steps[] = {wrong[i], {.kind = STEP_EXIT}};
        bool lacks_exit = i == sizeof(wrong) / sizeof(wrong[0]) - 1;
        struct simulator_program program = {"p", steps, lacks_exit ? 1 : 2};
        struct simulator_workload workload = {.programs = &program, .program_count = 1};
        check(!simulator_create(&setup, &workload, &error));
        check(strstr(error.text, "program p, step "));
    }
}

static void test_costs_in_text(void)
{
    struct simulator_costs costs;
    struct simulator_error error = {""};
    check(simulator_read_costs(&costs, "none", &error) && costs.fork == 0);
    check(simulator_read_costs(&costs, "kernel,fork=7,switch=8", &error));
    check(costs.fork == 7 && costs.context_switch == 8 &&
          costs.scheduler == simulator_costs_kernel().scheduler);
    check(simulator_read_costs(&costs, "tick=9", &error) && costs.tick == 9);
    check(!simulator_read_costs(&costs, "free", &error) && strstr(error.text, "cost free: "));
    check(!simulator_read_costs(&costs, "none,fork", &error));
    check(!simulator_read_costs(&costs, "none,fork=", &error));
    check(!simulator_read_costs(&costs, "none,fork=1x", &error));
    check(!simulator_read_costs(&costs, "fork=1,none", &error));
    check(!simulator_read_costs(&costs, "frok+=1", &error) && strstr(error.text, "cost frok: "));
    check(!simulator_read_costs(&costs, "fork.rr+=1", &error));
    check(!simulator_read_costs(&costs, "fork=9,fork+=18446744073709551607", &error) &&
          strstr(error.text, "cost fork: the sum is too large"));
}

/* ---- the parts ---- */

static void test_slots(void)
{
    struct slots slots;
    for (uint32_t i = 0; i < SLOT_LEVELS; i++)
        slots.level[i] = calloc(slots_words(5000, i), sizeof(uint64_t));
    slots_fill(&slots, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        check(slots_take(&slots) == i);
    check(slots_take(&slots) == UINT32_MAX);
    slots_give_back(&slots, 4999);
    slots_give_back(&slots, 64);
    slots_give_back(&slots, 4096);
    check(slots_take(&slots) == 64 && slots_take(&slots) == 4096 && slots_take(&slots) == 4999);
    check(slots_take(&slots) == UINT32_MAX);
    for (uint32_t i = 0; i < SLOT_LEVELS; i++)
        free(slots.level[i]);
}

static int compare_timers(const void *a, const void *b)
{
    return timer_before(a, b) ? -1 : 1;
}

static void test_timers(void)
{
    static struct timer heap[1000];
    struct timers timers = {.heap = heap, .started = UINT32_MAX - 300}; /* the counter wraps */
    struct timer expected[1000];
    uint32_t state = 1;
    for (uint32_t i = 0; i < 1000; i++) {
        state = state * 1103515245 + 12345;
        uint64_t when = state >> 28;
        uint32_t cpu = state >> 20 & 3;
        timers_start(&timers, when, cpu, i);
        expected[i] = timer_of(when, cpu, UINT32_MAX - 300 + i, i);
    }
    qsort(expected, 1000, sizeof(expected[0]), compare_timers);
    for (uint32_t i = 0; i < 1000; i++) {
        check(timers_next(&timers) == expected[i].when);
        struct timer taken = timers_take(&timers);
        check(timer_slot(&taken) == timer_slot(&expected[i]));
    }
    check(timers_next(&timers) == UINT64_MAX);
}

static void test_memory(void)
{
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        struct simulator_counts counts;
        char name[64];
        bool is_study = i >= policies_count;
        snprintf(name, sizeof(name), "%s%s%s", policies[i]->name, is_study ? ":" : "",
                 is_study ? policies[i]->presets[0].name : "");
        struct simulator_setup setup = setup_of(name, 1);
        struct simulator *simulator = create(&setup, "program a\n run 1ms\n");
        simulator_count(simulator, &counts);
        check(counts.process_bytes <= 384);
        check(policies[i]->task_bytes <= POLICY_TASK_BYTES);
        simulator_destroy(simulator);
    }
}

int main(void)
{
    test_slots();
    test_timers();
    test_memory();
    test_time_of_acts();
    test_longest_times();
    test_idle_time_is_skipped();
    test_costs();
    test_costs_of_a_child();
    test_costs_of_a_policy();
    test_what_is_said_last_holds();
    test_the_machine_boots();
    test_a_tick_waits_until_the_kernel_is_left();
    test_channels();
    test_a_signal_is_for_who_waits();
    test_who_waits_releases();
    test_a_process_has_timers();
    test_processes_meet();
    test_timers_are_shared();
    test_orphans_are_reaped();
    test_slots_are_used_again();
    test_no_time_passes();
    test_trace_is_repeatable();
    test_trace_that_cannot_be_written();
    test_wrong_setups();
    test_wrong_steps();
    test_costs_in_text();
    for_each_policy(test_policy);
    for_each_policy(test_switches);
    for_each_policy(test_drain);
    return 0;
}
