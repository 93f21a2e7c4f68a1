/* SPDX-License-Identifier: MIT */

/*
 * Tests what a watcher of a running machine needs: added workloads, the time of the next event, a
 * complete trace file, the texts of sched_status.
 */

#include "sim/control.h"

#include <unistd.h>

#include "tests/sim/machines.h"

static struct simulator_error error;

static const char idle[] = "program watched\n loop\n  sleep 1000000000s\n end\n";

static struct simulator *machine(const char *policy, uint32_t cpus, uint32_t added_steps)
{
    struct simulator_setup setup = setup_of(policy, cpus);
    setup.added_steps = added_steps;
    return create(&setup, idle);
}

static void run_to(struct simulator *simulator, uint64_t time)
{
    if (simulator_run(simulator, time, &error) != SIMULATOR_TIME ||
        !simulator_audit(simulator, &error))
        fprintf(stderr, "%s\n", error.text);
    check(error.text[0] == '\0');
}

static uint32_t add(struct simulator *simulator, const char *text)
{
    struct simulator_workload workload = read_text(text);
    uint32_t first = simulator_add_workload(simulator, &workload, &error);
    simulator_free_workload(&workload);
    return first;
}

static int32_t start(struct simulator *simulator, const char *text)
{
    uint32_t first = add(simulator, text);
    if (first == SIMULATOR_NO_PROGRAM)
        fprintf(stderr, "%s\n", error.text);
    check(first != SIMULATOR_NO_PROGRAM);
    int32_t pid = simulator_fork(simulator, first, &error);
    check(pid > 0);
    return pid;
}

/* All zero: the process does not exist. */
static struct simulator_process look(const struct simulator *simulator, int32_t pid)
{
    struct simulator_process processes[300];
    uint32_t count = simulator_processes(simulator, processes, 300);
    for (uint32_t i = 0; i < count; i++) {
        if (processes[i].pid == pid)
            return processes[i];
    }
    return (struct simulator_process){0};
}

static bool has_message(const char *words)
{
    bool has_match = strstr(error.text, words);
    if (!has_match)
        fprintf(stderr, "%s\nexpected: %s\n", error.text, words);
    error.text[0] = '\0';
    return has_match;
}

/* ---- added workloads ---- */

/* Of two with the same text, each has its own channel, programs and timers. */
static void test_added_know_nothing_of_each_other(void)
{
    static const char pair[] = "channel door 0\n"
                               "program first\n fork second\n take door\n run 1ms\n exit 7\n"
                               "program second\n sleep 5ms\n timer shared 8ms\n tickets 9 first\n"
                               " give door\n";
    struct simulator *simulator = machine("rr", 2, 1000);
    run_to(simulator, 10 * MS);
    int32_t one = start(simulator, pair);
    run_to(simulator, 12 * MS);
    int32_t two = start(simulator, pair);
    run_to(simulator, 18 * MS + 500000);
    check(look(simulator, one).place == SIMULATOR_RUNNING);
    check(look(simulator, one).tickets == 9 && look(simulator, two).tickets == 1);
    check(look(simulator, two).place == SIMULATOR_BLOCKED);
    run_to(simulator, 20 * MS + 500000);
    check(look(simulator, one).pid == 0);
    check(look(simulator, two).place == SIMULATOR_RUNNING && look(simulator, two).tickets == 9);
    run_to(simulator, 30 * MS);
    check(look(simulator, two).pid == 0);
    simulator_destroy(simulator);
}

static void test_times_count_from_when_it_is_added(void)
{
    struct simulator *simulator = machine("rr", 1, 100);
    run_to(simulator, 10 * MS);
    int32_t pid = start(simulator, "program a\n sleep until 5ms\n run until 7ms\n");
    run_to(simulator, 15 * MS - 1);
    check(look(simulator, pid).place == SIMULATOR_BLOCKED);
    run_to(simulator, 17 * MS - 1);
    check(look(simulator, pid).place == SIMULATOR_RUNNING);
    run_to(simulator, 17 * MS);
    check(look(simulator, pid).pid == 0);
    simulator_destroy(simulator);
}

static void test_added_switch_policies_and_kill(void)
{
    struct simulator *simulator = machine("rr", 1, 100);
    char text[400];
    int32_t other = start(simulator, "program a\n run 1s\n");
    start(simulator, "program killer\n fork a\n policy stride\n kill a\n"
                     "program a\n run 1s\n");
    run_to(simulator, 50 * MS);
    check(simulator_text(simulator, "sched_status", text, sizeof(text)) < sizeof(text));
    check(strstr(text, "Policy: stride\n"));
    struct simulator_counts counts;
    simulator_count(simulator, &counts);
    check(look(simulator, other).place == SIMULATOR_RUNNING && counts.processes == 3);
    simulator_destroy(simulator);
}

static void test_room(void)
{
    struct simulator *none = machine("rr", 1, 0);
    check(add(none, "program a\n run 1ms\n") == SIMULATOR_NO_PROGRAM &&
          has_message("out of space for a workload"));
    simulator_destroy(none);
    struct simulator *simulator = machine("rr", 1, 6);
    check(add(simulator, "program a\n run 1ms\n") == 1);
    check(add(simulator, "program a\n run 1ms\nprogram b\n yield\n") == 2);
    check(add(simulator, "program a\n") == SIMULATOR_NO_PROGRAM &&
          has_message("out of space for a workload"));
    check(simulator_fork(simulator, 3, &error) > 0);
    check(simulator_fork(simulator, 4, &error) == 0 && has_message("the workload has only 4"));
    run_to(simulator, MS);
    simulator_destroy(simulator);
    struct simulator_setup setup = setup_of("rr", 1);
    struct simulator_workload workload = read_text(idle);
    setup.added_steps = SIMULATOR_ADDED_MAX + 1;
    check(!simulator_create(&setup, &workload, &error) && has_message("additional steps"));
    simulator_free_workload(&workload);
}

/* Errors in an added workload are detected, as in the first one. */
static void test_added_are_checked(void)
{
    struct simulator *simulator = machine("rr", 1, 100);
    const struct workload_step steps[] = {{.kind = STEP_FORK, .target = 1}, {.kind = STEP_EXIT}};
    const struct simulator_program program = {"a", steps, 2};
    const struct simulator_workload workload = {.programs = &program, .program_count = 1};
    check(simulator_add_workload(simulator, &workload, &error) == SIMULATOR_NO_PROGRAM);
    check(has_message("unknown program"));
    check(simulator_finish(simulator, &error));
    check(add(simulator, idle) == SIMULATOR_NO_PROGRAM && has_message("is finished"));
    simulator_destroy(simulator);
}

/* A restored machine contains the added workloads, and has room for more. */
static void test_added_are_saved(const char *policy)
{
    char path[] = "/tmp/watching-XXXXXX";
    static const char text[] = "channel c 1\nprogram a\n loop\n  fork b\n  take c\n  run 3ms\n"
                               "  give c\n  wait\n end\n"
                               "program b\n run 2ms\n timer shared 1ms\n";
    struct simulator_counts expected;
    struct simulator_counts match;
    check(mkstemp(path) >= 0);
    struct simulator *simulator = machine(policy, 2, 1000);
    run_to(simulator, 3 * MS);
    start(simulator, text);
    run_to(simulator, 20 * MS);
    check(simulator_save(simulator, path, &error));
    start(simulator, text);
    run_to(simulator, 60 * MS);
    simulator_count(simulator, &expected);
    simulator_destroy(simulator);
    simulator = simulator_restore(path, NULL, &error);
    check(simulator);
    start(simulator, text);
    run_to(simulator, 60 * MS);
    simulator_count(simulator, &match);
    check(memcmp(&expected, &match, sizeof(match)) == 0);
    simulator_destroy(simulator);
    unlink(path);
}

/* ---- the next event ---- */

/* Nothing happens before it, and something at it. */
static void test_next(const char *policy)
{
    struct simulator_setup setup = setup_of(policy, 3);
    char path[] = "/tmp/watching-XXXXXX";
    struct simulator_counts before;
    struct simulator_counts after;
    check(mkstemp(path) >= 0);
    setup.costs = simulator_costs_kernel();
    setup.added_steps = 100;
    setup.trace = path;
    struct simulator *simulator = create(&setup, idle);
    run_to(simulator, MS);
    check(simulator_next(simulator) > 1000000000 * MS);
    start(simulator, "channel c 0\n"
                     "program a\n loop 4\n  fork b\n end\n loop\n  run 700us\n  give c 2\n end\n"
                     "program b\n loop\n  take c\n  run 100us\n  sleep 2ticks\n end\n");
    check(simulator_next(simulator) == simulator->now);
    for (int i = 0; i < 300; i++) {
        uint64_t next = simulator_next(simulator);
        check(next >= simulator->now);
        if (next > simulator->now) {
            simulator_count(simulator, &before);
            run_to(simulator, next - 1);
            simulator_count(simulator, &after);
            check(before.records == after.records && before.ticks == after.ticks);
            check(simulator_next(simulator) == next);
        }
        run_to(simulator, next);
    }
    simulator_count(simulator, &after);
    check(after.records > 100 && after.now < 1000 * MS);
    check(simulator_finish(simulator, &error));
    check(simulator_next(simulator) == UINT64_MAX);
    simulator_destroy(simulator);
    unlink(path);
}

/* ---- the trace's file ---- */

static void test_flush(void)
{
    struct simulator_setup setup = setup_of("rr", 1);
    char path[] = "/tmp/watching-XXXXXX";
    int file = mkstemp(path);
    check(file >= 0);
    setup.trace = path;
    struct simulator *simulator = create(&setup, "program a\n loop 5\n  run 1ms\n  yield\n end\n");
    struct simulator_counts counts;
    for (uint64_t time = MS; time < 5 * MS; time += MS) {
        run_to(simulator, time);
        check(simulator_flush(simulator, &error));
        simulator_count(simulator, &counts);
        check(lseek(file, 0, SEEK_END) ==
              (off_t)(sizeof(struct trace_header) + counts.records * sizeof(struct trace_record)));
    }
    check(simulator_finish(simulator, &error) && simulator_flush(simulator, &error));
    simulator_destroy(simulator);
    close(file);
    unlink(path);
    setup.trace = "/dev/full"; /* the file takes no data */
    struct simulator_workload workload = read_text(idle);
    check(!simulator_create(&setup, &workload, &error) && has_message("cannot be written"));
    simulator_free_workload(&workload);
}

/* ---- texts and commands ---- */

static void expect_text(const struct simulator *simulator, const char *file, const char *words)
{
    char text[20000];
    size_t length = simulator_text(simulator, file, text, sizeof(text));
    check(length < sizeof(text) && strlen(text) == length);
    if (!strstr(text, words))
        fprintf(stderr, "%s\nexpected: %s\n", text, words);
    check(strstr(text, words));
}

static void test_texts(void)
{
    struct simulator *simulator = machine("lottery:thesis", 1, 100);
    char few[12] = "";
    char text[2000];
    run_to(simulator, MS);
    check(simulator_set_tunable(simulator, "slice=3", &error));
    int32_t pid = start(simulator, "program a\n tickets 12\n priority 2\n run 50ms\n");
    run_to(simulator, 5 * MS);
    check(pid == 3);
    expect_text(simulator, "sched_status", "Policy: lottery:thesis\nChanged: slice=3\n");
    expect_text(simulator, "sched_status",
                "a                     3 running         2         3      12\n");
    expect_text(simulator, "sched_tunables", "slice                         3       1");
    expect_text(simulator, "sched_policies", "mlfq:allotment-boost");
    size_t length = simulator_text(simulator, "sched_status", text, sizeof(text));
    check(simulator_text(simulator, "sched_status", few, sizeof(few)) == length);
    check(memcmp(few, text, sizeof(few) - 1) == 0 && few[sizeof(few) - 1] == '\0');
    check(simulator_text(simulator, "sched_status", NULL, 0) == length);
    check(simulator_text(simulator, "sched_else", text, sizeof(text)) == SIZE_MAX);
    simulator_destroy(simulator);
}

/* A policy chosen by number has its name in the text and in the trace. */
static void test_commands(void)
{
    struct simulator *simulator = machine("0", 1, 100);
    run_to(simulator, MS);
    int32_t pid = start(simulator, "program a\n run 50ms\n");
    check(strcmp(simulator->policy_name, policies[0]->name) == 0);
    check(simulator_command(simulator, "sched_status", "  3 7 ", &error));
    check(look(simulator, pid).priority == 7);
    check(simulator_command(simulator, "sched_status", "wrr", &error));
    expect_text(simulator, "sched_status", "PRIORITY: the weight");
    check(simulator_command(simulator, "sched_status", "3 9", &error));
    check(look(simulator, pid).priority == 7 && look(simulator, pid).weight == 9);
    check(simulator_command(simulator, "sched_status", "mlfq", &error));
    check(simulator_command(simulator, "sched_tunables", "boost 76", &error));
    check(simulator_command(simulator, "sched_tunables", "boost=77", &error));
    expect_text(simulator, "sched_status", "Policy: mlfq\nChanged: ");
    expect_text(simulator, "sched_status", "boost=77");
    const struct {
        const char *file;
        const char *line;
        const char *words;
    } refused[] = {
        {"sched_status", "", "expected POLICY"},
        {"sched_status", "none", "no such policy"},
        {"sched_status", "rr:none", "preset"},
        {"sched_status", "1 2 3", "expected POLICY"},
        {"sched_status", "one 2", "expected POLICY"},
        {"sched_status", "3 -1", "expected a number from 0 to 10"},
        {"sched_status", "3 11", "expected a number from 0 to 10"},
        {"sched_status", "99 1", "pid 99: no such process"},
        {"sched_tunables", "boost", "expected NAME VALUE"},
        {"sched_tunables", "none 1", "no such tunable"},
        {"sched_tunables", "boost -1", "boost=-1"},
        {"sched_policies", "rr", "expected sched_status"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        check(!simulator_command(simulator, refused[i].file, refused[i].line, &error));
        check(has_message(refused[i].words));
    }
    char longest[200];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    check(!simulator_command(simulator, "sched_status", longest, &error) &&
          has_message("at most 127"));
    expect_text(simulator, "sched_status", "Policy: mlfq\n");
    run_to(simulator, 10 * MS);
    simulator_destroy(simulator);
}

int main(void)
{
    test_added_know_nothing_of_each_other();
    test_times_count_from_when_it_is_added();
    test_added_switch_policies_and_kill();
    test_room();
    test_added_are_checked();
    for_each_policy(test_added_are_saved);
    for_each_policy(test_next);
    test_flush();
    test_texts();
    test_commands();
    return 0;
}
