/* SPDX-License-Identifier: MIT */

/*
 * The scheduler's mechanism: run queues, ticks, calls between CPUs, what processes
 * do. Compiled once for each policy, whose source comes before this one: the hooks
 * fold into direct calls. ENGINE is the name of the engine, POLICY of the policy.
 *
 * It follows kernel/scheduler/ function by function, without locks: here one thing
 * happens after the other. docs/simulator.md has the order of events.
 */

#include <string.h>

#include "policies/support/attributes.h"
#include "policies/support/hooks.h"
#include "sim/events.h"
#include "sim/machine.h"

/* Acts of all processes at one moment: so many are a loop in which no time passes. */
#define IDLE_ACTS_MAX 10000000

extern const struct engine ENGINE;

static const struct policy *const policy = &POLICY;

/* `here` in what follows is the CPU that does it, or OUTSIDE. */

static inline void record(struct simulator *simulator, uint32_t here, enum trace_kind kind,
                          const struct process *process, uint32_t first, uint64_t second)
{
    if (!simulator->trace.next)
        return;
    if (here == OUTSIDE) {
        record_outside(simulator, kind, pid_of(process), first, second);
    } else {
        simulator->cpus[here].records++;
        trace_write(&simulator->trace, simulator->now, here, kind, pid_of(process), first, second);
    }
}

/* ---- the way into the kernel ---- */

/* When a CPU that a trap stops at this time begins in the kernel: what is left of its turn is
 * lost. */
static inline uint64_t after_trap(const struct simulator *simulator, uint64_t time)
{
    uint64_t turn = simulator->costs.turn;
    return turn ? time - time % turn + turn : time;
}

static inline bool in_kernel(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->resumes > simulator->now || cpu->calls;
}

/* ---- run queues (as kernel/scheduler/run_queue.c) ---- */

static inline struct run_queue *queue_of(struct simulator *simulator, uint32_t cpu)
{
    struct run_queue *queue = &simulator->queues[simulator->scheduler.queues == 1 ? 0 : cpu];
    queue->now = simulator->now;
    return queue;
}

static inline struct process *process_of(struct task *task)
{
    return (struct process *)task;
}

/* Makes the process known to the policy: a forked one inherits from its parent. */
static void introduce(struct simulator *simulator, struct process *process,
                      const struct process *parent)
{
    memset(process->task.state, 0, simulator->state_bytes);
    process->task.level = 0;
    process->task.next = process->task.previous = NULL;
    policy_init_task(policy, &simulator->scheduler, &process->task,
                     parent && parent->known ? &parent->task : NULL);
    process->known = true;
}

/* Seldom wanted: out of the way of what every decision does. */
static __attribute__((cold, noinline)) void record_queued(struct simulator *simulator,
                                                          uint32_t here,
                                                          const struct run_queue *queue,
                                                          const struct process *process)
{
    record(simulator, here, TRACE_QUEUED, process, queue->cpu, process->task.level);
}

static inline void queue_add(struct simulator *simulator, uint32_t here, struct run_queue *queue,
                             struct process *process, enum enqueue_reason reason,
                             const struct process *parent)
{
    if (!process->known) {
        introduce(simulator, process, parent);
        reason = reason == ENQUEUE_NEW ? reason : ENQUEUE_ADOPTED;
    }
    process->place = PLACE_QUEUED;
    process->task.queued_since = simulator->now;
    policy->enqueue(queue, &process->task, reason);
    queue->queued++;
    simulator->queued++;
    if (simulator->traces_queues)
        record_queued(simulator, here, queue, process);
}

static inline void taken_out(struct simulator *simulator, struct run_queue *queue,
                             struct process *process)
{
    if (process->place != PLACE_QUEUED || queue->queued == 0)
        fail(simulator, "policy %s handed out pid %d, which is not in that queue", policy->name,
             process->task.pid);
    process->place = PLACE_BLOCKED;
    queue->queued--;
    simulator->queued--;
}

static inline struct process *queue_pick(struct simulator *simulator, struct run_queue *queue,
                                         uint32_t cpu)
{
    queue->remark = 0;
    struct task *task = policy->pick(queue, cpu);
    if (!task) {
        if (queue->queued != 0)
            fail(simulator, "policy %s picks nobody, though processes are queued", policy->name);
        return NULL;
    }
    struct process *process = process_of(task);
    taken_out(simulator, queue, process);
    return process;
}

static void change_cpu(struct simulator *simulator, uint32_t here, struct process *process,
                       uint32_t to)
{
    record(simulator, here, TRACE_MIGRATE, process, process->task.cpu, to);
    process->task.cpu = to;
    process->left += simulator->costs.migration;
    simulator->counts.migrations++;
}

/* Moves the process that the policy hands out from one CPU's queue to another's; null: none. */
static struct process *move(struct simulator *simulator, uint32_t here, uint32_t from, uint32_t to)
{
    struct run_queue *queue = queue_of(simulator, from);
    struct task *task = policy_steal(policy, queue, to);
    if (!task)
        return NULL;
    struct process *process = process_of(task);
    taken_out(simulator, queue, process);
    change_cpu(simulator, here, process, to);
    queue_add(simulator, here, queue_of(simulator, to), process, ENQUEUE_MOVED, NULL);
    return process;
}

static struct process *queue_pull(struct simulator *simulator, uint32_t cpu, bool idle)
{
    uint32_t from = policy_balance(policy, &simulator->scheduler, cpu, idle);
    return from == NO_CPU ? NULL : move(simulator, cpu, from, cpu);
}

static bool queue_has_work(struct simulator *simulator, uint32_t cpu)
{
    return simulator->queued > 0 &&
           (queue_of(simulator, cpu)->queued > 0 ||
            policy_balance(policy, &simulator->scheduler, cpu, true) != NO_CPU);
}

/* ---- who hears of a process that was queued (as kernel/scheduler/scheduler.c) ---- */

static inline void progress(const struct simulator *simulator, struct cpu *cpu);

/*
 * An interrupt from another CPU, or from outside. Where traps end turns, it comes at the called
 * CPU's next turn, which is in the same round if its number is higher; and it is passed on to the
 * kernel by another trap, if a process runs there.
 */
static inline void interrupt_other(struct simulator *simulator, uint32_t here, struct cpu *called)
{
    uint64_t turn = simulator->costs.turn;
    uint64_t sent = here == OUTSIDE ? 0 : simulator->cpus[here].resumes;
    sent = sent > simulator->now ? sent : simulator->now;
    bool next_round = here != OUTSIDE && called->id < here;
    uint64_t heard = after_trap(simulator, sent) + (next_round ? turn : 0);
    if (turn && in_kernel(simulator, called)) {
        called->resumes += turn;
        heard = called->resumes;
    } else if (turn && called->current) {
        progress(simulator, called);
        heard += turn + simulator->costs.interrupt;
        called->resumes = heard;
    } else {
        heard += simulator->costs.interrupt;
    }
    called->called = heard;
}

/* The CPU should pick again. The end of a slice is the better reason: it decides where the process
 * is queued. */
static inline void call(struct simulator *simulator, uint32_t here, uint32_t cpu,
                        enum preempt_reason why)
{
    struct cpu *called = &simulator->cpus[cpu];
    if (!(called->reschedule && called->why == PREEMPT_SLICE))
        called->why = why;
    if (!called->reschedule && cpu == here)
        called->called = simulator->now;
    else if (!called->reschedule)
        interrupt_other(simulator, here, called);
    called->reschedule = true;
    cpu_set_add(&simulator->called, cpu);
}

/* Calls the CPU if it is idle and has not been called yet. */
static bool call_idle(struct simulator *simulator, uint32_t here, uint32_t cpu)
{
    if (cpu == NO_CPU || !cpu_set_has(&simulator->idle, cpu))
        return false;
    cpu_set_remove(&simulator->idle, cpu);
    call(simulator, here, cpu, PREEMPT_WAKEUP);
    return true;
}

static bool call_lowest_idle(struct simulator *simulator, uint32_t here)
{
    return call_idle(simulator, here, cpu_set_next(&simulator->idle, 0, simulator->scheduler.cpus));
}

static bool preempts(struct run_queue *queue, const struct process *process,
                     const struct process *running)
{
    return running && running->known &&
           policy_preempts(policy, queue, &process->task, &running->task);
}

/* The CPU that must give way; NO_CPU: none. Of several that a shared queue serves, one whose
 * process the others would preempt too. */
static uint32_t find_preempted(struct simulator *simulator, struct run_queue *queue,
                               const struct process *process)
{
    uint32_t found = NO_CPU;
    if (!policy->preempts)
        return NO_CPU;
    if (simulator->scheduler.queues > 1) {
        uint32_t cpu = process->task.cpu;
        return preempts(queue, process, simulator->cpus[cpu].current) ? cpu : NO_CPU;
    }
    for (uint32_t cpu = 0; cpu < simulator->scheduler.cpus; cpu++) {
        const struct process *running = simulator->cpus[cpu].current;
        if (preempts(queue, process, running) &&
            (found == NO_CPU || preempts(queue, simulator->cpus[found].current, running)))
            found = cpu;
    }
    return found;
}

/*
 * Someone was queued: an idle CPU of the queue should run it, or a busy one give
 * way to it; else an idle CPU of another queue may come and take it.
 */
static void announce(struct simulator *simulator, uint32_t here, struct run_queue *queue,
                     const struct process *process)
{
    bool shared = simulator->scheduler.queues == 1;
    if (call_idle(simulator, here, process->task.cpu) ||
        (shared && call_lowest_idle(simulator, here)))
        return;
    uint32_t preempted = find_preempted(simulator, queue, process);
    if (preempted != NO_CPU)
        call(simulator, here, preempted, PREEMPT_WAKEUP);
    else
        call_lowest_idle(simulator, here);
}

/* What it waited for has come: its step is done. (One that waits for a child looks again.) */
static inline void end_wait(struct simulator *simulator, struct process *process)
{
    if (process->waits != WAIT_CHILD)
        advance(simulator, process);
    process->waits = WAIT_NONE;
}

/* A process is forked by `actor`, or woken: by `actor`, or by an interrupt if that is null. */
static void make_runnable(struct simulator *simulator, uint32_t here, struct process *process,
                          enum enqueue_reason reason, const struct process *actor)
{
    uint32_t from = process->task.cpu;
    uint32_t to = from;
    if (simulator->scheduler.queues > 1)
        to = policy_place(policy, &simulator->scheduler, &process->task, reason);
    if (reason == ENQUEUE_WOKEN) {
        record(simulator, here, TRACE_WAKEUP, process, pid_of(actor), to);
        end_wait(simulator, process);
        if (from != to)
            change_cpu(simulator, here, process, to);
        simulator->counts.wakeups++;
    }
    process->task.cpu = to;
    struct run_queue *queue = queue_of(simulator, to);
    queue_add(simulator, here, queue, process, reason, reason == ENQUEUE_NEW ? actor : NULL);
    announce(simulator, here, queue, process);
}

/* ---- the change to another process (as kernel/scheduler/scheduler.c) ---- */

static inline bool is_computing(const struct workload_step *step)
{
    return step->kind <= STEP_RUN_UNTIL;
}

/* When the CPU's process will have computed; if it is about to act: when it calls the kernel, and
 * then, when the kernel does it. */
static inline uint64_t completion(const struct simulator *simulator, const struct cpu *cpu)
{
    const struct workload_step *step = step_of(simulator, cpu->current);
    uint64_t done = cpu->resumes + (is_computing(step) ? cpu->current->left : 0);
    bool waits = step->kind == STEP_RUN_UNTIL && step->value > done && !cpu->current->killed;
    return waits ? step->value : done;
}

/* An interrupt came while it was in the kernel, and waits. */
static inline bool is_kept(const struct cpu *cpu)
{
    return cpu->late_tick || cpu->due_first != NOBODY;
}

/* Notes when the CPU does something next by itself. What a process does after the next tick is
 * seen then: so one that computes for long costs nothing here. */
static inline void plan(struct simulator *simulator, const struct cpu *cpu)
{
    uint64_t when = NEVER;
    if (cpu->current) {
        uint64_t done = completion(simulator, cpu);
        when = done <= simulator->next_tick ? done : NEVER;
    }
    if (cpu->reschedule) {
        uint64_t heard = cpu->called > cpu->resumes ? cpu->called : cpu->resumes;
        when = heard < when ? heard : when;
    }
    if (is_kept(cpu) || cpu->calls)
        when = cpu->resumes;
    events_set(simulator, cpu->id, when);
}

/* Counts what the CPU's process has computed until now. */
static inline void progress(const struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    uint64_t now = simulator->now;
    process->task.run_time += now - cpu->accounted;
    cpu->accounted = now;
    if (now > cpu->resumes) {
        uint64_t elapsed = now - cpu->resumes;
        process->left -= elapsed < process->left ? elapsed : process->left;
        cpu->resumes = now;
    }
}

static inline void leave(struct simulator *simulator, struct run_queue *queue, struct cpu *cpu,
                         enum stop_reason stop, enum enqueue_reason reason)
{
    struct process *process = cpu->current;
    progress(simulator, cpu);
    queue->running--;
    if (process->known)
        policy_stop(policy, queue, &process->task, stop);
    if (stop == STOP_RUNNABLE)
        queue_add(simulator, cpu->id, queue, process, reason, NULL);
    else
        process->place = stop == STOP_BLOCKED ? PLACE_BLOCKED : PLACE_ZOMBIE;
}

static inline void enter(struct simulator *simulator, struct run_queue *queue, struct cpu *cpu,
                         struct process *process)
{
    process->place = PLACE_RUNNING;
    process->task.picked_since = simulator->now;
    process->task.selections++;
    if (process->task.cpu != cpu->id) {
        process->task.cpu = cpu->id;
        process->left += simulator->costs.migration;
    }
    cpu->accounted = simulator->now;
    queue->running++;
    simulator->counts.decisions++;
}

static enum process_state state_left(enum stop_reason stop)
{
    static const enum process_state states[] = {
        [STOP_RUNNABLE] = PROCESS_RUNNABLE,
        [STOP_BLOCKED] = PROCESS_BLOCKED,
        [STOP_ENDED] = PROCESS_ZOMBIE,
    };
    return states[stop];
}

static void count_switch(struct simulator *simulator, struct cpu *cpu, const struct process *next)
{
    simulator->busy += (next != NULL) - (cpu->current != NULL);
    if (next) {
        simulator->counts.switches++;
        simulator->counts.idle_time += cpu->current ? 0 : simulator->now - cpu->idle_since;
    } else {
        simulator->counts.idle_switches++;
        cpu->idle_since = simulator->now;
    }
}

/* The CPU goes back to its process, when the kernel's work is done. */
static void record_exit(struct simulator *simulator, struct cpu *cpu)
{
    const struct process *process = cpu->current;
    cpu->records++;
    trace_write(&simulator->trace, cpu->resumes, cpu->id, TRACE_SCHEDULER_EXIT, pid_of(process), 0,
                cpu->resumes);
    if (process && process->task.selections == 1 && !process->killed)
        record_name(simulator, cpu);
}

static void switch_to(struct simulator *simulator, struct cpu *cpu, struct process *next,
                      enum stop_reason stop, bool voluntary)
{
    struct process *previous = cpu->current;
    if (previous && !voluntary)
        record(simulator, cpu->id, TRACE_PREEMPT, previous, cpu->why, 0);
    record(simulator, cpu->id, TRACE_SWITCH, next, pid_of(previous),
           previous ? (uint64_t)state_left(stop) : 0);
    count_switch(simulator, cpu, next);
    cpu->current = next;
}

/* Picks again. The current process leaves as `stop` and `reason` say. */
static void reschedule(struct simulator *simulator, struct cpu *cpu, enum stop_reason stop,
                       enum enqueue_reason reason, bool voluntary)
{
    struct process *previous = cpu->current;
    struct run_queue *queue = queue_of(simulator, cpu->id);
    uint64_t begin = cpu->resumes > simulator->now ? cpu->resumes : simulator->now;
    record(simulator, cpu->id, TRACE_SCHEDULER_ENTER, previous, 0, begin);
    cpu->reschedule = false;
    if (previous)
        leave(simulator, queue, cpu, stop, reason);
    struct process *next = queue_pick(simulator, queue, cpu->id);
    while (!next && simulator->queued > 0 && queue_pull(simulator, cpu->id, true))
        next = queue_pick(simulator, queue, cpu->id);
    if (next && queue->remark)
        record(simulator, cpu->id, TRACE_DECISION, next, queue->queued, queue->remark);
    cpu->resumes = begin + simulator->costs.scheduler;
    if (simulator->costs.crowd)
        cpu->resumes += queue->queued * simulator->costs.crowd / 100;
    if (next) {
        enter(simulator, queue, cpu, next);
        cpu_set_remove(&simulator->idle, cpu->id);
    } else {
        cpu_set_add(&simulator->idle, cpu->id);
    }
    if (next != previous) {
        switch_to(simulator, cpu, next, stop, voluntary);
        cpu->resumes += simulator->costs.context_switch;
    }
    if (simulator->trace.next)
        record_exit(simulator, cpu);
    if (next && next->task.selections == 1 && simulator->costs.first_run)
        cpu->resumes = after_trap(simulator, cpu->resumes) + simulator->costs.first_run;
}

static void end_process(struct simulator *simulator, struct cpu *cpu, int32_t status);

/* It was asked to pick again. */
static inline void preempt(struct simulator *simulator, struct cpu *cpu)
{
    if (!cpu->current)
        reschedule(simulator, cpu, STOP_BLOCKED, ENQUEUE_WOKEN, true);
    else if (cpu->current->killed)
        end_process(simulator, cpu, -1);
    else
        reschedule(simulator, cpu, STOP_RUNNABLE,
                   cpu->why == PREEMPT_SLICE ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED, false);
}

static inline bool has_heard(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->called <= simulator->now && !in_kernel(simulator, cpu);
}

/*
 * Those CPUs that were asked to pick again do so, in their order; those that have
 * not heard of it, or are in the kernel, plan it. `here` needs no interrupt (NO_CPU:
 * nobody does). A CPU does nothing before its own tick of this moment.
 */
static void settle(struct simulator *simulator, uint32_t here)
{
    if (here != NO_CPU && simulator->cpus[here].reschedule)
        cpu_set_add(&simulator->called, here);
    uint32_t ticked = simulator->ticked;
    for (uint32_t i = cpu_set_next(&simulator->called, 0, ticked); i != NO_CPU;
         i = cpu_set_next(&simulator->called, i + 1, ticked)) {
        struct cpu *cpu = &simulator->cpus[i];
        cpu_set_remove(&simulator->called, i);
        if (cpu->reschedule &&
            (i == here ? !is_kept(cpu) && !cpu->calls : has_heard(simulator, cpu)))
            preempt(simulator, cpu);
        plan(simulator, cpu);
    }
    if (here != NO_CPU)
        plan(simulator, &simulator->cpus[here]);
}

/* ---- what processes do ---- */

/* The CPU's process waits. */
static void block(struct simulator *simulator, struct cpu *cpu, enum process_wait waits,
                  enum block_reason reason)
{
    cpu->current->waits = waits;
    record(simulator, cpu->id, TRACE_BLOCK, cpu->current, reason, 0);
    reschedule(simulator, cpu, STOP_BLOCKED, ENQUEUE_WOKEN, true);
}

static void act_sleep(struct simulator *simulator, struct cpu *cpu, uint64_t until)
{
    struct process *process = cpu->current;
    if (until <= simulator->now) {
        advance(simulator, process);
        return;
    }
    process->link = simulator->timers.started;
    timers_start(&simulator->timers, until, cpu->id, process->task.slot);
    block(simulator, cpu, WAIT_TIMER, BLOCK_SLEEP);
}

/* When so many ticks more have passed. */
static uint64_t tick_after(const struct simulator *simulator, uint64_t ticks)
{
    uint64_t tick_ns = simulator->scheduler.tick_ns;
    uint64_t most = TIME_MAX / tick_ns;
    ticks += simulator->now / tick_ns;
    return (ticks < most ? ticks : most) * tick_ns;
}

/* When a timer is due next that was due last at `*due`. One that is behind goes on from now, unless
 * it is `absolute`. */
static uint64_t timer_next(const struct simulator *simulator, uint64_t *due, uint64_t period,
                           bool absolute)
{
    *due = *due + period < TIME_MAX ? *due + period : TIME_MAX;
    if (*due < simulator->now && !absolute)
        *due = simulator->now;
    return *due;
}

static uint64_t own_timer_next(struct simulator *simulator, const struct process *process,
                               const struct workload_step *step)
{
    uint64_t *times = &simulator->timer_times[process->task.slot * simulator->timer_count];
    return timer_next(simulator, &times[step->detail], step->value, step->target == 1);
}

static uint64_t shared_timer_next(struct simulator *simulator, const struct process *process,
                                  const struct workload_step *step)
{
    uint64_t *due = &simulator->shared_times[step->target];
    uint32_t count = simulator->timer_count;
    if (*due == NEVER)
        *due = simulator->timer_times[process->task.slot * count + count - 1];
    return timer_next(simulator, due, step->value, step->detail == 1);
}

static void act_yield(struct simulator *simulator, struct cpu *cpu)
{
    advance(simulator, cpu->current);
    record(simulator, cpu->id, TRACE_YIELD, cpu->current, 0, 0);
    reschedule(simulator, cpu, STOP_RUNNABLE, ENQUEUE_YIELDED, true);
}

static void act_fork(struct simulator *simulator, struct cpu *cpu, uint32_t program)
{
    struct process *parent = cpu->current;
    advance(simulator, parent);
    struct process *child = process_create(simulator, parent, program);
    if (!child)
        return;
    if (!simulator->first_pid)
        simulator->first_pid = child->task.pid;
    record(simulator, cpu->id, TRACE_FORK, parent, pid_of(child), 0);
    make_runnable(simulator, cpu->id, child, ENQUEUE_NEW, parent);
    if (simulator->costs.fork_return)
        cpu->resumes = after_trap(simulator, cpu->resumes) + simulator->costs.fork_return;
}

static void reap(struct simulator *simulator, struct process *child)
{
    if (child->known)
        policy_exit_task(policy, &simulator->scheduler, &child->task);
    process_free(simulator, child);
}

static void act_wait(struct simulator *simulator, struct cpu *cpu)
{
    struct process *parent = cpu->current;
    struct process *child = zombie_take(simulator, parent);
    if (!child && parent->children > 0) {
        block(simulator, cpu, WAIT_CHILD, BLOCK_CHILD);
        return;
    }
    if (child) {
        reap(simulator, child);
        parent->children--;
        cpu->resumes += simulator->costs.reap;
    }
    advance(simulator, parent);
}

/* Of init. */
static void act_reap(struct simulator *simulator, struct cpu *cpu)
{
    struct process *child;
    while ((child = zombie_take(simulator, cpu->current))) {
        if (child->task.pid == simulator->first_pid)
            simulator->status = SIMULATOR_DONE;
        reap(simulator, child);
    }
    if (simulator->status != SIMULATOR_DONE)
        block(simulator, cpu, WAIT_CHILD, BLOCK_CHILD);
}

/* The CPU's process ends. Its parent hears of it before it has left the CPU. */
static void end_process(struct simulator *simulator, struct cpu *cpu, int32_t status)
{
    struct process *process = cpu->current;
    struct process *init = process_at(simulator, FIRST_SLOT);
    struct process *parent = process_parent(simulator, process);
    record(simulator, cpu->id, TRACE_EXIT, process, (uint32_t)status, 0);
    if (process->task.pid == simulator->first_pid)
        simulator->counts.exit_status = process->killed ? -1 : status;
    bool orphans = zombies_bequeath(simulator, process);
    if (orphans && init->waits == WAIT_CHILD)
        make_runnable(simulator, cpu->id, init, ENQUEUE_WOKEN, process);
    zombie_append(simulator, parent, process);
    if (parent->waits == WAIT_CHILD)
        make_runnable(simulator, cpu->id, parent, ENQUEUE_WOKEN, process);
    reschedule(simulator, cpu, STOP_ENDED, ENQUEUE_WOKEN, true);
}

/*
 * It ends as soon as it is in the kernel: at once if it is the actor; if it runs, at its CPU's tick
 * or its next act; if it is queued, or waits and so is woken, when it has a CPU.
 */
static void kill_process(struct simulator *simulator, uint32_t here, struct process *process,
                         const struct process *actor)
{
    process->killed = true;
    if (process->place == PLACE_RUNNING && process != actor)
        return;
    if (process->place == PLACE_BLOCKED) {
        stop_waiting(simulator, process);
        make_runnable(simulator, here, process, ENQUEUE_WOKEN, actor);
    }
    process->left = 0;
}

/* To those that wait, in their order, before others can take it. How much of `count` is left. */
static uint64_t give_waiting(struct simulator *simulator, uint32_t here, struct channel *channel,
                             uint64_t count, const struct process *actor)
{
    while (channel->first != NOBODY && count > 0) {
        struct process *process = process_at(simulator, channel->first);
        channel->first = process->link;
        channel->waiting--;
        count--;
        make_runnable(simulator, here, process, ENQUEUE_WOKEN, actor);
    }
    return count;
}

/* 0: one to each that waits. */
static void give(struct simulator *simulator, uint32_t here, struct channel *channel,
                 uint64_t count, const struct process *actor)
{
    uint64_t left = give_waiting(simulator, here, channel, count ? count : UINT64_MAX, actor);
    channel->count += count ? left : 0;
}

static void wait_in_line(struct simulator *simulator, struct cpu *cpu, struct channel *channel)
{
    struct process *process = cpu->current;
    process->link = NOBODY;
    if (channel->first == NOBODY)
        channel->first = process->task.slot;
    else
        process_at(simulator, channel->last)->link = process->task.slot;
    channel->last = process->task.slot;
    channel->waiting++;
    block(simulator, cpu, WAIT_CHANNEL, BLOCK_PIPE);
}

static void act_take(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct process *process = cpu->current;
    struct channel *channel = &simulator->channels[step->target];
    if (step->value > 0)
        give(simulator, cpu->id, &simulator->channels[step->value - 1], 1, process);
    if (channel->count > 0) {
        channel->count--;
        advance(simulator, process);
        return;
    }
    wait_in_line(simulator, cpu, channel);
}

static void act_meet(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct channel *channel = &simulator->channels[step->target];
    if (channel->waiting + 1 < step->value) {
        wait_in_line(simulator, cpu, channel);
        return;
    }
    advance(simulator, cpu->current);
    give(simulator, cpu->id, channel, 0, cpu->current);
}

static void act_give(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct channel *channel = &simulator->channels[step->target];
    struct process *process = cpu->current;
    advance(simulator, process);
    if (step->detail == 1 && step->value > 0)
        give_waiting(simulator, cpu->id, channel, step->value, process);
    else
        give(simulator, cpu->id, channel, step->value, process);
}

/* The process that a step means; null: it does not live. */
static struct process *find_player(const struct simulator *simulator, struct process *self,
                                   uint32_t target)
{
    if (target == WORKLOAD_SELF)
        return self;
    const struct player *player = &simulator->players[target];
    if (player->slot == NOBODY)
        return NULL;
    struct process *process = process_at(simulator, player->slot);
    bool lives = process->task.pid == player->pid && process->place != PLACE_FREE &&
                 process->place != PLACE_ZOMBIE;
    return lives ? process : NULL;
}

static void set_attribute(struct simulator *simulator, uint32_t here, struct process *process,
                          enum attribute_kind kind, uint64_t value)
{
    record(simulator, here, TRACE_ATTRIBUTE, process, kind, value);
    if (process->place != PLACE_QUEUED) {
        STORE_ATTRIBUTE(&process->task, kind, value);
        if (process->place == PLACE_RUNNING)
            call(simulator, here, process->task.cpu, PREEMPT_POLICY);
        return;
    }
    struct run_queue *queue = queue_of(simulator, process->task.cpu);
    policy->dequeue(queue, &process->task);
    taken_out(simulator, queue, process);
    STORE_ATTRIBUTE(&process->task, kind, value);
    queue_add(simulator, here, queue, process, ENQUEUE_MOVED, NULL);
    announce(simulator, here, queue, process);
}

static void act_attribute(struct simulator *simulator, struct cpu *cpu,
                          const struct workload_step *step)
{
    struct process *process = find_player(simulator, cpu->current, step->target);
    advance(simulator, cpu->current);
    if (process)
        set_attribute(simulator, cpu->id, process, step->detail, step->value);
}

static void act_kill(struct simulator *simulator, struct cpu *cpu, uint32_t program)
{
    struct process *process = find_player(simulator, NULL, program);
    advance(simulator, cpu->current);
    if (process)
        kill_process(simulator, cpu->id, process, cpu->current);
}

/* The CPU's process does what it was about to do. */
static void act(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    const struct workload_step *step = step_of(simulator, process);
    switch (step->kind) {
    case STEP_RUN:
    case STEP_RUN_UNTIL:
        advance(simulator, process);
        break;
    case STEP_SLEEP:
        act_sleep(simulator, cpu, simulator->now + step->value);
        break;
    case STEP_SLEEP_TICKS:
        act_sleep(simulator, cpu, step->value ? tick_after(simulator, step->value) : 0);
        break;
    case STEP_SLEEP_UNTIL:
        act_sleep(simulator, cpu, step->value);
        break;
    case STEP_TIMER:
        act_sleep(simulator, cpu, own_timer_next(simulator, process, step));
        break;
    case STEP_SHARED_TIMER:
        act_sleep(simulator, cpu, shared_timer_next(simulator, process, step));
        break;
    case STEP_YIELD:
        act_yield(simulator, cpu);
        break;
    case STEP_FORK:
        act_fork(simulator, cpu, step->target);
        break;
    case STEP_WAIT:
        act_wait(simulator, cpu);
        break;
    case STEP_REAP:
        act_reap(simulator, cpu);
        break;
    case STEP_TAKE:
        act_take(simulator, cpu, step);
        break;
    case STEP_MEET:
        act_meet(simulator, cpu, step);
        break;
    case STEP_GIVE:
        act_give(simulator, cpu, step);
        break;
    case STEP_ATTRIBUTE:
        act_attribute(simulator, cpu, step);
        break;
    case STEP_MARK:
        record(simulator, cpu->id, TRACE_MARK, process, step->detail, step->value);
        advance(simulator, process);
        break;
    case STEP_SET_POLICY:
        advance(simulator, process);
        if (!switch_policy(simulator, cpu->id, simulator->texts[step->target], &simulator->error))
            simulator->status = SIMULATOR_FAILED;
        break;
    case STEP_SET_TUNABLE:
        advance(simulator, process);
        if (!switch_tunable(simulator, cpu->id, simulator->texts[step->target], &simulator->error))
            simulator->status = SIMULATOR_FAILED;
        break;
    case STEP_EXIT:
        end_process(simulator, cpu, (int32_t)step->value);
        break;
    case STEP_KILL:
        act_kill(simulator, cpu, step->target);
        break;
    }
}

/* The CPU's process calls the kernel, which is not interrupted until it has done what is wanted. */
static inline void enter_call(struct simulator *simulator, struct cpu *cpu)
{
    cpu->resumes = after_trap(simulator, simulator->now) + cpu->current->left;
    if (step_of(simulator, cpu->current)->kind == STEP_FORK &&
        simulator->counts.processes == simulator->most_processes)
        cpu->resumes += simulator->costs.fork_new;
    cpu->current->left = 0;
    cpu->calls = true;
}

/* The CPU's process has computed, or acts. An act that takes no time is done with the computing
 * before it, as one. */
static void act_on(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    progress(simulator, cpu);
    if (simulator->acted_at != simulator->now) {
        simulator->acted_at = simulator->now;
        simulator->idle_acts = 0;
    }
    if (++simulator->idle_acts > IDLE_ACTS_MAX)
        fail(simulator,
             "pid %d does things without end and no time passes: let it compute or sleep",
             process->task.pid);
    if (process->killed) {
        cpu->calls = false;
        end_process(simulator, cpu, -1);
        return;
    }
    bool computed = is_computing(step_of(simulator, process));
    if (computed)
        act(simulator, cpu);
    if (is_computing(step_of(simulator, process)))
        return;
    if (process->left > 0) {
        enter_call(simulator, cpu);
        return;
    }
    cpu->calls = false;
    act(simulator, cpu);
}

/* ---- ticks and timers (as kernel/time/timer.c) ---- */

/* Takes the CPU's timers that are due out of the heap, in whose order they come first now. */
static inline void take_due(struct simulator *simulator, struct cpu *cpu)
{
    struct timers *timers = &simulator->timers;
    while (timers->count > 0 && timers->heap[0].when <= simulator->now &&
           timer_cpu(&timers->heap[0]) == cpu->id) {
        struct timer due = timers_take(timers);
        uint32_t slot = timer_slot(&due);
        process_at(simulator, slot)->link = NOBODY;
        process_at(simulator, slot)->waits = WAIT_DUE;
        if (timers->dead > 0)
            drop_dead_timers(simulator);
        if (cpu->due_first == NOBODY)
            cpu->due_first = slot;
        else
            process_at(simulator, cpu->due_last)->link = slot;
        cpu->due_last = slot;
    }
}

static inline void wake_due(struct simulator *simulator, struct cpu *cpu)
{
    while (cpu->due_first != NOBODY) {
        struct process *process = process_at(simulator, cpu->due_first);
        cpu->due_first = process->link;
        make_runnable(simulator, cpu->id, process, ENQUEUE_WOKEN, NULL);
        cpu->resumes += simulator->costs.wakeup;
    }
}

/* Gives one of its waiting processes to another CPU. */
static inline void tick_push(struct simulator *simulator, uint32_t cpu)
{
    if (queue_of(simulator, cpu)->queued == 0)
        return;
    uint32_t to = policy_push(policy, &simulator->scheduler, cpu);
    struct process *moved = to == NO_CPU ? NULL : move(simulator, cpu, cpu, to);
    if (moved)
        announce(simulator, cpu, queue_of(simulator, to), moved);
}

/* Takes a share of the others' work. */
static inline void tick_balance(struct simulator *simulator, uint32_t cpu)
{
    struct process *moved = simulator->queued > 0 ? queue_pull(simulator, cpu, false) : NULL;
    if (moved)
        announce(simulator, cpu, queue_of(simulator, cpu), moved);
}

static inline void tick(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    if (!process) {
        if (queue_has_work(simulator, cpu->id))
            call(simulator, cpu->id, cpu->id, PREEMPT_WAKEUP);
        return;
    }
    struct run_queue *queue = queue_of(simulator, cpu->id);
    simulator->counts.ticks++;
    cpu->resumes += simulator->costs.tick;
    enum tick_verdict verdict =
        process->known ? policy->tick(queue, &process->task) : TICK_CONTINUE;
    if (verdict == TICK_PREEMPT)
        call(simulator, cpu->id, cpu->id, PREEMPT_SLICE);
    tick_push(simulator, cpu->id);
    tick_balance(simulator, cpu->id);
    if (verdict == TICK_KILL && process->task.slot != FIRST_SLOT)
        process->killed = true;
    if (process->killed)
        end_process(simulator, cpu, -1);
}

/* An idle CPU waits for interrupts, and needs no trap to see them. */
static inline void enter_interrupt(struct simulator *simulator, struct cpu *cpu)
{
    if (cpu->current) {
        progress(simulator, cpu);
        cpu->resumes = after_trap(simulator, cpu->resumes);
    } else if (cpu->resumes < simulator->now) {
        cpu->resumes = simulator->now;
    }
}

/* The CPU's timers that are due, then its tick if it is time for one; later if it is in the
 * kernel. */
static inline void interrupt(struct simulator *simulator, struct cpu *cpu, bool with_tick)
{
    take_due(simulator, cpu);
    if (in_kernel(simulator, cpu)) {
        cpu->late_tick |= with_tick;
    } else {
        enter_interrupt(simulator, cpu);
        wake_due(simulator, cpu);
        if (with_tick || cpu->late_tick)
            tick(simulator, cpu);
        cpu->late_tick = false;
    }
}

/* All CPUs' ticks, one after the other, each with all that comes of it. */
static void tick_all(struct simulator *simulator)
{
    uint32_t cpus = simulator->scheduler.cpus;
    simulator->now = simulator->next_tick;
    simulator->next_tick += simulator->scheduler.tick_ns;
    for (uint32_t i = 0; i < cpus; i++) {
        simulator->ticked = i + 1;
        interrupt(simulator, &simulator->cpus[i], true);
        settle(simulator, i);
    }
}

/* Between ticks: the timers of one CPU. */
static void expire(struct simulator *simulator)
{
    uint32_t cpu = timer_cpu(&simulator->timers.heap[0]);
    simulator->now = simulator->timers.heap[0].when;
    interrupt(simulator, &simulator->cpus[cpu], false);
    settle(simulator, cpu);
}

/* Between ticks: what one CPU does by itself. */
static void happen(struct simulator *simulator)
{
    uint32_t i = events_first_cpu(simulator);
    struct cpu *cpu = &simulator->cpus[i];
    simulator->now = events_next(simulator);
    if (is_kept(cpu) && !cpu->calls)
        interrupt(simulator, cpu, false);
    else if (cpu->calls || !cpu->reschedule || cpu->called > simulator->now)
        act_on(simulator, cpu);
    if (simulator->engine == &ENGINE)
        settle(simulator, i);
}

/* Nothing goes on until the next timer: ticks of idle CPUs are left out. False: there is none. */
static bool skip_idle_ticks(struct simulator *simulator)
{
    uint64_t tick = simulator->scheduler.tick_ns;
    uint64_t timer = timers_next(&simulator->timers);
    if (timer == NEVER)
        fail(simulator, "all processes wait, and nothing is left that could wake one");
    else if (timer > simulator->next_tick)
        simulator->next_tick = (timer + tick - 1) / tick * tick;
    return timer != NEVER;
}

static void run(struct simulator *simulator, uint64_t until)
{
    settle(simulator, NO_CPU);
    while (simulator->status == SIMULATOR_TIME && simulator->engine == &ENGINE) {
        uint64_t event = events_next(simulator);
        uint64_t timer = timers_next(&simulator->timers);
        bool idle = simulator->busy == 0 && simulator->queued == 0 && event == NEVER;
        if (idle && !skip_idle_ticks(simulator))
            return;
        uint64_t earliest = timer < event ? timer : event;
        if (simulator->next_tick <= earliest) {
            if (simulator->next_tick > until)
                return;
            tick_all(simulator);
        } else if (earliest > until) {
            return;
        } else if (timer <= event) {
            expire(simulator);
        } else {
            happen(simulator);
        }
    }
}

/* ---- the policy comes into force, and goes (as kernel/scheduler/run_queue.c) ---- */

static void install(struct simulator *simulator)
{
    struct scheduler *scheduler = &simulator->scheduler;
    memset(simulator->scheduler_state, 0, sizeof(simulator->scheduler_state));
    policy_init_scheduler(policy, scheduler);
    scheduler->queues = policy_wants_shared_queue(policy, scheduler) ? 1 : scheduler->cpus;
    for (uint32_t i = 0; i < scheduler->cpus; i++) {
        struct run_queue *queue = &simulator->queues[i];
        memset(queue->state, 0, POLICY_QUEUE_BYTES);
        *queue = (struct run_queue){
            .scheduler = scheduler, .now = simulator->now, .cpu = i, .state = queue->state};
        policy_init_queue(policy, queue);
    }
    for (uint32_t i = 0; i < scheduler->cpus; i++)
        queue_of(simulator, i)->running += simulator->cpus[i].current != NULL;
}

static uint32_t drain(struct simulator *simulator)
{
    uint32_t first = NOBODY;
    uint32_t *end = &first;
    for (uint32_t i = 0; i < simulator->scheduler.queues; i++) {
        struct process *process;
        while ((process = queue_pick(simulator, queue_of(simulator, i), i))) {
            *end = process->task.slot;
            end = &process->link;
        }
    }
    *end = NOBODY;
    return first;
}

static void adopt(struct simulator *simulator, uint32_t here, uint32_t first)
{
    while (first != NOBODY) {
        struct process *process = process_at(simulator, first);
        first = process->link;
        queue_add(simulator, here, queue_of(simulator, process->task.cpu), process, ENQUEUE_ADOPTED,
                  NULL);
    }
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++)
        call(simulator, here, i, PREEMPT_POLICY);
}

static void start(struct simulator *simulator, struct process *process)
{
    struct run_queue *queue = queue_of(simulator, 0);
    record(simulator, 0, TRACE_FORK, NULL, pid_of(process), 0);
    queue_add(simulator, 0, queue, process, ENQUEUE_NEW, NULL);
    announce(simulator, 0, queue, process);
}

/* ---- a hand from outside ---- */

static void outside_fork(struct simulator *simulator, uint32_t program)
{
    struct process *process = process_create(simulator, NULL, program);
    record(simulator, OUTSIDE, TRACE_FORK, NULL, pid_of(process), 0);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_NEW, NULL);
}

static void outside_kill(struct simulator *simulator, struct process *process)
{
    kill_process(simulator, OUTSIDE, process, NULL);
}

static void outside_wake(struct simulator *simulator, struct process *process)
{
    if (process->waits == WAIT_CHILD)
        advance(simulator, process);
    else
        stop_waiting(simulator, process);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_WOKEN, NULL);
}

static void outside_migrate(struct simulator *simulator, struct process *process, uint32_t cpu)
{
    struct run_queue *queue = queue_of(simulator, process->task.cpu);
    policy->dequeue(queue, &process->task);
    taken_out(simulator, queue, process);
    change_cpu(simulator, OUTSIDE, process, cpu);
    queue = queue_of(simulator, cpu);
    queue_add(simulator, OUTSIDE, queue, process, ENQUEUE_MOVED, NULL);
    announce(simulator, OUTSIDE, queue, process);
}

static void outside_give(struct simulator *simulator, struct channel *channel, uint64_t count)
{
    give(simulator, OUTSIDE, channel, count, NULL);
}

static void outside_set_attribute(struct simulator *simulator, struct process *process,
                                  enum attribute_kind kind, uint64_t value)
{
    set_attribute(simulator, OUTSIDE, process, kind, value);
}

const struct engine ENGINE = {
    .policy = &POLICY,
    .run = run,
    .install = install,
    .drain = drain,
    .adopt = adopt,
    .start = start,
    .fork = outside_fork,
    .kill = outside_kill,
    .wake = outside_wake,
    .migrate = outside_migrate,
    .give = outside_give,
    .set_attribute = outside_set_attribute,
};
