/* SPDX-License-Identifier: MIT */

/*
 * The machine around the engine: its processes, its trace, and how another policy comes
 * into force.
 */

#include "sim/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/support/hooks.h"
#include "sim/costs.h"
#include "sim/events.h"

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GUARD_BYTES 32
#else
#define GUARD_BYTES 0
#endif

#define TRACE_BUFFER_RECORDS  16384
#define TEXT_BYTES_PER_RECORD 12

/* ---- errors ---- */

void set_error(struct simulator_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
}

void fail(struct simulator *simulator, const char *format, ...)
{
    va_list arguments;
    if (simulator->status == SIMULATOR_FAILED)
        return;
    simulator->status = SIMULATOR_FAILED;
    va_start(arguments, format);
    vsnprintf(simulator->error.text, sizeof(simulator->error.text), format, arguments);
    va_end(arguments);
}

/* ---- the trace ---- */

static bool write_all(struct trace *trace, const void *data, size_t bytes)
{
    const char *rest = data;
    while (bytes > 0 && !trace->error) {
        ssize_t written = write(trace->file, rest, bytes);
        if (written < 0 && errno != EINTR)
            trace->error = errno;
        if (written > 0) {
            rest += written;
            bytes -= (size_t)written;
        }
    }
    return !trace->error;
}

void trace_flush(struct trace *trace)
{
    write_all(trace, trace->buffer, (size_t)((char *)trace->next - (char *)trace->buffer));
    trace->next = trace->buffer;
}

bool trace_failed(struct simulator *simulator)
{
    if (simulator->trace.error)
        fail(simulator, "the trace cannot be written: %s", strerror(simulator->trace.error));
    return simulator->trace.error != 0;
}

/* Who takes the interrupt of a hand from outside: the CPU that is back from the kernel first. */
static struct cpu *outside_cpu(const struct simulator *simulator)
{
    struct cpu *found = &simulator->cpus[0];
    for (uint32_t i = 1; i < simulator->scheduler.cpus && found->resumes > simulator->now; i++) {
        if (simulator->cpus[i].resumes < found->resumes)
            found = &simulator->cpus[i];
    }
    return found;
}

static void record_at(struct simulator *simulator, uint64_t time, uint32_t cpu,
                      enum trace_kind kind, uint32_t process, uint32_t first, uint64_t second)
{
    if (simulator->trace.next) {
        if (cpu == OUTSIDE) {
            const struct cpu *takes = outside_cpu(simulator);
            cpu = takes->id;
            time = takes->resumes > time ? takes->resumes : time;
        }
        simulator->cpus[cpu].records++;
        trace_write(&simulator->trace, time, cpu, kind, process, first, second);
    }
}

void record_outside(struct simulator *simulator, enum trace_kind kind, uint32_t process,
                    uint32_t first, uint64_t second)
{
    record_at(simulator, simulator->now, OUTSIDE, kind, process, first, second);
}

/* A text in a record of the kind and, if it is long, TEXT records. */
static void record_text(struct simulator *simulator, uint64_t time, uint32_t cpu,
                        enum trace_kind kind, uint32_t process, const char *text)
{
    size_t rest = strlen(text);
    rest = rest < 252 ? rest : 252;
    do {
        char packed[TEXT_BYTES_PER_RECORD] = {0};
        uint64_t second;
        uint32_t first;
        size_t part = rest < sizeof(packed) ? rest : sizeof(packed);
        memcpy(packed, text, part);
        memcpy(&second, packed, 8);
        memcpy(&first, packed + 8, 4);
        record_at(simulator, time, cpu, kind, process, first, second);
        kind = TRACE_TEXT;
        text += part;
        rest -= part;
    } while (rest > 0);
}

static enum share_attribute shares_by(const struct simulator *simulator)
{
    return policy_shares_by(simulator->engine->policy, &simulator->scheduler);
}

static void record_policy(struct simulator *simulator, uint32_t cpu, const char *text)
{
    record_text(simulator, simulator->now, cpu, TRACE_POLICY, shares_by(simulator), text);
}

static void record_tunable(struct simulator *simulator, uint32_t cpu, uint32_t index)
{
    record_at(simulator, simulator->now, cpu, TRACE_TUNABLE, shares_by(simulator), 0,
              (uint64_t)simulator->scheduler.tunable[index]);
    record_text(simulator, simulator->now, cpu, TRACE_TEXT, 0,
                simulator->engine->policy->tunables[index].name);
}

/* ---- processes ---- */

uint32_t program_of(const struct simulator *simulator, const struct process *process)
{
    uint32_t low = 0;
    uint32_t high = simulator->used.programs;
    if (process->step < INIT_STEPS)
        return INIT_PROGRAM;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (simulator->program_first[middle] <= process->step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *name_of(const struct simulator *simulator, uint32_t program)
{
    return program == INIT_PROGRAM ? "init" : simulator->names[program];
}

void record_name(struct simulator *simulator, struct cpu *cpu)
{
    record_text(simulator, cpu->resumes, cpu->id, TRACE_EXEC, pid_of(cpu->current),
                name_of(simulator, program_of(simulator, cpu->current)));
}

static void begin_step(const struct simulator *simulator, struct process *process)
{
    const struct workload_step *step = step_of(simulator, process);
    process->left = step->kind == STEP_RUN ? step->value : simulator->step_cost[step->kind];
}

void advance(struct simulator *simulator, struct process *process)
{
    const struct workload_step *step = &simulator->steps[++process->step];
    while (step->kind == STEP_LOOP) {
        uint32_t *rounds =
            &simulator->loop_rounds[process->task.slot * simulator->loop_depth + step->detail];
        bool again = step->value == 0 || ++*rounds < step->value;
        if (!again)
            *rounds = 0;
        process->step = again ? step->target : process->step + 1;
        step = step_of(simulator, process);
    }
    begin_step(simulator, process);
}

struct process *process_create(struct simulator *simulator, struct process *parent,
                               uint32_t program)
{
    uint32_t slot = slots_take(&simulator->slots);
    if (slot == UINT32_MAX) {
        fail(simulator, "there is room for %u processes at once, and one more is forked",
             simulator->process_limit);
        return NULL;
    }
    struct process *process = process_at(simulator, slot);
    *process = (struct process){
        .task =
            {
                .pid = ++simulator->last_pid,
                .slot = slot,
                .priority = parent ? parent->task.priority : PRIORITY_DEFAULT,
                .tickets = parent ? parent->task.tickets : TICKETS_DEFAULT,
                .weight = parent ? parent->task.weight : WEIGHT_DEFAULT,
                .cpu = parent ? parent->task.cpu : 0,
                .state = process + 1,
            },
        .step = program == INIT_PROGRAM ? 0 : simulator->program_first[program],
        .link = NOBODY,
        .parent = parent ? parent->task.slot : FIRST_SLOT,
        .parent_pid = parent ? parent->task.pid : 0,
        .zombies = NOBODY,
        .place = PLACE_BLOCKED,
    };
    if (program != INIT_PROGRAM)
        simulator->players[program] = (struct player){slot, process->task.pid};
    if (parent)
        parent->children++;
    if (simulator->loop_depth > 0)
        memset(&simulator->loop_rounds[slot * simulator->loop_depth], 0,
               simulator->loop_depth * sizeof(uint32_t));
    for (uint32_t i = 0; i < simulator->timer_count; i++)
        simulator->timer_times[slot * simulator->timer_count + i] = simulator->now;
    begin_step(simulator, process);
    simulator->counts.forks++;
    simulator->counts.processes++;
    if (simulator->counts.processes > simulator->most_processes)
        simulator->most_processes = simulator->counts.processes;
    return process;
}

void process_free(struct simulator *simulator, struct process *process)
{
    process->place = PLACE_FREE;
    simulator->counts.processes--;
    slots_give_back(&simulator->slots, process->task.slot);
}

struct process *process_parent(const struct simulator *simulator, const struct process *process)
{
    struct process *parent = process_at(simulator, process->parent);
    bool lives = parent->task.pid == process->parent_pid && parent->place != PLACE_FREE &&
                 parent->place != PLACE_ZOMBIE;
    return lives ? parent : process_at(simulator, FIRST_SLOT);
}

/* A ring: `zombies` is its last one, whose link is its first. */
void zombie_append(struct simulator *simulator, struct process *parent, struct process *child)
{
    child->link = child->task.slot;
    if (parent->zombies != NOBODY) {
        struct process *last = process_at(simulator, parent->zombies);
        child->link = last->link;
        last->link = child->task.slot;
    }
    parent->zombies = child->task.slot;
}

struct process *zombie_take(struct simulator *simulator, struct process *parent)
{
    if (parent->zombies == NOBODY)
        return NULL;
    struct process *last = process_at(simulator, parent->zombies);
    struct process *first = process_at(simulator, last->link);
    if (first == last)
        parent->zombies = NOBODY;
    else
        last->link = first->link;
    return first;
}

bool zombies_bequeath(struct simulator *simulator, struct process *parent)
{
    struct process *child;
    bool any = false;
    while ((child = zombie_take(simulator, parent))) {
        zombie_append(simulator, process_at(simulator, FIRST_SLOT), child);
        any = true;
    }
    return any;
}

/* ---- waiting ---- */

static bool is_dead(const struct simulator *simulator, const struct timer *timer)
{
    const struct process *process = process_at(simulator, timer_slot(timer));
    return process->waits != WAIT_TIMER || process->link != timer_number(timer);
}

/* Those are many: takes them all out of the heap. */
static void remove_dead_timers(struct simulator *simulator)
{
    struct timers *timers = &simulator->timers;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < timers->count; i++) {
        if (!is_dead(simulator, &timers->heap[i]))
            timers->heap[kept++] = timers->heap[i];
    }
    timers->count = kept;
    timers->dead = 0;
    timers_order(timers);
}

void drop_dead_timers(struct simulator *simulator)
{
    struct timers *timers = &simulator->timers;
    if (timers->dead > timers->count / 2)
        remove_dead_timers(simulator);
    while (timers->dead > 0 && is_dead(simulator, &timers->heap[0])) {
        timers_take(timers);
        timers->dead--;
    }
}

/* Takes the process out of a line. False: it is not in it. */
static bool leave_line(const struct simulator *simulator, uint32_t *first, uint32_t *last,
                       const struct process *process)
{
    uint32_t before = NOBODY;
    for (uint32_t slot = *first; slot != NOBODY; slot = process_at(simulator, slot)->link) {
        if (slot != process->task.slot) {
            before = slot;
            continue;
        }
        if (before == NOBODY)
            *first = process->link;
        else
            process_at(simulator, before)->link = process->link;
        if (*last == slot)
            *last = before;
        return true;
    }
    return false;
}

void stop_waiting(struct simulator *simulator, struct process *process)
{
    struct cpu *cpu = &simulator->cpus[process->task.cpu];
    struct channel *channel;
    switch ((enum process_wait)process->waits) {
    case WAIT_NONE:
    case WAIT_CHILD:
        break;
    case WAIT_TIMER:
        process->waits = WAIT_NONE;
        simulator->timers.dead++;
        drop_dead_timers(simulator);
        break;
    case WAIT_DUE:
        leave_line(simulator, &cpu->due_first, &cpu->due_last, process);
        break;
    case WAIT_CHANNEL:
        channel = &simulator->channels[step_of(simulator, process)->target];
        leave_line(simulator, &channel->first, &channel->last, process);
        channel->waiting--;
        break;
    }
    process->waits = WAIT_NONE;
}

/* ---- policies ---- */

bool choose_policy(const char *text, struct policy_choice *choice, struct simulator_error *error)
{
    enum policy_error problem = policy_choose(text, strlen(text), choice);
    if (problem)
        set_error(error, "policy %s: %s", text, policy_error_text(problem));
    const char *flaw = problem ? NULL : policy_flaw(choice->policy);
    if (flaw)
        set_error(error, "policy %s contradicts itself: %s", text, flaw);
    return !problem && !flaw;
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

uint32_t state_bytes_of(const struct policy *policy)
{
    uint32_t bytes = policy->task_bytes ? policy->task_bytes : POLICY_TASK_BYTES;
    return (bytes + 7) / 8 * 8;
}

/* What lies behind the state that a policy asks for is not its own: AddressSanitizer is told. */
void guard_states(const struct simulator *simulator)
{
#if GUARD_BYTES > 0
    size_t room = simulator->process_bytes - sizeof(struct process);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        char *state = (char *)(process_at(simulator, slot) + 1);
        ASAN_UNPOISON_MEMORY_REGION(state, room);
        ASAN_POISON_MEMORY_REGION(state + simulator->state_bytes, room - simulator->state_bytes);
    }
#else
    (void)simulator;
#endif
}

/* ---- costs ---- */

static void set_step_costs(struct simulator *simulator)
{
    for (int kind = 0; kind < STEPS_ALL; kind++)
        simulator->step_cost[kind] = simulator->costs.call;
    simulator->step_cost[STEP_RUN_UNTIL] = 0;
    for (int kind = STEP_SLEEP; kind <= STEP_TIMER; kind++)
        simulator->step_cost[kind] = simulator->costs.sleep;
    simulator->step_cost[STEP_SHARED_TIMER] = simulator->costs.sleep;
    simulator->step_cost[STEP_MEET] = simulator->costs.pipe;
    simulator->step_cost[STEP_TAKE] = simulator->costs.pipe;
    simulator->step_cost[STEP_GIVE] = simulator->costs.pipe;
    simulator->step_cost[STEP_FORK] = simulator->costs.fork;
    simulator->step_cost[STEP_EXIT] = simulator->costs.exit;
}

bool set_costs(struct simulator *simulator, const struct policy_choice *choice,
               struct simulator_error *error)
{
    const struct simulator_costs costs = costs_under(&simulator->all_costs, choice);
    uint64_t tick_ns = simulator->scheduler.tick_ns;
    if (costs.turn + costs.tick + costs.scheduler + costs.context_switch >= tick_ns) {
        set_error(error,
                  "a tick of %llu ns leaves no time to compute: tick, scheduler and context "
                  "switch cost as much",
                  (unsigned long long)tick_ns);
        return false;
    }
    simulator->costs = costs;
    set_step_costs(simulator);
    return true;
}

/* ---- another policy ---- */

size_t bytes_of_process(uint32_t state_bytes)
{
    return sizeof(struct process) + state_bytes + GUARD_BYTES;
}

/* Puts all processes, of which none is queued, into an array with room for any policy's states. The
 * arena has it. */
static void move_processes(struct simulator *simulator)
{
    size_t bytes = bytes_of_process(POLICY_TASK_BYTES);
    unsigned char *array = arena_take(&simulator->arena, simulator->process_limit, bytes);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        struct process *moved = (struct process *)(void *)(array + slot * bytes);
        *moved = *process_at(simulator, slot);
        moved->task.state = moved + 1;
    }
    const unsigned char *old = simulator->processes;
    size_t old_bytes = simulator->process_limit * simulator->process_bytes;
    simulator->processes = array;
    simulator->process_bytes = bytes;
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        struct process **current = &simulator->cpus[i].current;
        *current = *current ? process_at(simulator, (*current)->task.slot) : NULL;
    }
#if GUARD_BYTES > 0
    ASAN_POISON_MEMORY_REGION(old, old_bytes); /* nobody's */
#else
    (void)old;
    (void)old_bytes;
#endif
}

/* All processes leave the old policy, and nobody is known to the new one. */
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
    if (!choose_policy(text, &choice, error) || !set_costs(simulator, &choice, error))
        return false;
    size_t bytes = bytes_of_process(state_bytes_of(choice.policy));
    uint32_t drained = leave_policy(simulator);
    if (bytes > simulator->process_bytes)
        move_processes(simulator);
    simulator->engine = engines[policy_source(choice.policy)];
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

/* Sets those of "name=value,name=value"; null or empty: none. */
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

static void record_set_tunables(struct simulator *simulator, const char *text)
{
    struct simulator_error unused;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t index;
        int64_t value;
        if (read_tunable(simulator->engine->policy, text, length, &index, &value, &unused))
            record_tunable(simulator, 0, index);
        text += length + (text[length] == ',');
    }
}

/* ---- the trace begins and ends ---- */

bool open_trace(struct simulator *simulator, const char *path, struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    trace->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (trace->file < 0) {
        set_error(error, "the trace %s cannot be created: %s", path, strerror(errno));
        return false;
    }
    trace->buffer = malloc(TRACE_BUFFER_RECORDS * sizeof(*trace->buffer));
    if (!trace->buffer) {
        set_error(error, "no memory for the trace's buffer");
        return false;
    }
    trace->next = trace->buffer;
    trace->end = trace->buffer + TRACE_BUFFER_RECORDS;
    return true;
}

void close_trace(struct simulator *simulator)
{
    struct trace *trace = &simulator->trace;
    if (trace->file >= 0 && close(trace->file) != 0 && !trace->error)
        trace->error = errno;
    free(trace->buffer);
    *trace = (struct trace){.file = -1, .records = trace->records, .error = trace->error};
}

bool begin_trace(struct simulator *simulator, const struct simulator_setup *setup,
                 struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    const struct trace_header header = {
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(struct trace_header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = setup->cpus,
        .tick_ns = setup->tick_ns,
        .cycles_per_second = 1000000000,
        .seed = setup->seed,
    };
    if (!open_trace(simulator, setup->trace, error))
        return false;
    if (!write_all(trace, &header, sizeof(header))) {
        set_error(error, "the trace %s cannot be written: %s", setup->trace,
                  strerror(trace->error));
        return false;
    }
    for (uint32_t cpu = 0; cpu < setup->cpus; cpu++)
        record_at(simulator, 0, cpu, TRACE_START, 0, 0, 0);
    record_policy(simulator, 0, simulator->policy_name);
    record_set_tunables(simulator, setup->tunables);
    return true;
}

/* ---- the machine runs ---- */

enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error)
{
    if (simulator->finished)
        fail(simulator, "the run is finished, and cannot go on");
    if (until > TIME_MAX)
        until = TIME_MAX;
    if (simulator->status == SIMULATOR_TIME)
        recipe_note_run(&simulator->recipe, until);
    const struct engine *engine = NULL;
    while (simulator->status == SIMULATOR_TIME && simulator->engine != engine) {
        engine = simulator->engine;
        engine->run(simulator, until);
    }
    if (simulator->status == SIMULATOR_TIME && simulator->now < until)
        simulator->now = until;
    if (simulator->status != SIMULATOR_FAILED)
        trace_failed(simulator);
    if (simulator->status == SIMULATOR_FAILED)
        *error = simulator->error;
    return simulator->status;
}

uint64_t simulator_next(const struct simulator *simulator)
{
    uint64_t event = events_next(simulator);
    uint64_t timer = timers_next(&simulator->timers);
    uint64_t earliest = timer < event ? timer : event;
    bool idle = simulator->busy == 0 && simulator->queued == 0 && event == NEVER;
    if (simulator->finished || simulator->status != SIMULATOR_TIME)
        return NEVER;
    if (cpu_set_next(&simulator->called, 0, simulator->scheduler.cpus) != NO_CPU)
        return simulator->now;
    return idle || earliest < simulator->next_tick ? earliest : simulator->next_tick;
}

bool simulator_flush(struct simulator *simulator, struct simulator_error *error)
{
    if (simulator->trace.next)
        trace_flush(&simulator->trace);
    if (trace_failed(simulator))
        *error = simulator->error;
    return !simulator->trace.error;
}

bool simulator_finish(struct simulator *simulator, struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    if (trace->next && !simulator->finished) {
        for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
            struct cpu *cpu = &simulator->cpus[i];
            uint64_t time = cpu->resumes > simulator->now ? cpu->resumes : simulator->now;
            record_at(simulator, time, i, TRACE_END, 0, 0, cpu->records + 1);
        }
        trace_flush(trace);
        close_trace(simulator);
    }
    simulator->finished = true;
    if (trace_failed(simulator))
        *error = simulator->error;
    return !trace->error;
}

void simulator_count(const struct simulator *simulator, struct simulator_counts *counts)
{
    *counts = simulator->counts;
    counts->now = simulator->now;
    counts->records = simulator->trace.records;
    counts->process_bytes =
        simulator->process_bytes - GUARD_BYTES + simulator->loop_depth * sizeof(uint32_t);
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        const struct cpu *cpu = &simulator->cpus[i];
        if (!cpu->current && simulator->now > cpu->idle_since)
            counts->idle_time += simulator->now - cpu->idle_since;
    }
}
