/* SPDX-License-Identifier: MIT */

/* The engine of sched_ext: its ticks and timers, and its start and end. The steps of processes and
 * the order of events are those of sim/engine/. */

#define FOR_SCHED_EXT
#ifndef ENGINE
#define ENGINE engine_sched_ext
#endif
#define POLICY policy_sched_ext

#include "sim/sched_ext/engine.h"
#include "policies/policy.h"

/* Some parts of sim/engine/ are only for policies. */
#pragma GCC diagnostic ignored "-Wunused-function"

static void leave_sched_ext(scheduler_t *scheduler, task_t *task);
static uint64_t time_slice(const scheduler_t *scheduler, const task_t *task);

const struct policy policy_sched_ext = {
    .name = "scx",
    .meaning = "a scheduler of sched_ext",
    .task_bytes = 8,
    .task_exit = leave_sched_ext,
    .time_slice = time_slice,
};

#include "sim/engine/acts.h"

/* ---- the stub of a policy ---- */

/* Called when a task becomes urgent, and when an ended task is reaped that has left already. */
static void leave_sched_ext(scheduler_t *scheduler, task_t *task)
{
    struct simulator *simulator = simulator_of(scheduler);
    struct sched_ext *ext = ext_in(simulator);
    struct process *process = process_of(task);
    enter_programs(ext, task->cpu, task->cpu);
    if (ext->tasks[task->slot].is_queued)
        dequeue_task(simulator, process, 0);
    exit_task(ext, process);
}

static uint64_t time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return SCX_SLICE_DFL;
}

/* ---- what sim/sched_ext/ needs of the simulator ---- */

uint64_t ext_now(const struct sched_ext *ext)
{
    return policy_now(ext->simulator);
}

void ext_resched(struct sched_ext *ext, uint32_t cpu)
{
    ext->cpus[cpu].resched = true;
    call(ext->simulator, ext->acting_cpu, cpu, PREEMPT_WAKEUP);
}

void ext_kick(struct sched_ext *ext, uint32_t cpu, uint64_t flags)
{
    struct ext_cpu *of = &ext->cpus[cpu];
    const struct process *current = ext->simulator->cpus[cpu].current;
    bool is_busy = current && !of->in_balance;
    record(ext->simulator, ext->acting_cpu, TRACE_KICK, current, calling_callback(ext),
           (flags & (KICK_IDLE | KICK_PREEMPT | KICK_WAIT)) << 32 | cpu);
    if (!cpu_is_online(ext, cpu) || (flags & SCX_KICK_IDLE && is_busy))
        return;
    of->kicks |= flags & SCX_KICK_IDLE      ? KICKED_IDLE
                 : flags & SCX_KICK_PREEMPT ? KICKED | KICKED_PREEMPT
                                            : KICKED;
    call(ext->simulator, ext->acting_cpu, cpu, PREEMPT_WAKEUP);
}

void ext_change_cpu(struct sched_ext *ext, uint32_t slot, uint32_t cpu)
{
    struct process *process = process_at(ext->simulator, slot);
    change_cpu(ext->simulator, ext->acting_cpu, process, cpu);
    task_struct_of(ext, slot)->thread_info.cpu = cpu;
    task_struct_of(ext, slot)->se.nr_migrations++;
}

void ext_timer_changed(struct sched_ext *ext, uint32_t cpu)
{
    ext->simulator->cpus[cpu].alarm = requested_time(ext->simulator, next_timer(ext, cpu));
    cpu_set_add(&ext->simulator->called, cpu);
}

void ext_record_place(const struct sched_ext *ext, uint32_t slot, uint64_t queue_id)
{
    record(ext->simulator, ext->acting_cpu, TRACE_DISPATCH, process_at(ext->simulator, slot),
           ext->tasks[slot].placed_by, queue_id);
}

uint32_t ext_reenqueue_local(struct sched_ext *ext, uint32_t cpu)
{
    uint32_t count = ext->queues[cpu].count;
    for (uint32_t i = 0; i < count && ext->queues[cpu].first != NONE; i++) {
        uint32_t slot = ext->queues[cpu].first;
        dispatch_dequeue(ext, slot);
        do_enqueue_task(ext->simulator, ext->acting_cpu, process_at(ext->simulator, slot),
                        SCX_ENQ_REENQ);
    }
    return count;
}

/* ---- the watchdog ---- */

static void describe_queue(const struct sched_ext *ext, uint32_t queue, char *text, size_t bytes)
{
    if (queue < ext->cpu_count)
        snprintf(text, bytes, "the local DSQ of CPU %u", queue);
    else if (queue == global_queue(ext))
        snprintf(text, bytes, "the global DSQ");
    else
        snprintf(text, bytes, "DSQ %#llx", (unsigned long long)ext->queues[queue].id);
}

/* Describes where a task waits, who put it there, and the CPUs where it could run. */
static void describe_place(const struct sched_ext *ext, uint32_t slot, char *text, size_t bytes)
{
    static const char *const callbacks[] = {
        [DISPATCH_BY_SELECT_CPU] = "select_cpu()", [DISPATCH_BY_ENQUEUE] = "enqueue()",
        [DISPATCH_BY_DISPATCH] = "dispatch()",     [DISPATCH_BY_OTHER] = "another callback",
        [DISPATCH_BY_KERNEL] = "the kernel",
    };
    const struct task_struct *task = task_struct_of(ext, slot);
    uint32_t allowed = (uint32_t)task->nr_cpus_allowed;
    char cpus[48] = "";
    char queue[48];
    if (allowed == 1 && ext->cpu_count > 1)
        snprintf(cpus, sizeof(cpus), "; it may run on CPU %u only",
                 mask_next(ext, task->cpus_mask.bits, NULL, 0));
    else if (allowed < ext->cpu_count)
        snprintf(cpus, sizeof(cpus), "; it may run on %u CPUs of %u", allowed, ext->cpu_count);
    if (ext->tasks[slot].queue == NONE) {
        snprintf(text, bytes, "enqueue() took it, and it is in no DSQ%s", cpus);
        return;
    }
    describe_queue(ext, ext->tasks[slot].queue, queue, sizeof(queue));
    snprintf(text, bytes, "it is in %s, where %s put it%s", queue,
             callbacks[ext->tasks[slot].placed_by], cpus);
}

static void report_stall(struct sched_ext *ext, uint32_t slot, uint64_t waited)
{
    const struct task_struct *task = task_struct_of(ext, slot);
    char place[160];
    char text[SCX_EXIT_MSG_LEN];
    describe_place(ext, slot, place, sizeof(place));
    snprintf(text, sizeof(text), "watchdog: %.15s[%d] is runnable and has not run for %.3f s; %s",
             task->comm, task->pid, (double)waited / 1e9, place);
    scx_exit(ext, SCX_EXIT_ERROR_STALL, 0, text);
}

/* Checks all tasks a few times within the watchdog's time. */
static void watch(struct simulator *simulator)
{
    struct sched_ext *ext = ext_in(simulator);
    uint64_t now = ext_now(ext);
    if (now < ext->watchdog_next || ext->bypasses)
        return;
    ext->watchdog_next = now + ext->watchdog_ns / 16;
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++) {
        const struct ext_task *task = &ext->tasks[slot];
        bool waits = task->exists && task->is_queued && !task_runs(ext, slot);
        if (waits && now - task->runnable_since > ext->watchdog_ns) {
            report_stall(ext, slot, now - task->runnable_since);
            return;
        }
    }
}

/* ---- ticks and timers ---- */

static inline void tick(struct simulator *simulator, struct cpu *cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    struct process *process = cpu->current;
    if (cpu->id == 0)
        watch(simulator);
    if (!process)
        return;
    if (simulator->speeds)
        review_level(simulator, cpu);
    simulator->counts.ticks++;
    cpu->resumes += simulator->costs.tick;
    enter_programs(ext, cpu->id, cpu->id);
    update_clock(ext, cpu->id);
    if (is_ext(process)) {
        struct sched_ext_entity *entity = entity_of(ext, process);
        update_current(simulator, cpu);
        if (ext->bypasses)
            entity->slice = 0;
        else
            call_for(ext, OP_tick, process, 0);
        if (entity->slice == 0) {
            ext->cpus[cpu->id].resched = true;
            call(simulator, cpu->id, cpu->id, PREEMPT_SLICE);
        }
    }
    charge_programs(simulator, cpu);
    if (process->killed)
        end_process(simulator, cpu, -1);
}

static inline void expire_policy_times(struct simulator *simulator, struct cpu *cpu)
{
    struct sched_ext *ext = ext_in(simulator);
    if (cpu->alarm > simulator->now)
        return;
    enter_programs(ext, cpu->id, cpu->id);
    update_clock(ext, cpu->id);
    expire_timers(ext, cpu->id);
}

#include "sim/engine/order.h"
#include "sim/engine/outside.h"

/* ---- start and end ---- */

/* A process that is not urgent becomes known to the scheduler when it is forked, so `init`, which
 * precedes the scheduler, is urgent. All CPUs pick once, as when Linux starts a scheduler. */
static void start(struct simulator *simulator, struct process *process)
{
    process->urgent = true;
    record(simulator, 0, TRACE_FORK, NULL, pid_of(process), 0);
    add_urgent(simulator, process);
    simulator->queued++;
    enter_programs(ext_in(simulator), 0, 0);
    for (uint32_t cpu = 0; cpu < simulator->scheduler.cpus; cpu++)
        ext_resched(ext_in(simulator), cpu);
}

static void install(struct simulator *simulator)
{
    struct scheduler *scheduler = &simulator->scheduler;
    scheduler->queues = 1;
    scheduler->queue[0] = &simulator->queues[0];
    simulator->queues[0].scheduler = scheduler;
    for (uint32_t i = 0; i < scheduler->cpus; i++) {
        simulator->cpus[i].turn_end = NEVER;
        simulator->cpus[i].alarm = NEVER;
    }
    begin_scheduler(ext_in(simulator), simulator);
}

/* The scheduler loses its tasks in the order of slots, then its groups. */
static void finish(struct simulator *simulator)
{
    struct sched_ext *ext = ext_in(simulator);
    if (ext->is_ended)
        return;
    record_oddities(ext);
    if (ext->exit_kind == SCX_EXIT_NONE)
        ext->exit_kind = SCX_EXIT_UNREG;
    ext->bypasses = true;
    enter_programs(ext, 0, 0);
    for (uint32_t slot = 0; slot < simulator->most_processes && !ext->guest.trapped; slot++) {
        struct process *process = process_at(simulator, slot);
        if (!ext->tasks[slot].exists)
            continue;
        if (ext->tasks[slot].is_queued)
            dequeue_task(simulator, process, 0);
        exit_task(ext, process);
    }
    if (!ext->guest.trapped)
        end_groups(ext);
    call_exit(ext);
    if (simulator->trace.next)
        trace_flush(&simulator->trace); /* a failed run is not finished otherwise */
}

static void run_and_finish(struct simulator *simulator, uint64_t until)
{
    run(simulator, until);
    if (simulator->status != SIMULATOR_TIME)
        finish(simulator);
}

/* Hands no process to a successor, since no policy can replace a scheduler of sched_ext. */
static uint32_t drain(struct simulator *simulator)
{
    (void)simulator;
    return NOBODY;
}

static void adopt(struct simulator *simulator, uint32_t acting_cpu, uint32_t first)
{
    (void)simulator;
    (void)acting_cpu;
    (void)first;
}

static void outside_migrate(struct simulator *simulator, struct process *process, uint32_t cpu)
{
    (void)simulator;
    (void)process;
    (void)cpu;
}

const struct engine ENGINE = {
    .policy = &POLICY,
    .run = run_and_finish,
    .install = install,
    .drain = drain,
    .adopt = adopt,
    .start = start,
    .finish = finish,
    .fork = outside_fork,
    .kill = outside_kill,
    .wake = outside_wake,
    .migrate = outside_migrate,
    .give = outside_give,
    .set_attribute = outside_set_attribute,
};
