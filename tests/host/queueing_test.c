/* SPDX-License-Identifier: MIT */

/*
 * Tests the queueing code that all hosts share, in a host of five tasks: counters, calls, detected
 * policy errors, and the choice of the CPU to call.
 */

#include "../../policies/support/flaws.h"

static enum queue_flaw flaw;
#define NOTE_BAD_CPU(scheduler, found) (flaw = (found))

#include "../../policies/support/preemption.h"

#include <string.h>

#include "check.h"

#define TASKS 5
#define CPUS  3

struct place {
    struct task task; /* first */
    uint64_t state[POLICY_TASK_BYTES / 8];
    bool known;
    bool queued;
    bool urgent;
    struct cpu_set allowed;
};

static struct place places[TASKS];
static struct run_queue queues[CPUS];
static uint64_t queue_states[CPUS][POLICY_QUEUE_BYTES / 8];
static struct scheduler scheduler;
static struct task *running[CPUS];
static uint32_t idle; /* CPUs, as a bit mask */

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return ((const struct place *)task)->known;
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    ((struct place *)task)->known = true;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    return ((const struct place *)task)->queued;
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    ((struct place *)task)->queued = queued;
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *unused)
{
    (void)unused;
    return POLICY_TASK_BYTES;
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw selected)
{
    (void)queue;
    (void)task;
    flaw = selected;
}

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *unused, uint32_t cpu)
{
    (void)unused;
    return running[cpu];
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    return ((const struct place *)task)->urgent;
}

MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *unused, uint32_t cpu)
{
    bool was_idle = idle >> cpu & 1;
    (void)unused;
    idle &= ~(1u << cpu);
    return was_idle;
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *all, const task_t *task)
{
    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        if (task_may_run_on(task, cpu) && claim_idle_cpu(all, cpu))
            return cpu;
    }
    return NO_CPU;
}

/* ---- a policy that returns the test's tasks, and records its calls ---- */

static struct task *handed_out;
static enum enqueue_reason reported_reason;
static const struct task *reported_parent;
static bool task_was_blank;

static void note_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    check(task_is_queued(task) && task->queued_since == queue->now);
    reported_reason = reason;
}

static void note_dequeue(run_queue_t *queue, task_t *task)
{
    check(task_is_queued(task) && queue->queued > 0);
}

static task_t *hand_out(run_queue_t *queue, uint32_t cpu)
{
    (void)queue;
    (void)cpu;
    return handed_out;
}

static void note_init(scheduler_t *unused, task_t *task, const task_t *parent)
{
    const uint64_t *words = task->state;
    (void)unused;
    reported_parent = parent;
    task_was_blank = task->level == 0 && !task->next && !task->previous;
    for (uint32_t i = 0; i < POLICY_TASK_BYTES / 8; i++)
        task_was_blank &= words[i] == 0;
}

static uint32_t stops;

static void note_stop(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)queue;
    (void)task;
    (void)reason;
    stops++;
}

/* The higher PID is better. */
static bool higher_preempts(run_queue_t *queue, const task_t *task, const task_t *other)
{
    (void)queue;
    return task->pid > other->pid;
}

static const struct policy policy = {
    .enqueue = note_enqueue,
    .dequeue = note_dequeue,
    .pick = hand_out,
    .task_init = note_init,
    .stopped = note_stop,
    .preempts = higher_preempts,
};

static void begin(uint32_t run_queues)
{
    memset(places, 0xee, sizeof(places));
    memset(queue_states, 0xee, sizeof(queue_states));
    memset(running, 0, sizeof(running));
    idle = 0;
    flaw = FLAW_NONE;
    stops = 0;
    handed_out = NULL;
    scheduler = (struct scheduler){.cpus = CPUS, .queues = run_queues};
    for (uint32_t i = 0; i < TASKS; i++) {
        places[i].task.pid = (int32_t)i + 1;
        places[i].task.cpu = 0;
        places[i].task.selections = 0;
        places[i].task.state = places[i].state;
        places[i].known = places[i].queued = places[i].urgent = false;
        places[i].task.cpus = NULL;
    }
    for (uint32_t i = 0; i < CPUS; i++) {
        queues[i] = (struct run_queue){.now = 7, .queued = 9, .state = queue_states[i]};
        run_queue_begin(&policy, &scheduler, &queues[i], i);
        check(scheduler.queue[i] == &queues[i] && queues[i].queued == 0);
        check(queue_states[i][0] == 0 && queue_states[i][POLICY_QUEUE_BYTES / 8 - 1] == 0);
    }
}

static void add(uint32_t i, enum enqueue_reason reason, struct task *parent)
{
    struct task *task = &places[i].task;
    if (!places[i].known)
        reason = task_introduce(&policy, &scheduler, task, reason, parent);
    run_queue_add(&policy, &queues[0], task, reason);
}

static void allow(uint32_t i, uint64_t cpus)
{
    places[i].allowed = (struct cpu_set){.words = {cpus}};
    places[i].task.cpus = &places[i].allowed;
}

static void run_on(uint32_t i, uint32_t cpu)
{
    places[i].known = true;
    places[i].task.cpu = cpu;
    running[cpu] = &places[i].task;
}

static void a_task_becomes_known_when_it_is_queued(void)
{
    begin(CPUS);
    add(0, ENQUEUE_WOKEN, NULL);
    check(task_was_blank && places[0].known && reported_reason == ENQUEUE_ADOPTED &&
          !reported_parent);
    add(1, ENQUEUE_NEW, &places[0].task);
    check(reported_reason == ENQUEUE_NEW && reported_parent == &places[0].task);
    add(2, ENQUEUE_NEW, &places[3].task);
    check(reported_reason == ENQUEUE_NEW &&
          !reported_parent); /* the policy does not know the parent */
    check(queues[0].queued == 3);
    run_queue_remove(&policy, &queues[0], &places[0].task);
    add(0, ENQUEUE_MOVED, NULL);
    check(reported_reason == ENQUEUE_MOVED && queues[0].queued == 3 && !flaw);
}

static void a_task_is_picked_runs_and_leaves(void)
{
    begin(CPUS);
    add(0, ENQUEUE_WOKEN, NULL);
    handed_out = &places[0].task;
    queues[0].remark = 5;
    check(run_queue_pick(&policy, &queues[0], 0) == handed_out);
    check(queues[0].queued == 0 && queues[0].remark == 0 && !places[0].queued);
    run_queue_enter(&queues[0], handed_out);
    check(queues[0].current == handed_out);
    check(queues[0].running == 1 && places[0].task.selections == 1);
    check(places[0].task.picked_since == 7);
    run_queue_leave(&policy, &queues[0], handed_out, STOP_BLOCKED);
    check(queues[0].running == 0 && stops == 1 && !flaw && !queues[0].current);
    handed_out = NULL;
    check(!run_queue_pick(&policy, &queues[0], 0) && !flaw);
}

static void one_that_the_policy_does_not_know_leaves_unheard(void)
{
    begin(CPUS);
    run_queue_enter(&queues[0], &places[0].task);
    check(!queues[0].current);
    run_queue_leave(&policy, &queues[0], &places[0].task, STOP_RUNNABLE);
    check(stops == 0 && !flaw);
}

static void wrong_answers_are_found(void)
{
    begin(CPUS);
    add(0, ENQUEUE_WOKEN, NULL);
    check(!run_queue_pick(&policy, &queues[0], 0) && flaw == FLAW_LOST);
    flaw = FLAW_NONE;
    places[1].known = true;
    handed_out = &places[1].task;
    check(!run_queue_pick(&policy, &queues[0], 0) && flaw == FLAW_GIVEN);
    flaw = FLAW_NONE;
    check(!run_queue_steal(&policy, &queues[0], 1) && flaw == FLAW_GIVEN);
    check(queues[0].queued == 1);
    flaw = FLAW_NONE;
    handed_out = &places[0].task;
    check(!run_queue_pick(&policy, &queues[1], 1) &&
          flaw == FLAW_GIVEN); /* nothing is queued there */
    flaw = FLAW_NONE;
    run_queue_leave(&policy, &queues[0], &places[0].task, STOP_ENDED);
    check(flaw == FLAW_COUNT && queues[0].running == 0);
}

static void a_policy_may_hold_tasks_that_an_alarm_lets_run(void)
{
    begin(CPUS);
    add(0, ENQUEUE_WOKEN, NULL);
    queues[0].held = 1;
    check(!run_queue_waits(&queues[0]));
    check(!run_queue_pick(&policy, &queues[0], 0) && flaw == FLAW_HELD);
    flaw = FLAW_NONE;
    queues[0].alarm = 9;
    check(!run_queue_pick(&policy, &queues[0], 0) && !flaw);
    scheduler.ending = true; /* the next policy takes over all tasks */
    check(!run_queue_pick(&policy, &queues[0], 0) && flaw == FLAW_LOST);
}

static void the_end_of_a_turn_is_the_policys(void)
{
    begin(CPUS);
    add(0, ENQUEUE_WOKEN, NULL);
    handed_out = &places[0].task;
    queues[0].turn_end = 5; /* of the previous task */
    check(run_queue_pick(&policy, &queues[0], 0) && queues[0].turn_end == 0);
    run_queue_enter(&queues[0], handed_out);
    check(run_queue_turn_over(&policy, &queues[0], handed_out) == TICK_PREEMPT);
    places[0].known = false;
    check(run_queue_turn_over(&policy, &queues[0], handed_out) == TICK_CONTINUE);
    check(run_queue_tick(&policy, &queues[0], handed_out) == TICK_CONTINUE);
    check(checked_verdict(&queues[0], handed_out, TICK_MOVE) == TICK_MOVE);
    scheduler.queues = 1; /* only one queue */
    check(checked_verdict(&queues[0], handed_out, TICK_MOVE) == TICK_PREEMPT);
    queues[0].now = 12;
    check(run_time_now(&queues[0], handed_out) == places[0].task.run_time + 5);
    task_count_run_time(handed_out, 12);
    check(run_time_now(&queues[0], handed_out) == places[0].task.run_time);
}

static uint32_t called_for(uint32_t i, uint32_t cpu)
{
    places[i].known = true;
    places[i].task.cpu = cpu;
    return find_cpu_to_call(&policy, &queues[scheduler.queues == 1 ? 0 : cpu], &places[i].task);
}

static void its_own_idle_cpu_is_called_first(void)
{
    begin(CPUS);
    idle = 7;
    check(called_for(4, 1) == 1 && idle == 5);
    run_on(0, 1);
    check(called_for(4, 1) == 1 && idle == 5); /* it preempts: no idle CPU is called */
    run_on(4, 1);
    check(called_for(0, 1) == 0 && idle == 4); /* it does not preempt: an idle CPU is called */
    idle = 0;
    check(called_for(0, 1) == NO_CPU);
}

static void an_idle_cpu_of_a_shared_queue_comes_before_one_that_gives_way(void)
{
    begin(1);
    run_on(0, 0);
    run_on(1, 1);
    idle = 4;
    check(called_for(4, 0) == 2 && idle == 0);
    run_on(2, 2);
    check(called_for(4, 0) == 0); /* preempts the task that the others would also preempt */
    allow(4, 6);
    check(called_for(4, 0) == 1);
}

/* ---- tasks with an affinity mask ---- */

static struct task *line[TASKS]; /* next is the first task; a preempted task goes to the front */
static uint32_t in_line;

static void line_up(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    uint32_t at = reason == ENQUEUE_PREEMPTED ? 0 : in_line;
    (void)queue;
    for (uint32_t i = in_line++; i > at; i--)
        line[i] = line[i - 1];
    line[at] = task;
    reported_reason = reason;
}

static task_t *take_first(run_queue_t *queue, uint32_t cpu)
{
    (void)queue;
    (void)cpu;
    if (in_line == 0)
        return NULL;
    struct task *first = line[0];
    in_line--;
    for (uint32_t i = 0; i < in_line; i++)
        line[i] = line[i + 1];
    return first;
}

static const struct policy in_a_line = {
    .enqueue = line_up,
    .dequeue = note_dequeue,
    .pick = take_first,
    .task_init = note_init,
    .stopped = note_stop,
};

static void line_up_four(void)
{
    begin(1);
    in_line = 0;
    for (uint32_t i = 0; i < 4; i++) {
        places[i].known = true;
        places[i].task.queued_since = i;
        run_queue_add(&in_a_line, &queues[0], &places[i].task, ENQUEUE_WOKEN);
        places[i].task.queued_since = i;
    }
    allow(0, 1);
    allow(1, 1);
}

static void what_a_cpu_may_not_run_keeps_its_place(void)
{
    line_up_four();
    check(run_queue_pick_for(&in_a_line, &queues[0], 1) == &places[2].task);
    check(queues[0].current == &places[2].task && queues[0].queued == 3 && stops == 2 && !flaw);
    check(in_line == 3 && line[0] == &places[0].task && line[1] == &places[1].task);
    check(line[0]->queued_since == 0 && line[1]->queued_since == 1);
    check(reported_reason == ENQUEUE_PREEMPTED && places[0].queued && places[1].queued);
    check(run_queue_pick_for(&in_a_line, &queues[0], 1) == &places[3].task);
    check(!run_queue_pick_for(&in_a_line, &queues[0], 1) && queues[0].queued == 2 && !flaw);
    check(run_queue_pick_for(&in_a_line, &queues[0], 0) == &places[0].task);
}

static void a_policy_that_ends_hands_out_all(void)
{
    line_up_four();
    scheduler.ending = true;
    check(run_queue_pick_for(&in_a_line, &queues[0], 1) == &places[0].task);
}

static void what_may_not_run_elsewhere_is_not_moved(void)
{
    struct policy stealing = in_a_line;
    line_up_four();
    check(run_queue_steal_for(&in_a_line, &queues[0], 1) == &places[2].task);
    check(stops == 0 && line[0] == &places[0].task && line[1] == &places[1].task);
    stealing.steal = take_first;
    line_up_four();
    check(run_queue_steal_for(&stealing, &queues[0], 1) == &places[2].task);
    check(stops == 0 && reported_reason == ENQUEUE_MOVED && in_line == 3 && queues[0].queued == 3);
}

static uint32_t expected_place;

static uint32_t actual_place(const scheduler_t *unused, const task_t *task,
                             enum enqueue_reason reason)
{
    (void)unused;
    (void)task;
    (void)reason;
    return expected_place;
}

static void a_place_where_the_task_may_not_run_is_found(void)
{
    struct policy placing = policy;
    placing.place = actual_place;
    begin(CPUS);
    allow(0, 6);
    expected_place = 2;
    check(policy_place(&placing, &scheduler, &places[0].task, ENQUEUE_NEW) == 2 && !flaw);
    expected_place = 0;
    check(policy_place(&placing, &scheduler, &places[0].task, ENQUEUE_NEW) == 1);
    check(flaw == FLAW_PLACE);
    expected_place = CPUS;
    check(policy_place(&placing, &scheduler, &places[0].task, ENQUEUE_NEW) == 1);
    check(flaw == FLAW_CPU);
    flaw = FLAW_NONE;
    check(policy_place(&policy, &scheduler, &places[0].task, ENQUEUE_NEW) == 1 && !flaw);
    scheduler.queues = 1;
    check(policy_place(&placing, &scheduler, &places[0].task, ENQUEUE_NEW) == 1 && !flaw);
}

static void an_urgent_task_preempts_all_that_are_not(void)
{
    begin(1);
    for (uint32_t cpu = 0; cpu < CPUS; cpu++)
        run_on(4 - cpu, cpu);
    places[0].urgent = true;
    check(called_for(0, 0) == 2);
    for (uint32_t cpu = 0; cpu < CPUS; cpu++)
        places[4 - cpu].urgent = true;
    check(called_for(0, 0) == NO_CPU);
    places[4].known = places[3].known = places[2].known = false;
    check(called_for(1, 0) == NO_CPU); /* the policy does not know the running task */
}

static void tasks_that_are_held_make_no_cpu_look_for_them(void)
{
    begin(CPUS);
    queues[1].queued = queues[1].held = 3;
    queues[2].running = 1;
    check(balance_longest(&scheduler, 0, true) == NO_CPU);
    check(push_to_idle(&scheduler, 1) == NO_CPU);
    queues[2].queued = 1;
    check(push_to_idle(&scheduler, 2) == 0);
    check(balance_longest(&scheduler, 0, true) == 2);
    check(balance_longest(&scheduler, 1, true) == 2); /* it runs no other task */
    queues[0].running = 1;
    check(push_to_idle(&scheduler, 2) == 1);
    queues[1].queued = 4;
    queues[1].running = 1;
    check(balance_longest(&scheduler, 0, true) == 1); /* one of the four may run, as on CPU 2 */
}

/* Of 64 busy CPUs, 8 look for a task at each of 8 ticks, in turn; an idle CPU always looks. */
static void of_many_cpus_each_looks_around_in_its_turn(void)
{
    enum { MANY = 64, TICKS = MANY / QUEUES_A_TICK };
    static struct scheduler many = {.cpus = MANY, .queues = MANY, .tick_ns = 1000000};
    static struct run_queue queues_of_cpus[MANY];
    for (uint32_t cpu = 0; cpu < MANY; cpu++) {
        many.queue[cpu] = &queues_of_cpus[cpu];
        queues_of_cpus[cpu].running = 1;
    }
    queues_of_cpus[5].queued = 3;
    uint32_t visits[MANY] = {0};
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        uint32_t together = 0;
        for (uint32_t cpu = 0; cpu < MANY; cpu++) {
            queues_of_cpus[cpu].now = tick * many.tick_ns + cpu; /* ticks may be slightly late */
            bool looked = cpu != 5 && balance_longest(&many, cpu, false) == 5;
            visits[cpu] += looked;
            together += looked;
            check(cpu == 5 || balance_longest(&many, cpu, true) == 5);
        }
        check(together == QUEUES_A_TICK || together == QUEUES_A_TICK - 1);
    }
    queues_of_cpus[9].running = 0;
    uint32_t pushed = 0;
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        queues_of_cpus[5].now = tick * many.tick_ns;
        pushed += push_to_idle(&many, 5) == 9;
    }
    check(pushed == 1);
    for (uint32_t cpu = 0; cpu < MANY; cpu++)
        check(visits[cpu] == (cpu == 5 ? 0 : 1));
}

static const struct task *asked_policy[2 * TASKS];
static uint32_t call_count;
static uint32_t yes; /* answers, one bit per question */

static bool answer_overtakes(run_queue_t *queue, const task_t *waiter, const task_t *chosen)
{
    check(queue == &queues[0]);
    asked_policy[2 * call_count] = waiter;
    asked_policy[2 * call_count + 1] = chosen;
    return yes >> call_count++ & 1;
}

/* Returns the index of the task that continues, out of the first three. */
static int64_t chosen_by(const struct policy *asks, uint32_t answers)
{
    task_t *chosen = NULL;
    call_count = 0;
    yes = answers;
    for (uint32_t i = 0; i < 3; i++)
        chosen = run_queue_choose_waiter(asks, &queues[0], chosen, &places[i].task);
    return (struct place *)chosen - places;
}

static void the_policy_says_which_of_several_goes_on(void)
{
    struct policy asks = policy;
    asks.overtakes = answer_overtakes;
    begin(1);
    scheduler.orders_waiters = true;
    for (uint32_t i = 0; i < 3; i++)
        places[i].known = true;
    check(chosen_by(&asks, 0) == 0 && call_count == 3);
    check(asked_policy[0] == &places[0].task && !asked_policy[1]);
    check(asked_policy[4] == &places[2].task && asked_policy[5] == &places[0].task);
    check(chosen_by(&asks, 1) == 0);
    check(chosen_by(&asks, 2) == 1 && asked_policy[5] == &places[1].task);
    check(chosen_by(&asks, 4) == 2 && chosen_by(&asks, 7) == 2);
    places[1].known = false; /* keeps its place */
    check(chosen_by(&asks, 7) == 2 && call_count == 2 && asked_policy[3] == &places[0].task);
    places[0].known = false;
    check(chosen_by(&asks, 7) == 0 && call_count == 0);
    check(chosen_by(&policy, 7) == 0 && call_count == 0);
    scheduler.orders_waiters = false; /* the policy does not order waiters */
    places[0].known = places[1].known = true;
    check(chosen_by(&asks, 7) == 0 && call_count == 0);
}

int main(void)
{
    run_test(a_task_becomes_known_when_it_is_queued);
    run_test(a_task_is_picked_runs_and_leaves);
    run_test(one_that_the_policy_does_not_know_leaves_unheard);
    run_test(wrong_answers_are_found);
    run_test(a_policy_may_hold_tasks_that_an_alarm_lets_run);
    run_test(the_end_of_a_turn_is_the_policys);
    run_test(its_own_idle_cpu_is_called_first);
    run_test(an_idle_cpu_of_a_shared_queue_comes_before_one_that_gives_way);
    run_test(what_a_cpu_may_not_run_keeps_its_place);
    run_test(a_policy_that_ends_hands_out_all);
    run_test(what_may_not_run_elsewhere_is_not_moved);
    run_test(a_place_where_the_task_may_not_run_is_found);
    run_test(an_urgent_task_preempts_all_that_are_not);
    run_test(tasks_that_are_held_make_no_cpu_look_for_them);
    run_test(of_many_cpus_each_looks_around_in_its_turn);
    run_test(the_policy_says_which_of_several_goes_on);
    return 0;
}
