/* SPDX-License-Identifier: MIT */

#include "sim/checks.h"

#include "abi/cpu_list.h"
#include "policies/support/attributes.h"
#include "policies/support/groups.h"
#include "sim/costs.h"
#include "sim/machine.h"

#define TICK_SHORTEST 1000ull
#define TICK_LONGEST  1000000000000ull

static bool is_cpu_list(const char *text)
{
    uint64_t words[CPU_LIST_WORDS];
    return cpu_list_read(text, words);
}

/* Returns the error in a step, or null. `place`: the step's index in its program. */
static const char *step_flaw(const struct simulator_workload *workload,
                             const struct workload_step *step, uint32_t place)
{
    bool has_self = step->kind == STEP_ATTRIBUTE || step->kind == STEP_AFFINITY;
    bool arrives = step->kind == STEP_ARRIVE && step->detail == ARRIVE_CHILD;
    bool delivers = step->kind == STEP_ARRIVE && step->detail == ARRIVE_THING;
    bool to_program = step->kind == STEP_FORK || step->kind == STEP_KILL || arrives || has_self;
    bool to_channel =
        step->kind == STEP_TAKE || step->kind == STEP_GIVE || step->kind == STEP_MEET || delivers;
    bool task_timer = step->kind == STEP_TIMER || step->kind == STEP_JOB;
    bool has_time = step->kind <= STEP_SLEEP_UNTIL || task_timer ||
                    step->kind == STEP_SHARED_TIMER || step->kind == STEP_ARRIVE;
    bool to_text = step->kind == STEP_SET_POLICY || step->kind == STEP_SET_TUNABLE;
    bool to_self = has_self && step->target == WORKLOAD_SELF;
    if (step->kind >= STEP_COUNT)
        return "unknown step";
    if (has_time && step->value > TIME_MAX)
        return "the time is too long";
    if (to_program && !to_self && step->target >= workload->program_count)
        return "unknown program";
    if (to_channel && step->target >= workload->channel_count)
        return "unknown channel";
    if (step->kind == STEP_TAKE && step->value > workload->channel_count)
        return "unknown channel to give to";
    if (step->kind == STEP_TAKE && step->detail > TAKE_LAST)
        return "unknown way to take a thing";
    if (step->kind == STEP_ARRIVE && step->detail > ARRIVE_LAST)
        return "this kind of event does not arrive";
    if (task_timer && step->detail >= WORKLOAD_TIMERS_MAX)
        return "a process has at most 8 timers";
    if (step->kind == STEP_SHARED_TIMER && step->target >= WORKLOAD_SHARED_TIMERS_MAX)
        return "at most 65536 shared timers are allowed";
    if (step->kind == STEP_MEET && (step->value < 1 || step->value > SIMULATOR_PROCESSES_MAX))
        return "too many processes to meet";
    if (to_text && step->target >= workload->text_count)
        return "unknown text";
    if (step->kind == STEP_ATTRIBUTE && !attribute_allowed(step->detail, (int64_t)step->value))
        return "unknown attribute, or its value is out of range";
    if (step->kind == STEP_SETGROUP &&
        !group_value_allowed(step->target, step->detail, (int64_t)step->value))
        return "unknown group of tasks, or its value is out of range";
    if (step->kind == STEP_AFFINITY &&
        (step->value >= workload->text_count || !is_cpu_list(workload->texts[step->value])))
        return "unknown list of CPUs";
    if (step->kind == STEP_HOTPLUG && (step->target == 0 || step->detail > 1))
        return "CPU 0 is always online";
    if (step->kind == STEP_MARK && (step->detail < MARK_BEGIN || step->detail > MARK_VALUE))
        return "unknown mark";
    if (step->kind == STEP_LOOP && step->detail >= WORKLOAD_LOOPS_MAX)
        return "the loop is nested too deeply";
    if (step->kind == STEP_LOOP && (step->target >= place || step->value > UINT32_MAX))
        return "the loop must go back over at least one step, at most 2^32 - 1 times";
    return NULL;
}

/* Returns true if a loop contains only inner loops: it would repeat forever without any time
 * passing. */
static bool loop_is_empty(const struct simulator_program *program, uint32_t place)
{
    for (uint32_t i = program->steps[place].target; i < place; i++) {
        if (program->steps[i].kind != STEP_LOOP)
            return false;
    }
    return true;
}

static bool check_program(const struct simulator_workload *workload,
                          const struct simulator_program *program, struct simulator_error *error)
{
    const char *flaw = NULL;
    uint32_t place = 0;
    for (; place < program->count; place++) {
        flaw = step_flaw(workload, &program->steps[place], place);
        if (!flaw && program->steps[place].kind == STEP_LOOP && loop_is_empty(program, place))
            flaw = "the loop is empty";
        if (flaw)
            break;
    }
    if (!flaw && (program->count == 0 || program->steps[program->count - 1].kind != STEP_EXIT))
        flaw = "the last step must be exit";
    if (flaw)
        set_error(error, "program %s, step %u: %s", program->name, place, flaw);
    return !flaw;
}

/* Checks that a process may run on at least one CPU of the machine, and that CPUs exist. */
static bool check_cpus(const struct simulator_workload *workload,
                       const struct simulator_program *program, uint32_t cpus,
                       struct simulator_error *error)
{
    for (uint32_t place = 0; place < program->count; place++) {
        const struct workload_step *step = &program->steps[place];
        struct cpu_set set;
        if (step->kind == STEP_HOTPLUG && step->target >= cpus) {
            set_error(error, "program %s: there is no CPU %u; the machine has %u, from 0",
                      program->name, step->target, cpus);
            return false;
        }
        if (step->kind != STEP_AFFINITY)
            continue;
        cpu_list_read(workload->texts[step->value], set.words);
        if (cpu_set_limit(&set, cpus) > 0)
            continue;
        set_error(error,
                  "program %s: cpus %s: the machine has none of these CPUs; it has %u, "
                  "from 0",
                  program->name, workload->texts[step->value], cpus);
        return false;
    }
    return true;
}

bool check_workload(const struct simulator_workload *workload, uint32_t cpus,
                    struct simulator_error *error)
{
    uint64_t steps = 0;
    if (workload->program_count == 0) {
        set_error(error, "the workload has no program");
        return false;
    }
    for (uint32_t i = 0; i < workload->program_count; i++) {
        if (!check_program(workload, &workload->programs[i], error) ||
            !check_cpus(workload, &workload->programs[i], cpus, error))
            return false;
        steps += workload->programs[i].count;
    }
    if (steps > SIMULATOR_STEPS_MAX || workload->channel_count > SIMULATOR_CHANNELS_MAX) {
        set_error(error, "the workload has too many steps or channels; use at most %u and %u",
                  SIMULATOR_STEPS_MAX, SIMULATOR_CHANNELS_MAX);
        return false;
    }
    return true;
}

bool check_tick(uint64_t tick_ns, struct simulator_error *error)
{
    if (tick_ns >= TICK_SHORTEST && tick_ns <= TICK_LONGEST)
        return true;
    set_error(error,
              "tick of %llu ns: out of range; use 1 us to "
              "1000 s",
              (unsigned long long)tick_ns);
    return false;
}

bool check_setup(const struct simulator_setup *setup, struct simulator_error *error)
{
    if (setup->cpus < 1 || setup->cpus > POLICY_CPUS_MAX) {
        set_error(error, "%u CPUs: out of range; use 1 to %u", setup->cpus, POLICY_CPUS_MAX);
        return false;
    }
    if (setup->processes > SIMULATOR_PROCESSES_MAX) {
        set_error(error, "%u processes: too many; use at most %u", setup->processes,
                  SIMULATOR_PROCESSES_MAX);
        return false;
    }
    if (setup->added_steps > SIMULATOR_ADDED_MAX) {
        set_error(error, "%u additional steps: too many; use at most %u", setup->added_steps,
                  SIMULATOR_ADDED_MAX);
        return false;
    }
    return check_tick(setup->tick_ns, error) && costs_check(&setup->costs, error);
}
