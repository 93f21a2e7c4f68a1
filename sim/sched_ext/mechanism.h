/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_MECHANISM_H
#define SIM_SCHED_EXT_MECHANISM_H

/*
 * How processes become runnable, are picked and stopped under sched_ext, in Linux's order of
 * operations: select_cpu, runnable, enqueue; and at a pick dispatch(previous), stopping, enqueue of
 * the previous task, running. All processes are in queue 0, which only counts them; the scheduler
 * and the dispatch queues hold them.
 */

#include <string.h>

#include "sim/engine/cpu.h"
#include "sim/engine/owners.h"
#include "sim/sched_ext/state.h"

/* A CPU that picks so often while no time passes has an endless loop of kicks. */
#define PICKS_AT_ONCE_MAX 20000

#define ALL_CPUS "0-1023"

static inline struct sched_ext *ext_in(const struct simulator *simulator)
{
    return simulator->sched_ext;
}

/* CPU 0 does the work of a CPU that is offline. */
static inline uint32_t online_cpu(const struct sched_ext *ext, uint32_t cpu)
{
    return cpu_is_online(ext, cpu) ? cpu : 0;
}

/* Sets the CPU where programs run; from outside, this is `outside_cpu`. */
static inline void enter_programs(struct sched_ext *ext, uint32_t acting_cpu, uint32_t outside_cpu)
{
    ext->acting_cpu = acting_cpu;
    ext->this_cpu = online_cpu(ext, acting_cpu == OUTSIDE ? outside_cpu : acting_cpu);
}

static inline struct sched_ext_entity *entity_of(const struct sched_ext *ext,
                                                 const struct process *process)
{
    return &task_struct_of(ext, process->task.slot)->scx;
}

static inline bool is_ext(const struct process *process)
{
    return process && process->known;
}

static inline void call_for(struct sched_ext *ext, enum scheduler_op op,
                            const struct process *process, uint64_t value)
{
    if (has_op(ext, op))
        call_op(ext, op, task_address(ext, process->task.slot), value, 0);
}

/* ---- states of processes ---- */

static void set_waiting(struct simulator *simulator, struct process *process)
{
    process->place = PLACE_QUEUED;
    simulator->queued++;
    simulator->queues[0].queued++;
}

static void end_waiting(struct simulator *simulator)
{
    simulator->queued--;
    simulator->queues[0].queued--;
}

static void set_runnable(struct sched_ext *ext, const struct process *process)
{
    struct ext_task *task = &ext->tasks[process->task.slot];
    task->is_queued = true;
    task->runnable_since = ext_now(ext);
    entity_of(ext, process)->flags |= SCX_TASK_QUEUED;
    entity_of(ext, process)->runnable_at = ext_now(ext) / 1000000;
    task_struct_of(ext, process->task.slot)->__state = TASK_STATE_RUNNING;
    task_struct_of(ext, process->task.slot)->on_rq = 1;
}

/* Takes the CPU time since the last call from the slice. */
static void update_current(struct simulator *simulator, struct cpu *cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    struct process *process = cpu->current;
    progress(simulator, cpu);
    if (!is_ext(process))
        return;
    struct ext_task *task = &ext->tasks[process->task.slot];
    struct task_struct *kernel = task_struct_of(ext, process->task.slot);
    uint64_t elapsed = process->task.run_time - task->counted;
    task->counted = process->task.run_time;
    kernel->se.sum_exec_runtime = process->task.run_time;
    kernel->se.exec_start = ext_now(ext);
    if (kernel->scx.slice != SCX_SLICE_INF)
        kernel->scx.slice -= elapsed < kernel->scx.slice ? elapsed : kernel->scx.slice;
}

static void update_clock(struct sched_ext *ext, uint32_t cpu)
{
    struct rq *rq = rq_of(ext, cpu);
    rq->clock = rq->clock_task = rq->clock_pelt = rq->scx.clock = ext_now(ext);
}

/* ---- enqueueing ---- */

static void do_enqueue_task(struct simulator *simulator, uint32_t acting_cpu,
                            struct process *process, uint64_t flags)
{
    struct sched_ext *ext = ext_in(simulator);
    uint32_t slot = process->task.slot;
    struct ext_task *task = &ext->tasks[slot];
    struct sched_ext_entity *entity = entity_of(ext, process);
    task->sequence++;
    if (simulator->traces_queues)
        record_queued(simulator, acting_cpu, queue_of(simulator, 0), process);
    if (ext->bypasses || (entity->ddsp_dsq_id == SCX_DSQ_INVALID && !has_op(ext, OP_enqueue))) {
        entity->slice = SCX_SLICE_DFL;
        entity->ddsp_dsq_id = SCX_DSQ_INVALID;
        task->placed_by = DISPATCH_BY_KERNEL;
        dispatch_enqueue(ext, global_queue(ext), slot, flags & ~(uint64_t)SCX_ENQ_DSQ_PRIQ);
        return;
    }
    if (entity->ddsp_dsq_id == SCX_DSQ_INVALID) {
        uint32_t outer = ext->direct_task;
        task->in_custody = true;
        ext->direct_task = slot;
        call_for(ext, OP_enqueue, process, flags);
        ext->direct_task = outer;
    }
    if (entity->ddsp_dsq_id != SCX_DSQ_INVALID) {
        direct_dispatch(ext, slot, flags);
    } else {
        task->placed_by = DISPATCH_BY_ENQUEUE;
        ext_record_place(ext, slot, SCX_DSQ_INVALID);
    }
}

static void enqueue_task(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                         uint64_t flags)
{
    struct sched_ext *ext = ext_in(simulator);
    set_runnable(ext, process);
    call_for(ext, OP_runnable, process, flags);
    do_enqueue_task(simulator, acting_cpu, process, flags);
}

/* The task stops being runnable: it blocks, ends, or changes. */
static void dequeue_task(struct simulator *simulator, struct process *process, uint64_t flags)
{
    struct sched_ext *ext = ext_in(simulator);
    struct ext_task *task = &ext->tasks[process->task.slot];
    if (task->in_custody)
        call_for(ext, OP_dequeue, process, flags);
    task->in_custody = false;
    if (process->place == PLACE_RUNNING)
        call_for(ext, OP_stopping, process, false);
    call_for(ext, OP_quiescent, process, flags);
    task->is_queued = false;
    entity_of(ext, process)->flags &= ~(u32)SCX_TASK_QUEUED;
    task_struct_of(ext, process->task.slot)->on_rq = 0;
    dispatch_dequeue(ext, process->task.slot);
}

/* ---- the life of a task ---- */

static void introduce_task(struct simulator *simulator, struct process *process)
{
    struct sched_ext *ext = ext_in(simulator);
    uint32_t slot = process->task.slot;
    uint64_t address = guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS);
    struct scx_init_task_args *arguments = guest_memory(&ext->guest, address, sizeof(*arguments));
    ext->tasks[slot] = (struct ext_task){
        .queue = NONE,
        .next = NONE,
        .previous = NONE,
        .group = enter_group(ext, process->task.group),
        .counted = process->task.run_time,
        .exists = true,
    };
    process->known = true;
    fill_task(ext, slot);
    if (ext->bypasses)
        return;
    if (has_op(ext, OP_init_task)) {
        *arguments = (struct scx_init_task_args){
            .fork = true, .cgroup = group_address(ext, ext->tasks[slot].group)};
        int32_t result = (int32_t)call_op(ext, OP_init_task, task_address(ext, slot), address, 0);
        if (result != 0)
            scx_error(ext, "init_task() of pid %d returned %d", process->task.pid, result);
    }
    call_for(ext, OP_enable, process, 0);
    call_for(ext, OP_set_weight, process, entity_of(ext, process)->weight);
}

/* The task leaves sched_ext: it has ended, or becomes urgent. */
static void exit_task(struct sched_ext *ext, struct process *process)
{
    uint64_t address = guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS);
    struct scx_exit_task_args *arguments = guest_memory(&ext->guest, address, sizeof(*arguments));
    uint32_t slot = process->task.slot;
    if (!ext->is_ended) {
        *arguments = (struct scx_exit_task_args){0};
        call_for(ext, OP_disable, process, 0);
        call_for(ext, OP_exit_task, process, address);
    }
    forget_storage(ext, MAP_TASK_STORAGE, slot);
    ext->tasks[slot].exists = false;
    process->known = false;
}

/* ---- becoming runnable ---- */

static bool wakes_sync(const struct simulator *simulator, const struct process *process,
                       const struct process *actor)
{
    const struct workload_step *step = step_of(simulator, process);
    return actor && process->waits == WAIT_CHANNEL && step->kind == STEP_TAKE &&
           step->detail < TAKE_LOCK;
}

/* Asks the scheduler, or the kernel's default, for a CPU. */
static uint32_t ask_for_cpu(struct sched_ext *ext, const struct process *process,
                            uint64_t wake_flags)
{
    uint32_t previous = process->task.cpu;
    struct sched_ext_entity *entity = entity_of(ext, process);
    if (has_op(ext, OP_select_cpu) && !ext->bypasses) {
        ext->direct_task = process->task.slot;
        int32_t cpu = (int32_t)call_op(ext, OP_select_cpu, task_address(ext, process->task.slot),
                                       previous, wake_flags);
        ext->direct_task = NONE;
        entity->selected_cpu = cpu;
        if (cpu >= 0 && (uint32_t)cpu < ext->cpu_count)
            return (uint32_t)cpu;
        scx_error(ext, "select_cpu() returned CPU %d, which does not exist", cpu);
        return previous;
    }
    int32_t cpu = select_cpu_default(ext, process->task.slot, previous, wake_flags, 0, 0);
    if (cpu >= 0) {
        entity->slice = SCX_SLICE_DFL;
        entity->ddsp_dsq_id = SCX_DSQ_LOCAL;
        ext->tasks[process->task.slot].placed_by = DISPATCH_BY_KERNEL;
    }
    entity->selected_cpu = cpu >= 0 ? cpu : (int32_t)previous;
    return (uint32_t)entity->selected_cpu;
}

static void store_affinity(struct simulator *simulator, uint32_t acting_cpu,
                           struct process *process, const char *list);

/* Gives a task all CPUs if no CPU of its set is online, as Linux does. Returns true if it did. */
static bool widen_affinity(struct sched_ext *ext, struct process *process)
{
    const uint64_t *cpus = task_struct_of(ext, process->task.slot)->cpus_mask.bits;
    if (mask_next(ext, cpus, online_mask(ext), 0) < ext->cpu_count)
        return false;
    store_affinity(ext->simulator, ext->acting_cpu, process, ALL_CPUS);
    fill_task_attributes(ext, process->task.slot);
    return true;
}

/* Returns the CPU where a task becomes runnable, and adds a flag if the scheduler chose it. */
static uint32_t select_task_rq(struct sched_ext *ext, struct process *process, uint64_t wake_flags,
                               uint64_t *flags)
{
    const struct task_struct *task = task_struct_of(ext, process->task.slot);
    uint32_t cpu = process->task.cpu;
    if (widen_affinity(ext, process))
        call_for(ext, OP_set_cpumask, process, task->cpus_ptr);
    if (task->nr_cpus_allowed > 1) {
        cpu = ask_for_cpu(ext, process, wake_flags);
        *flags |= SCX_ENQ_CPU_SELECTED;
    }
    return task_allows(ext, process->task.slot, cpu)
               ? cpu
               : mask_next(ext, task->cpus_mask.bits, online_mask(ext), 0);
}

/* An urgent process runs before all tasks of sched_ext. It prefers an idle CPU. */
static uint32_t urgent_cpu(const struct simulator *simulator, const struct process *process)
{
    const struct sched_ext *ext = ext_in(simulator);
    uint32_t cpu = online_cpu(ext, process->task.cpu);
    for (uint32_t i = 0; i < simulator->scheduler.cpus && simulator->cpus[cpu].current; i++) {
        bool may = cpu_is_online(ext, i) && task_may_run_on(&process->task, i);
        if (!simulator->cpus[i].current && may)
            cpu = i;
    }
    return cpu;
}

static void note_wakeup(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                        const struct process *actor, uint32_t to)
{
    process->task.waker = (int32_t)pid_of(actor);
    process->task.waker_cpu = (uint16_t)acting_cpu;
    record(simulator, acting_cpu, TRACE_WAKEUP, process, pid_of(actor), to);
    end_wait(simulator, process);
    simulator->counts.wakeups++;
}

static void make_urgent_runnable(struct simulator *simulator, uint32_t acting_cpu,
                                 struct process *process, enum enqueue_reason reason,
                                 const struct process *actor)
{
    uint32_t to = urgent_cpu(simulator, process);
    if (reason == ENQUEUE_WOKEN)
        note_wakeup(simulator, acting_cpu, process, actor, to);
    if (process->task.cpu != to)
        change_cpu(simulator, acting_cpu, process, to);
    add_urgent(simulator, process);
    simulator->queued++;
    call(simulator, acting_cpu, to, PREEMPT_WAKEUP);
}

static void make_runnable(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                          enum enqueue_reason reason, const struct process *actor)
{
    struct sched_ext *ext = ext_in(simulator);
    bool is_new = reason == ENQUEUE_NEW;
    uint64_t flags = is_new ? 0 : SCX_ENQ_WAKEUP;
    uint64_t wake_flags = is_new ? SCX_WAKE_FORK : SCX_WAKE_TTWU;
    if (process->urgent) {
        make_urgent_runnable(simulator, acting_cpu, process, reason, actor);
        return;
    }
    enter_programs(ext, acting_cpu, process->task.cpu);
    if (!process->known)
        introduce_task(simulator, process);
    if (reason == ENQUEUE_WOKEN && wakes_sync(simulator, process, actor))
        wake_flags |= SCX_WAKE_SYNC;
    uint32_t to = select_task_rq(ext, process, wake_flags, &flags);
    if (reason == ENQUEUE_WOKEN)
        note_wakeup(simulator, acting_cpu, process, actor, to);
    if (process->task.cpu != to && is_new)
        process->task.cpu = to;
    else if (process->task.cpu != to)
        change_cpu(simulator, acting_cpu, process, to);
    task_struct_of(ext, process->task.slot)->thread_info.cpu = to;
    set_waiting(simulator, process);
    enqueue_task(simulator, acting_cpu, process, flags);
    if (!simulator->cpus[to].current)
        ext_resched(ext, to);
}

/* ---- picking ---- */

/* Calls dispatch() until the CPU has a task, or no task was dispatched. Returns true if the CPU has
 * one, which is the previous task if `keeps` is set. */
static bool dispatch_tasks(struct sched_ext *ext, uint32_t cpu, const struct process *previous,
                           const struct process *runnable)
{
    struct ext_cpu *of = &ext->cpus[cpu];
    for (uint32_t loops = SCX_DSP_MAX_LOOPS; !ext->bypasses;) {
        ext->dispatched = 0;
        ext->dispatching = cpu;
        call_op(ext, OP_dispatch, cpu,
                is_ext(previous) ? task_address(ext, previous->task.slot) : 0, 0);
        flush_requests(ext);
        ext->dispatching = NONE;
        if (runnable && entity_of(ext, runnable)->slice) {
            of->keeps = true;
            return true;
        }
        if (ext->queues[cpu].count > 0 || consume_queue(ext, cpu, global_queue(ext)))
            return true;
        if (--loops == 0) {
            ext_resched(ext, cpu);
            return false;
        }
        if (ext->dispatched == 0)
            return false;
    }
    return false;
}

/* Finds the CPU's next task. `runnable`: the previous task if it can continue; null: it cannot. */
static bool find_task(struct sched_ext *ext, uint32_t cpu, const struct process *previous,
                      const struct process *runnable)
{
    struct ext_cpu *of = &ext->cpus[cpu];
    of->keeps = runnable && entity_of(ext, runnable)->slice && !ext->bypasses;
    if (of->keeps)
        return true;
    if (ext->queues[cpu].count > 0 || consume_queue(ext, cpu, global_queue(ext)))
        return true;
    if (has_op(ext, OP_dispatch) && dispatch_tasks(ext, cpu, previous, runnable))
        return true;
    of->keeps = runnable && (!(ext->ops_flags & SCX_OPS_ENQ_LAST) || ext->bypasses);
    return of->keeps;
}

static struct process *balance(struct simulator *simulator, struct cpu *cpu,
                               struct process *previous, struct process *runnable)
{
    struct sched_ext *ext = ext_in(simulator);
    struct ext_cpu *of = &ext->cpus[cpu->id];
    if (of->is_released) {
        of->is_released = false;
        if (has_op(ext, OP_cpu_acquire))
            call_op(ext, OP_cpu_acquire, cpu->id, guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS),
                    0);
    }
    of->in_balance = true;
    bool any = find_task(ext, cpu->id, previous, runnable);
    of->in_balance = false;
    if (!any)
        return NULL;
    uint32_t slot = of->keeps ? previous->task.slot : ext->queues[cpu->id].first;
    struct process *next = process_at(simulator, slot);
    if (entity_of(ext, next)->slice == 0)
        entity_of(ext, next)->slice = SCX_SLICE_DFL;
    return next;
}

/* Returns the next process of the CPU: an urgent one, or a task; null: none. */
static struct process *pick(struct simulator *simulator, struct cpu *cpu, struct process *previous,
                            bool can_continue)
{
    if (!cpu_is_online(ext_in(simulator), cpu->id))
        return NULL;
    if (previous && previous->urgent && can_continue)
        return previous;
    struct process *urgent = NULL;
    if (__builtin_expect(simulator->urgent != NOBODY, 0))
        urgent = take_urgent(simulator, queue_of(simulator, cpu->id), cpu->id, NOBODY);
    if (urgent) {
        simulator->queued--;
        return urgent;
    }
    bool continues = is_ext(previous) && can_continue && !cpu->moves;
    return balance(simulator, cpu, previous, continues ? previous : NULL);
}

/* ---- switching ---- */

/* Chooses another CPU for a task that may no longer run on its CPU. */
static void move_to_allowed(struct simulator *simulator, uint32_t acting_cpu,
                            struct process *process)
{
    struct sched_ext *ext = ext_in(simulator);
    const uint64_t *allowed = task_struct_of(ext, process->task.slot)->cpus_mask.bits;
    uint32_t cpu = mask_distribute(ext, allowed, online_mask(ext));
    if (cpu < ext->cpu_count)
        change_cpu(simulator, acting_cpu, process, cpu);
}

/* The previous task leaves its CPU, and could continue. */
static void put_previous(struct simulator *simulator, struct cpu *cpu, struct process *previous,
                         const struct process *next)
{
    struct sched_ext *ext = ext_in(simulator);
    struct sched_ext_entity *entity = entity_of(ext, previous);
    bool expelled = cpu->moves && !task_allows(ext, previous->task.slot, cpu->id);
    call_for(ext, OP_stopping, previous, true);
    set_waiting(simulator, previous);
    set_runnable(ext, previous);
    cpu->moves = false;
    if (expelled) {
        move_to_allowed(simulator, cpu->id, previous);
        do_enqueue_task(simulator, cpu->id, previous, 0);
        if (!simulator->cpus[previous->task.cpu].current)
            ext_resched(ext, previous->task.cpu);
    } else if (entity->slice && !ext->bypasses) {
        ext->tasks[previous->task.slot].placed_by = DISPATCH_BY_KERNEL;
        dispatch_enqueue(ext, cpu->id, previous->task.slot, SCX_ENQ_HEAD);
    } else {
        do_enqueue_task(simulator, cpu->id, previous, next ? 0 : SCX_ENQ_LAST);
    }
}

/* Calls cpu_release(), because an urgent process takes the CPU. */
static void release_cpu(struct sched_ext *ext, struct cpu *cpu)
{
    uint64_t address = guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS);
    struct scx_cpu_release_args *arguments = guest_memory(&ext->guest, address, sizeof(*arguments));
    struct ext_cpu *of = &ext->cpus[cpu->id];
    if (of->is_released)
        return;
    of->is_released = true;
    if (!has_op(ext, OP_cpu_release) || ext->bypasses)
        return;
    *arguments = (struct scx_cpu_release_args){
        .reason = SCX_CPU_PREEMPT_RT,
        .task = guest_address(REGION_KERNEL, ext->kernel.idle_task),
    };
    call_op(ext, OP_cpu_release, cpu->id, address, 0);
}

static void begin_running(struct simulator *simulator, struct cpu *cpu, struct process *next)
{
    struct sched_ext *ext = ext_in(simulator);
    uint64_t now = policy_now(simulator);
    cpu->entered = simulator->now;
    next->place = PLACE_RUNNING;
    next->task.picked_since = next->task.counted = now;
    simulator->queues[0].running++;
    if (!is_ext(next)) {
        next->task.cpu = cpu->id;
        return;
    }
    struct task_struct *kernel = task_struct_of(ext, next->task.slot);
    end_waiting(simulator);
    dispatch_dequeue(ext, next->task.slot);
    kernel->on_cpu = 1;
    kernel->thread_info.cpu = cpu->id;
    kernel->se.exec_start = now;
    ext->tasks[next->task.slot].counted = next->task.run_time;
    call_for(ext, OP_running, next, 0);
}

/* Changes from one process to another; null: idle. */
static void exchange(struct simulator *simulator, struct cpu *cpu, struct process *previous,
                     struct process *next, bool can_continue)
{
    struct sched_ext *ext = ext_in(simulator);
    if (previous)
        simulator->queues[0].running--;
    if (is_ext(previous)) {
        task_struct_of(ext, previous->task.slot)->on_cpu = 0;
        if (can_continue)
            put_previous(simulator, cpu, previous, next);
    } else if (previous && can_continue) { /* an urgent process, whose CPU has gone offline */
        make_urgent_runnable(simulator, OUTSIDE, previous, ENQUEUE_PREEMPTED, NULL);
    } else if (!previous) {
        update_idle(ext, cpu->id, false, true);
    }
    if (next && next->urgent)
        release_cpu(ext, cpu);
    if (next)
        begin_running(simulator, cpu, next);
    else
        update_idle(ext, cpu->id, true, true);
}

static void set_current(struct sched_ext *ext, const struct cpu *cpu, const struct process *next)
{
    struct rq *rq = rq_of(ext, cpu->id);
    rq->curr = is_ext(next) ? task_address(ext, next->task.slot)
                            : guest_address(REGION_KERNEL, ext->kernel.idle_task);
    rq->nr_running = rq->scx.nr_running = (next != NULL) + ext->queues[cpu->id].count;
    rq->nr_switches++;
}

/* The task blocks, ends or yields. */
static void stop_task(struct simulator *simulator, struct process *process, enum stop_reason stop,
                      enum enqueue_reason reason)
{
    struct sched_ext *ext = ext_in(simulator);
    struct task_struct *kernel = task_struct_of(ext, process->task.slot);
    if (stop != STOP_RUNNABLE) {
        kernel->__state = stop == STOP_BLOCKED ? TASK_STATE_SLEEPS : TASK_STATE_DEAD;
        kernel->flags |= stop == STOP_ENDED ? TASK_FLAG_EXITING : 0;
        dequeue_task(simulator, process, SCX_DEQ_SLEEP);
    } else if (reason == ENQUEUE_YIELDED) {
        if (has_op(ext, OP_yield) && !ext->bypasses)
            call_for(ext, OP_yield, process, 0);
        else
            kernel->scx.slice = 0;
    }
}

/* Ends a loop of kicks that takes no time. */
static void count_pick(struct simulator *simulator, struct cpu *cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    struct ext_cpu *of = &ext->cpus[cpu->id];
    if (of->picks_at != simulator->now)
        of->picks = 0;
    of->picks_at = simulator->now;
    if (++of->picks > PICKS_AT_ONCE_MAX)
        scx_error(ext, "CPU %u is kicked endlessly at the same time", cpu->id);
}

/* Charges a CPU for the programs that ran there: its process continues later. */
static inline void charge_programs(struct simulator *simulator, struct cpu *cpu)
{
    struct ext_cpu *of = &ext_in(simulator)->cpus[cpu->id];
    if (__builtin_expect(of->owed < 1000, 1))
        return;
    cpu->resumes += of->owed / 1000;
    of->owed %= 1000;
}

static void reschedule(struct simulator *simulator, struct cpu *cpu, enum stop_reason stop,
                       enum enqueue_reason reason, bool voluntary)
{
    struct sched_ext *ext = ext_in(simulator);
    struct process *previous = cpu->current;
    bool can_continue = previous && stop == STOP_RUNNABLE;
    uint64_t begin = cpu->resumes > simulator->now ? cpu->resumes : simulator->now;
    record(simulator, cpu->id, TRACE_SCHEDULER_ENTER, previous, 0, begin);
    cpu->reschedule = false;
    ext->cpus[cpu->id].resched = false;
    enter_programs(ext, cpu->id, cpu->id);
    update_clock(ext, cpu->id);
    count_pick(simulator, cpu);
    if (previous)
        update_current(simulator, cpu);
    if (is_ext(previous))
        stop_task(simulator, previous, stop, reason);
    if (previous && !can_continue)
        previous->place = stop == STOP_BLOCKED ? PLACE_BLOCKED : PLACE_ZOMBIE;
    struct process *next = pick(simulator, cpu, previous, can_continue);
    cpu->resumes = begin + simulator->costs.scheduler;
    if (simulator->costs.crowd)
        cpu->resumes += simulator->queued * simulator->costs.crowd / 100;
    if (next)
        next->task.selections++;
    simulator->counts.decisions += next != NULL;
    if (next != previous) {
        exchange(simulator, cpu, previous, next, can_continue);
        switch_to(simulator, cpu, next, stop, voluntary);
        set_current(ext, cpu, next);
        cpu->resumes += simulator->costs.context_switch;
    } else if (!next) {
        update_idle(ext, cpu->id, true, false);
    }
    cpu->moves = false;
    if (stop == STOP_ENDED && is_ext(previous))
        exit_task(ext, previous);
    charge_programs(simulator, cpu);
    if (simulator->trace.next)
        record_exit(simulator, cpu);
    if (next && next->task.selections == 1 && simulator->costs.first_run)
        cpu->resumes += simulator->costs.first_run;
}

/* Handles kicks of the CPU. Returns false if it need not pick again. */
static bool take_kicks(struct sched_ext *ext, const struct cpu *cpu)
{
    struct ext_cpu *of = &ext->cpus[cpu->id];
    uint32_t kicks = of->kicks;
    of->kicks = 0;
    if (kicks & KICKED_PREEMPT && is_ext(cpu->current))
        entity_of(ext, cpu->current)->slice = 0;
    return !cpu->current || of->resched || kicks & KICKED || !(kicks & KICKED_IDLE);
}

/* A CPU that kicked itself while it picked picks again when it has left the kernel. */
static inline bool picks_later(const struct simulator *simulator, const struct cpu *cpu)
{
    return ext_in(simulator)->cpus[cpu->id].picks_at == simulator->now &&
           cpu->resumes > simulator->now;
}

static inline void preempt(struct simulator *simulator, struct cpu *cpu)
{
    if (picks_later(simulator, cpu))
        cpu->called = cpu->resumes;
    else if (!take_kicks(ext_in(simulator), cpu))
        cpu->reschedule = false;
    else if (!cpu->current)
        reschedule(simulator, cpu, STOP_BLOCKED, ENQUEUE_WOKEN, true);
    else if (cpu->current->killed)
        end_process(simulator, cpu, -1);
    else
        reschedule(simulator, cpu, STOP_RUNNABLE,
                   cpu->why == PREEMPT_SLICE ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED, false);
}

/* ---- changes of attributes ---- */

/* Nothing is done before the change: end_change() sees what has changed. */
static bool begin_change(struct simulator *simulator, uint32_t acting_cpu, struct process *process)
{
    (void)simulator;
    (void)acting_cpu;
    return is_ext(process);
}

static void change_group(struct sched_ext *ext, const struct process *process, uint32_t group)
{
    uint32_t slot = process->task.slot;
    uint32_t from = ext->tasks[slot].group;
    uint64_t task = task_address(ext, slot);
    ext->tasks[slot].group = group;
    if (has_op(ext, OP_cgroup_prep_move))
        call_op(ext, OP_cgroup_prep_move, task, group_address(ext, from),
                group_address(ext, group));
    fill_task_relations(ext, slot);
    if (has_op(ext, OP_cgroup_move))
        call_op(ext, OP_cgroup_move, task, group_address(ext, from), group_address(ext, group));
}

/* Puts a runnable task back after a change, on another CPU if it must move. */
static void resume_after_change(struct simulator *simulator, uint32_t acting_cpu,
                                struct process *process)
{
    struct sched_ext *ext = ext_in(simulator);
    bool may_stay = task_allows(ext, process->task.slot, process->task.cpu);
    set_runnable(ext, process);
    call_for(ext, OP_runnable, process, 0);
    if (process->place == PLACE_RUNNING) {
        call_for(ext, OP_running, process, 0);
        if (!may_stay) {
            simulator->cpus[process->task.cpu].moves = true;
            ext_resched(ext, process->task.cpu);
        }
        return;
    }
    if (!may_stay)
        move_to_allowed(simulator, acting_cpu, process);
    do_enqueue_task(simulator, acting_cpu, process, 0);
    if (!simulator->cpus[process->task.cpu].current)
        ext_resched(ext, process->task.cpu);
}

static void end_change(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                       bool known)
{
    struct sched_ext *ext = ext_in(simulator);
    if (!known)
        return;
    uint32_t slot = process->task.slot;
    struct task_struct *task = task_struct_of(ext, slot);
    cpumask_t old_cpus = task->cpus_mask;
    uint32_t old_weight = task->scx.weight;
    bool runnable = ext->tasks[slot].is_queued;
    enter_programs(ext, acting_cpu, process->task.cpu);
    uint32_t group = enter_group(ext, process->task.group);
    fill_task_attributes(ext, slot);
    widen_affinity(ext, process);
    bool new_weight = task->scx.weight != old_weight;
    bool new_cpus = memcmp(&task->cpus_mask, &old_cpus, sizeof(old_cpus)) != 0;
    bool new_group = group != ext->tasks[slot].group;
    if (!new_weight && !new_cpus && !new_group)
        return;
    if (process->place == PLACE_RUNNING)
        update_current(simulator, &simulator->cpus[process->task.cpu]);
    if (runnable)
        dequeue_task(simulator, process, 0);
    if (new_group && !ext->bypasses)
        change_group(ext, process, group);
    if (new_weight)
        call_for(ext, OP_set_weight, process, task->scx.weight);
    if (new_cpus)
        call_for(ext, OP_set_cpumask, process, task->cpus_ptr);
    if (runnable)
        resume_after_change(simulator, acting_cpu, process);
}

/* ---- hotplug ---- */

/* Moves a runnable task away from a CPU that goes offline. Linux does this when the CPU picks the
 * task. */
static void push_task(struct simulator *simulator, uint32_t cpu, struct process *process)
{
    struct sched_ext *ext = ext_in(simulator);
    bool runs = process->place == PLACE_RUNNING;
    if (!runs)
        dequeue_task(simulator, process, 0);
    if (widen_affinity(ext, process))
        call_for(ext, OP_set_cpumask, process, task_struct_of(ext, process->task.slot)->cpus_ptr);
    if (runs)
        simulator->cpus[cpu].moves = true;
    else
        resume_after_change(simulator, OUTSIDE, process);
}

static void go_offline(struct simulator *simulator, uint32_t cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    if (has_op(ext, OP_cpu_offline))
        call_op(ext, OP_cpu_offline, cpu, 0, 0);
    ext->cpus[cpu].is_offline = true;
    mask_set(ext, online_mask(ext), cpu, false);
    rq_of(ext, cpu)->scx.flags &= ~(u32)SCX_RQ_ONLINE;
    test_and_clear_idle(ext, cpu);
    enter_programs(ext, OUTSIDE, cpu);
    move_timers(ext, cpu, 0);
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++) {
        const struct ext_task *task = &ext->tasks[slot];
        if (task->exists && task->is_queued && cpu_of_task(ext, slot) == cpu)
            push_task(simulator, cpu, process_at(simulator, slot));
    }
}

static void go_online(struct simulator *simulator, uint32_t cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    ext->cpus[cpu].is_offline = false;
    mask_set(ext, online_mask(ext), cpu, true);
    rq_of(ext, cpu)->scx.flags |= SCX_RQ_ONLINE;
    enter_programs(ext, OUTSIDE, cpu);
    if (has_op(ext, OP_cpu_online))
        call_op(ext, OP_cpu_online, cpu, 0, 0);
    update_idle(ext, cpu, true, false);
}

/* Lets a CPU go offline or online. Linux ends a scheduler that lacks the callback. */
static void set_online(struct simulator *simulator, uint32_t cpu, bool online)
{
    struct sched_ext *ext = ext_in(simulator);
    const char *change = online ? "online" : "offline";
    char text[160];
    if (online == cpu_is_online(ext, cpu))
        return;
    snprintf(text, sizeof(text), "CPU %u goes %s", cpu, change);
    record_note(simulator, text);
    enter_programs(ext, OUTSIDE, cpu);
    if (!has_op(ext, online ? OP_cpu_online : OP_cpu_offline)) {
        snprintf(
            text, sizeof(text),
            "CPU %u goes %s, and the scheduler has no cpu_%s(): Linux ends it, and its program "
            "starts it again",
            cpu, change, change);
        scx_exit(ext, SCX_EXIT_UNREG_KERN, SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG, text);
    }
    if (online)
        go_online(simulator, cpu);
    else
        go_offline(simulator, cpu);
    ext_resched(ext, cpu);
}

static inline void note_group_change(struct simulator *simulator, uint32_t group, uint32_t field)
{
    group_changed(ext_in(simulator), group, field);
}

#endif
