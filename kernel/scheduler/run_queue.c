/* SPDX-License-Identifier: MIT */

#include "scheduler/run_queue.h"

#include "abi/errors.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/string.h"
#include "policies/registry.h"
#include "scheduler/events.h"
#include "scheduler/scheduler.h"
#include "scheduler/tasks.h"
#include "time/clock.h"
#include "trace/trace.h"

static struct queue queues[CPUS_MAX]; /* in the order of CPUs, which is that of locking */
static uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
static char policy_text[POLICY_TEXT_BYTES]; /* "name" or "name:preset". All queues locked */

struct scheduler scheduler;
const struct policy *policy;
uint32_t policy_generation;

static struct queue *queue_serving(uint32_t cpu)
{
    return &queues[__atomic_load_n(&scheduler.queues, __ATOMIC_RELAXED) == 1 ? 0 : cpu];
}

/* The queue that serves a CPU may be another one until it is locked. */
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

void queue_unlock(struct queue *queue)
{
    spinlock_release(&queue->lock);
}

_Noreturn void queue_panic(const struct run_queue *queue, const struct task *task,
                           enum queue_flaw flaw)
{
    const char *text = flaw == FLAW_LOST    ? FLAW_LOST_TEXT
                       : flaw == FLAW_GIVEN ? FLAW_GIVEN_TEXT
                                            : FLAW_COUNT_TEXT;
    panic("policy %s, run queue %u: %s (pid %d)", policy->name, queue->cpu, text,
          task ? task->pid : 0);
}

static void add_urgent(struct queue *queue, struct process *process)
{
    process->queued = true;
    process->task.queued_since = queue->view.now;
    list_append(&queue->urgent, &process->held);
}

/* A process that is forked inherits from the current one. (Not inline: what it needs of registers
 * would be saved at each queueing.) */
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

/* An urgent process is taken out of its own line. */
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

struct process *queue_pick(struct queue *queue, uint32_t cpu)
{
    kernel_assert(spinlock_held(&queue->lock));
    if (!list_empty(&queue->urgent)) {
        struct process *urgent = container_of(queue->urgent.next, struct process, held);
        queue->view.remark = 0;
        urgent_taken_out(urgent);
        return urgent;
    }
    struct task *task = run_queue_pick(policy, &queue->view, cpu);
    return task ? process_of(task) : NULL;
}

bool queue_waits(const struct queue *queue)
{
    return queue->view.queued > 0 || !list_empty(&queue->urgent);
}

void queue_forget(struct queue *queue, struct process *process)
{
    kernel_assert(spinlock_held(&queue->lock) && process->on_cpu && !process->queued);
    if (!queue_knows(process))
        return;
    queue->view.running--;
    policy_stop(policy, &queue->view, &process->task, STOP_ENDED);
    queue->view.running++;
    policy_exit_task(policy, &scheduler, &process->task);
    process->policy_generation = 0;
    process->task.level = 0;
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
        if (__atomic_load_n(&queues[i].view.queued, __ATOMIC_RELAXED) > 0 ||
            !list_empty(&queues[i].urgent))
            return true;
    }
    return false;
}

uint32_t queue_place(const struct process *process, enum enqueue_reason reason)
{
    struct queue *queue = queue_lock(this_cpu()->id);
    uint32_t cpu = process->task.cpu;
    if (scheduler.queues > 1)
        cpu = policy_place(policy, &scheduler, &process->task, reason);
    queue_unlock(queue);
    return cpu;
}

/* Locks both, the lower CPU's first. Returns false if a switch of policy left one queue for both.
 */
static bool lock_two(uint32_t cpu, uint32_t other, struct queue **own, struct queue **from)
{
    if (cpu < other) {
        *own = queue_lock(cpu);
        if (queue_serving(other) == *own)
            return false;
        *from = queue_lock(other);
    } else {
        *from = queue_lock(other);
        if (queue_serving(cpu) == *from) {
            *own = *from;
            return false;
        }
        *own = queue_lock(cpu);
    }
    return true;
}

/* Both are locked. Returns null if the policy has no task to move. */
static struct process *move(struct queue *from, struct queue *to, uint32_t cpu)
{
    struct task *task = run_queue_steal(policy, &from->view, cpu);
    if (!task)
        return NULL;
    struct process *process = process_of(task);
    trace_record(TRACE_MIGRATE, (uint32_t)process->pid, process->task.cpu, cpu);
    __atomic_store_n(&process->task.cpu, cpu, __ATOMIC_RELAXED);
    queue_add(to, process, ENQUEUE_MOVED);
    return process;
}

struct process *queue_pull(struct queue **own, uint32_t cpu, bool idle)
{
    struct queue *from;
    uint32_t other = balance(cpu, idle);
    if (other == NO_CPU)
        return NULL;
    queue_unlock(*own);
    if (!lock_two(cpu, other, own, &from))
        return NULL;
    struct process *process = move(from, *own, cpu);
    queue_unlock(from);
    return process;
}

struct process *queue_push(struct queue **to, uint32_t cpu)
{
    struct queue *own = queue_lock(cpu);
    uint32_t other = own->view.queued > 0 ? policy_push(policy, &scheduler, cpu) : NO_CPU;
    queue_unlock(own);
    if (other == NO_CPU)
        return NULL;
    bool two = lock_two(cpu, other, &own, to);
    struct process *process = two ? move(own, *to, other) : NULL;
    queue_unlock(own);
    if (two && !process)
        queue_unlock(*to);
    return process;
}

static void lock_all(void)
{
    for (uint32_t i = 0; i < machine.cpus; i++) {
        spinlock_acquire(&queues[i].lock);
        queues[i].view.now = clock_now();
    }
}

static void unlock_all(void)
{
    for (uint32_t i = machine.cpus; i > 0; i--)
        spinlock_release(&queues[i - 1].lock);
}

/* Takes all processes out of the queues, in the order in which the policy would run them. */
static void drain(struct list *drained)
{
    for (uint32_t i = 0; i < scheduler.queues; i++) {
        struct process *process;
        while ((process = queue_pick(&queues[i], i)))
            list_append(drained, &process->held);
    }
}

static void init_queue(uint32_t i)
{
    queues[i].view.state = queues[i].state;
    run_queue_begin(policy, &scheduler, &queues[i].view, i);
}

/* A policy that is to be installed, and a value for each of its tunables. */
struct setting {
    const struct policy *policy;
    int64_t tunable[POLICY_TUNABLES_MAX];
    char text[POLICY_TEXT_BYTES]; /* the policy as "name" or "name:preset" */
};

static enum policy_error read_setting(const char *text, struct setting *setting)
{
    struct policy_choice choice;
    enum policy_error error = policy_choose(text, strlen(text), &choice);
    if (error)
        return error;
    *setting = (struct setting){.policy = choice.policy};
    for (uint32_t i = 0; i < choice.policy->tunable_count; i++)
        setting->tunable[i] = policy_default(&choice, i);
    format_text(setting->text, sizeof(setting->text), "%s%s%s", choice.policy->name,
                choice.preset ? ":" : "", choice.preset ? choice.preset->name : "");
    return POLICY_OK;
}

/* Returns the present policy and values, to be changed. All queues are locked. */
static struct setting present_setting(void)
{
    struct setting setting = {.policy = policy};
    memcpy(setting.tunable, scheduler.tunable, sizeof(setting.tunable));
    text_copy(setting.text, policy_text, sizeof(setting.text));
    return setting;
}

/* Nothing is queued. */
static void install(const struct setting *setting)
{
    policy = setting->policy;
    text_copy(policy_text, setting->text, sizeof(policy_text));
    policy_generation++;
    memset(scheduler_state, 0, sizeof(scheduler_state));
    memcpy(scheduler.tunable, setting->tunable, sizeof(scheduler.tunable));
    policy_init_scheduler(policy, &scheduler);
    __atomic_store_n(&scheduler.queues, policy_run_queues(policy, &scheduler), __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < machine.cpus; i++)
        init_queue(i);
    for (uint32_t i = 0; i < machine.cpus; i++)
        queue_serving(i)->view.running += cpus[i].occupied;
}

/*
 * With every run queue locked no process can begin to wait, run or move. Those
 * that run or are blocked get to know the new policy when they are queued next.
 */
static void switch_to(const struct setting *setting)
{
    struct list drained;
    list_init(&drained);
    drain(&drained);
    install(setting);
    while (!list_empty(&drained)) {
        struct process *process = container_of(drained.next, struct process, held);
        list_remove(&process->held);
        queue_add(queue_serving(process->task.cpu), process, ENQUEUE_ADOPTED);
    }
    for (uint32_t i = 0; i < machine.cpus; i++)
        scheduler_request(&cpus[i], PREEMPT_POLICY);
}

int scheduler_set_policy(const char *text)
{
    struct setting setting;
    if (read_setting(text, &setting))
        return -EPOLICY;
    lock_all();
    switch_to(&setting);
    trace_text(TRACE_POLICY, scheduler_shares_by(), setting.text);
    unlock_all();
    return 0;
}

/* The order of a policy's queues may depend on its tunables: so it begins anew with the new value.
 */
static int set_tunable_locked(const char *name, int64_t value)
{
    struct setting setting = present_setting();
    uint32_t index = tunable_find(policy, name, strlen(name));
    if (index == NO_TUNABLE)
        return -ETUNABLE;
    if (value < policy->tunables[index].minimum || value > policy->tunables[index].maximum)
        return -ERANGE;
    setting.tunable[index] = value;
    switch_to(&setting);
    trace_tunable(scheduler_shares_by(), name, value);
    return 0;
}

int scheduler_set_tunable(const char *name, int64_t value)
{
    lock_all();
    int error = set_tunable_locked(name, value);
    unlock_all();
    return error;
}

/* As if the policy had been chosen, and then its tunables. All queues are locked. */
static void record_setting(const struct setting *setting)
{
    struct policy_choice choice;
    uint32_t shares_by = scheduler_shares_by();
    policy_choose(setting->text, strlen(setting->text), &choice);
    trace_text(TRACE_POLICY, shares_by, setting->text);
    for (uint32_t i = 0; i < policy->tunable_count; i++) {
        if (setting->tunable[i] != policy_default(&choice, i))
            trace_tunable(shares_by, policy->tunables[i].name, setting->tunable[i]);
    }
}

void scheduler_set_seed(uint64_t seed)
{
    lock_all();
    struct setting setting = present_setting();
    scheduler.seed = seed;
    switch_to(&setting);
    record_setting(&setting);
    unlock_all();
}

int scheduler_get_tunable(const char *name, int64_t *value)
{
    struct queue *queue = queue_lock(0);
    uint32_t index = tunable_find(policy, name, strlen(name));
    if (index != NO_TUNABLE)
        *value = scheduler.tunable[index];
    queue_unlock(queue);
    return index == NO_TUNABLE ? -ETUNABLE : 0;
}

void scheduler_describe(struct policy_in_use *use)
{
    struct queue *queue = queue_lock(0);
    *use = (struct policy_in_use){.policy = policy, .shares_by = scheduler_shares_by()};
    memcpy(use->tunable, scheduler.tunable, sizeof(use->tunable));
    text_copy(use->text, policy_text, sizeof(use->text));
    queue_unlock(queue);
}

enum share_attribute scheduler_shares_by(void)
{
    return policy_shares_by(policy, &scheduler);
}

/* The boot argument set=name=value,name=value */
static void set_boot_tunables(struct setting *setting)
{
    char text[512] = "";
    boot_argument_text("set", text, sizeof(text));
    for (char *pair = text; *pair;) {
        size_t length = 0;
        uint32_t index;
        int64_t value;
        while (pair[length] && pair[length] != ',')
            length++;
        enum policy_error error = tunable_parse(setting->policy, pair, length, &index, &value);
        if (error)
            panic("boot argument set=%s: %s (policy %s)", text, policy_error_text(error),
                  setting->policy->name);
        setting->tunable[index] = value;
        pair += length + (pair[length] == ',');
    }
}

/* A policy that contradicts itself is found here, not in the middle of a run. */
static void check_policies(void)
{
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        const char *flaw = policy_flaw(policies[i]);
        if (flaw)
            panic("policy source %s.c: %s", policy_files[i], flaw);
    }
}

void run_queues_init(void)
{
    struct setting setting;
    check_policies();
    char text[POLICY_TEXT_BYTES] = "rr";
    boot_argument_text("policy", text, sizeof(text));
    enum policy_error error = read_setting(text, &setting);
    if (error)
        panic("boot argument policy=%s: %s", text, policy_error_text(error));
    set_boot_tunables(&setting);
    for (uint32_t i = 0; i < machine.cpus; i++) {
        spinlock_init(&queues[i].lock, "run queue", LOCK_RUN_QUEUE);
        list_init(&queues[i].urgent);
    }
    scheduler = (struct scheduler){
        .cpus = machine.cpus,
        .tick_ns = clock_tick_ns(),
        .seed = boot_argument_number("seed", 1),
        .state = scheduler_state,
    };
    install(&setting);
}
