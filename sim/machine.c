/* SPDX-License-Identifier: MIT */

/*
 * The machine around the engine: how it is made, its processes, its trace, and how
 * another policy comes into force.
 */

#include "sim/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "policies/support/hooks.h"

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GUARD_BYTES 32
#else
#define GUARD_BYTES 0
#endif

#define TRACE_BUFFER_RECORDS  16384
#define PROCESSES_STANDARD    4096
#define TICK_SHORTEST         1000ull
#define TICK_LONGEST          1000000000000ull
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

static bool trace_failed(struct simulator *simulator)
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

static bool open_trace(struct simulator *simulator, const struct simulator_setup *setup,
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
    trace->file = open(setup->trace, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (trace->file < 0) {
        set_error(error, "the trace %s cannot be created: %s", setup->trace, strerror(errno));
        return false;
    }
    trace->buffer = malloc(TRACE_BUFFER_RECORDS * sizeof(*trace->buffer));
    if (!trace->buffer) {
        set_error(error, "no memory for the trace's buffer");
        return false;
    }
    trace->next = trace->buffer;
    trace->end = trace->buffer + TRACE_BUFFER_RECORDS;
    if (!write_all(trace, &header, sizeof(header))) {
        set_error(error, "the trace %s cannot be written: %s", setup->trace,
                  strerror(trace->error));
        return false;
    }
    for (uint32_t cpu = 0; cpu < setup->cpus; cpu++)
        record_at(simulator, 0, cpu, TRACE_START, 0, 0, 0);
    return true;
}

/* ---- processes ---- */

uint32_t program_of(const struct simulator *simulator, const struct process *process)
{
    uint32_t low = 0;
    uint32_t high = simulator->program_count + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (simulator->program_first[middle] <= process->step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void record_name(struct simulator *simulator, struct cpu *cpu)
{
    uint32_t program = program_of(simulator, cpu->current);
    record_text(simulator, cpu->resumes, cpu->id, TRACE_EXEC, pid_of(cpu->current),
                simulator->names[program]);
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
        .step = simulator->program_first[program],
        .link = NOBODY,
        .parent = parent ? parent->task.slot : FIRST_SLOT,
        .parent_pid = parent ? parent->task.pid : 0,
        .zombies = NOBODY,
        .place = PLACE_BLOCKED,
    };
    if (program < simulator->program_count)
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

static bool choose_policy(const char *text, struct policy_choice *choice,
                          struct simulator_error *error)
{
    enum policy_error problem = policy_choose(text, strlen(text), choice);
    if (problem)
        set_error(error, "policy %s: %s", text, policy_error_text(problem));
    const char *flaw = problem ? NULL : policy_flaw(choice->policy);
    if (flaw)
        set_error(error, "policy %s contradicts itself: %s", text, flaw);
    return !problem && !flaw;
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

static uint32_t state_bytes_of(const struct policy *policy)
{
    uint32_t bytes = policy->task_bytes ? policy->task_bytes : POLICY_TASK_BYTES;
    return (bytes + 7) / 8 * 8;
}

/* What lies behind the state that a policy asks for is not its own: AddressSanitizer is told. */
static void guard_states(const struct simulator *simulator)
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

static size_t bytes_of_process(uint32_t state_bytes)
{
    return sizeof(struct process) + state_bytes + GUARD_BYTES;
}

/* Puts all processes, of which none is queued, into a larger array. */
static void move_processes(struct simulator *simulator, unsigned char *array, size_t bytes)
{
    unsigned char *old = simulator->processes;
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++) {
        struct process *moved = (struct process *)(void *)(array + slot * bytes);
        *moved = *process_at(simulator, slot);
        moved->task.state = moved + 1;
    }
    simulator->processes = array;
    simulator->process_bytes = bytes;
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        struct process **current = &simulator->cpus[i].current;
        *current = *current ? process_at(simulator, (*current)->task.slot) : NULL;
    }
    free(old);
}

/* All processes leave the old policy, and nobody is known to the new one. */
static uint32_t leave_policy(struct simulator *simulator)
{
    uint32_t drained = simulator->engine->drain(simulator);
    for (uint32_t slot = 0; slot < simulator->process_limit; slot++)
        process_at(simulator, slot)->known = false;
    return drained;
}

static void enter_policy(struct simulator *simulator, uint32_t cpu, uint32_t drained)
{
    simulator->engine->install(simulator);
    simulator->engine->adopt(simulator, drained);
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        struct cpu *called = &simulator->cpus[i];
        if (!(called->reschedule && called->why == PREEMPT_SLICE))
            called->why = PREEMPT_POLICY;
        if (!called->reschedule)
            called->called = simulator->now + (i == cpu ? 0 : simulator->costs.interrupt);
        called->reschedule = true;
        cpu_set_add(&simulator->called, i);
    }
}

bool switch_policy(struct simulator *simulator, uint32_t cpu, const char *text,
                   struct simulator_error *error)
{
    struct policy_choice choice;
    if (!choose_policy(text, &choice, error))
        return false;
    size_t bytes = bytes_of_process(state_bytes_of(choice.policy));
    unsigned char *larger = NULL;
    if (bytes > simulator->process_bytes) {
        larger = calloc(simulator->process_limit, bytes);
        if (!larger) {
            set_error(error, "no memory for what policy %s keeps of each process", text);
            return false;
        }
    }
    uint32_t drained = leave_policy(simulator);
    if (larger)
        move_processes(simulator, larger, bytes);
    simulator->engine = engines[policy_number(choice.policy)];
    simulator->state_bytes = state_bytes_of(choice.policy);
    guard_states(simulator);
    policy_set_defaults(&simulator->scheduler, &choice);
    enter_policy(simulator, cpu, drained);
    record_policy(simulator, cpu, text);
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
    enter_policy(simulator, cpu, drained);
    record_tunable(simulator, cpu, index);
    return true;
}

/* Sets those of "name=value,name=value"; null or empty: none. */
static bool set_tunables(struct simulator *simulator, const char *text,
                         struct simulator_error *error)
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

/* ---- a workload is checked and copied ---- */

bool attribute_allowed(uint32_t kind, uint64_t value)
{
    switch (kind) {
    case ATTRIBUTE_PRIORITY:
        return value <= PRIORITY_LOWEST;
    case ATTRIBUTE_TICKETS:
        return value >= 1 && value <= TICKETS_MAX;
    case ATTRIBUTE_WEIGHT:
        return value >= 1 && value <= WEIGHT_MAX;
    default:
        return false;
    }
}

/* Null: the step is sound; else what is wrong. `place`: within its program. */
static const char *step_flaw(const struct simulator_workload *workload,
                             const struct workload_step *step, uint32_t place)
{
    bool to_program =
        step->kind == STEP_FORK || step->kind == STEP_KILL || step->kind == STEP_ATTRIBUTE;
    bool to_channel = step->kind == STEP_TAKE || step->kind == STEP_GIVE || step->kind == STEP_MEET;
    bool has_time = step->kind <= STEP_TIMER || step->kind == STEP_SHARED_TIMER;
    bool to_text = step->kind == STEP_SET_POLICY || step->kind == STEP_SET_TUNABLE;
    bool to_self = step->kind == STEP_ATTRIBUTE && step->target == WORKLOAD_SELF;
    if (step->kind >= STEP_COUNT)
        return "there is no such act";
    if (has_time && step->value > TIME_MAX)
        return "the time is too long";
    if (to_program && !to_self && step->target >= workload->program_count)
        return "there is no such program";
    if (to_channel && step->target >= workload->channel_count)
        return "there is no such channel";
    if (step->kind == STEP_TAKE && step->value > workload->channel_count)
        return "there is no such channel to give to";
    if (step->kind == STEP_TIMER && step->detail >= WORKLOAD_TIMERS_MAX)
        return "a process has at most 8 timers";
    if (step->kind == STEP_SHARED_TIMER && step->target >= WORKLOAD_SHARED_TIMERS_MAX)
        return "there may be at most 65536 shared timers";
    if (step->kind == STEP_MEET && (step->value < 1 || step->value > SIMULATOR_PROCESSES_MAX))
        return "so many processes cannot meet";
    if (to_text && step->target >= workload->text_count)
        return "there is no such text";
    if (step->kind == STEP_ATTRIBUTE && !attribute_allowed(step->detail, step->value))
        return "there is no such attribute, or its value is out of its range";
    if (step->kind == STEP_MARK && (step->detail < MARK_BEGIN || step->detail > MARK_NOTE))
        return "there is no such mark";
    if (step->kind == STEP_LOOP && step->detail >= WORKLOAD_LOOPS_MAX)
        return "the loop is within too many others";
    if (step->kind == STEP_LOOP && (step->target >= place || step->value > UINT32_MAX))
        return "the loop must go back, over one step at least, and no more than 2^32 - 1 times";
    return NULL;
}

/* Loops that go to a loop within themselves alone would never end. */
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
            flaw = "nothing is in the loop";
        if (flaw)
            break;
    }
    if (!flaw && (program->count == 0 || program->steps[program->count - 1].kind != STEP_EXIT))
        flaw = "the last step must be exit";
    if (flaw)
        set_error(error, "program %s, step %u: %s", program->name, place, flaw);
    return !flaw;
}

static bool check_workload(const struct simulator_workload *workload, struct simulator_error *error)
{
    uint64_t steps = 0;
    if (workload->program_count == 0) {
        set_error(error, "the workload has no program");
        return false;
    }
    for (uint32_t i = 0; i < workload->program_count; i++) {
        if (!check_program(workload, &workload->programs[i], error))
            return false;
        steps += workload->programs[i].count;
    }
    if (steps > SIMULATOR_STEPS_MAX || workload->channel_count > SIMULATOR_CHANNELS_MAX) {
        set_error(error, "the workload has too many steps or channels: at most %u and %u",
                  SIMULATOR_STEPS_MAX, SIMULATOR_CHANNELS_MAX);
        return false;
    }
    return true;
}

static char *copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static bool copy_programs(struct simulator *simulator, const struct simulator_workload *workload)
{
    uint32_t total = 0;
    uint32_t count = workload->program_count;
    for (uint32_t i = 0; i < count; i++)
        total += workload->programs[i].count;
    simulator->steps = calloc(total + 2, sizeof(*simulator->steps));
    simulator->program_first = calloc(count + 1, sizeof(*simulator->program_first));
    simulator->names = calloc(count + 1, sizeof(*simulator->names));
    simulator->players = calloc(count, sizeof(*simulator->players));
    if (!simulator->steps || !simulator->program_first || !simulator->names || !simulator->players)
        return false;
    simulator->program_count = count;
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct simulator_program *program = &workload->programs[i];
        simulator->program_first[i] = next;
        simulator->players[i].slot = NOBODY;
        simulator->names[i] = copy_text(program->name);
        if (!simulator->names[i])
            return false;
        for (uint32_t j = 0; j < program->count; j++) {
            struct workload_step step = program->steps[j];
            if (step.kind == STEP_LOOP) {
                step.target += simulator->program_first[i];
                if (step.detail >= simulator->loop_depth)
                    simulator->loop_depth = step.detail + 1u;
            }
            if (step.kind == STEP_TIMER && step.detail >= simulator->timer_count)
                simulator->timer_count = step.detail + 1u;
            if (step.kind == STEP_SHARED_TIMER && step.target >= simulator->shared_timer_count)
                simulator->shared_timer_count = step.target + 1u;
            simulator->steps[next++] = step;
        }
    }
    simulator->timer_count += simulator->shared_timer_count > 0;
    simulator->program_first[count] = next;
    simulator->names[count] = copy_text("init");
    simulator->steps[next++] = (struct workload_step){.kind = STEP_FORK};
    simulator->steps[next] = (struct workload_step){.kind = STEP_REAP};
    return simulator->names[count] != NULL;
}

static bool copy_texts(struct simulator *simulator, const struct simulator_workload *workload)
{
    if (workload->text_count == 0)
        return true;
    simulator->texts = calloc(workload->text_count, sizeof(*simulator->texts));
    if (!simulator->texts)
        return false;
    simulator->text_count = workload->text_count;
    for (uint32_t i = 0; i < workload->text_count; i++) {
        simulator->texts[i] = copy_text(workload->texts[i]);
        if (!simulator->texts[i])
            return false;
    }
    return true;
}

static bool copy_channels(struct simulator *simulator, const struct simulator_workload *workload)
{
    if (workload->channel_count == 0)
        return true;
    simulator->channels = calloc(workload->channel_count, sizeof(*simulator->channels));
    if (!simulator->channels)
        return false;
    simulator->channel_count = workload->channel_count;
    for (uint32_t i = 0; i < workload->channel_count; i++)
        simulator->channels[i] = (struct channel){workload->channels[i], NOBODY, NOBODY, 0};
    return true;
}

static bool make_shared_timers(struct simulator *simulator)
{
    uint32_t count = simulator->shared_timer_count;
    if (count == 0)
        return true;
    simulator->shared_times = calloc(count, sizeof(*simulator->shared_times));
    for (uint32_t i = 0; simulator->shared_times && i < count; i++)
        simulator->shared_times[i] = NEVER;
    return simulator->shared_times != NULL;
}

/* ---- the machine is made ---- */

static bool check_setup(const struct simulator_setup *setup, struct simulator_error *error)
{
    const struct simulator_costs *costs = &setup->costs;
    const uint64_t all[] = {costs->scheduler, costs->context_switch, costs->tick, costs->interrupt,
                            costs->migration, costs->call,           costs->fork, costs->exit};
    if (setup->cpus < 1 || setup->cpus > POLICY_CPUS_MAX) {
        set_error(error, "%u CPUs: there may be 1 to %u", setup->cpus, POLICY_CPUS_MAX);
        return false;
    }
    if (setup->processes > SIMULATOR_PROCESSES_MAX) {
        set_error(error, "%u processes: there may be %u at most", setup->processes,
                  SIMULATOR_PROCESSES_MAX);
        return false;
    }
    if (setup->tick_ns < TICK_SHORTEST || setup->tick_ns > TICK_LONGEST) {
        set_error(error, "a tick of %llu ns: it may be 1 us to 1000 s",
                  (unsigned long long)setup->tick_ns);
        return false;
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] > TICK_LONGEST) {
            set_error(error, "a cost of %llu ns: 1000 s is the most", (unsigned long long)all[i]);
            return false;
        }
    }
    if (costs->tick + costs->scheduler + costs->context_switch >= setup->tick_ns) {
        set_error(error,
                  "a tick of %llu ns leaves no time to compute: tick, scheduler and context "
                  "switch cost as much",
                  (unsigned long long)setup->tick_ns);
        return false;
    }
    return true;
}

static void set_step_costs(struct simulator *simulator)
{
    for (int kind = 0; kind < STEPS_ALL; kind++)
        simulator->step_cost[kind] = simulator->costs.call;
    simulator->step_cost[STEP_RUN_UNTIL] = 0;
    simulator->step_cost[STEP_FORK] = simulator->costs.fork;
    simulator->step_cost[STEP_EXIT] = simulator->costs.exit;
}

/* Policies that come into force later may need more. */
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

static bool make_processes(struct simulator *simulator, const struct simulator_setup *setup,
                           bool any_policy)
{
    uint32_t room = any_policy ? POLICY_TASK_BYTES : simulator->state_bytes;
    simulator->process_limit = setup->processes ? setup->processes : PROCESSES_STANDARD;
    simulator->process_bytes = bytes_of_process(room);
    simulator->processes = calloc(simulator->process_limit, simulator->process_bytes);
    if (simulator->loop_depth > 0)
        simulator->loop_rounds =
            calloc((size_t)simulator->process_limit * simulator->loop_depth, sizeof(uint32_t));
    if (simulator->timer_count > 0)
        simulator->timer_times =
            calloc((size_t)simulator->process_limit * simulator->timer_count, sizeof(uint64_t));
    if (simulator->processes)
        guard_states(simulator);
    return simulator->processes && (simulator->loop_depth == 0 || simulator->loop_rounds) &&
           (simulator->timer_count == 0 || simulator->timer_times) &&
           slots_create(&simulator->slots, simulator->process_limit);
}

static bool make_cpus(struct simulator *simulator, uint32_t cpus)
{
    simulator->event_leaves = 1;
    while (simulator->event_leaves < cpus)
        simulator->event_leaves *= 2;
    simulator->cpus = calloc(cpus, sizeof(*simulator->cpus));
    simulator->events = calloc(2 * simulator->event_leaves, sizeof(*simulator->events));
    simulator->queues = calloc(cpus, sizeof(*simulator->queues));
    simulator->queue_states = calloc(cpus, POLICY_QUEUE_BYTES);
    if (!simulator->cpus || !simulator->events || !simulator->queues || !simulator->queue_states)
        return false;
    for (uint32_t i = 0; i < 2 * simulator->event_leaves; i++)
        simulator->events[i] = NEVER;
    for (uint32_t i = 0; i < cpus; i++) {
        simulator->cpus[i] = (struct cpu){.id = i, .due_first = NOBODY, .due_last = NOBODY};
        cpu_set_add(&simulator->idle, i);
        simulator->queues[i].state = (char *)simulator->queue_states + i * POLICY_QUEUE_BYTES;
        simulator->scheduler.queue[i] = &simulator->queues[i];
    }
    simulator->ticked = cpus;
    return true;
}

static bool make(struct simulator *simulator, const struct simulator_setup *setup,
                 const struct simulator_workload *workload, struct simulator_error *error)
{
    struct policy_choice choice;
    if (!choose_policy(setup->policy, &choice, error))
        return false;
    simulator->engine = engines[policy_number(choice.policy)];
    simulator->state_bytes = state_bytes_of(choice.policy);
    simulator->costs = setup->costs;
    simulator->next_tick = setup->tick_ns;
    simulator->counts.exit_status = -1;
    simulator->scheduler = (struct scheduler){
        .cpus = setup->cpus,
        .tick_ns = setup->tick_ns,
        .seed = setup->seed,
        .state = simulator->scheduler_state,
    };
    set_step_costs(simulator);
    policy_set_defaults(&simulator->scheduler, &choice);
    if (!set_tunables(simulator, setup->tunables, error))
        return false;
    if (!copy_programs(simulator, workload) || !copy_texts(simulator, workload) ||
        !copy_channels(simulator, workload) || !make_shared_timers(simulator) ||
        !make_cpus(simulator, setup->cpus) ||
        !make_processes(simulator, setup, switches_policy(workload))) {
        set_error(error, "no memory for the machine: fewer processes need less");
        return false;
    }
    simulator->engine->install(simulator);
    if (setup->trace && !open_trace(simulator, setup, error))
        return false;
    record_policy(simulator, 0, setup->policy);
    record_set_tunables(simulator, setup->tunables);
    struct process *init = process_create(simulator, NULL, workload->program_count);
    simulator->engine->start(simulator, init);
    return true;
}

struct simulator *simulator_create(const struct simulator_setup *setup,
                                   const struct simulator_workload *workload,
                                   struct simulator_error *error)
{
    if (!check_setup(setup, error) || !check_workload(workload, error))
        return NULL;
    struct simulator *simulator = calloc(1, sizeof(*simulator));
    if (!simulator) {
        set_error(error, "no memory");
        return NULL;
    }
    simulator->trace.file = -1;
    if (!make(simulator, setup, workload, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    return simulator;
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

void simulator_destroy(struct simulator *simulator)
{
    if (!simulator)
        return;
    if (simulator->trace.file >= 0)
        close(simulator->trace.file);
    free(simulator->trace.buffer);
    free_texts(simulator->names, simulator->program_count + 1);
    free_texts(simulator->texts, simulator->text_count);
    free(simulator->steps);
    free(simulator->program_first);
    free(simulator->players);
    free(simulator->channels);
    free(simulator->loop_rounds);
    free(simulator->timer_times);
    free(simulator->shared_times);
    free(simulator->processes);
    slots_free(&simulator->slots);
    free(simulator->timers.heap);
    free(simulator->cpus);
    free(simulator->events);
    free(simulator->queues);
    free(simulator->queue_states);
    free(simulator);
}

/* ---- the machine runs ---- */

enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error)
{
    if (simulator->finished)
        fail(simulator, "the run is finished, and cannot go on");
    if (until > TIME_MAX)
        until = TIME_MAX;
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
        if (close(trace->file) != 0 && !trace->error)
            trace->error = errno;
        trace->file = -1;
        trace->next = NULL;
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
