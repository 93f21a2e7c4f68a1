/* SPDX-License-Identifier: MIT */

/*
 * The policy's side: compiled with one policy (named by POLICY) to a WebAssembly module. It has no
 * data but what the policy may know.
 *
 * A call contains the changes of tasks, queues and the scheduler. This side applies them to the
 * structures that policies see, calls the hook, and answers with what the hook has changed.
 *
 * The simulator trusts nothing in this module, because the policy can write to all of its memory.
 */

#include "policies/policy.h"
#include "sim/apart/message.h"

extern const struct policy POLICY;

/* Switches off the sanitizer's checks in functions that transfer messages. These functions visit
 * all queues and tasks at each call, and are several times faster so. They are not part of the
 * policy. */
#define CARRIES __attribute__((no_sanitize("undefined")))

static struct separate_message message;
static struct scheduler scheduler;
static struct run_queue queues[SEPARATE_CPUS];
static struct task tasks[SEPARATE_TASKS];
static struct cpu_set sets[SEPARATE_TASKS];
static struct separate_task fields[SEPARATE_TASKS]; /* the simulator's fields of each task, as
                                                     * last received */
static struct separate_queue received_queues[SEPARATE_CPUS];
static struct {
    uint64_t level, lent;
} last[SEPARATE_TASKS]; /* the policy's fields of each task, as last sent */
static uint32_t task_end;
static uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
static uint64_t queue_states[SEPARATE_CPUS][POLICY_QUEUE_BYTES / 8];
/* The policy's state of each task. A further word after each state shows whether the policy
 * wrote beyond it. */
static uint64_t task_states[SEPARATE_TASKS][POLICY_TASK_BYTES / 8 + 1];

/* ---- functions that the compiler may call ---- */

typedef uint64_t __attribute__((may_alias)) word_t;

void *memset(void *to, int value, size_t count);
void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);

void *memset(void *to, int value, size_t count)
{
    volatile unsigned char *bytes = to; /* volatile: otherwise the compiler would replace the
                                         * loop by a call of memset() */
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)value;
    return to;
}

CARRIES void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    volatile unsigned char *bytes = to;
    size_t i = 0;
    if (((uintptr_t)to | (uintptr_t)from) % sizeof(word_t) == 0)
        for (; i + sizeof(word_t) <= count; i += sizeof(word_t))
            *(volatile word_t *)((uintptr_t)to + i) = *(const word_t *)((uintptr_t)from + i);
    for (; i < count; i++)
        bytes[i] = ((const unsigned char *)from)[i];
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    volatile unsigned char *bytes = to;
    const unsigned char *old = from;
    for (size_t i = 0; i < count; i++) {
        size_t at = (uintptr_t)to < (uintptr_t)from ? i : count - 1 - i;
        bytes[at] = old[at];
    }
    return to;
}

/* Returns the product of two 128-bit numbers. The compiler calls it to detect overflows of
 * 64-bit products. */
__int128 __multi3(__int128 left, __int128 right);

__int128 __multi3(__int128 left, __int128 right)
{
    const uint64_t a = (uint64_t)left, b = (uint64_t)right;
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t low = a_low * b_low;
    const uint64_t first = a_high * b_low + (low >> 32);
    const uint64_t second = a_low * b_high + (uint32_t)first;
    uint64_t high = a_high * b_high + (first >> 32) + (second >> 32);
    high += a * (uint64_t)(right >> 64) + b * (uint64_t)(left >> 64);
    return (__int128)((unsigned __int128)high << 64 | (second << 32) | (uint32_t)low);
}

/* ---- broken rules ---- */

static void copy_text(char *to, size_t room, const char *from)
{
    size_t i = 0;
    for (; from && from[i] && i + 1 < room; i++)
        to[i] = from[i];
    to[i] = 0;
}

static void trouble(const char *text)
{
    if (!message.answer.trouble[0])
        copy_text(message.answer.trouble, sizeof(message.answer.trouble), text);
}

/* UndefinedBehaviorSanitizer (-fsanitize-minimal-runtime) calls these functions when the policy
 * does what C leaves undefined. They stop the module. The host finds the source line in the
 * stack of the stopped module. */
#define UNDEFINED(check, text)                                                                     \
    void __ubsan_handle_##check##_minimal_abort(void);                                             \
    void __ubsan_handle_##check##_minimal_abort(void)                                              \
    {                                                                                              \
        trouble(text);                                                                             \
        __builtin_trap();                                                                          \
    }
UNDEFINED(type_mismatch, "it uses a null pointer, or a pointer of another type")
UNDEFINED(alignment_assumption, "a pointer is misaligned")
UNDEFINED(add_overflow, "a sum is too large for its type")
UNDEFINED(sub_overflow, "a difference is too large for its type")
UNDEFINED(mul_overflow, "a product is too large for its type")
UNDEFINED(negate_overflow, "a number is too large for its type")
UNDEFINED(divrem_overflow, "it divides by zero")
UNDEFINED(shift_out_of_bounds, "it shifts by too much")
UNDEFINED(out_of_bounds, "it accesses an array beyond its end")
UNDEFINED(local_out_of_bounds, "it accesses a variable beyond its end")
UNDEFINED(builtin_unreachable, "it reaches unreachable code")
UNDEFINED(missing_return, "a function ends without returning a value")
UNDEFINED(vla_bound_not_positive, "an array has no length")
UNDEFINED(float_cast_overflow, "a number is too large for its type")
UNDEFINED(load_invalid_value, "a value is not one of its type")
UNDEFINED(invalid_builtin, "a compiler function gets an invalid argument")
UNDEFINED(invalid_objc_cast, "a cast is invalid")
UNDEFINED(function_type_mismatch, "it calls a function of another type")
UNDEFINED(implicit_conversion, "a number is too large for its type")
UNDEFINED(nonnull_arg, "it passes a null pointer")
UNDEFINED(nonnull_return, "it returns a null pointer")
UNDEFINED(nullability_arg, "it passes a null pointer")
UNDEFINED(nullability_return, "it returns a null pointer")
UNDEFINED(pointer_overflow, "a pointer leaves its object")
UNDEFINED(cfi_check_fail, "it calls a function of another type")

/* ---- basic blocks ---- */

/*
 * A browser counts no instructions. So a page compiles policies with
 * -fsanitize-coverage=trace-pc-guard, which makes the policy call this file at each basic block.
 * This file ends hooks that do not return, and records which blocks a hook has executed.
 */
#define BLOCKS_MOST 2000000
#define LOOP_FROM   1000000 /* a hook that has executed so many blocks may be in an endless loop */
#define PATH_MOST   4096

static struct {
    uint32_t executed; /* basic blocks executed in this call of a hook */
    uint32_t count;    /* blocks in `path`, at most PATH_MOST */
    uint16_t blocks[PATH_MOST];
} path;

extern uint32_t guards[] __asm__("__start___sancov_guards");
extern uint32_t guards_end[] __asm__("__stop___sancov_guards");

/* Tells the host that a basic block is executed for the first time, or for the first time since
 * LOOP_FROM. The host finds the block's source line in its stack. */
__attribute__((import_module("host"), import_name("first_reached"))) void
first_reached(uint32_t block);

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
__attribute__((export_name("path"))) void *path_place(void);

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
    (void)start;
    (void)stop;
}

/* Reports all blocks to the host again after LOOP_FROM blocks, and then that the hook does not end.
 * So the host knows the blocks of the loop. */
CARRIES static void follow_loop(void)
{
    if (path.executed == LOOP_FROM)
        for (uint32_t *guard = guards; guard < guards_end; guard++)
            *guard = 0;
    if (path.executed > BLOCKS_MOST) {
        trouble("it does not end");
        __builtin_trap();
    }
}

CARRIES void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    const uint32_t block = (uint32_t)(guard - guards);
    if (++path.executed >= LOOP_FROM)
        follow_loop();
    if (!*guard) {
        *guard = 1;
        first_reached(block);
    }
    if (path.count < PATH_MOST)
        path.blocks[path.count++] = (uint16_t)block;
}

void *path_place(void)
{
    return &path;
}

/*
 * To find the state that a decision reads, a page compiles the policy with
 * -fsanitize-coverage=trace-loads, too. The policy then calls this file before each load. Other
 * builds leave these functions out.
 */
__attribute__((import_module("host"), import_name("before_load"))) void
before_load(const void *address, uint32_t bytes);

#define TRACE_LOADS(bytes)                                                                         \
    void __sanitizer_cov_load##bytes(const void *address);                                         \
    CARRIES void __sanitizer_cov_load##bytes(const void *address)                                  \
    {                                                                                              \
        before_load(address, bytes);                                                               \
    }
TRACE_LOADS(1)
TRACE_LOADS(2)
TRACE_LOADS(4)
TRACE_LOADS(8)
TRACE_LOADS(16)

/* ---- receiving a call ---- */

CARRIES static task_t *task_of(int64_t number)
{
    return number > 0 && number <= SEPARATE_TASKS ? &tasks[number - 1] : NULL;
}

CARRIES static void hear_scheduler(void)
{
    const struct separate_scheduler *from = &message.call.scheduler;
    scheduler.cpus = (uint32_t)from->cpus;
    scheduler.queues = (uint32_t)from->queues;
    scheduler.tick_ns = (uint64_t)from->tick_ns;
    scheduler.overhead_ns = (uint64_t)from->overhead_ns;
    scheduler.seed = (uint64_t)from->seed;
    scheduler.ending = from->ending != 0;
    scheduler.groups = (uint32_t)from->groups;
    for (uint32_t i = 0; i < POLICY_TUNABLES_MAX; i++)
        scheduler.tunable[i] = from->tunables[i];
    for (uint32_t i = 0; i < GROUPS_MAX; i++)
        scheduler.group[i] =
            (struct share_group){(uint32_t)from->group[i].parent, (uint32_t)from->group[i].weight,
                                 (uint64_t)from->group[i].quota, (uint64_t)from->group[i].period};
    scheduler.state = scheduler_state;
}

#define HEAR(field) queue->field = (__typeof__(queue->field))from->field;

CARRIES static void hear_queues(void)
{
    for (int64_t i = 0; i < message.call.queue_count && i < SEPARATE_CPUS; i++) {
        const struct separate_queue *from = &message.call.queues[i];
        uint32_t cpu = (uint32_t)from->number - 1;
        if (cpu >= SEPARATE_CPUS)
            continue;
        run_queue_t *queue = &queues[cpu];
        SEPARATE_QUEUE_HOST(HEAR)
        SEPARATE_QUEUE_POLICY(HEAR)
        queue->scheduler = &scheduler;
        queue->cpu = cpu;
        queue->current = task_of(from->current);
        queue->state = queue_states[cpu];
        scheduler.queue[cpu] = queue;
        received_queues[cpu] = *from;
    }
}

#undef HEAR
#define HEAR(field)      task->field = (__typeof__(task->field))from->field;
#define HEAR_LINK(field) task->field = task_of(from->field);

CARRIES static void hear_tasks(void)
{
    for (int64_t i = 0; i < message.call.task_count && i < SEPARATE_TASKS; i++) {
        const struct separate_task *from = &message.call.tasks[i];
        uint32_t slot = (uint32_t)from->slot;
        if (slot >= SEPARATE_TASKS)
            continue;
        task_t *task = &tasks[slot];
        SEPARATE_TASK_NUMBERS(HEAR)
        SEPARATE_TASK_LINKS(HEAR_LINK)
        sets[slot].words[0] = from->may_run;
        task->cpus = from->is_bound ? &sets[slot] : NULL;
        task->state = task_states[slot];
        fields[slot] = *from;
        if (slot >= task_end)
            task_end = slot + 1;
    }
}

/* ---- sending an answer ---- */

static int64_t number_of(const task_t *task)
{
    uintptr_t from = (uintptr_t)task - (uintptr_t)tasks;
    if (!task)
        return 0;
    if (from >= sizeof(tasks) || from % sizeof(tasks[0]) != 0) {
        trouble("it returned an address that is not a task");
        return 0;
    }
    return (int64_t)(from / sizeof(tasks[0])) + 1;
}

CARRIES static void answer_change(uint32_t slot)
{
    struct separate_answer *answer = &message.answer;
    const task_t *task = &tasks[slot];
    if (task->level == last[slot].level && task->lent == last[slot].lent)
        return;
    last[slot].level = task->level;
    last[slot].lent = task->lent;
    int64_t place = answer->changed_count++;
    answer->changed[place].task = (int64_t)slot + 1;
    answer->changed[place].level = (int64_t)task->level;
    answer->changed[place].lent = (int64_t)task->lent;
}

/* The policy's fields of a task, which are adjacent: `level` and `lent`. */
typedef uint64_t pair_t __attribute__((vector_size(16), aligned(8), may_alias));
#define CHANGES_AT_ONCE 4
_Static_assert(offsetof(struct task, lent) == offsetof(struct task, level) + sizeof(uint64_t) &&
                   sizeof(last[0]) == sizeof(pair_t) && SEPARATE_TASKS % CHANGES_AT_ONCE == 0,
               "pairs are compared");

/* Vectorised, because every call of a hook visits all tasks. */
CARRIES __attribute__((target("simd128"))) static void answer_changes(void)
{
    message.answer.changed_count = 0;
    for (uint32_t slot = 0; slot < task_end; slot += CHANGES_AT_ONCE) {
        pair_t differs = {0};
#pragma clang loop unroll(full)
        for (uint32_t i = slot; i < slot + CHANGES_AT_ONCE; i++)
            differs |= *(const pair_t *)(const void *)&tasks[i].level ^
                       *(const pair_t *)(const void *)&last[i];
        if ((differs[0] | differs[1]) == 0)
            continue;
        for (uint32_t i = slot; i < slot + CHANGES_AT_ONCE; i++)
            answer_change(i);
    }
}

#define ANSWER(field) answer->queue.field = (int64_t)queue->field;

CARRIES static void answer_queue(const run_queue_t *queue)
{
    struct separate_answer *answer = &message.answer;
    SEPARATE_QUEUE_POLICY(ANSWER)
    answer->told = queue->said.told != 0;
    answer->said_pid = queue->said.pid;
    for (uint32_t i = 0; i < SAID_BYTES / 8; i++)
        answer->said[i] = queue->said.text[i];
    answer->said_value = queue->said.value;
    answer->said_other = queue->said.other;
}

/* ---- host data that must not change ---- */

#define UNCHANGED(field)                                                                           \
    if ((int64_t)task->field != was->field)                                                        \
        trouble("it wrote to task->" #field ", which is the host's");
#define UNCHANGED_LINK(field)                                                                      \
    if (task->field != task_of(was->field))                                                        \
        trouble("it wrote to task->" #field ", which is the host's");

CARRIES static void check_task(const task_t *task)
{
    if (!task)
        return;
    uint32_t slot = (uint32_t)(task - tasks);
    const struct separate_task *was = &fields[slot];
    SEPARATE_TASK_NUMBERS(UNCHANGED)
    SEPARATE_TASK_LINKS(UNCHANGED_LINK)
    if (task_states[slot][POLICY_TASK_BYTES / 8])
        trouble("it wrote beyond the state of a task");
    for (uint32_t i = (POLICY.task_bytes + 7) / 8; POLICY.task_bytes && i < POLICY_TASK_BYTES / 8;
         i++) {
        if (task_states[slot][i])
            trouble("it wrote beyond its state, whose size is .task_bytes");
    }
}

#undef UNCHANGED
#define UNCHANGED(field)                                                                           \
    if ((int64_t)queue->field != was->field)                                                       \
        trouble("it wrote to queue->" #field ", which is the host's");

CARRIES static void check_queue(const run_queue_t *queue)
{
    const struct separate_queue *was = &received_queues[queue - queues];
    SEPARATE_QUEUE_HOST(UNCHANGED)
    if (queue->current != task_of(was->current))
        trouble("it wrote to queue->current, which is the host's");
}

/* ---- hooks ---- */

static void clear(uint64_t *words, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes / 8; i++)
        words[i] = 0;
}

/* Initialises a queue like run_queue_begin() of policies/support/queueing.h. */
static void begin_queue(uint32_t cpu)
{
    clear(queue_states[cpu], sizeof(queue_states[cpu]));
    if (POLICY.queue_init)
        POLICY.queue_init(&queues[cpu]);
}

static void begin_task(task_t *task, const task_t *parent)
{
    uint32_t slot = (uint32_t)(task - tasks);
    clear(task_states[slot], sizeof(task_states[slot]));
    last[slot].level = last[slot].lent = 0;
    task->level = 0;
    task->lent = 0;
    task->next = NULL;
    task->previous = NULL;
    if (POLICY.task_init)
        POLICY.task_init(&scheduler, task, parent);
}

static void begin_scheduler(void)
{
    clear(scheduler_state, sizeof(scheduler_state));
    scheduler.follows_waits = false;
    scheduler.orders_waiters = false;
    if (POLICY.scheduler_init)
        POLICY.scheduler_init(&scheduler);
    message.answer.follows_waits = scheduler.follows_waits;
    message.answer.orders_waiters = scheduler.orders_waiters;
}

static int64_t present_hooks(void)
{
#define PRESENT(HOOK, hook) ((int64_t)(POLICY.hook != NULL) << (HOOK))
    return PRESENT(SEPARATE_SHARED_QUEUE, shared_queue) | PRESENT(SEPARATE_SHARES_BY, shares_by) |
           PRESENT(SEPARATE_TASK_EXIT, task_exit) | PRESENT(SEPARATE_STOPPED, stopped) |
           PRESENT(SEPARATE_TURN_OVER, turn_over) | PRESENT(SEPARATE_ALARM, alarm) |
           PRESENT(SEPARATE_CHANGED, changed) | PRESENT(SEPARATE_LEAVE, leave) |
           PRESENT(SEPARATE_WAITERS_CHANGED, waiters_changed) |
           PRESENT(SEPARATE_OVERTAKES, overtakes) | PRESENT(SEPARATE_PREEMPTS, preempts) |
           PRESENT(SEPARATE_PLACE, place) | PRESENT(SEPARATE_PUSH, push) |
           PRESENT(SEPARATE_BALANCE, balance) | PRESENT(SEPARATE_STEAL, steal);
#undef PRESENT
}

static void describe(void)
{
    struct separate_description *description = &message.description;
    if (!POLICY.enqueue || !POLICY.dequeue || !POLICY.pick || !POLICY.tick || !POLICY.time_slice)
        trouble("a required hook is missing");
    description->hooks = present_hooks();
    description->level_order = POLICY.level_order;
    description->remark_kind = POLICY.remark_kind;
    copy_text(description->name, sizeof(description->name), POLICY.name);
    description->tunable_count = POLICY.tunable_count;
    for (uint32_t i = 0; i < POLICY.tunable_count && i < POLICY_TUNABLES_MAX; i++) {
        const struct tunable *tunable = &POLICY.tunables[i];
        struct separate_tunable *place = &description->tunables[i];
        copy_text(place->name, sizeof(place->name), tunable->name);
        place->minimum = tunable->minimum;
        place->standard = tunable->standard;
        place->maximum = tunable->maximum;
    }
    description->queues_at = (int64_t)(uintptr_t)queues;
    description->queue_bytes = sizeof(queues[0]);
    description->tasks_at = (int64_t)(uintptr_t)tasks;
    description->task_bytes = sizeof(tasks[0]);
}

static int64_t call_of_queue(const struct separate_call *call, run_queue_t *queue)
{
    task_t *task = task_of(call->task);
    switch ((enum separate_hook)call->hook) {
    case SEPARATE_QUEUE_INIT:
        begin_queue(queue->cpu);
        return 0;
    case SEPARATE_ENQUEUE:
        POLICY.enqueue(queue, task, (enum enqueue_reason)call->value);
        return 0;
    case SEPARATE_DEQUEUE:
        POLICY.dequeue(queue, task);
        return 0;
    case SEPARATE_PICK:
        return number_of(POLICY.pick(queue, (uint32_t)call->value));
    case SEPARATE_STEAL:
        return number_of(POLICY.steal(queue, (uint32_t)call->value));
    case SEPARATE_ALARM:
        return number_of(POLICY.alarm(queue));
    case SEPARATE_TICK:
        return POLICY.tick(queue, task);
    case SEPARATE_TURN_OVER:
        return POLICY.turn_over(queue, task);
    case SEPARATE_STOPPED:
        POLICY.stopped(queue, task, (enum stop_reason)call->value);
        return 0;
    case SEPARATE_CHANGED:
        POLICY.changed(queue, task);
        return 0;
    case SEPARATE_LEAVE:
        POLICY.leave(queue, task);
        return 0;
    case SEPARATE_WAITERS_CHANGED:
        return POLICY.waiters_changed(queue, task);
    case SEPARATE_OVERTAKES:
        return POLICY.overtakes(queue, task, task_of(call->other));
    case SEPARATE_PREEMPTS:
        return POLICY.preempts(queue, task, task_of(call->other));
    default:
        return 0;
    }
}

static int64_t call_without_queue(const struct separate_call *call)
{
    task_t *task = task_of(call->task);
    switch ((enum separate_hook)call->hook) {
    case SEPARATE_DESCRIBE:
        describe();
        return 0;
    case SEPARATE_SCHEDULER_INIT:
        begin_scheduler();
        return 0;
    case SEPARATE_SHARED_QUEUE:
        return POLICY.shared_queue(&scheduler);
    case SEPARATE_SHARES_BY:
        return POLICY.shares_by(&scheduler);
    case SEPARATE_TASK_INIT:
        begin_task(task, task_of(call->other));
        return 0;
    case SEPARATE_TASK_EXIT:
        POLICY.task_exit(&scheduler, task);
        return 0;
    case SEPARATE_TIME_SLICE:
        return (int64_t)POLICY.time_slice(&scheduler, task);
    case SEPARATE_PLACE:
        return POLICY.place(&scheduler, task, (enum enqueue_reason)call->value);
    case SEPARATE_PUSH:
        return POLICY.push(&scheduler, (uint32_t)call->value);
    case SEPARATE_BALANCE:
        return POLICY.balance(&scheduler, (uint32_t)call->value, call->flag != 0);
    default:
        return 0;
    }
}

__attribute__((export_name("message"))) struct separate_message *message_place(void);
__attribute__((export_name("hear"))) void hear(void);
__attribute__((export_name("serve"))) void serve(void);
__attribute__((export_name("answer"))) void answer(void);

struct separate_message *message_place(void)
{
    return &message;
}

static run_queue_t *queue_of_call(void)
{
    int64_t number = message.call.queue;
    return number > 0 && number <= SEPARATE_CPUS ? &queues[number - 1] : NULL;
}

void hear(void)
{
    run_queue_t *queue = queue_of_call();
    message.answer.trouble[0] = 0;
    if (message.call.scheduler_changed)
        hear_scheduler();
    hear_queues();
    hear_tasks();
    if (queue)
        queue->said.told = 0;
}

void serve(void)
{
    run_queue_t *queue = queue_of_call();
    path.executed = path.count = 0;
    message.answer.result =
        queue ? call_of_queue(&message.call, queue) : call_without_queue(&message.call);
}

void answer(void)
{
    const struct separate_call *call = &message.call;
    const run_queue_t *queue = queue_of_call();
    if (queue) {
        check_queue(queue);
        answer_queue(queue);
    }
    check_task(task_of(call->task));
    check_task(task_of(call->other));
    answer_changes();
}
