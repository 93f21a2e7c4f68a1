/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_GOING_ON_H
#define EXPLORE_ENGINE_GOING_ON_H

/* Continues from a state without further operations of tasks: CPUs pick and tasks compute. */

#include "explore/engine/acts.h"

#define TICKS_COMPARED 8
#define TICKS_MOST     40

static uint8_t saved_image[IMAGE_BYTES_MOST];
static uint32_t saved_bytes;

static void keep_state(void)
{
    machine_open();
    saved_bytes = image_take(saved_image);
    machine_close();
}

static bool state_is_unchanged(void)
{
    static uint8_t now[IMAGE_BYTES_MOST];
    machine_open();
    make_plain();
    uint32_t bytes = image_take(now);
    machine_close();
    return bytes == saved_bytes && memcmp(now, saved_image, bytes) == 0;
}

static void take_state_back(void)
{
    machine_open();
    image_restore(saved_image, saved_bytes);
    machine_close();
}

/* Makes an idle CPU pick a task, or take one from another queue. */
static void find_work(uint32_t cpu)
{
    bool has_match = enter_picked(cpu);
    for (uint32_t i = 0; i < machine.scheduler.queues && !has_match; i++) {
        if (i != queue_number(cpu) && machine.queues[i].queued > 0 && steal(cpu, i))
            has_match = enter_picked(cpu);
    }
}

/* Runs for some ticks. Returns a hash of the tasks that ran, and of their CPUs. */
static uint64_t go_on(uint32_t ticks)
{
    uint64_t hash = 0;
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        if (running_on(cpu) && !running_on(cpu)->known)
            add(leave(cpu, STOP_RUNNABLE), ENQUEUE_PREEMPTED, NULL); /* the policy has been
                                                                      * restarted */
    }
    for (uint32_t tick = 0; tick < ticks; tick++) {
        for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
            if (!running_on(cpu))
                find_work(cpu);
            hash = (hash ^ machine.current[cpu]) * 0x100000001b3;
        }
        do_tick();
    }
    return hash;
}

/* Returns for how many ticks at most the task may wait in its queue; UINT32_MAX: no limit. */
static uint32_t ticks_until_turn(const struct member *member)
{
    uint64_t round = 0;
    if (!waits_in(member, queue_of(member->task.cpu)) || queue_of(member->task.cpu)->held > 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        bool competes = other->place == PLACE_QUEUED || other->place == PLACE_RUNNING;
        uint64_t part =
            competes ? round_part(&POLICY, &machine.scheduler, &member->task, &other->task) : 0;
        round = part < NO_LIMIT - round ? round + part : NO_LIMIT;
    }
    uint64_t limit = longest_wait(&POLICY, &machine.scheduler, round);
    return limit < TICKS_MOST * TICK_NS ? (uint32_t)(limit / TICK_NS) + 1 : UINT32_MAX;
}

/* If `asks`, asks the policy for a task for each CPU that no queued task may use. Returns true
 * if there is such a CPU. */
static bool ask_in_vain(bool asks)
{
    bool has_match = false;
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        for (uint32_t i = 0; i < machine.scheduler.queues; i++) {
            struct run_queue *queue = &machine.queues[i];
            bool picks = queue_number(cpu) == i;
            bool useful = queue->queued == 0 || (picks && running_on(cpu));
            for (uint32_t task = 0; task < setup.tasks; task++)
                useful |= waits_in(&machine.tasks[task], queue) &&
                          task_may_run_on(&machine.tasks[task].task, cpu);
            has_match |= !useful;
            if (useful || !asks)
                continue;
            queue->now = machine.now;
            if (picks)
                run_queue_pick_for(policy, queue, cpu);
            else
                run_queue_steal_for(policy, queue, cpu);
        }
    }
    return has_match;
}

static void check_asks_in_vain(uint64_t fallback)
{
    draws_choose(NULL, 0);
    ask_in_vain(true);
    if (draws_made() > 0 || (!state_is_unchanged() && go_on(TICKS_COMPARED) != fallback))
        watch_broken("pick() or steal() for a CPU that no queued task may use changed what runs "
                     "later");
    take_state_back();
}

/* Checks that each task runs within the time that the policy declares, and that asking it for a
 * task that does not exist changes no later decision. */
static void check_going_on(void)
{
    uint32_t ticks[TASKS_MOST];
    uint64_t selections[TASKS_MOST];
    uint32_t most = TICKS_COMPARED;
    bool printed_before = prints_acts;
    keep_state();
    print_act("     then all continue:");
    prints_acts = false;
    going_on = true;
    for (uint32_t i = 0; i < setup.tasks; i++) {
        ticks[i] = ticks_until_turn(&machine.tasks[i]);
        selections[i] = machine.tasks[i].task.selections;
        most = ticks[i] <= TICKS_MOST && ticks[i] > most ? ticks[i] : most;
    }
    draws_choose(NULL, 0);
    uint64_t hash = go_on(TICKS_COMPARED);
    go_on(most - TICKS_COMPARED);
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *member = &machine.tasks[i];
        if (ticks[i] <= TICKS_MOST && member->place == PLACE_QUEUED &&
            member->task.selections == selections[i])
            watch_broken("pid %d does not run within %u ticks, the limit by .rounds",
                         member->task.pid, ticks[i]);
    }
    take_state_back();
    if (ask_in_vain(false))
        check_asks_in_vain(hash);
    prints_acts = printed_before;
    going_on = false;
    print_act("\n");
}

#endif
