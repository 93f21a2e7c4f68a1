/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_ACTS_H
#define EXPLORE_ENGINE_ACTS_H

/* The effects of each operation. */

#include "explore/engine/operations.h"

static uint64_t first_run_time;

void machine_set_run_time(uint64_t run_time)
{
    first_run_time = run_time;
}

static void do_new(uint32_t slot, const struct member *parent)
{
    struct member *member = &machine.tasks[slot];
    struct task *task = &member->task;
    print_act("task %u is forked", slot + 1);
    if (parent)
        print_act(" by task %d", parent->task.pid);
    print_act(":");
    member->place = PLACE_BLOCKED;
    machine_close();
    task->pid = (int32_t)slot + 1;
    task->slot = slot;
    task->cpu = parent ? parent->task.cpu : 0;
    task->run_time = first_run_time;
    SET_FIRST_ATTRIBUTES(task);
    if (parent) {
        INHERIT_ATTRIBUTES(task, &parent->task);
        member->set = parent->set;
        task->cpus = parent->task.cpus;
    }
    make_runnable(member, ENQUEUE_NEW, parent);
}

/* Wakes one task, or two tasks at once; `second` may be null. */
static void do_wake(struct member *first, struct member *second)
{
    struct member *member = first;
    if (second) {
        struct run_queue *queue = queue_of(first->task.cpu);
        print_act("tasks %d and %d wait for the same:", first->task.pid, second->task.pid);
        task_t *chosen = run_queue_choose_waiter(policy, queue, NULL, &first->task);
        member = member_of(run_queue_choose_waiter(policy, queue, chosen, &second->task));
        print_act(" overtakes() chooses task %d;", member->task.pid);
    } else {
        print_act("task %d wakes:", member->task.pid);
    }
    wait_for(member, NULL);
    make_runnable(member, ENQUEUE_WOKEN, NULL);
}

static void do_kill(struct member *member)
{
    print_act("task %d is killed while it is %s:", member->task.pid,
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
    print_act("task %d is moved to CPU %u:", member->task.pid, cpu);
    take_out(member);
    member->task.cpu = cpu;
    add(member, ENQUEUE_MOVED, NULL);
}

/* Dequeues the task, because it will change. Returns true if it was queued. */
static bool begin_change(struct member *member)
{
    bool queued = member->place == PLACE_QUEUED;
    if (queued)
        take_out(member);
    return queued;
}

/* Takes the running task off its CPU, and queues it at a CPU where it may run. */
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
    notify_owners(&machine.scheduler, member->task.waits_for, 0);
}

static void do_set(struct member *member, uint32_t kind, uint32_t place)
{
#define ATTRIBUTE_NAME(kind, field, ...) [ATTRIBUTE_##kind] = #field,
    static const char *const texts[] = {ATTRIBUTES(ATTRIBUTE_NAME)};
    int64_t values[VALUES_MOST];
    values_of(kind, values);
    print_act("task %d gets %s %" PRId64 ":", member->task.pid, texts[kind], values[place]);
    bool queued = begin_change(member);
    STORE_ATTRIBUTE(&member->task, kind, values[place]);
    end_change(member, queued);
}

static void do_cpus(struct member *member, uint32_t set)
{
    if (set == 0)
        print_act("task %d may run on all CPUs:", member->task.pid);
    else
        print_act("task %d may run only on CPU %u:", member->task.pid, set - 1);
    bool queued = begin_change(member);
    member->set = set;
    member->task.cpus = set > 0 ? &alone[set - 1] : NULL;
    end_change(member, queued);
}

/* Changes the settings of a group. Calls no hook: the policy sees the settings at its next
 * decision. */
static void do_group(uint32_t change)
{
    const uint32_t group = group_changes[change].group;
    const enum group_field field = group_changes[change].field;
    print_act("group %u gets %s %" PRId64 ";", group, group_field_names[field],
              group_changes[change].value);
    group_set(&machine.scheduler, group, field, group_changes[change].value);
}

static void do_pick(uint32_t cpu)
{
    print_act("CPU %u picks:", cpu);
    enter_picked(cpu);
}

static void do_steal(uint32_t cpu, uint32_t from)
{
    print_act("CPU %u takes a task from queue %u:", cpu, from);
    steal(cpu, from);
}

static void do_block(uint32_t cpu, struct member *owner)
{
    struct member *member = running_on(cpu);
    print_act("task %d blocks", member->task.pid);
    if (owner)
        print_act(" and waits for task %d", owner->task.pid);
    print_act(":");
    leave(cpu, STOP_BLOCKED);
    wait_for(member, owner);
}

static void do_tick(void)
{
    print_act("a tick:");
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

/* Dequeues all tasks, in the policy's order of service. Returns how many there were. */
static uint32_t drain(struct member **tasks)
{
    struct member *member;
    uint32_t count = 0;
    machine.scheduler.ending = true;
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        while ((member = pick(cpu)))
            tasks[count++] = member;
    }
    machine.scheduler.ending = false;
    return count;
}

static void do_begin(void)
{
    struct member *queued[TASKS_MOST];
    print_act("the policy starts again:");
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

#include "explore/service_check.h"

/* Reduces the run time of a task, with the words of its state that must move along. Does nothing
 * for a task that the policy does not know. */
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

void machine_set_relative(bool requested)
{
    relative = requested;
}

/* Subtracts the same amount from times or counters, if the policy declares that only their
 * differences matter. States with the same differences thus become equal. */
static void make_relative(void)
{
    uint64_t period = law.period && has_time() ? law.period(&machine.scheduler) : 0;
    uint64_t later = period ? (machine.now - BEGIN_NS) / period * period : 0;
    if (later)
        image_shift(BEGIN_NS - NEAR, BEGIN_NS + NEAR, later);
    for (uint32_t i = 0; law.run_time_word && i < setup.tasks; i++)
        lessen_run_time(&machine.tasks[i]);
}

/* Clears data that this policy does not read, so that states that differ only in such data
 * become equal. */
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

/* Returns the CPU whose running task leaves it in this operation, or NO_CPU. */
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
        print_act("task %d is preempted:", running_on(a)->task.pid);
        add(leave(a, STOP_RUNNABLE), ENQUEUE_PREEMPTED, NULL);
        break;
    case DO_YIELD:
        print_act("task %d yields:", running_on(a)->task.pid);
        add(leave(a, STOP_RUNNABLE), ENQUEUE_YIELDED, NULL);
        break;
    case DO_BLOCK:
        do_block(a, b > 0 ? &machine.tasks[b - 1] : NULL);
        break;
    case DO_END:
        print_act("task %d ends:", running_on(a)->task.pid);
        end(leave(a, STOP_ENDED));
        break;
    case DO_TICK:
        do_tick();
        break;
    case DO_PASS:
        print_act("half a tick passes:");
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

/* Prints an operation for schedlab.machines.operations_workload: its kind, its task and its
 * value. */
static void print_operation(operation_t operation)
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
    print_act("act %s %d %u %" PRId64 "\n", acts[kind_of(operation)], (int)(member - machine.tasks),
              sets ? b / VALUES_MOST : 0, sets ? values[b % VALUES_MOST] : 0);
}

void machine_do(operation_t operation)
{
    machine_close();
    if (prints_acts && setup.acting)
        print_operation(operation);
    if (prints_acts)
        printf("%3u. ", ++output_line);
    act(operation);
    if (setup.acting && cpu_given_up(operation) != NO_CPU)
        pick_for_itself(cpu_given_up(operation));
    if (setup.acting)
        settle(machine.scheduler.cpus);
    print_act("\n");
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

#endif
