/* SPDX-License-Identifier: MIT */

/* Creates a machine: lays out its memory, and adds its first processes. */

#include <string.h>

#include "sim/checks.h"
#include "sim/control.h"
#include "sim/policies.h"
#include "sim/process.h"
#include "sim/process_memory.h"
#include "sim/sched_ext/engine.h"
#include "sim/speeds.h"
#include "sim/ticking.h"
#include "sim/tracing.h"

#define PROCESSES_STANDARD 4096
#define ADDED_CHARACTERS   32 /* characters of names and texts for each step that may be added */

/* Returns true if the workload may activate other policies, which may need more memory. */
static bool switches_policy(const struct simulator_workload *workload)
{
    for (uint32_t i = 0; i < workload->program_count; i++) {
        for (uint32_t j = 0; j < workload->programs[i].count; j++) {
            if (workload->programs[i].steps[j].kind == STEP_SET_POLICY)
                return true;
        }
    }
    return false;
}

/* ---- the memory of the machine ---- */

static uint32_t maximum(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void add_extent(struct extent *sum, const struct extent *part)
{
    sum->steps += part->steps;
    sum->programs += part->programs;
    sum->texts += part->texts;
    sum->channels += part->channels;
    sum->shared_timers += part->shared_timers;
    sum->characters += part->characters;
}

static bool fits(const struct extent *part, const struct extent *used, const struct extent *room)
{
    return part->steps <= room->steps - used->steps &&
           part->programs <= room->programs - used->programs &&
           part->texts <= room->texts - used->texts &&
           part->channels <= room->channels - used->channels &&
           part->shared_timers <= room->shared_timers - used->shared_timers &&
           part->characters <= room->characters - used->characters;
}

/* Returns the size of a workload, which must have been checked. */
static struct extent extent_of(const struct simulator_workload *workload)
{
    struct extent extent = {.programs = workload->program_count,
                            .texts = workload->text_count,
                            .channels = workload->channel_count};
    for (uint32_t i = 0; i < workload->program_count; i++) {
        const struct simulator_program *program = &workload->programs[i];
        extent.steps += program->count;
        extent.characters += strlen(program->name) + 1;
        for (uint32_t j = 0; j < program->count; j++) {
            if (program->steps[j].kind == STEP_SHARED_TIMER)
                extent.shared_timers = maximum(extent.shared_timers, program->steps[j].target + 1);
        }
    }
    for (uint32_t i = 0; i < workload->text_count; i++)
        extent.characters += strlen(workload->texts[i]) + 1;
    return extent;
}

/* Computes the memory of a process beyond its structure: for rounds of loops, and timers. */
static void measure_processes(struct simulator *simulator,
                              const struct simulator_workload *workload)
{
    for (uint32_t i = 0; i < workload->program_count; i++) {
        const struct simulator_program *program = &workload->programs[i];
        for (uint32_t j = 0; j < program->count; j++) {
            const struct workload_step *step = &program->steps[j];
            if (step->kind == STEP_LOOP)
                simulator->loop_depth = maximum(simulator->loop_depth, step->detail + 1u);
            if (step->kind == STEP_TIMER || step->kind == STEP_JOB)
                simulator->timer_count = maximum(simulator->timer_count, step->detail + 1u);
        }
    }
    simulator->timer_count += simulator->room.shared_timers > 0;
}

/* Computes the sizes that lay_out() needs. */
static void measure(struct simulator *simulator, const struct simulator_setup *setup,
                    const struct simulator_workload *workload)
{
    bool any_policy = switches_policy(workload);
    uint32_t added = setup->added_steps;
    const struct extent init = {.steps = INIT_STEPS};
    const struct extent more = {.steps = added,
                                .programs = added,
                                .texts = added,
                                .channels = added,
                                .shared_timers = added,
                                .characters = (size_t)added * ADDED_CHARACTERS};
    simulator->room = extent_of(workload);
    add_extent(&simulator->room, &init);
    add_extent(&simulator->room, &more);
    measure_processes(simulator, workload);
    if (added > 0) {
        simulator->loop_depth = WORKLOAD_LOOPS_MAX;
        simulator->timer_count = WORKLOAD_TIMERS_MAX + 1;
    }
    for (simulator->event_leaves = 1; simulator->event_leaves < setup->cpus;)
        simulator->event_leaves *= 2;
    simulator->process_limit = setup->processes ? setup->processes : PROCESSES_STANDARD;
    simulator->process_bytes =
        bytes_of_process(any_policy ? POLICY_TASK_BYTES : simulator->state_bytes);
}

/* Takes all memory from the arena, except the trace's buffer. If the arena only counts sizes, the
 * pointers are null. */
static void lay_out(struct simulator *simulator, uint32_t cpus)
{
    struct arena *arena = &simulator->arena;
    const struct extent *room = &simulator->room;
    uint32_t limit = simulator->process_limit;
    arena_take(arena, 1, sizeof(*simulator)); /* the machine itself */
    simulator->cpus = arena_take(arena, cpus, sizeof(*simulator->cpus));
    simulator->events = arena_take(arena, 2 * simulator->event_leaves, sizeof(*simulator->events));
    simulator->queues = arena_take(arena, cpus, sizeof(*simulator->queues));
    simulator->queue_states = arena_take(arena, cpus, POLICY_QUEUE_BYTES);
    simulator->steps = arena_take(arena, room->steps, sizeof(*simulator->steps));
    simulator->program_first = arena_take(arena, room->programs, sizeof(*simulator->program_first));
    simulator->players = arena_take(arena, room->programs, sizeof(*simulator->players));
    simulator->names = arena_take(arena, room->programs, sizeof(*simulator->names));
    simulator->texts = arena_take(arena, room->texts, sizeof(*simulator->texts));
    simulator->text_bytes = arena_take(arena, room->characters, 1);
    simulator->channels = arena_take(arena, room->channels, sizeof(*simulator->channels));
    simulator->shared_times =
        arena_take(arena, room->shared_timers, sizeof(*simulator->shared_times));
    simulator->loop_rounds =
        arena_take(arena, (size_t)limit * simulator->loop_depth, sizeof(*simulator->loop_rounds));
    simulator->timer_times =
        arena_take(arena, (size_t)limit * simulator->timer_count, sizeof(*simulator->timer_times));
    if (simulator->has_shape) {
        struct speeds *speeds = arena_take(arena, 1, sizeof(*speeds));
        struct pace *paces = arena_take(arena, limit, sizeof(*paces));
        if (speeds)
            speeds->paces = paces;
        simulator->speeds = speeds;
    }
    simulator->cpu_sets = arena_take(arena, limit, sizeof(*simulator->cpu_sets));
    for (uint32_t i = 0; i < SLOT_LEVELS; i++)
        simulator->slots.level[i] = arena_take(arena, slots_words(limit, i), sizeof(uint64_t));
    simulator->timers.heap = arena_take(arena, timers_room(limit), sizeof(*simulator->timers.heap));
    simulator->processes = arena_take(arena, limit, simulator->process_bytes);
}

/* Returns a machine in a new arena, or null if memory is short. The arena has room for a policy
 * with more state per process. */
static struct simulator *allocate(struct simulator draft, uint32_t cpus)
{
    size_t largest = bytes_of_process(POLICY_TASK_BYTES);
    lay_out(&draft, cpus);
    if (draft.process_bytes < largest)
        arena_take(&draft.arena, draft.process_limit, largest);
    struct arena arena;
    if (!arena_map(&arena, draft.arena.taken))
        return NULL;
    struct simulator *simulator = (struct simulator *)(void *)arena.base;
    *simulator = draft;
    simulator->arena = arena;
    lay_out(simulator, cpus);
    return simulator;
}

/* ---- initial contents ---- */

static char *copy_text(struct simulator *simulator, const char *text)
{
    char *copy = simulator->text_bytes + simulator->used.characters;
    size_t bytes = strlen(text) + 1;
    simulator->used.characters += bytes;
    return memcpy(copy, text, bytes);
}

/* Adds the steps of init. Init waits while the machine boots, and then starts the workload. The
 * workload's times count from this start. */
static void add_init(struct simulator *simulator)
{
    struct workload_step *next = simulator->steps;
    if (simulator->costs.boot > 0)
        *next++ = (struct workload_step){.kind = STEP_SLEEP_UNTIL, .value = simulator->costs.boot};
    *next++ = (struct workload_step){.kind = STEP_FORK};
    *next = (struct workload_step){.kind = STEP_REAP};
    simulator->used.steps = INIT_STEPS;
}

/* Returns a step with absolute numbers and times: adds `base` to the numbers, and `begin` to the
 * times. */
static struct workload_step placed(struct workload_step step, const struct extent *base,
                                   uint32_t program_first, uint64_t begin)
{
    switch (step.kind) {
    case STEP_RUN_UNTIL:
    case STEP_SLEEP_UNTIL:
        step.value += begin;
        break;
    case STEP_LOOP:
        step.target += program_first;
        break;
    case STEP_AFFINITY:
        step.value += base->texts;
        step.target += step.target == WORKLOAD_SELF ? 0 : base->programs;
        break;
    case STEP_ATTRIBUTE:
        step.target += step.target == WORKLOAD_SELF ? 0 : base->programs;
        break;
    case STEP_ARRIVE:
        step.value += begin;
        step.target += step.detail == ARRIVE_THING ? base->channels : base->programs;
        break;
    case STEP_FORK:
    case STEP_KILL:
        step.target += base->programs;
        break;
    case STEP_TAKE:
        step.value += step.value > 0 ? base->channels : 0;
        step.target += base->channels;
        break;
    case STEP_GIVE:
    case STEP_MEET:
        step.target += base->channels;
        break;
    case STEP_SET_POLICY:
    case STEP_SET_TUNABLE:
        step.target += base->texts;
        break;
    case STEP_SHARED_TIMER:
        step.target += base->shared_timers;
        break;
    default:
        break;
    }
    return step;
}

static void copy_program(struct simulator *simulator, const struct simulator_program *program,
                         const struct extent *base, uint64_t begin)
{
    struct extent *used = &simulator->used;
    uint32_t first = used->steps;
    simulator->program_first[used->programs] = first;
    simulator->players[used->programs].slot = NOBODY;
    simulator->names[used->programs++] = copy_text(simulator, program->name);
    for (uint32_t i = 0; i < program->count; i++)
        simulator->steps[used->steps++] = placed(program->steps[i], base, first, begin);
}

/* Copies a workload into reserved memory. Its times are relative to `begin`. */
static void copy_workload(struct simulator *simulator, const struct simulator_workload *workload,
                          uint64_t begin)
{
    const struct extent base = simulator->used;
    const struct extent extent = extent_of(workload);
    struct extent *used = &simulator->used;
    for (uint32_t i = 0; i < workload->program_count; i++)
        copy_program(simulator, &workload->programs[i], &base, begin);
    for (uint32_t i = 0; i < workload->text_count; i++)
        simulator->texts[used->texts++] = copy_text(simulator, workload->texts[i]);
    for (uint32_t i = 0; i < workload->channel_count; i++)
        simulator->channels[used->channels++] =
            (struct channel){.count = workload->channels[i], .first = NOBODY, .last = NOBODY};
    for (uint32_t i = 0; i < extent.shared_timers; i++)
        simulator->shared_times[used->shared_timers++] = NEVER;
}

static void make_cpus(struct simulator *simulator)
{
    uint32_t cpus = simulator->scheduler.cpus;
    for (uint32_t i = 0; i < 2 * simulator->event_leaves; i++)
        simulator->events[i] = NEVER;
    for (uint32_t i = 0; i < cpus; i++) {
        simulator->cpus[i] = (struct cpu){.id = i, .due_first = NOBODY, .due_last = NOBODY};
        cpu_set_add(&simulator->idle, i);
        simulator->queues[i].state = (char *)simulator->queue_states + i * POLICY_QUEUE_BYTES;
        simulator->scheduler.queue[i] = &simulator->queues[i];
    }
    simulator->scheduler.state = simulator->scheduler_state;
    simulator->ticked = cpus;
}

/* Sets everything that does not depend on the memory's address. */
static bool draft_machine(struct simulator *draft, const struct simulator_setup *setup,
                          const struct simulator_workload *workload, struct simulator_error *error)
{
    struct policy_choice choice;
    *draft = (struct simulator){
        .all_costs = setup->costs,
        .counts = {.exit_status = -1},
        .scheduler = {.cpus = setup->cpus, .tick_ns = setup->tick_ns, .seed = setup->seed},
        .traces_queues = setup->trace_queues,
        .policy_clock = setup->policy_clock,
        .policy_run_time = setup->policy_run_time,
        .has_shape = setup->shape && *setup->shape,
        .trace = {.file = -1},
        .urgent = NOBODY,
    };
    if (!choose_first_policy(setup->policy, &choice, error) || !set_costs(draft, &choice, error))
        return false;
    uint64_t most = setup->tick_ns / 2 / setup->cpus;
    draft->stagger = draft->costs.stagger < most ? draft->costs.stagger : most;
    seek_tick(draft, 1);
    draft->engine = engine_of(&choice);
    draft->state_bytes = state_bytes_of(choice.policy);
    policy_set_defaults(&draft->scheduler, &choice);
    name_policy(draft, &choice);
    if (!set_tunables(draft, setup->tunables, error))
        return false;
    measure(draft, setup, workload);
    return true;
}

/* Reads the image of a scheduler of sched_ext, if the policy is one. */
static bool load_sched_ext(struct simulator *simulator, const struct simulator_setup *setup,
                           struct simulator_error *error)
{
    const char *path = sched_ext_path(setup->policy);
    if (!path)
        return true;
    simulator->sched_ext = sched_ext_create(path, setup->cpus, simulator->process_limit, error);
    if (simulator->sched_ext && setup->callbacks &&
        !sched_ext_write_callbacks(simulator->sched_ext, setup->callbacks, error))
        return false;
    if (simulator->sched_ext)
        snprintf(simulator->policy_name, sizeof(simulator->policy_name), "scx:%s",
                 sched_ext_name(simulator->sched_ext));
    return simulator->sched_ext != NULL;
}

struct simulator *simulator_create(const struct simulator_setup *setup,
                                   const struct simulator_workload *workload,
                                   struct simulator_error *error)
{
    struct simulator draft;
    if (!check_setup(setup, error) || !check_workload(workload, setup->cpus, error) ||
        !draft_machine(&draft, setup, workload, error))
        return NULL;
    struct simulator *simulator = allocate(draft, setup->cpus);
    if (!simulator) {
        set_error(error, "out of memory for the machine; use fewer processes");
        return NULL;
    }
    make_cpus(simulator);
    if (simulator->has_shape && !begin_speeds(simulator, setup->shape, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    add_init(simulator);
    copy_workload(simulator, workload, simulator->costs.boot);
    slots_fill(&simulator->slots, simulator->process_limit);
    if (!load_sched_ext(simulator, setup, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    guard_states(simulator);
    simulator->engine->install(simulator);
    recipe_begin(&simulator->recipe, setup, workload);
    if (setup->trace && !begin_trace(simulator, setup, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    record_first_policy(simulator, setup->tunables);
    struct process *init = process_create(simulator, NULL, INIT_PROGRAM);
    simulator->engine->start(simulator, init);
    return simulator;
}

/* ---- additions during a run ---- */

uint32_t simulator_add_workload(struct simulator *simulator,
                                const struct simulator_workload *workload,
                                struct simulator_error *error)
{
    uint32_t first = simulator->used.programs;
    if (!begin_act(simulator, error) || !check_workload(workload, simulator->scheduler.cpus, error))
        return SIMULATOR_NO_PROGRAM;
    const struct extent extent = extent_of(workload);
    if (!fits(&extent, &simulator->used, &simulator->room)) {
        set_error(error,
                  "out of space for a workload of %u steps; restart the machine, or create it "
                  "with more steps",
                  extent.steps);
        return SIMULATOR_NO_PROGRAM;
    }
    copy_workload(simulator, workload, simulator->now);
    recipe_note_workload(&simulator->recipe, workload);
    return first;
}

void simulator_destroy(struct simulator *simulator)
{
    if (!simulator)
        return;
    struct arena arena = simulator->arena;
    close_trace(simulator);
    recipe_end(&simulator->recipe);
    sched_ext_destroy(simulator->sched_ext);
    arena_unmap(&arena);
}
