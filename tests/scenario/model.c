/* SPDX-License-Identifier: MIT */

/*
 * Plays a scenario on the model of tests/host/policy_harness.h, and writes its trace. Between two
 * ticks it proceeds from one act of a program to the next; only work takes time. Links all
 * policies of the registry.
 *
 * usage: model SCENARIO POLICY CPUS SEED TRACE
 *
 * SCENARIO is ties, or the number of a random scenario (random.h).
 *
 * Ends with status 3 if, under this policy, two CPUs acted at the same time: their order is
 * arbitrary then, and may differ on another machine.
 */

#include "tests/scenario/ties.h"

#include "abi/system_calls.h"
#include "tests/host/policy_harness.h"
#include "tests/scenario/random.h"

#define PROCESSES_MAX 64
#define ROLES_MAX     16

/* The next act of each task of the model, by PID. */
struct program {
    const struct step *step;
    uint64_t until;  /* it works until this time, regardless of its CPU time, */
    uint64_t work;   /* and then for these nanoseconds on a CPU before the act */
    uint32_t parent; /* PID */
    struct model_task *zombies[PROCESSES_MAX]; /* ended children, the first to end first */
    uint32_t zombie_count;
    bool waits; /* until woken; it checks the condition again when it runs */
};

static const struct scenario *scenario;
static struct model *model;
static struct program programs[PROCESSES_MAX];
static struct model_task *players[ROLES_MAX]; /* the task of each role */
static uint64_t acted_at;                     /* time and CPU of the last act */
static uint32_t acted_on;
static bool acted_together;

/* ---- the trace ---- */

_Static_assert(MODEL_TICK_NS == SCENARIO_TICK_NS, "the model has the scenarios' tick");

static FILE *trace;
static uint32_t sequence;
static uint64_t records[MODEL_CPUS_MAX];

static void write_record(uint32_t cpu, enum trace_kind kind, int32_t process, uint32_t first,
                         uint64_t second)
{
    struct trace_record record = {
        .time = model->now,
        .sequence = sequence++,
        .process = (uint32_t)process,
        .kind = (uint16_t)kind,
        .cpu = (uint16_t)cpu,
        .first = first,
        .second = second,
    };
    records[cpu]++;
    check(fwrite(&record, sizeof(record), 1, trace) == 1);
}

static void record(const struct model *machine, enum trace_kind kind, int32_t process,
                   uint32_t first, uint64_t second)
{
    write_record(machine->acting_cpu, kind, process, first, second);
}

static void begin_trace(const char *path)
{
    struct trace_header header = {
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(struct trace_header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = model->scheduler.cpus,
        .tick_ns = MODEL_TICK_NS,
        .cycles_per_second = 1000000000,
        .seed = model->scheduler.seed,
    };
    trace = fopen(path, "wb");
    check(trace && fwrite(&header, sizeof(header), 1, trace) == 1);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
        write_record(cpu, TRACE_START, 0, 0, 0);
    model->recorder = record;
}

static void end_trace(void)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
        write_record(cpu, TRACE_END, 0, 0, records[cpu] + 1);
    check(fclose(trace) == 0);
}

/* ---- programs ---- */

static struct program *program_of(const struct model_task *task)
{
    check(task->task.pid < PROCESSES_MAX);
    return &programs[task->task.pid];
}

static void go_to_step(struct program *program, const struct step *step)
{
    program->step = step;
    program->work = step->work * SCENARIO_WORK_NS;
}

/* Must be called before the task is forked: its next act must be known when it is picked. */
static void begin_role(uint32_t role, const struct model_task *parent)
{
    struct program *program = &programs[model->last_pid + 1];
    check(model->last_pid + 1 < PROCESSES_MAX);
    *program = (struct program){.parent = (uint32_t)model_pid(parent)};
    go_to_step(program, scenario->roles[role].steps);
}

static void fork_role(uint32_t role, const struct model_task *parent)
{
    write_record(model->acting_cpu, TRACE_MARK, model_pid(parent), MARK_NOTE,
                 scenario_label(&scenario->roles[role]));
    begin_role(role, parent);
    players[role] = model_fork(model, parent);
}

/* Returns the only live child, or null if there are several or none. */
static struct model_task *only_child(const struct model_task *parent)
{
    struct model_task *match = NULL;
    for (uint32_t i = 0; i < model->task_count; i++) {
        struct model_task *task = model->tasks[i];
        if (task->place == MODEL_ENDED || program_of(task)->parent != (uint32_t)model_pid(parent))
            continue;
        if (match)
            return NULL;
        match = task;
    }
    return match;
}

static void wait_for_child(struct program *program, uint32_t cpu)
{
    program->waits = program->zombie_count == 0;
    if (program->waits) {
        model_block_for(model, cpu, only_child(model->cpus[cpu].current));
        return;
    }
    program->zombies[0]->unreaped = false;
    program->zombie_count--;
    memmove(program->zombies, program->zombies + 1,
            program->zombie_count * sizeof(program->zombies[0]));
    go_to_step(program, program->step + 1);
}

/* Its parent is woken before the task has left its CPU. */
static void end_task(struct model_task *task)
{
    struct program *parent = &programs[program_of(task)->parent];
    model_record(model, TRACE_EXIT, model_pid(task), 0, 0);
    task->unreaped = true;
    parent->zombies[parent->zombie_count++] = task;
    if (parent->waits && model->tasks[program_of(task)->parent - 1]->place == MODEL_BLOCKED)
        model_wake_unsettled(model, model->tasks[program_of(task)->parent - 1]);
    model_end_unsettled(model, task);
    model_settle(model);
}

static uint64_t tick_time(int32_t tick)
{
    return (uint64_t)(SCENARIO_START + tick) * MODEL_TICK_NS;
}

static void sleep_until(uint32_t cpu, int32_t tick)
{
    uint64_t then = tick_time(tick);
    if (then > model->now)
        model_sleep(model, cpu, then / MODEL_TICK_NS - model->now / MODEL_TICK_NS);
}

/* Performs the next act of the CPU's task. */
static void act(uint32_t cpu)
{
    struct model_task *task = model->cpus[cpu].current;
    struct program *program = program_of(task);
    const struct step *step = program->step;
    acted_together |= acted_at == model->now && acted_on != cpu && !program->waits;
    acted_at = model->now;
    acted_on = cpu;
    model->acting_cpu = cpu;
    if (step->act != ACT_END && step->act != ACT_WAIT)
        go_to_step(program, step + 1);
    switch (step->act) {
    case ACT_END:
        end_task(task);
        break;
    case ACT_FORK:
        fork_role(step->role, task);
        break;
    case ACT_WAIT:
        wait_for_child(program, cpu);
        break;
    case ACT_SLEEP_UNTIL:
        sleep_until(cpu, step->value);
        break;
    case ACT_WORK_UNTIL:
        program->until = tick_time(step->value);
        break;
    case ACT_YIELD:
        model_yield(model, cpu);
        break;
    case ACT_SET_PRIORITY:
        model_set_attribute(model, players[step->role], MODEL_PRIORITY, (uint32_t)step->value);
        break;
    case ACT_SET_TICKETS:
        model_set_attribute(model, players[step->role], MODEL_TICKETS, (uint32_t)step->value);
        break;
    case ACT_SET_WEIGHT:
        model_set_attribute(model, players[step->role], MODEL_WEIGHT, (uint32_t)step->value);
        break;
    }
}

/* ---- time ---- */

/* Returns the time until the CPU's task acts, if it keeps the CPU; UINT64_MAX: it is idle. */
static uint64_t work_left(uint32_t cpu)
{
    const struct model_task *task = model->cpus[cpu].current;
    if (!task)
        return UINT64_MAX;
    const struct program *program = program_of(task);
    uint64_t begin = program->until > model->now ? program->until : model->now;
    return begin - model->now + program->work;
}

/* All CPUs work until the given time or the next tick. */
static void work(uint64_t ns)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        const struct model_task *task = model->cpus[cpu].current;
        if (task && program_of(task)->until <= model->now)
            program_of(task)->work -= ns;
    }
    model_advance(model, ns);
}

/* Returns the time until the policy's next alarm on the CPU; UINT64_MAX: none. */
static uint64_t call_left(uint32_t cpu)
{
    uint64_t turn_end = model->cpus[cpu].turn_end;
    uint64_t alarm = cpu < model->scheduler.queues ? model->queues[cpu].alarm : 0;
    uint64_t next = turn_end && (!alarm || turn_end < alarm) ? turn_end : alarm;
    if (!next)
        return UINT64_MAX;
    return next > model->now ? next - model->now : 0;
}

static uint64_t left(uint32_t cpu)
{
    return work_left(cpu) < call_left(cpu) ? work_left(cpu) : call_left(cpu);
}

/* Returns true if the CPU's task acts now, before its turn ends at the same time. */
static bool acts_first(uint32_t cpu)
{
    uint64_t turn_end = model->cpus[cpu].turn_end;
    return turn_end && turn_end <= model->now && work_left(cpu) == 0;
}

/* Performs what a CPU does at this time, before the next tick: an act, or a call of the policy. */
static void happen(uint32_t cpu)
{
    if (call_left(cpu) > 0 || acts_first(cpu)) {
        act(cpu);
        return;
    }
    model_policy_times(model, cpu);
    model_settle(model);
}

/* Advances to the next tick, or to an earlier event of a CPU. */
static void go_on(void)
{
    uint64_t to_tick = MODEL_TICK_NS - model->now % MODEL_TICK_NS;
    uint32_t first = 0;
    for (uint32_t cpu = 1; cpu < model->scheduler.cpus; cpu++)
        first = left(cpu) < left(first) ? cpu : first;
    bool before = left(first) < to_tick;
    work(before ? left(first) : to_tick);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus && !before; cpu++) {
        before = acts_first(cpu);
        first = before ? cpu : first;
    }
    if (before)
        happen(first);
    else
        model_tick_all(model);
}

/* init forks the first role, which waits for the start; init then blocks forever. */
static struct model_task *reach_start(const char *policy)
{
    struct model_task *init = model_fork(model, NULL);
    uint32_t cpu = init->task.cpu;
    programs[init->task.pid].work = UINT64_MAX;
    begin_role(0, init);
    struct model_task *root = players[0] = model_fork(model, init);
    model_block(model, cpu);
    model_sleep(model, root->task.cpu, SCENARIO_START);
    while (model->now < SCENARIO_START * MODEL_TICK_NS) {
        model_advance(model, MODEL_TICK_NS);
        model_tick_all(model);
    }
    check(root->place == MODEL_RUNNING);
    model->acting_cpu = root->task.cpu;
    model_switch(model, policy);
    return root;
}

static void play(const char *policy)
{
    struct model_task *root = reach_start(policy);
    model->acting_cpu = root->task.cpu;
    model_record(model, TRACE_MARK, root->task.pid, MARK_GROUP, scenario_label(scenario->roles));
    model_record(model, TRACE_MARK, root->task.pid, MARK_BEGIN, 0);
    while (root->place != MODEL_ENDED)
        go_on();
}

int main(int argument_count, char **arguments)
{
    static struct random_scenario made;
    if (argument_count != 6) {
        fprintf(stderr, "usage: model SCENARIO POLICY CPUS SEED TRACE\n");
        return 2;
    }
    scenario = strcmp(arguments[1], ties.name) == 0
                   ? &ties
                   : random_scenario(&made, strtoull(arguments[1], NULL, 10));
    check(scenario->role_count <= ROLES_MAX);
    model = model_new("rr", (uint32_t)atoi(arguments[3]), strtoull(arguments[4], NULL, 10));
    model->acts_first = acts_first;
    begin_trace(arguments[5]);
    play(arguments[2]);
    end_trace();
    model_free(model);
    return acted_together ? 3 : 0;
}
