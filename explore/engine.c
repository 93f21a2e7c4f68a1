/* SPDX-License-Identifier: MIT */

/*
 * The machine and its operations, compiled for one policy (POLICY), whose source comes before this
 * one, under sanitizers. It works by the mechanism that all hosts share (policies/support/), and
 * has each hook watched by sim/checked/.
 */

#include "explore/machine.h"

#include "explore/image.h"

#include <inttypes.h>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policies/registry.h"
#include "policies/support/attributes.h"
#include "policies/support/cpu_set.h"
#include "policies/support/groups.h"
#include "policies/support/preemption.h"
#include "policies/support/queueing.h"
#include "policies/support/waits.h"
#include "sim/checked/hooks.h"

static const struct policy *const policy = &CHECKED_POLICY;

#define VALUES_MOST 4 /* that an attribute is given */
/* When the machine begins: some months after its boot. A policy has no other numbers of that size.
 */
#define BEGIN_NS ((1ull << 54) / TICK_NS * TICK_NS)

enum kind {
    DO_NEW,   /* lowest free slot; by no task, or the one that runs on CPU b - 1 */
    DO_WAKE,  /* task a; or, if b > 0, a or b - 1, which came later to the same lock */
    DO_KILL,  /* task a, which does not run */
    DO_MOVE,  /* queued task a, to CPU b */
    DO_SET,   /* of task a: attribute and value b */
    DO_PICK,  /* CPU a */
    DO_STEAL, /* CPU a from queue b */
    DO_PREEMPT,
    DO_YIELD,
    DO_BLOCK, /* CPU a's task, which waits for task b - 1, or for none */
    DO_END,
    DO_TICK,
    DO_PASS,  /* half a tick */
    DO_BEGIN, /* the policy begins anew, as when a tunable is set */
    DO_CPUS,  /* task a may run on CPU b - 1 alone, or on all */
    DO_GROUP, /* group_changes[a] */
};

/* What users may set of groups, of those that there are then: the root, one below it, and one that
 * is below either. */
static const struct {
    uint32_t group;
    enum group_field field;
    int64_t value;
} group_changes[] = {
    {1, GROUP_WEIGHT, 1},
    {1, GROUP_WEIGHT, GROUP_WEIGHT_DEFAULT},
    {1, GROUP_WEIGHT, GROUP_WEIGHT_MAX},
    {1, GROUP_QUOTA, 0},
    {1, GROUP_QUOTA, TICK_NS},
    {0, GROUP_QUOTA, 0},
    {0, GROUP_QUOTA, TICK_NS},
    {1, GROUP_PERIOD, GROUP_PERIOD_DEFAULT},
    {1, GROUP_PERIOD, 2 * TICK_NS},
    {2, GROUP_PARENT, 0},
    {2, GROUP_PARENT, 1},
};
#define GROUP_CHANGES (sizeof(group_changes) / sizeof(group_changes[0]))

struct machine machine;
static struct setup setup;
static uint32_t named;      /* bits, by enum named: what the policy reads */
static uint32_t attributes; /* bits, by enum attribute_kind: those that are changed */
static bool changes_cpus;   /* on which tasks may run */
static bool changes_groups;
static struct cpu_set alone[QUEUES_MOST]; /* each CPU */
static uint32_t asking;                   /* the CPU for which a task is picked */
static struct policy_choice choice;
static struct simulator_setup watched_setup; /* its words */
static struct watched watched;
static bool told;
static uint32_t here; /* line of what is told */

/* ---- draws ---- */

/* What a draw modulo a number of tasks, or of tickets that are 1 or TICKETS_MAX each, in units of 1
 * and of 64, may come to. */
const uint64_t draw_values[] = {0, 1, 2, 3, 64, 128, 192, 64 * TICKETS_MAX};
const uint32_t draw_values_count = sizeof(draw_values) / sizeof(draw_values[0]);
static uint8_t draws[2];
static uint32_t drawn;

void draws_choose(const uint8_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < sizeof(draws); i++)
        draws[i] = i < count ? values[i] : 0;
    drawn = 0;
}

uint32_t draws_made(void)
{
    return drawn;
}

/* ---- what is told ---- */

static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
    va_list arguments;
    if (!told)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void machine_tell(bool wanted)
{
    told = wanted;
    here = 0;
}

uint64_t chosen_draw(void)
{
    uint8_t place = drawn < sizeof(draws) ? draws[drawn] : 0;
    drawn++;
    tell(" [draws %" PRIu64 "]", draw_values[place]);
    return draw_values[place];
}

/* ---- what is there ---- */

static bool names(enum named field)
{
    return named >> field & 1;
}

/* Does the policy know what time it is? */
static bool has_time(void)
{
    const uint32_t times = 1u << NAMED_NOW | 1u << NAMED_RUN_TIME | 1u << NAMED_COUNTED |
                           1u << NAMED_QUEUED_SINCE | 1u << NAMED_PICKED_SINCE;
    return (named & times) != 0;
}

static struct member *member_of(const task_t *task)
{
    return &machine.tasks[(const struct member *)task - machine.tasks];
}

static struct member *running_on(uint32_t cpu)
{
    return machine.current[cpu] ? &machine.tasks[machine.current[cpu] - 1] : NULL;
}

static uint32_t queue_number(uint32_t cpu)
{
    return machine.scheduler.queues == 1 ? 0 : cpu;
}

static struct run_queue *queue_of(uint32_t cpu)
{
    struct run_queue *queue = &machine.queues[queue_number(cpu)];
    queue->now = machine.now;
    return queue;
}

static bool waits_in(const struct member *member, const run_queue_t *queue)
{
    return member->place == PLACE_QUEUED && queue_number(member->task.cpu) == queue->cpu;
}

/* Would it do for the CPU that asks? */
static bool may_be_picked(const struct member *member, const run_queue_t *queue)
{
    return waits_in(member, queue) &&
           (queue->scheduler->ending || task_may_run_on(&member->task, asking));
}

static bool is_queued(const struct task *task)
{
    return member_of(task)->place == PLACE_QUEUED;
}

/* ---- what the shared mechanism asks for ---- */

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return member_of(task)->known;
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    member_of(task)->known = 1;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    return is_queued(task);
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    member_of(task)->place = queued ? PLACE_QUEUED : PLACE_BLOCKED;
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *scheduler)
{
    (void)scheduler;
    return (POLICY.task_bytes ? POLICY.task_bytes + 7 : POLICY_TASK_BYTES) / 8 * 8;
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw flaw)
{
    static const char *const texts[] = {
        [FLAW_LOST] = FLAW_LOST_TEXT,   [FLAW_HELD] = FLAW_HELD_TEXT,
        [FLAW_GIVEN] = FLAW_GIVEN_TEXT, [FLAW_COUNT] = FLAW_COUNT_TEXT,
        [FLAW_CPU] = FLAW_CPU_TEXT,     [FLAW_VERDICT] = FLAW_VERDICT_TEXT,
        [FLAW_PLACE] = FLAW_PLACE_TEXT,
    };
    const char *text = texts[flaw];
    bool rule = strncmp(text, BROKE_A_RULE, strlen(BROKE_A_RULE)) == 0;
    (void)queue;
    (void)task;
    watch_broken("%s", text + (rule ? strlen(BROKE_A_RULE) : 0));
}

/* ---- what the policy promises ---- */

/* What a policy promises, in explore/laws/NAME.h or NAME.law.h, as `law`. */
struct law {
    /* A rule that is broken ends in watch_broken(). The picked task, which is in the queue no more,
     * has the rank that it had. */
    void (*of_pick)(const run_queue_t *queue, const struct member *picked);
    void (*of_tick)(const run_queue_t *queue, const struct member *member,
                    enum tick_verdict verdict);
    /* Where the policy serves its levels in another order than it says: a level's place in that. */
    uint64_t (*place_of_level)(const scheduler_t *scheduler, uint64_t level);
    bool ranks; /* `rank` and `ticks` of members are counted */
    bool counts_ticks;
    /* What is assumed of the policy, so that states are one that differ in nothing else: all goes
     * on as before if all times are moved by a multiple of so many nanoseconds; and if a task's
     * run_time and words of its state, of which the function returns one after the other, then
     * null, are lessened by the same. */
    uint64_t (*period)(const scheduler_t *scheduler);
    uint64_t *(*run_time_word)(const struct member *member, uint32_t number);
};

#ifdef LAW
#include LAW
#else
static const struct law law = {0};
#endif

static void rank_as_last(struct member *member, const run_queue_t *queue, bool first)
{
    if (!law.ranks)
        return;
    member->rank = first ? 0 : queue->queued;
    for (uint32_t i = 0; first && i < setup.tasks; i++)
        machine.tasks[i].rank += &machine.tasks[i] != member && waits_in(&machine.tasks[i], queue);
}

static void rank_no_more(struct member *member, const run_queue_t *queue)
{
    for (uint32_t i = 0; law.ranks && i < setup.tasks; i++) {
        struct member *other = &machine.tasks[i];
        other->rank -= waits_in(other, queue) && other->rank > member->rank;
    }
    member->rank = 0;
}

/* Of levels, whatever the policy: the best one is served first, unless it may not run now. */
static void levels_in(const run_queue_t *queue, uint64_t *levels)
{
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *member = &machine.tasks[i];
        levels[i] = waits_in(member, queue)
                        ? policy_level(&POLICY, &machine.scheduler, &member->task, machine.now)
                        : 0;
    }
}

static bool serves_before(uint64_t one, uint64_t other)
{
    if (law.place_of_level)
        return law.place_of_level(&machine.scheduler, one) <
               law.place_of_level(&machine.scheduler, other);
    return POLICY.level_order == LEVELS_LOWEST_FIRST ? one < other : one > other;
}

static void check_levels(const run_queue_t *queue, const struct member *picked,
                         const uint64_t *levels)
{
    uint64_t level = levels[picked - machine.tasks];
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        if (may_be_picked(other, queue) && serves_before(levels[i], level))
            watch_broken("pick() returned pid %d of level %" PRIu64
                         " while pid %d of level %" PRIu64 " waits in the queue",
                         picked->task.pid, level, other->task.pid, levels[i]);
    }
}

/* ---- into the policy's hands, and out of them ---- */

static void add(struct member *member, enum enqueue_reason reason, const struct member *parent)
{
    static const char *const reasons[] = {"NEW",     "WOKEN", "EXPIRED", "PREEMPTED",
                                          "YIELDED", "MOVED", "ADOPTED"};
    struct run_queue *queue = queue_of(member->task.cpu);
    if (!member->known) {
        reason = task_introduce(policy, &machine.scheduler, &member->task, reason,
                                parent ? &parent->task : NULL);
    }
    tell(" enqueue(task %d, %s) on queue %u;", member->task.pid, reasons[reason], queue->cpu);
    rank_as_last(member, queue, reason == ENQUEUE_PREEMPTED);
    if (reason != ENQUEUE_PREEMPTED)
        member->ticks = 0;
    run_queue_add(policy, queue, &member->task, reason);
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        const struct member *running = running_on(cpu);
        if (queue_number(cpu) == queue->cpu && running && running->known)
            policy_preempts(policy, queue, &member->task, &running->task);
    }
}

static void take_out(struct member *member)
{
    struct run_queue *queue = queue_of(member->task.cpu);
    tell(" dequeue(task %d) from queue %u;", member->task.pid, queue->cpu);
    run_queue_remove(policy, queue, &member->task);
    rank_no_more(member, queue);
}

static struct member *pick(uint32_t cpu)
{
    uint64_t levels[TASKS_MOST] = {0};
    struct run_queue *queue = queue_of(cpu);
    const uint32_t held = queue->held;
    asking = cpu;
    if (POLICY.level_order != LEVELS_NONE)
        levels_in(queue, levels);
    task_t *task = run_queue_pick_for(policy, queue, cpu);
    tell(" pick() of queue %u gives ", queue->cpu);
    if (!task) {
        tell("none;");
        return NULL;
    }
    tell("task %d;", task->pid);
    struct member *member = member_of(task);
    if (law.of_pick)
        law.of_pick(queue, member);
    if (POLICY.level_order != LEVELS_NONE && held == 0)
        check_levels(queue, member, levels);
    rank_no_more(member, queue);
    return member;
}

/* Returns whether the CPU has a task now. */
static bool enter_picked(uint32_t cpu)
{
    struct member *member = pick(cpu);
    if (!member)
        return false;
    struct run_queue *queue = queue_of(cpu);
    member->place = PLACE_RUNNING;
    member->task.cpu = cpu;
    machine.current[cpu] = (uint64_t)(member - machine.tasks) + 1;
    machine.turn_end[cpu] = queue->turn_end;
    run_queue_enter(queue, &member->task);
    queue->current = machine.scheduler.queues == machine.scheduler.cpus ? &member->task : NULL;
    return true;
}

/* Returns the task that was moved to the CPU's queue, or null if there was none. */
static struct member *steal(uint32_t cpu, uint32_t from)
{
    struct run_queue *queue = queue_of(from);
    task_t *task = run_queue_steal_for(policy, queue, cpu);
    if (!task) {
        tell(" steal() from queue %u gives none;", from);
        return NULL;
    }
    tell(" steal() from queue %u gives task %d;", from, task->pid);
    rank_no_more(member_of(task), queue);
    task->cpu = cpu;
    add(member_of(task), ENQUEUE_MOVED, NULL);
    return member_of(task);
}

/* The task that runs on the CPU leaves it. */
static struct member *leave(uint32_t cpu, enum stop_reason reason)
{
    static const char *const reasons[] = {"RUNNABLE", "BLOCKED", "ENDED"};
    struct member *member = running_on(cpu);
    struct run_queue *queue = queue_of(cpu);
    task_count_run_time(&member->task, machine.now);
    machine.current[cpu] = 0;
    machine.turn_end[cpu] = 0;
    member->place = PLACE_BLOCKED;
    tell(" stopped(task %d, %s);", member->task.pid, reasons[reason]);
    run_queue_leave(policy, queue, &member->task, reason);
    queue->current = NULL;
    return member;
}

#include "explore/acting.h"

static void end(struct member *member)
{
    if (member->known)
        policy_exit_task(policy, &machine.scheduler, &member->task);
    drop_waiters(&member->task);
    tell(" task_exit(task %d);", member->task.pid);
    member->place = PLACE_FREE;
}

/* Other tasks wait for the owner than before. */
MECHANISM_FUNCTION void tell_owner(scheduler_t *scheduler, task_t *owner, uint32_t cpu)
{
    struct member *member = member_of(owner);
    struct run_queue *queue = queue_of(owner->cpu);
    (void)scheduler;
    (void)cpu;
    if (!run_queue_waiters_changed(policy, queue, owner))
        return;
    tell(" waiters_changed(task %d);", owner->pid);
    if (member->place == PLACE_QUEUED) {
        take_out(member);
        add(member, ENQUEUE_MOVED, NULL);
        if (setup.acting)
            announce(member);
    } else if (member->place == PLACE_RUNNING && setup.acting) {
        called[owner->cpu] = true;
    }
}

static void wait_for(struct member *member, struct member *owner)
{
    if (machine.scheduler.follows_waits)
        wait_for_task(&machine.scheduler, &member->task, owner ? &owner->task : NULL, 0);
}

/* Where place() says. */
static void make_runnable(struct member *member, enum enqueue_reason reason,
                          const struct member *parent)
{
    uint32_t from = member->task.cpu;
    uint32_t cpu = policy_place(policy, &machine.scheduler, &member->task, reason);
    member->task.cpu = cpu;
    if (reason == ENQUEUE_WOKEN && queue_number(from) != queue_number(cpu))
        run_queue_forget(policy, queue_of(from), &member->task);
    add(member, reason, parent);
    if (setup.acting)
        announce(member);
}

/* ---- time ---- */

static void end_turn(uint32_t cpu, bool moved)
{
    if (setup.acting) {
        called[cpu] = expired[cpu] = true;
        moves[cpu] = moved;
        return;
    }
    struct member *left = leave(cpu, STOP_RUNNABLE);
    add(left, ENQUEUE_EXPIRED, NULL);
    if (!moved)
        return;
    take_out(left);
    make_runnable(left, ENQUEUE_MOVED, NULL);
}

static void obey(uint32_t cpu, enum tick_verdict verdict)
{
    if (verdict == TICK_KILL)
        end(leave(cpu, STOP_ENDED));
    else if (verdict != TICK_CONTINUE)
        end_turn(cpu, verdict == TICK_MOVE);
}

/* What the policy wants to be called for, now. */
static void policy_times(uint32_t cpu)
{
    struct run_queue *queue = queue_of(cpu);
    for (uint32_t calls = 0; queue->alarm && queue->alarm <= machine.now; calls++) {
        tell(" alarm() of queue %u;", queue->cpu);
        if (calls > queue->queued)
            watch_broken("alarm() of a queue was called %u times at one time", calls);
        task_t *task = run_queue_alarm(policy, queue);
        if (task && setup.acting)
            announce(member_of(task));
    }
    struct member *member = running_on(cpu);
    if (!member || !machine.turn_end[cpu] || machine.turn_end[cpu] > machine.now)
        return;
    task_count_run_time(&member->task, machine.now);
    tell(" turn_over(task %d) on CPU %u;", member->task.pid, cpu);
    enum tick_verdict verdict = run_queue_turn_over(policy, queue, &member->task);
    machine.turn_end[cpu] = queue->turn_end;
    obey(cpu, verdict);
}

static uint64_t next_policy_time(void)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        uint64_t turn_end = machine.turn_end[cpu];
        uint64_t alarm = machine.queues[queue_number(cpu)].alarm;
        next = turn_end && turn_end < next ? turn_end : next;
        next = alarm && alarm < next ? alarm : next;
    }
    return next;
}

static void pass_until(uint64_t until)
{
    uint64_t next;
    while ((next = next_policy_time()) < until) {
        machine.now = next > machine.now ? next : machine.now;
        for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++)
            policy_times(cpu);
        settle(machine.scheduler.cpus);
    }
    machine.now = until;
}

static void tick_on(uint32_t cpu)
{
    policy_times(cpu);
    struct member *member = running_on(cpu);
    if (!member) {
        called[cpu] = setup.acting;
        return;
    }
    struct run_queue *queue = queue_of(cpu);
    task_count_run_time(&member->task, machine.now);
    enum tick_verdict verdict = run_queue_tick(policy, queue, &member->task);
    tell(" tick(task %d) says %s;", member->task.pid,
         verdict == TICK_CONTINUE  ? "CONTINUE"
         : verdict == TICK_PREEMPT ? "PREEMPT"
         : verdict == TICK_MOVE    ? "MOVE"
                                   : "KILL");
    if (queue->turn_end)
        machine.turn_end[cpu] = queue->turn_end;
    if (member->known) {
        member->ticks += law.counts_ticks;
        if (law.of_tick)
            law.of_tick(queue, member, verdict);
    }
    if (setup.acting) {
        push(cpu);
        pull(cpu, false);
    } else {
        policy_push(policy, &machine.scheduler, cpu);
        policy_balance(policy, &machine.scheduler, cpu, false);
    }
    obey(cpu, verdict);
}

/* ---- operations ---- */

static operation_t operation_of(enum kind kind, uint32_t a, uint32_t b)
{
    return (operation_t)(kind << 12 | a << 8 | b);
}

static enum kind kind_of(operation_t operation)
{
    return operation >> 12;
}

static uint32_t first_of(operation_t operation)
{
    return operation >> 8 & 15;
}

static uint32_t second_of(operation_t operation)
{
    return operation & 255;
}

operation_t machine_translated(operation_t operation, const uint8_t *places)
{
    const uint32_t a = first_of(operation);
    const uint32_t b = second_of(operation);
    switch (kind_of(operation)) {
    case DO_WAKE:
        return operation_of(DO_WAKE, places[a], b > 0 ? places[b - 1] + 1u : 0);
    case DO_NEW:
    case DO_KILL:
    case DO_MOVE:
    case DO_SET:
    case DO_CPUS:
        return operation_of(kind_of(operation), places[a], b);
    case DO_BLOCK:
        return b > 0 ? operation_of(DO_BLOCK, a, places[b - 1] + 1u) : operation;
    default:
        return operation;
    }
}

bool machine_has_tasks_alike(void)
{
    return !names(NAMED_PID) && !names(NAMED_SLOT);
}

/* The values that an attribute is given: the ends of its range and what it is at first, and of
 * times one that fits into some ticks. Gives their number. */
static uint32_t values_of(uint32_t kind, int64_t *values)
{
    struct task first = {0};
    int64_t usual = 0;
    uint32_t count = 0;
    if (kind == ATTRIBUTE_TASKGROUP) {
        values[0] = 0;
        values[1] = 1;
        values[2] = 2;
        return machine.scheduler.groups;
    }
    SET_FIRST_ATTRIBUTES(&first);
    usual = attribute_of(&first, kind);
    values[count++] = usual;
    if (attribute_lowest(kind) != usual)
        values[count++] = attribute_lowest(kind);
    if (attribute_highest(kind) == TASK_TIME_MAX)
        values[count++] = (int64_t)TICK_NS * (kind == ATTRIBUTE_PERIOD     ? 4
                                              : kind == ATTRIBUTE_DEADLINE ? 2
                                                                           : 1);
    values[count++] = attribute_highest(kind);
    return count;
}

static uint32_t list_sets(uint32_t task, operation_t *operations)
{
    int64_t values[VALUES_MOST];
    uint32_t count = 0;
    for (uint32_t kind = 0; kind < ATTRIBUTE_KINDS; kind++) {
        uint32_t all = attributes >> kind & 1 ? values_of(kind, values) : 0;
        for (uint32_t i = 0; i < all; i++) {
            if (attribute_of(&machine.tasks[task].task, kind) != values[i])
                operations[count++] = operation_of(DO_SET, task, kind * VALUES_MOST + i);
        }
    }
    return count;
}

static uint32_t list_wakes(uint32_t task, operation_t *operations)
{
    uint32_t count = 0;
    if (machine.tasks[task].place != PLACE_BLOCKED)
        return 0;
    operations[count++] = operation_of(DO_WAKE, task, 0);
    for (uint32_t i = 0; machine.scheduler.orders_waiters && i < setup.tasks; i++) {
        if (i != task && machine.tasks[i].place == PLACE_BLOCKED)
            operations[count++] = operation_of(DO_WAKE, task, i + 1);
    }
    return count;
}

static uint32_t list_task(uint32_t task, operation_t *operations)
{
    const struct member *member = &machine.tasks[task];
    if (member->place == PLACE_FREE)
        return 0;
    uint32_t count = list_wakes(task, operations);
    if (member->place != PLACE_RUNNING)
        operations[count++] = operation_of(DO_KILL, task, 0);
    for (uint32_t cpu = 0; cpu < machine.scheduler.queues; cpu++) {
        if (member->place == PLACE_QUEUED && queue_number(member->task.cpu) != cpu &&
            task_may_run_on(&member->task, cpu))
            operations[count++] = operation_of(DO_MOVE, task, cpu);
    }
    for (uint32_t set = 0; changes_cpus && set <= machine.scheduler.cpus; set++) {
        if (member->set != set)
            operations[count++] = operation_of(DO_CPUS, task, set);
    }
    return count + list_sets(task, operations + count);
}

static uint64_t group_value(uint32_t group, enum group_field field)
{
    const struct share_group *own = &machine.scheduler.group[group];
    const uint64_t values[] = {
        [GROUP_PARENT] = own->parent,
        [GROUP_WEIGHT] = own->weight,
        [GROUP_QUOTA] = own->quota,
        [GROUP_PERIOD] = own->period,
    };
    return values[field];
}

static uint32_t list_groups(operation_t *operations)
{
    uint32_t count = 0;
    for (uint32_t i = 0; changes_groups && i < GROUP_CHANGES; i++) {
        if (group_value(group_changes[i].group, group_changes[i].field) !=
            (uint64_t)group_changes[i].value)
            operations[count++] = operation_of(DO_GROUP, i, 0);
    }
    return count;
}

static uint32_t list_idle(uint32_t cpu, operation_t *operations)
{
    uint32_t count = 0;
    if (machine.queues[queue_number(cpu)].queued > 0)
        operations[count++] = operation_of(DO_PICK, cpu, 0);
    return count;
}

static uint32_t list_busy(uint32_t cpu, operation_t *operations)
{
    const struct member *member = running_on(cpu);
    uint32_t count = 0;
    operations[count++] = operation_of(DO_PREEMPT, cpu, 0);
    operations[count++] = operation_of(DO_YIELD, cpu, 0);
    operations[count++] = operation_of(DO_END, cpu, 0);
    operations[count++] = operation_of(DO_BLOCK, cpu, 0);
    for (uint32_t i = 0; machine.scheduler.follows_waits && i < setup.tasks; i++) {
        if (machine.tasks[i].place != PLACE_FREE && &machine.tasks[i] != member)
            operations[count++] = operation_of(DO_BLOCK, cpu, i + 1);
    }
    return count;
}

static uint32_t list_new(operation_t *operations)
{
    uint32_t count = 0;
    uint32_t slot = 0;
    while (slot < setup.tasks && machine.tasks[slot].place != PLACE_FREE)
        slot++;
    if (slot == setup.tasks)
        return 0;
    operations[count++] = operation_of(DO_NEW, slot, 0);
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        if (running_on(cpu) && (POLICY.task_init || attributes))
            operations[count++] = operation_of(DO_NEW, slot, cpu + 1);
    }
    return count;
}

/* What a task of a workload does by itself, and what happens to it in any case. */
static bool is_act_of_workload(operation_t operation)
{
    switch (kind_of(operation)) {
    case DO_NEW:
        return second_of(operation) == 0;
    case DO_BLOCK:
    case DO_WAKE:
        return second_of(operation) == 0;
    case DO_SET:
        return machine.tasks[first_of(operation)].place == PLACE_RUNNING;
    case DO_YIELD:
    case DO_END:
    case DO_TICK:
        return true;
    default:
        return false;
    }
}

static uint32_t acts_of(operation_t *operations, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_act_of_workload(operations[i]))
            operations[kept++] = operations[i];
    }
    return kept;
}

uint32_t machine_operations(operation_t *operations)
{
    uint32_t count = list_new(operations);
    uint32_t busy = 0;
    uint32_t living = 0;
    for (uint32_t task = 0; task < setup.tasks; task++) {
        living += machine.tasks[task].place != PLACE_FREE;
        count += list_task(task, operations + count);
    }
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        busy += running_on(cpu) != NULL;
        count += running_on(cpu) ? list_busy(cpu, operations + count)
                                 : list_idle(cpu, operations + count);
        for (uint32_t from = 0; from < machine.scheduler.queues; from++) {
            if (machine.scheduler.queues > 1 && from != cpu && machine.queues[from].queued > 0)
                operations[count++] = operation_of(DO_STEAL, cpu, from);
        }
    }
    if (busy > 0 || (living > 0 && has_time()))
        operations[count++] = operation_of(DO_TICK, 0, 0);
    if (living > 0 && has_time() && machine.now % TICK_NS == 0)
        operations[count++] = operation_of(DO_PASS, 0, 0);
    if (living > 0) {
        operations[count++] = operation_of(DO_BEGIN, 0, 0);
        count += list_groups(operations + count);
    }
    return setup.acting ? acts_of(operations, count) : count;
}

static void do_new(uint32_t slot, const struct member *parent)
{
    struct member *member = &machine.tasks[slot];
    struct task *task = &member->task;
    tell("task %u is forked", slot + 1);
    if (parent)
        tell(" by task %d", parent->task.pid);
    tell(":");
    member->place = PLACE_BLOCKED;
    machine_close();
    task->pid = (int32_t)slot + 1;
    task->slot = slot;
    task->cpu = parent ? parent->task.cpu : 0;
    SET_FIRST_ATTRIBUTES(task);
    if (parent) {
        INHERIT_ATTRIBUTES(task, &parent->task);
        member->set = parent->set;
        task->cpus = parent->task.cpus;
    }
    make_runnable(member, ENQUEUE_NEW, parent);
}

/* `second` may be null. */
static void do_wake(struct member *first, struct member *second)
{
    struct member *member = first;
    if (second) {
        struct run_queue *queue = queue_of(first->task.cpu);
        tell("tasks %d and %d wait for the same:", first->task.pid, second->task.pid);
        task_t *chosen = run_queue_choose_waiter(policy, queue, NULL, &first->task);
        member = member_of(run_queue_choose_waiter(policy, queue, chosen, &second->task));
        tell(" overtakes() says that task %d goes on;", member->task.pid);
    } else {
        tell("task %d wakes:", member->task.pid);
    }
    wait_for(member, NULL);
    make_runnable(member, ENQUEUE_WOKEN, NULL);
}

static void do_kill(struct member *member)
{
    tell("task %d is killed while it is %s:", member->task.pid,
         member->place == PLACE_QUEUED ? "queued" : "blocked");
    wait_for(member, NULL);
    if (member->place == PLACE_QUEUED)
        take_out(member);
    else
        run_queue_forget(policy, queue_of(member->task.cpu), &member->task);
    end(member);
}

static void do_move(struct member *member, uint32_t cpu)
{
    tell("task %d is moved to CPU %u:", member->task.pid, cpu);
    take_out(member);
    member->task.cpu = cpu;
    add(member, ENQUEUE_MOVED, NULL);
}

/* The task is about to be changed. Returns whether it was queued; it was taken out then. */
static bool begin_change(struct member *member)
{
    bool queued = member->place == PLACE_QUEUED;
    if (queued)
        take_out(member);
    return queued;
}

/* The task, which runs, gives up its CPU, and is queued where it may run. */
static void give_way(struct member *member)
{
    add(leave(member->task.cpu, STOP_RUNNABLE), ENQUEUE_PREEMPTED, NULL);
    if (task_may_run_on(&member->task, member->task.cpu))
        return;
    take_out(member);
    make_runnable(member, ENQUEUE_MOVED, NULL);
}

static void end_change(struct member *member, bool queued)
{
    run_queue_changed(policy, queue_of(member->task.cpu), &member->task);
    if (queued && task_may_run_on(&member->task, member->task.cpu))
        add(member, ENQUEUE_MOVED, NULL);
    else if (queued)
        make_runnable(member, ENQUEUE_MOVED, NULL);
    else if (member->place == PLACE_RUNNING && setup.acting)
        called[member->task.cpu] = true;
    else if (member->place == PLACE_RUNNING)
        give_way(member);
    tell_owners(&machine.scheduler, member->task.waits_for, 0);
}

static void do_set(struct member *member, uint32_t kind, uint32_t place)
{
#define ATTRIBUTE_NAME(kind, field, ...) [ATTRIBUTE_##kind] = #field,
    static const char *const texts[] = {ATTRIBUTES(ATTRIBUTE_NAME)};
    int64_t values[VALUES_MOST];
    values_of(kind, values);
    tell("task %d gets %s %" PRId64 ":", member->task.pid, texts[kind], values[place]);
    bool queued = begin_change(member);
    STORE_ATTRIBUTE(&member->task, kind, values[place]);
    end_change(member, queued);
}

static void do_cpus(struct member *member, uint32_t set)
{
    if (set == 0)
        tell("task %d may run on all CPUs:", member->task.pid);
    else
        tell("task %d may run on CPU %u alone:", member->task.pid, set - 1);
    bool queued = begin_change(member);
    member->set = set;
    member->task.cpus = set > 0 ? &alone[set - 1] : NULL;
    end_change(member, queued);
}

/* No hook is called: the policy sees it at its next decision. */
static void do_group(uint32_t change)
{
    const uint32_t group = group_changes[change].group;
    const enum group_field field = group_changes[change].field;
    tell("group %u gets %s %" PRId64 ";", group, group_field_names[field],
         group_changes[change].value);
    group_set(&machine.scheduler, group, field, group_changes[change].value);
}

static void do_pick(uint32_t cpu)
{
    tell("CPU %u picks:", cpu);
    enter_picked(cpu);
}

static void do_steal(uint32_t cpu, uint32_t from)
{
    tell("CPU %u takes a task from queue %u:", cpu, from);
    steal(cpu, from);
}

static void do_block(uint32_t cpu, struct member *owner)
{
    struct member *member = running_on(cpu);
    tell("task %d blocks", member->task.pid);
    if (owner)
        tell(" and waits for task %d", owner->task.pid);
    tell(":");
    leave(cpu, STOP_BLOCKED);
    wait_for(member, owner);
}

static void do_tick(void)
{
    tell("a tick:");
    if (has_time())
        pass_until((machine.now / TICK_NS + 1) * TICK_NS);
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        tick_on(cpu);
        settle(cpu + 1);
    }
}

static void begin_policy(void)
{
    struct scheduler *scheduler = &machine.scheduler;
    memset(machine.scheduler_state.words, 0, sizeof(machine.scheduler_state.words));
    for (uint32_t i = 0; i < setup.tasks; i++)
        drop_waiters(&machine.tasks[i].task);
    policy_init_scheduler(policy, scheduler);
    scheduler->queues = policy_run_queues(policy, scheduler);
    for (uint32_t i = 0; i < scheduler->cpus; i++) {
        machine.queues[i].now = machine.now;
        run_queue_begin(policy, scheduler, &machine.queues[i], i);
        machine.turn_end[i] = 0;
    }
    for (uint32_t i = 0; i < scheduler->cpus; i++)
        machine.queues[queue_number(i)].running += running_on(i) != NULL;
}

/* All tasks that are queued, in the order in which they would run. Gives their number. */
static uint32_t drain(struct member **tasks)
{
    struct member *member;
    uint32_t count = 0;
    machine.scheduler.ending = true;
    for (uint32_t i = 0; i < machine.scheduler.queues; i++) {
        while ((member = pick(i)))
            tasks[count++] = member;
    }
    machine.scheduler.ending = false;
    return count;
}

static void do_begin(void)
{
    struct member *queued[TASKS_MOST];
    tell("the policy begins anew:");
    uint32_t count = drain(queued);
    machine_open();
    for (uint32_t i = 0; i < setup.tasks; i++) {
        struct member *member = &machine.tasks[i];
        member->known = 0;
        memset(machine.task_state[i].words, 0, machine_task_bytes());
        member->task.next = member->task.previous = NULL;
        member->task.level = member->task.lent = 0;
        member->ticks = 0;
    }
    machine_close();
    begin_policy();
    for (uint32_t i = 0; i < count; i++)
        add(queued[i], ENQUEUE_ADOPTED, NULL);
}

/* Words that lie so near to the time are times. */
#define NEAR (1ull << 41)

/* A task that the policy does not know has none of these words. */
static void lessen_run_time(struct member *member)
{
    uint64_t *word;
    uint64_t least = member->task.run_time;
    for (uint32_t i = 0; member->known && (word = law.run_time_word(member, i)); i++)
        least = *word < least ? *word : least;
    for (uint32_t i = 0; member->known && (word = law.run_time_word(member, i)); i++)
        *word -= least;
    member->task.run_time -= least;
}

static bool relative = true;

void machine_set_relative(bool wanted)
{
    relative = wanted;
}

/* What the law says is a matter of differences is made the least that it can be. */
static void make_relative(void)
{
    uint64_t period = law.period && has_time() ? law.period(&machine.scheduler) : 0;
    uint64_t later = period ? (machine.now - BEGIN_NS) / period * period : 0;
    if (later)
        image_shift(BEGIN_NS - NEAR, BEGIN_NS + NEAR, later);
    for (uint32_t i = 0; law.run_time_word && i < setup.tasks; i++)
        lessen_run_time(&machine.tasks[i]);
}

/* What no policy reads, or this one does not, is made the same in all states. */
static void make_plain(void)
{
    for (uint32_t i = 0; i < machine.scheduler.cpus; i++) {
        machine.queues[i].now = 0;
        machine.queues[i].remark = 0;
        machine.queues[i].turn_end = 0;
        memset(&machine.queues[i].said, 0, sizeof(machine.queues[i].said));
    }
    for (uint32_t i = 0; i < setup.tasks; i++) {
        struct member *member = &machine.tasks[i];
        struct task *task = &member->task;
        void *state = task->state;
        if (member->place == PLACE_FREE) {
            memset(member, 0, sizeof(*member));
            memset(machine.task_state[i].words, 0, machine_task_bytes());
            task->state = state;
            task->pid = (int32_t)i + 1;
            task->slot = i;
        }
        member->ticks = law.counts_ticks ? member->ticks : 0;
        task->run_time = names(NAMED_RUN_TIME) ? task->run_time : 0;
        task->counted = names(NAMED_COUNTED) || names(NAMED_RUN_TIME) ? task->counted : 0;
        task->queued_since = names(NAMED_QUEUED_SINCE) ? task->queued_since : 0;
        task->picked_since = names(NAMED_PICKED_SINCE) ? task->picked_since : 0;
        task->selections = names(NAMED_SELECTIONS) ? task->selections : 0;
    }
    if (relative)
        make_relative();
}

/* The CPU whose task gives it up by the operation, or NO_CPU. */
static uint32_t cpu_given_up(operation_t operation)
{
    bool gives_up = kind_of(operation) == DO_YIELD || kind_of(operation) == DO_BLOCK ||
                    kind_of(operation) == DO_END;
    return gives_up ? first_of(operation) : NO_CPU;
}

static void act(operation_t operation)
{
    const uint32_t a = first_of(operation);
    const uint32_t b = second_of(operation);
    struct member *task = a < setup.tasks ? &machine.tasks[a] : NULL;
    switch (kind_of(operation)) {
    case DO_NEW:
        do_new(a, b > 0 ? running_on(b - 1) : NULL);
        break;
    case DO_WAKE:
        do_wake(task, b > 0 ? &machine.tasks[b - 1] : NULL);
        break;
    case DO_KILL:
        do_kill(task);
        break;
    case DO_MOVE:
        do_move(task, b);
        break;
    case DO_SET:
        do_set(task, b / VALUES_MOST, b % VALUES_MOST);
        break;
    case DO_PICK:
        do_pick(a);
        break;
    case DO_STEAL:
        do_steal(a, b);
        break;
    case DO_PREEMPT:
        tell("task %d is preempted:", running_on(a)->task.pid);
        add(leave(a, STOP_RUNNABLE), ENQUEUE_PREEMPTED, NULL);
        break;
    case DO_YIELD:
        tell("task %d yields:", running_on(a)->task.pid);
        add(leave(a, STOP_RUNNABLE), ENQUEUE_YIELDED, NULL);
        break;
    case DO_BLOCK:
        do_block(a, b > 0 ? &machine.tasks[b - 1] : NULL);
        break;
    case DO_END:
        tell("task %d ends:", running_on(a)->task.pid);
        end(leave(a, STOP_ENDED));
        break;
    case DO_TICK:
        do_tick();
        break;
    case DO_PASS:
        tell("half a tick passes:");
        pass_until(machine.now + TICK_NS / 2);
        break;
    case DO_BEGIN:
        do_begin();
        break;
    case DO_CPUS:
        do_cpus(task, b);
        break;
    case DO_GROUP:
        do_group(a);
        break;
    }
}

/* For programs: an act of a workload, its task, and what of it. */
static void tell_act(operation_t operation)
{
    static const char *const acts[] = {
        [DO_NEW] = "new",     [DO_WAKE] = "wake", [DO_SET] = "set",   [DO_YIELD] = "yield",
        [DO_BLOCK] = "block", [DO_END] = "end",   [DO_TICK] = "tick",
    };
    uint32_t a = first_of(operation);
    uint32_t b = second_of(operation);
    const struct member *member =
        cpu_given_up(operation) != NO_CPU ? running_on(a) : &machine.tasks[a];
    int64_t values[VALUES_MOST] = {0};
    bool sets = kind_of(operation) == DO_SET;
    if (sets)
        values_of(b / VALUES_MOST, values);
    tell("act %s %d %u %" PRId64 "\n", acts[kind_of(operation)], (int)(member - machine.tasks),
         sets ? b / VALUES_MOST : 0, sets ? values[b % VALUES_MOST] : 0);
}

void machine_do(operation_t operation)
{
    machine_close();
    if (told && setup.acting)
        tell_act(operation);
    if (told)
        printf("%3u. ", ++here);
    act(operation);
    if (setup.acting && cpu_given_up(operation) != NO_CPU)
        pick_for_itself(cpu_given_up(operation));
    if (setup.acting)
        settle(machine.scheduler.cpus);
    tell("\n");
    for (uint32_t i = 0; i < machine.scheduler.queues; i++) {
        if (machine.queues[i].held > machine.queues[i].queued)
            watch_broken("%u tasks of queue %u are held, of %u that are queued",
                         machine.queues[i].held, i, machine.queues[i].queued);
    }
    for (uint32_t i = 0; changes_cpus && i < setup.tasks; i++) {
        const struct task *task = &machine.tasks[i].task;
        if (is_queued(task) && !task_may_run_on(task, task->cpu))
            watch_broken("pid %d waits in the queue of CPU %u, on which it may not run", task->pid,
                         task->cpu);
    }
    machine_open();
    make_plain();
}

void machine_drain(void)
{
    struct member *queued[TASKS_MOST];
    if (setup.acting)
        return;
    machine_close();
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *member = &machine.tasks[i];
        if (member->place != PLACE_FREE && member->known)
            policy->time_slice(&machine.scheduler, &member->task);
    }
    tell("     then all that are queued are taken out:");
    drain(queued);
    tell("\n");
    machine_open();
}

uint32_t machine_task_bytes(void)
{
    return task_state_bytes(&machine.scheduler);
}

/* ---- begin ---- */

static bool closed[TASKS_MOST];

static void set_closed(uint32_t task, bool wanted)
{
    if (closed[task] == wanted)
        return;
    closed[task] = wanted;
    if (wanted)
        ASAN_POISON_MEMORY_REGION(machine.task_state[task].words, machine_task_bytes());
    else
        ASAN_UNPOISON_MEMORY_REGION(machine.task_state[task].words, machine_task_bytes());
}

void machine_open(void)
{
    for (uint32_t i = 0; i < setup.tasks; i++)
        set_closed(i, false);
}

void machine_close(void)
{
    for (uint32_t i = 0; i < setup.tasks; i++)
        set_closed(i, machine.tasks[i].place == PLACE_FREE);
}

static void close_gaps(void)
{
    const uint32_t bytes = machine_task_bytes();
    for (uint32_t i = 0; i < TASKS_MOST; i++)
        ASAN_POISON_MEMORY_REGION((char *)machine.task_state[i].words + bytes,
                                  sizeof(machine.task_state[i]) - bytes);
    for (uint32_t i = 0; i < QUEUES_MOST; i++)
        ASAN_POISON_MEMORY_REGION(machine.queue_state[i].gap, GAP);
    ASAN_POISON_MEMORY_REGION(machine.scheduler_state.gap, GAP);
}

static bool set_tunables(const char *text)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t index;
        int64_t value;
        enum policy_error error = tunable_parse(choice.policy, text, length, &index, &value);
        if (error != POLICY_OK) {
            fprintf(stderr, "%.*s: %s\n", (int)length, text, policy_error_text(error));
            return false;
        }
        tunable_set(&machine.scheduler, choice.policy, index, value);
        text += length + (text[length] == ',');
    }
    return true;
}

static void begin_structures(void)
{
    struct scheduler *scheduler = &machine.scheduler;
    machine.now = has_time() ? BEGIN_NS : 0;
    scheduler->cpus = setup.queues;
    scheduler->tick_ns = TICK_NS;
    scheduler->seed = 1;
    scheduler->state = machine.scheduler_state.words;
    if (attributes >> ATTRIBUTE_TASKGROUP & 1) {
        scheduler->groups = changes_groups ? GROUPS_EXPLORED : GROUPS_EXPLORED - 1;
        for (uint32_t i = 0; i < scheduler->groups; i++)
            scheduler->group[i] = (struct share_group){.weight = GROUP_WEIGHT_DEFAULT,
                                                       .period = GROUP_PERIOD_DEFAULT};
    }
    for (uint32_t i = 0; i < setup.queues; i++) {
        cpu_set_add(&alone[i], i);
        machine.queues[i].state = machine.queue_state[i].words;
        scheduler->queue[i] = &machine.queues[i];
    }
    for (uint32_t i = 0; i < setup.tasks; i++)
        machine.tasks[i].task.state = machine.task_state[i].words;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length) {
        bool begins = at == list || at[-1] == ',';
        if (begins && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

/* The fields that are called `group` in a task, and so on. */
static void read_words(const char *words)
{
    static const char *const texts[NAMED_COUNT] = {
        "now", "run_time", "counted", "queued_since", "picked_since", "selections", "pid", "slot",
    };
    for (uint32_t i = 0; i < NAMED_COUNT; i++)
        named |= (uint32_t)has_word(words, texts[i]) << i;
#define READ_ATTRIBUTE(kind, field, ...)                                                           \
    attributes |= (uint32_t)has_word(words, #field) << ATTRIBUTE_##kind;
    ATTRIBUTES(READ_ATTRIBUTE)
    changes_cpus = has_word(words, "cpus") && setup.queues > 1;
    changes_groups = has_word(words, "groups") && (attributes >> ATTRIBUTE_TASKGROUP & 1);
}

bool machine_begin(const struct setup *wanted)
{
    setup = *wanted;
    read_words(setup.words);
    enum policy_error error = policy_choose(setup.policy, strlen(setup.policy), &choice);
    if (error != POLICY_OK) {
        fprintf(stderr, "%s: %s\n", setup.policy, policy_error_text(error));
        return false;
    }
    watched_setup = (struct simulator_setup){
        .policy = setup.policy, .tunables = setup.tunables, .cpus = setup.queues};
    watch_setup(&watched_setup);
    begin_structures();
    policy_set_defaults(&machine.scheduler, &choice);
    if (!set_tunables(setup.tunables))
        return false;
    watched = (struct watched){
        .scheduler = &machine.scheduler,
        .queues = machine.queues,
        .tasks = (const unsigned char *)machine.tasks,
        .task_bytes = sizeof(machine.tasks[0]),
        .task_count = setup.tasks,
        .is_queued = is_queued,
    };
    close_gaps();
    begin_policy();
    watch_machine(&watched);
    make_plain();
    return true;
}
