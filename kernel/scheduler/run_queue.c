/* SPDX-License-Identifier: MIT */

#include "scheduler/run_queue.h"

#include "lib/panic.h"
#include "lib/string.h"
#include "scheduler/events.h"
#include "scheduler/policy_times.h"
#include "scheduler/scheduler.h"
#include "scheduler/tasks.h"
#include "time/clock.h"
#include "trace/trace.h"

struct queue queues[CPUS_MAX];

struct queue *queue_serving(uint32_t cpu)
{
    return &queues[__atomic_load_n(&scheduler.queues, __ATOMIC_RELAXED) == 1 ? 0 : cpu];
}

struct queue *queue_lock(uint32_t cpu)
{
    for (;;) {
        struct queue *queue = queue_serving(cpu);
        spinlock_acquire(&queue->lock);
        if (queue == queue_serving(cpu)) {
            queue->view.now = clock_now();
            return queue;
        }
        spinlock_release(&queue->lock);
    }
}

struct queue *queue_lock_of_process(const struct process *process)
{
    for (;;) {
        uint32_t cpu = __atomic_load_n(&process->task.cpu, __ATOMIC_RELAXED);
        struct queue *queue = queue_lock(cpu);
        if (cpu == process->task.cpu)
            return queue;
        queue_unlock(queue);
    }
}

static __attribute__((cold, noinline)) void record_annotation(struct queue *queue)
{
    struct said annotation;
    char text[SAID_BYTES + 1] = {0};
    if (!take_annotation(&queue->view, &annotation))
        return;
    memcpy(text, annotation.text, SAID_BYTES);
    trace_record(TRACE_SAID, (uint32_t)annotation.pid, (uint32_t)annotation.other,
                 (uint64_t)annotation.value);
    trace_text(TRACE_TEXT, 0, text);
}

void queue_unlock(struct queue *queue)
{
    if (__builtin_expect(queue->view.said.told, 0))
        record_annotation(queue);
    if (__builtin_expect(queue->view.alarm != queue->alarm_recorded, 0))
        policy_times_record(queue);
    spinlock_release(&queue->lock);
}

_Noreturn void queue_panic(const struct run_queue *queue, const struct task *task,
                           enum queue_flaw flaw)
{
    static const char *const texts[] = {
        [FLAW_HELD] = FLAW_HELD_TEXT,
        [FLAW_GIVEN] = FLAW_GIVEN_TEXT,
        [FLAW_COUNT] = FLAW_COUNT_TEXT,
        [FLAW_VERDICT] = FLAW_VERDICT_TEXT,
    };
    if (flaw == FLAW_LOST)
        panic("policy %s " BROKE_A_RULE
              "its pick() returned null while %u tasks are queued that may run, for CPU %u",
              policy->name, queue->queued - queue->held, queue->cpu);
    panic("policy %s %s: pid %d, run queue %u", policy->name, texts[flaw], task ? task->pid : 0,
          queue->cpu);
}

_Noreturn void bad_cpu_panic(enum queue_flaw flaw)
{
    panic("policy %s %s", policy->name, flaw == FLAW_PLACE ? FLAW_PLACE_TEXT : FLAW_CPU_TEXT);
}

static void add_urgent(struct queue *queue, struct process *process)
{
    process->queued = true;
    process->task.queued_since = queue->view.now;
    list_append(&queue->urgent, &process->held);
}

/* A forked process inherits from the current one. (Not inline: otherwise its registers would be
 * saved at each queueing.) */
static __attribute__((noinline)) enum enqueue_reason introduce(struct process *process,
                                                               enum enqueue_reason reason)
{
    const struct process *parent = reason == ENQUEUE_NEW ? current_process() : NULL;
    return task_introduce(policy, &scheduler, &process->task, reason,
                          parent ? &parent->task : NULL);
}

static void add(struct queue *queue, struct process *process, enum enqueue_reason reason)
{
    if (!queue_knows(process))
        reason = introduce(process, reason);
    run_queue_add(policy, &queue->view, &process->task, reason);
}

void queue_add(struct queue *queue, struct process *process, enum enqueue_reason reason)
{
    kernel_assert(spinlock_held(&queue->lock) && !process->queued);
    process->state = PROCESS_RUNNABLE;
    if (process->urgent)
        add_urgent(queue, process);
    else
        add(queue, process, reason);
    if (trace_queues)
        trace_record(TRACE_QUEUED, (uint32_t)process->pid, queue->view.cpu, process->task.level);
}

/* Takes an urgent process out of the urgent list. */
static void urgent_taken_out(struct process *process)
{
    kernel_assert(process->queued && process->state == PROCESS_RUNNABLE);
    process->queued = false;
    list_remove(&process->held);
}

void queue_remove(struct queue *queue, struct process *process)
{
    kernel_assert(spinlock_held(&queue->lock));
    if (process->urgent)
        urgent_taken_out(process);
    else
        run_queue_remove(policy, &queue->view, &process->task);
}

/* Returns the first urgent process that may run on the CPU, or null if there is none. */
static struct process *first_urgent(const struct queue *queue, uint32_t cpu)
{
    for (struct list *at = queue->urgent.next; at != &queue->urgent; at = at->next) {
        struct process *urgent = container_of(at, struct process, held);
        if (task_may_run_on(&urgent->task, cpu) || scheduler.ending)
            return urgent;
    }
    return NULL;
}

/* Like run_queue_pick_for(). (Not inline, and this CPU is looked up again: otherwise its
 * registers would be saved at each decision.) */
static __attribute__((noinline)) struct task *pick_allowed(struct queue *queue, struct task *task)
{
    const struct cpu *cpu = this_cpu();
    task = ask_again(policy, &queue->view, task, cpu->id, false);
    /* This CPU may leave the process that it ran until now to an idle CPU. */
    if (scheduler.queues == 1 && cpu->current && cpu->current->queued && !scheduler.ending)
        scheduler_call_idle(cpu->current);
    return task;
}

static inline struct process *pick_from_policy(struct queue *queue, uint32_t cpu)
{
    struct task *task = run_queue_pick(policy, &queue->view, cpu);
    if (task && task->cpus)
        task = pick_allowed(queue, task);
    return task ? process_of(task) : NULL;
}

/* Urgent processes wait; possibly none may run on the CPU. */
static __attribute__((noinline)) struct process *pick_urgent(struct queue *queue, uint32_t cpu)
{
    struct process *urgent = first_urgent(queue, cpu);
    if (!urgent)
        return pick_from_policy(queue, cpu);
    run_queue_pick_none(&queue->view);
    urgent_taken_out(urgent);
    return urgent;
}

struct process *queue_pick(struct queue *queue, uint32_t cpu)
{
    kernel_assert(spinlock_held(&queue->lock));
    return list_empty(&queue->urgent) ? pick_from_policy(queue, cpu) : pick_urgent(queue, cpu);
}

bool queue_waits(const struct queue *queue)
{
    return run_queue_waits(&queue->view) || !list_empty(&queue->urgent);
}

void queue_forget(struct queue *queue, struct process *process)
{
    kernel_assert(spinlock_held(&queue->lock) && process->on_cpu && !process->queued);
    if (!queue_knows(process))
        return;
    run_queue_disown(policy, &queue->view, &process->task);
    process->policy_generation = 0;
}

/* The lock of one queue is held, so the policy cannot change. */
static uint32_t balance(uint32_t cpu, bool idle)
{
    return policy_balance(policy, &scheduler, cpu, idle);
}

bool queue_has_work(uint32_t cpu)
{
    struct queue *queue = queue_lock(cpu);
    bool has_work = queue_waits(queue) || balance(cpu, true) != NO_CPU;
    queue_unlock(queue);
    return has_work;
}

bool queues_wait(void)
{
    for (uint32_t i = 0; i < scheduler.cpus; i++) {
        uint32_t queued = __atomic_load_n(&queues[i].view.queued, __ATOMIC_RELAXED);
        if (queued > __atomic_load_n(&queues[i].view.held, __ATOMIC_RELAXED) ||
            !list_empty(&queues[i].urgent))
            return true;
    }
    return false;
}

uint32_t queue_place(const struct process *process, enum enqueue_reason reason)
{
    struct queue *queue = queue_lock(this_cpu()->id);
    uint32_t cpu = policy_place(policy, &scheduler, &process->task, reason);
    queue_unlock(queue);
    return cpu;
}

/* Locks both, the lower CPU's first. Returns false if a policy switch left one queue for both. */
static bool lock_two(uint32_t cpu, uint32_t other, struct queue **local, struct queue **from)
{
    if (cpu < other) {
        *local = queue_lock(cpu);
        if (queue_serving(other) == *local)
            return false;
        *from = queue_lock(other);
    } else {
        *from = queue_lock(other);
        if (queue_serving(cpu) == *from) {
            *local = *from;
            return false;
        }
        *local = queue_lock(cpu);
    }
    return true;
}

/* Both are locked. Returns null if the policy has no task to move. */
static struct process *move(struct queue *from, struct queue *to, uint32_t cpu)
{
    struct task *task = run_queue_steal_for(policy, &from->view, cpu);
    if (!task)
        return NULL;
    struct process *process = process_of(task);
    trace_record(TRACE_MIGRATE, (uint32_t)process->pid, process->task.cpu, cpu);
    __atomic_store_n(&process->task.cpu, cpu, __ATOMIC_RELAXED);
    queue_add(to, process, ENQUEUE_MOVED);
    return process;
}

/* The CPU's own queue is locked before and after, but not necessarily throughout. */
static struct process *pull_from(struct queue **local, uint32_t cpu, uint32_t other)
{
    struct queue *from;
    queue_unlock(*local);
    if (!lock_two(cpu, other, local, &from))
        return NULL;
    struct process *process = move(from, *local, cpu);
    queue_unlock(from);
    return process;
}

/* The queue that the policy named had no process for an idle CPU, possibly because its processes
 * may not run there: then any other queue may have one. */
static __attribute__((noinline)) struct process *pull_from_any(struct queue **local, uint32_t cpu)
{
    struct process *process = NULL;
    for (uint32_t i = 0; i < scheduler.queues && scheduler.queues > 1 && !process; i++) {
        if (i != cpu && __atomic_load_n(&queues[i].view.queued, __ATOMIC_RELAXED) > 0)
            process = pull_from(local, cpu, i);
    }
    return process;
}

struct process *queue_pull(struct queue **local, uint32_t cpu, bool idle)
{
    uint32_t other = balance(cpu, idle);
    if (other == NO_CPU)
        return NULL;
    struct process *process = pull_from(local, cpu, other);
    if (!process && idle && scheduler_affinity_used)
        process = pull_from_any(local, cpu);
    return process;
}

struct process *queue_push(struct queue **to, uint32_t cpu)
{
    struct queue *local = queue_lock(cpu);
    uint32_t other = local->view.queued > 0 ? policy_push(policy, &scheduler, cpu) : NO_CPU;
    spinlock_release(&local->lock); /* no locked hook was called, so its alarm is unchanged */
    if (other == NO_CPU)
        return NULL;
    bool two = lock_two(cpu, other, &local, to);
    struct process *process = two ? move(local, *to, other) : NULL;
    queue_unlock(local);
    if (two && !process)
        queue_unlock(*to);
    return process;
}
