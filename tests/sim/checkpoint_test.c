/* SPDX-License-Identifier: MIT */

/*
 * Tests that a machine restored from a checkpoint continues exactly as the original would have.
 * tests/sim/test_checkpoint.py tests the same across processes.
 */

#include <sys/stat.h>
#include <unistd.h>

#include "sim/control.h"
#include "tests/sim/machines.h"
#include "tests/sim/random_programs.h"

#define TRACE_MAX (1 << 23)

static char folder[] = "/tmp/schedlab-checkpoint-XXXXXX";
static char checkpoint[64];
static char trace_path[64];
static struct simulator_error error;

static uint64_t random_state = 1;

static uint32_t drawn(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static size_t read_file(const char *path, char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    check(file);
    size_t length = fread(bytes, 1, room, file);
    check(length < room && fclose(file) == 0);
    return length;
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

static struct simulator *restore(const char *trace)
{
    struct simulator *simulator = simulator_restore(checkpoint, trace, &error);
    if (!simulator)
        fprintf(stderr, "%s\n", error.text);
    check(simulator);
    return simulator;
}

static void save(struct simulator *simulator)
{
    bool saved = simulator_save(simulator, checkpoint, &error);
    if (!saved)
        fprintf(stderr, "%s\n", error.text);
    check(saved);
}

/* ---- random machines ---- */

/* Removes the file: overwriting one is slow on some file systems. */
static size_t take_trace(char *trace, size_t room)
{
    size_t length = read_file(trace_path, trace, room);
    check(unlink(trace_path) == 0);
    return length;
}

static struct random_workload random_workload;
static struct simulator_setup setup;

static void draw_machine(const char *policy, uint32_t number)
{
    static uint8_t bytes[400];
    random_state = number + 1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)drawn(256);
    struct source source = {bytes, sizeof(bytes)};
    draw_workload(&source, &random_workload, false);
    setup = setup_of(policy, 1 + drawn(16));
    setup.processes = 2000;
    setup.seed = number;
    setup.trace = trace_path;
    if (number % 3 == 0)
        setup.shape = TEST_SHAPE;
    if (number % 2)
        setup.costs = simulator_costs_kernel();
}

static struct simulator *make(void)
{
    struct simulator *simulator = simulator_create(&setup, &random_workload.workload, &error);
    if (!simulator)
        fprintf(stderr, "%s\n", error.text);
    check(simulator);
    return simulator;
}

/* External acts before the checkpoint; some of them are refused. */
static void act(struct simulator *simulator)
{
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)drawn(256);
    struct source source = {bytes, sizeof(bytes)};
    for (uint32_t i = drawn(4); i > 0; i--) {
        draw_act(&source, simulator);
        if (drawn(4) == 0)
            simulator_run(simulator, simulator->now - drawn(2), &error);
    }
}

static struct simulator *put_aside(struct simulator *simulator, char *trace, size_t *length)
{
    save(simulator);
    simulator_destroy(simulator);
    *length += take_trace(trace + *length, TRACE_MAX - *length);
    simulator = restore(trace_path);
    check(unlink(checkpoint) == 0);
    check(simulator_audit(simulator, &error));
    return simulator;
}

/* Writes the trace until the end, 100 ms, or a failure (processes that wait for each other), with
 * external acts. A time earlier than its predecessor's acts at the predecessor's time. `aside`:
 * the times of saving and restoring the machine. */
static size_t play(uint32_t number, uint32_t stops, bool aside, char *trace)
{
    size_t length = 0;
    uint64_t time = 0;
    struct simulator *simulator = make();
    random_state = number + 1;
    for (uint32_t i = 0; i < stops; i++) {
        time += drawn(3) ? drawn(4000000) : drawn(4) * MS;
        if (simulator_run(simulator, time, &error) == SIMULATOR_FAILED)
            break;
        if (aside)
            simulator = put_aside(simulator, trace, &length);
        act(simulator);
        if (simulator->status == SIMULATOR_FAILED)
            break;
        if (aside)
            simulator = put_aside(simulator, trace, &length);
    }
    simulator_run(simulator, 100 * MS, &error);
    check(simulator_finish(simulator, &error));
    simulator_destroy(simulator);
    return length + take_trace(trace + length, TRACE_MAX - length);
}

static void test_policy(const char *policy)
{
    static char full_trace[TRACE_MAX];
    static char parts[TRACE_MAX];
    for (uint32_t number = 0; number < 4; number++) {
        draw_machine(policy, number);
        for (uint32_t stops = 1; stops <= 9; stops += 4) {
            size_t length = play(number, stops, false, full_trace);
            check(play(number, stops, true, parts) == length);
            if (memcmp(full_trace, parts, length) != 0)
                fprintf(stderr, "%s, machine %u, %u stops\n", policy, number, stops);
            check(memcmp(full_trace, parts, length) == 0);
        }
    }
}

/* A machine continues after a save, alongside several restored copies. */
static void test_copies(void)
{
    struct simulator_setup plain = setup_of("stride", 2);
    struct simulator *machines[3];
    machines[0] = create(&plain, "program root\n fork a\n run 9ms\nprogram a\n run 3ms\n");
    check(simulator_run(machines[0], 2 * MS, &error) == SIMULATOR_TIME);
    save(machines[0]);
    machines[1] = restore(NULL);
    machines[2] = restore(NULL);
    for (int i = 0; i < 3; i++) {
        check(simulator_run(machines[i], 100 * MS, &error) == SIMULATOR_DONE);
        check(machines[i]->now == 9 * MS);
        simulator_destroy(machines[i]);
    }
}

/* ---- what is refused ---- */

static void expect_no_machine(const char *trace, const char *words)
{
    check(!simulator_restore(checkpoint, trace, &error));
    if (!strstr(error.text, words))
        fprintf(stderr, "%s\nexpected: %s\n", error.text, words);
    check(strstr(error.text, words) && strstr(error.text, checkpoint));
}

static size_t save_one(char *bytes, size_t room)
{
    struct simulator_setup plain = setup_of("mlfq", 2);
    plain.processes = 8;
    struct simulator *simulator =
        create(&plain, "program root\n fork a\n run 9ms\nprogram a\n sleep 3ms\n");
    check(simulator_run(simulator, 2 * MS, &error) == SIMULATOR_TIME);
    save(simulator);
    simulator_destroy(simulator);
    return read_file(checkpoint, bytes, room);
}

static void test_damage(void)
{
    static char bytes[1 << 20];
    size_t length = save_one(bytes, sizeof(bytes));
    for (size_t place = 0; place < length; place += place < 200 ? 1 : 397) {
        bytes[place] ^= 1 << (place % 8);
        write_file(checkpoint, bytes, length);
        expect_no_machine(NULL, place < 8    ? "not a checkpoint"
                                : place < 16 ? "another version"
                                             : "damaged");
        bytes[place] ^= 1 << (place % 8);
    }
    for (size_t rest = 0; rest < length; rest += rest < 200 ? 1 : 397) {
        write_file(checkpoint, bytes, rest);
        expect_no_machine(NULL, "truncated");
    }
    write_file(checkpoint, bytes, length + 1);
    expect_no_machine(NULL, "damaged");
    write_file(checkpoint, bytes, length);
    struct simulator *simulator = restore(NULL);
    check(simulator_run(simulator, 100 * MS, &error) == SIMULATOR_DONE && simulator->now == 9 * MS);
    simulator_destroy(simulator);
}

static void test_refusals(void)
{
    static char bytes[1 << 20];
    save_one(bytes, sizeof(bytes));
    expect_no_machine(trace_path, "had no trace");
    struct simulator *simulator = restore(NULL);
    check(!simulator_save(simulator, "/nowhere/file", &error));
    check(strstr(error.text, "/nowhere/file cannot be written: No such file"));
    check(simulator_finish(simulator, &error) && !simulator_save(simulator, checkpoint, &error));
    check(strstr(error.text, "finished"));
    simulator_destroy(simulator);
    check(unlink(checkpoint) == 0);
    expect_no_machine(NULL, "cannot be read: No such file");
}

/* A save is atomic: a directory that cannot be replaced by a file keeps its content. */
static void test_no_partial_file(void)
{
    struct simulator_setup plain = setup_of("rr", 1);
    struct simulator *simulator = create(&plain, "program root\n run 9ms\n");
    check(mkdir(checkpoint, 0700) == 0);
    check(!simulator_save(simulator, checkpoint, &error));
    check(strstr(error.text, "cannot be written: Is a directory"));
    simulator_destroy(simulator);
    check(rmdir(checkpoint) == 0);
    check(rmdir(folder) == 0); /* nothing was left in it */
}

int main(void)
{
    check(mkdtemp(folder));
    snprintf(checkpoint, sizeof(checkpoint), "%s/run", folder);
    snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
    for_each_policy(test_policy);
    test_copies();
    test_damage();
    test_refusals();
    test_no_partial_file();
    return 0;
}
