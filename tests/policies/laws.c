/* SPDX-License-Identifier: MIT */

/*
 * Tests the invariants of every policy. Random programs of forks, blocks, wake-ups, yields, ends,
 * attributes and ticks run on the model of tests/host/policy_harness.h, which checks each step.
 * Links all policies of the registry; prints the case before it fails.
 *
 * usage: laws [SEEDS] [FIRST SEED]
 */

/* No policy's turns are shorter by default: with longer ticks the model would mostly end turns. */
#define MODEL_TICK_NS 1000000ull

#include "../../policies/support/rounds.h"
#include "../host/policy_harness.h"
#include "../host/random.h"

#define STEPS         1500
#define TASKS_MAX     40
#define PERIOD_CHECKS 16

static char current_case[160] = "";

static void print_case(void)
{
    if (current_case[0] != '\0')
        fprintf(stderr, "in the case: %s\n", current_case);
}

static uint32_t living(const struct model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->task_count; i++)
        count += model->tasks[i]->place != MODEL_ENDED;
    return count;
}

/* Returns a random task in the given place, all equally likely, or null if there is none. */
static struct model_task *any_task(const struct model *model, enum model_place place)
{
    struct model_task *chosen = NULL;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        if (model->tasks[i]->place == place && random_below(++seen) == 0)
            chosen = model->tasks[i];
    }
    return chosen;
}

static struct model_task *any_living(const struct model *model)
{
    static const enum model_place places[] = {MODEL_QUEUED, MODEL_RUNNING, MODEL_BLOCKED};
    for (uint64_t i = random_below(3), tries = 0; tries < 3; i = (i + 1) % 3, tries++) {
        struct model_task *task = any_task(model, places[i]);
        if (task)
            return task;
    }
    return NULL;
}

static void set_any_attribute(struct model *model, struct model_task *task)
{
    switch (random_below(3)) {
    case 0:
        model_set_attribute(model, task, MODEL_PRIORITY,
                            (uint32_t)random_below(PRIORITY_LOWEST + 1));
        break;
    case 1:
        model_set_attribute(model, task, MODEL_TICKETS,
                            random_below(8) ? 1 + (uint32_t)random_below(100) : TICKETS_MAX);
        break;
    default:
        model_set_attribute(model, task, MODEL_WEIGHT, 1 + (uint32_t)random_below(WEIGHT_MAX));
    }
}

/* Performs one act of the program that runs on the CPU. */
static void run_step(struct model *model, uint32_t cpu)
{
    struct model_task *task = model->cpus[cpu].current;
    uint64_t act = random_below(100);
    if (act < 15 && living(model) < TASKS_MAX)
        model_fork(model, task);
    else if (act < 35)
        model_sleep(model, cpu, 1 + random_below(20));
    else if (act < 45)
        model_block(model, cpu);
    else if (act < 60)
        model_yield(model, cpu);
    else if (act < 70)
        set_any_attribute(model, task);
    else if (act < 74)
        model_end(model, task);
}

/* Performs one external act. */
static void outside_step(struct model *model)
{
    struct model_task *blocked = any_task(model, MODEL_BLOCKED);
    struct model_task *any = any_living(model);
    uint64_t act = random_below(100);
    if (act < 40 && blocked)
        model_wake(model, blocked);
    else if (act < 50 && any)
        set_any_attribute(model, any);
    else if (act < 55 && any && living(model) > 4)
        model_end(model, any);
    else if (act < 60 && living(model) < TASKS_MAX)
        model_fork(model, NULL);
    else
        model_advance(model, random_below(MODEL_TICK_NS));
}

static void check_time(const struct model *model, uint64_t *run_time, uint64_t elapsed)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < model->task_count; i++)
        total += model->tasks[i]->task.run_time;
    check(total - *run_time <= elapsed * model->scheduler.cpus);
    *run_time = total;
}

static void random_step(struct model *model)
{
    uint32_t cpu = (uint32_t)random_below(model->scheduler.cpus);
    uint64_t kind = random_below(10);
    if (kind < 4)
        model_tick(model);
    else if (kind < 7 && model->cpus[cpu].current)
        run_step(model, cpu);
    else
        outside_step(model);
}

/* Runs a random program; returns a hash of the picks. */
static uint64_t run_program(const char *policy, uint32_t cpus, uint64_t seed)
{
    struct model *model = model_new(policy, cpus, seed);
    random_state = seed * 0x9e3779b97f4a7c15ull | 1;
    for (int i = 0; i < 6; i++)
        model_fork(model, NULL);
    uint64_t run_time = 0;
    uint64_t since = 0;
    for (int step = 0; step < STEPS; step++) {
        random_step(model);
        if (step % (STEPS / PERIOD_CHECKS) == 0) {
            model_tick(model); /* all running tasks are accounted */
            check_time(model, &run_time, model->now - since + MODEL_TICK_NS);
            since = model->now - MODEL_TICK_NS;
        }
    }
    uint64_t hash = model->pick_hash;
    model_free(model);
    return hash;
}

/* Returns the "policy" or "policy:preset" with a running number; false if the number is too large.
 */
static bool nth_choice(uint32_t number, char *text, size_t size)
{
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        const struct policy *policy = policies[i];
        if (number == 0 && i < policies_count) {
            snprintf(text, size, "%s", policy->name);
            return true;
        }
        number -= i < policies_count;
        if (number < policy->preset_count) {
            snprintf(text, size, "%s:%s", policy->name, policy->presets[number].name);
            return true;
        }
        number -= policy->preset_count;
    }
    return false;
}

static uint32_t choices(void)
{
    char text[128];
    uint32_t count = 0;
    while (nth_choice(count, text, sizeof(text)))
        count++;
    return count;
}

static void metadata_is_sound(void)
{
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        const char *name = policies[i]->name;
        const char *flaw = policy_flaw(policies[i]);
        if (flaw)
            fprintf(stderr, "%s: %s\n", policy_files[i], flaw);
        check(!flaw);
        check(policy_find(name, strlen(name)) == policies[policy_number(policies[i])]);
        check(policy_source(policies[i]) == i);
    }
}

#define CPUS_TWICE 4

/* Each policy alone; on some CPUs twice with equal results, since a policy has no global state. */
static void programs_run(uint64_t seeds, uint64_t first)
{
    static const uint32_t cpu_counts[] = {1, 2, 3, 4, 16};
    char text[128];
    for (uint32_t number = 0; nth_choice(number, text, sizeof(text)); number++) {
        for (size_t i = 0; i < sizeof(cpu_counts) / sizeof(cpu_counts[0]); i++) {
            for (uint64_t seed = first; seed < first + seeds; seed++) {
                snprintf(current_case, sizeof(current_case), "%s, %u CPUs, seed %llu", text,
                         cpu_counts[i], (unsigned long long)seed);
                uint64_t hash = run_program(text, cpu_counts[i], seed);
                if (seed == first && cpu_counts[i] == CPUS_TWICE)
                    check(run_program(text, cpu_counts[i], seed) == hash);
            }
        }
    }
}

/* All policies in turn, switched while running. */
static void switches_lose_nobody(uint64_t seeds, uint64_t first)
{
    char text[128];
    uint32_t all = choices();
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        uint32_t cpus = 1 + (uint32_t)(seed % 8);
        snprintf(current_case, sizeof(current_case), "switches, %u CPUs, seed %llu", cpus,
                 (unsigned long long)seed);
        random_state = seed * 0x9e3779b97f4a7c15ull | 1;
        struct model *model = model_new(policies[0]->name, cpus, seed);
        for (int i = 0; i < 20; i++)
            model_fork(model, NULL);
        for (int step = 0; step < STEPS; step++) {
            random_step(model);
            if (random_below(8) == 0) {
                nth_choice((uint32_t)random_below(all), text, sizeof(text));
                model_switch(model, text);
            }
        }
        model_free(model);
    }
}

/* Under the policies' defaults, no CPU is idle at two consecutive ticks while a task waits. */
static bool waits_while_idle(const struct model *model)
{
    bool idle = false;
    bool waits = false;
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
        idle |= !model->cpus[cpu].current;
    for (uint32_t i = 0; i < model->scheduler.queues; i++)
        waits |= model->queues[i].queued > 0;
    return idle && waits;
}

static void work_is_conserved(uint64_t seed)
{
    for (uint32_t i = 0; i < policies_count; i++) {
        for (uint32_t cpus = 2; cpus <= 16; cpus *= 2) {
            bool waited = false;
            snprintf(current_case, sizeof(current_case), "idle CPUs, %s, %u CPUs, seed %llu",
                     policies[i]->name, cpus, (unsigned long long)seed);
            random_state = seed * 0x9e3779b97f4a7c15ull | 1;
            struct model *model = model_new(policies[i]->name, cpus, seed);
            for (uint32_t task = 0; task < cpus + 2; task++)
                model_fork(model, NULL);
            for (int step = 0; step < STEPS; step++) {
                random_step(model);
                model_tick(model);
                bool waits = waits_while_idle(model);
                check(!(waits && waited));
                waited = waits;
            }
            model_free(model);
        }
    }
}

/* ---- tasks with restricted CPU sets, the last CPU among them ---- */

#define BOUND_CPUS  3
#define BOUND_TASKS 8

static const struct cpu_set bound_sets[] = {{{1}}, {{2}}, {{3}}};

static struct {
    uint64_t since;
    uint64_t run_time;
} waits[BOUND_TASKS];

/* Returns the longest allowed wait of the task, from the rounds that its policy declares. */
static uint64_t patience(const struct model *model, const struct model_task *task)
{
    uint64_t round = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *other = model->tasks[i];
        bool competes = other->place == MODEL_QUEUED || other->place == MODEL_RUNNING;
        uint64_t part =
            competes ? round_part(model->policy, &model->scheduler, &task->task, &other->task) : 0;
        round = part < NO_LIMIT - round ? round + part : NO_LIMIT;
    }
    return longest_wait(model->policy, &model->scheduler, round);
}

/* No task waits for longer than its policy declares. */
static void check_waits(struct model *model)
{
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        const struct run_queue *queue = model_queue(model, task->task.cpu);
        if (task->place != MODEL_QUEUED || task->task.run_time != waits[i].run_time ||
            queue->held > 0) {
            waits[i].since = model->now;
            waits[i].run_time = task->task.run_time;
        }
        if (model->now > waits[i].since)
            check(model->now - waits[i].since <= patience(model, task));
    }
}

/* The last CPU, which no task may use, queries every available queue. */
static void ask_in_vain(struct model *model)
{
    const uint32_t cpu = model->scheduler.cpus - 1;
    for (uint32_t i = 0; i < model->scheduler.queues; i++) {
        if (model->scheduler.queues == 1 && model->queues[0].queued > 0)
            check(!model_pick(model, model_queue(model, 0), cpu));
        else if (i != cpu && model->queues[i].queued > 0)
            check(!model_move(model, i, cpu));
    }
}

static void bound_step(struct model *model, bool hogs)
{
    uint32_t cpu = (uint32_t)random_below(model->scheduler.cpus);
    struct model_task *blocked = any_task(model, MODEL_BLOCKED);
    uint64_t act = random_below(hogs ? 10 : 20);
    if (act < 10)
        model_tick(model);
    else if (act < 13 && model->cpus[cpu].current)
        model_sleep(model, cpu, 1 + random_below(20));
    else if (act < 14 && model->cpus[cpu].current)
        model_yield(model, cpu);
    else if (act < 16 && blocked)
        model_wake(model, blocked);
    else
        model_advance(model, random_below(MODEL_TICK_NS));
}

/* Returns a hash of the picks. */
static uint64_t run_bound(const char *policy, uint64_t seed, bool silent)
{
    struct model *model = model_new(policy, BOUND_CPUS, seed);
    bool hogs = seed % 2;
    random_state = seed * 0x9e3779b97f4a7c15ull | 1;
    memset(waits, 0, sizeof(waits));
    model->silent = silent;
    for (int i = 0; i < BOUND_TASKS; i++) {
        model->set = &bound_sets[random_below(3)];
        model_fork(model, NULL);
    }
    for (int step = 0; step < STEPS; step++) {
        bound_step(model, hogs);
        if (!silent)
            ask_in_vain(model);
        check_waits(model);
    }
    uint64_t hash = model->pick_hash;
    model_free(model);
    return hash;
}

/* Unsuccessful queries of a CPU change nothing. */
static void sets_of_cpus_are_kept(uint64_t seeds, uint64_t first)
{
    char text[128];
    for (uint32_t number = 0; nth_choice(number, text, sizeof(text)); number++) {
        for (uint64_t seed = first; seed < first + 2 * seeds; seed++) {
            snprintf(current_case, sizeof(current_case), "bound tasks, %s, seed %llu", text,
                     (unsigned long long)seed);
            uint64_t hash = run_bound(text, seed, false);
            check(run_bound(text, seed, true) == hash);
        }
    }
}

int main(int argument_count, char **arguments)
{
    uint64_t seeds = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 3;
    uint64_t first = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    atexit(print_case);
    metadata_is_sound();
    programs_run(seeds, first);
    switches_lose_nobody(seeds * 4, first);
    work_is_conserved(first);
    sets_of_cpus_are_kept(seeds, first);
    current_case[0] = '\0';
    printf("%u sources, %u presets and defaults: the laws hold\n", policy_sources_count, choices());
    return 0;
}
