/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_OPERATIONS_H
#define EXPLORE_ENGINE_OPERATIONS_H

/* Lists which operations are possible in a state. */

#include "explore/engine/time.h"

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

/* Lists the values that are tried for an attribute: the ends of its range, its initial value
 * and, for times, a few ticks. Returns how many there are. */
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

static uint64_t group_field_value(uint32_t group, enum group_field field)
{
    const struct share_group *settings = &machine.scheduler.group[group];
    const uint64_t values[] = {
        [GROUP_PARENT] = settings->parent,
        [GROUP_WEIGHT] = settings->weight,
        [GROUP_QUOTA] = settings->quota,
        [GROUP_PERIOD] = settings->period,
    };
    return values[field];
}

static uint32_t list_groups(operation_t *operations)
{
    uint32_t count = 0;
    for (uint32_t i = 0; changes_groups && i < GROUP_CHANGES; i++) {
        if (group_field_value(group_changes[i].group, group_changes[i].field) !=
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

/* Returns true if the operation can happen in a workload: an action of a task, or an event that
 * no CPU can prevent. */
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
    uint32_t remaining = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_act_of_workload(operations[i]))
            operations[remaining++] = operations[i];
    }
    return remaining;
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

#endif
