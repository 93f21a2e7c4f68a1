/* SPDX-License-Identifier: MIT */

#include "sim/policies.h"

#include <string.h>

#include "sim/costs.h"
#include "sim/process_memory.h"
#include "sim/sched_ext/engine.h"
#include "sim/tracing.h"

bool choose_policy(const char *text, struct policy_choice *choice, struct simulator_error *error)
{
    enum policy_error problem = policy_choose(text, strlen(text), choice);
    if (problem)
        set_error(error, "policy %s: %s", text, policy_error_text(problem));
    const char *flaw = problem ? NULL : policy_flaw(choice->policy);
    if (flaw)
        set_error(error, "policy %s has inconsistent definitions: %s", text, flaw);
    return !problem && !flaw;
}

bool choose_first_policy(const char *text, struct policy_choice *choice,
                         struct simulator_error *error)
{
    if (!sched_ext_path(text))
        return choose_policy(text, choice, error);
    *choice = (struct policy_choice){.policy = &policy_sched_ext};
    return true;
}

const struct engine *engine_of(const struct policy_choice *choice)
{
    return choice->policy == &policy_sched_ext ? &engine_sched_ext
                                               : engines[policy_source(choice->policy)];
}

void name_policy(struct simulator *simulator, const struct policy_choice *choice)
{
    snprintf(simulator->policy_name, sizeof(simulator->policy_name), "%s%s%s", choice->policy->name,
             choice->preset ? ":" : "", choice->preset ? choice->preset->name : "");
}

static bool read_tunable(const struct policy *policy, const char *text, size_t length,
                         uint32_t *index, int64_t *value, struct simulator_error *error)
{
    enum policy_error problem = tunable_parse(policy, text, length, index, value);
    if (problem)
        set_error(error, "tunable %.*s of policy %s: %s", (int)length, text, policy->name,
                  policy_error_text(problem));
    return !problem;
}

/* ---- costs ---- */

static void set_step_costs(struct simulator *simulator)
{
    const struct simulator_costs *costs = &simulator->costs;
    for (int kind = 0; kind < STEPS_ALL; kind++)
        simulator->step_cost[kind] = costs->call;
    simulator->step_cost[STEP_RUN_UNTIL] = 0;
    for (int kind = STEP_SLEEP; kind <= STEP_TIMER; kind++)
        simulator->step_cost[kind] = costs->sleep;
    simulator->step_cost[STEP_SHARED_TIMER] = costs->sleep;
    simulator->step_cost[STEP_ARRIVE] = costs->sleep;
    simulator->step_cost[STEP_MEET] = costs->pipe;
    simulator->step_cost[STEP_TAKE] = costs->pipe;
    simulator->step_cost[STEP_GIVE] = costs->pipe;
    simulator->step_cost[STEP_FORK] = costs->fork;
    simulator->step_cost[STEP_EXIT] = costs->exit;
    bool checks_first = costs->fork_look > 0 && costs->fork > costs->fork_look;
    simulator->step_rest[STEP_FORK] = checks_first ? costs->fork - costs->fork_look : 0;
}

bool set_costs(struct simulator *simulator, const struct policy_choice *choice,
               struct simulator_error *error)
{
    const struct simulator_costs costs = costs_under(&simulator->all_costs, choice);
    uint64_t tick_ns = simulator->scheduler.tick_ns;
    if (costs.tick + costs.scheduler + costs.context_switch >= tick_ns) {
        set_error(error,
                  "tick of %llu ns: too short; tick, scheduler and context switch cost as much",
                  (unsigned long long)tick_ns);
        return false;
    }
    simulator->costs = costs;
    simulator->scheduler.overhead_ns = costs.scheduler + costs.context_switch + costs.tick +
                                       costs.wakeup + costs.interrupt + costs.migration +
                                       costs.call + costs.sleep + costs.pipe;
    set_step_costs(simulator);
    return true;
}

/* ---- switching to another policy ---- */

/* Removes all processes from the active policy, because the next policy knows no process. */
static uint32_t leave_policy(struct simulator *simulator)
{
    uint32_t drained = simulator->engine->drain(simulator);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++)
        process_at(simulator, slot)->known = false;
    return drained;
}

bool switch_policy(struct simulator *simulator, uint32_t cpu, const char *text,
                   struct simulator_error *error)
{
    struct policy_choice choice;
    if (simulator->sched_ext) {
        set_error(error, "policy %s: a scheduler of sched_ext cannot be replaced during a run",
                  text);
        return false;
    }
    if (!choose_policy(text, &choice, error) || !set_costs(simulator, &choice, error))
        return false;
    size_t bytes = bytes_of_process(state_bytes_of(choice.policy));
    uint32_t drained = leave_policy(simulator);
    if (bytes > simulator->process_bytes)
        move_processes(simulator);
    simulator->engine = engine_of(&choice);
    simulator->state_bytes = state_bytes_of(choice.policy);
    guard_states(simulator);
    policy_set_defaults(&simulator->scheduler, &choice);
    name_policy(simulator, &choice);
    simulator->engine->install(simulator);
    record_policy(simulator, cpu, simulator->policy_name);
    simulator->engine->adopt(simulator, cpu, drained);
    return true;
}

bool switch_tunable(struct simulator *simulator, uint32_t cpu, const char *text,
                    struct simulator_error *error)
{
    uint32_t index;
    int64_t value;
    if (!read_tunable(simulator->engine->policy, text, strlen(text), &index, &value, error))
        return false;
    uint32_t drained = leave_policy(simulator);
    simulator->scheduler.tunable[index] = value;
    simulator->engine->install(simulator);
    record_tunable(simulator, cpu, index);
    simulator->engine->adopt(simulator, cpu, drained);
    return true;
}

bool set_tunables(struct simulator *simulator, const char *text, struct simulator_error *error)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t index;
        int64_t value;
        if (!read_tunable(simulator->engine->policy, text, length, &index, &value, error))
            return false;
        simulator->scheduler.tunable[index] = value;
        text += length + (text[length] == ',');
    }
    return true;
}

void record_first_policy(struct simulator *simulator, const char *tunables)
{
    const char *text = tunables;
    struct simulator_error unused;
    record_policy(simulator, 0, simulator->policy_name);
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t index;
        int64_t value;
        if (read_tunable(simulator->engine->policy, text, length, &index, &value, &unused))
            record_tunable(simulator, 0, index);
        text += length + (text[length] == ',');
    }
}
