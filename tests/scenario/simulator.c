/* SPDX-License-Identifier: MIT */

/*
 * Plays a scenario on the simulator, and writes its trace.
 *
 * usage: simulator SCENARIO POLICY CPUS SEED TRACE [COSTS]
 *
 * SCENARIO is ties, or the number of a random scenario (random.h).
 */

#include "tests/scenario/ties.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "sim/simulator.h"
#include "tests/host/check.h"
#include "tests/scenario/random.h"

#define ROLES_MAX         16
#define PROGRAM_STEPS_MAX (3 * SCENARIO_STEPS_MAX + 4)

static struct workload_step steps[ROLES_MAX][PROGRAM_STEPS_MAX];
static struct simulator_program programs[ROLES_MAX];

static void append(uint32_t role, struct workload_step step)
{
    struct simulator_program *program = &programs[role];
    check(program->count < PROGRAM_STEPS_MAX);
    steps[role][program->count++] = step;
}

static uint64_t tick_time(int32_t tick)
{
    return (uint64_t)(SCENARIO_START + tick) * SCENARIO_TICK_NS;
}

static void append_act(const struct scenario *scenario, uint32_t role, const struct step *step)
{
    static const uint8_t kinds[] = {
        [ACT_END] = STEP_EXIT,
        [ACT_FORK] = STEP_FORK,
        [ACT_WAIT] = STEP_WAIT,
        [ACT_SLEEP_UNTIL] = STEP_SLEEP_UNTIL,
        [ACT_WORK_UNTIL] = STEP_RUN_UNTIL,
        [ACT_YIELD] = STEP_YIELD,
        [ACT_SET_PRIORITY] = STEP_ATTRIBUTE,
        [ACT_SET_TICKETS] = STEP_ATTRIBUTE,
        [ACT_SET_WEIGHT] = STEP_ATTRIBUTE,
    };
    struct workload_step made = {.kind = kinds[step->act], .target = step->role};
    if (step->act == ACT_FORK)
        append(role, (struct workload_step){.kind = STEP_MARK,
                                            .detail = MARK_NOTE,
                                            .value = scenario_label(&scenario->roles[step->role])});
    if (made.kind == STEP_ATTRIBUTE) {
        made.detail = (uint8_t)(ATTRIBUTE_PRIORITY + (step->act - ACT_SET_PRIORITY));
        made.value = (uint64_t)step->value;
    } else if (step->act == ACT_SLEEP_UNTIL || step->act == ACT_WORK_UNTIL) {
        made.value = tick_time(step->value);
    }
    append(role, made);
}

static void append_role(const struct scenario *scenario, uint32_t role)
{
    const struct step *step = scenario->roles[role].steps;
    for (;; step++) {
        append(role,
               (struct workload_step){.kind = STEP_RUN, .value = step->work * SCENARIO_WORK_NS});
        append_act(scenario, role, step);
        if (step->act == ACT_END)
            return;
    }
}

/* The first role waits for the start, and switches to the policy. */
static void append_start(const struct scenario *scenario)
{
    append(0, (struct workload_step){.kind = STEP_SLEEP_UNTIL, .value = tick_time(0)});
    append(0, (struct workload_step){.kind = STEP_SET_POLICY});
    append(0, (struct workload_step){.kind = STEP_MARK,
                                     .detail = MARK_GROUP,
                                     .value = scenario_label(scenario->roles)});
    append(0, (struct workload_step){.kind = STEP_MARK, .detail = MARK_BEGIN});
}

static struct simulator_workload make_workload(const struct scenario *scenario,
                                               const char *const *policy)
{
    check(scenario->role_count <= ROLES_MAX);
    append_start(scenario);
    for (uint32_t role = 0; role < scenario->role_count; role++) {
        append_role(scenario, role);
        programs[role].name = scenario->roles[role].name;
        programs[role].steps = steps[role];
    }
    return (struct simulator_workload){.programs = programs,
                                       .program_count = scenario->role_count,
                                       .texts = policy,
                                       .text_count = 1};
}

/* Runs tick by tick, and checks everything after each tick. */
static enum simulator_status play(struct simulator *simulator, struct simulator_error *error)
{
    enum simulator_status status = SIMULATOR_TIME;
    for (uint64_t tick = 1; status == SIMULATOR_TIME && tick < 1000; tick++) {
        status = simulator_run(simulator, tick * SCENARIO_TICK_NS, error);
        if (!simulator_audit(simulator, error))
            return SIMULATOR_FAILED;
    }
    return simulator_finish(simulator, error) ? status : SIMULATOR_FAILED;
}

int main(int argument_count, char **arguments)
{
    static struct random_scenario made;
    if (argument_count < 6 || argument_count > 7) {
        fprintf(stderr, "usage: simulator SCENARIO POLICY CPUS SEED TRACE [COSTS]\n");
        return 2;
    }
    const struct scenario *scenario =
        strcmp(arguments[1], ties.name) == 0
            ? &ties
            : random_scenario(&made, strtoull(arguments[1], NULL, 10));
    const char *policy = arguments[2];
    struct simulator_workload workload = make_workload(scenario, &policy);
    struct simulator_error error;
    struct simulator_setup setup = {
        .policy = "rr",
        .cpus = (uint32_t)atoi(arguments[3]),
        .processes = 64,
        .tick_ns = SCENARIO_TICK_NS,
        .seed = strtoull(arguments[4], NULL, 10),
        .trace = arguments[5],
    };
    if (argument_count == 7 && !simulator_read_costs(&setup.costs, arguments[6], &error)) {
        fprintf(stderr, "simulator: %s\n", error.text);
        return 2;
    }
    struct simulator *simulator = simulator_create(&setup, &workload, &error);
    enum simulator_status status = simulator ? play(simulator, &error) : SIMULATOR_FAILED;
    if (status == SIMULATOR_FAILED)
        fprintf(stderr, "simulator: %s\n", error.text);
    simulator_destroy(simulator);
    return status == SIMULATOR_DONE ? 0 : 1;
}
