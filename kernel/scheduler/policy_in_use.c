/* SPDX-License-Identifier: MIT */

/* The active policy with its tunables and seed, and switching to another one. */

#include "abi/errors.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/string.h"
#include "policies/registry.h"
#include "policies/support/groups.h"
#include "process/owners.h"
#include "scheduler/events.h"
#include "scheduler/machine_shape.h"
#include "scheduler/run_queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/tasks.h"
#include "time/clock.h"
#include "trace/trace.h"

/* About 20 % above the sum of a tick, a wake-up, a call and a switch in sim/costs/kernel.json. */
#define OVERHEAD_NS 3500

static uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
static char policy_text[POLICY_TEXT_BYTES]; /* "name" or "name:preset". All queues locked */

struct scheduler scheduler;
const struct policy *policy;
uint32_t policy_generation;

static void lock_all(void)
{
    spinlock_acquire(&owners_lock);
    for (uint32_t i = 0; i < machine.cpus; i++) {
        spinlock_acquire(&queues[i].lock);
        queues[i].view.now = clock_now();
    }
}

static void unlock_all(void)
{
    for (uint32_t i = machine.cpus; i > 0; i--)
        queue_unlock(&queues[i - 1]);
    spinlock_release(&owners_lock);
}

/* Takes all processes out of the queues, in the policy's order of service: each on a CPU that it
 * may use. */
static void drain(struct list *drained)
{
    for (uint32_t cpu = 0; cpu < machine.cpus; cpu++) {
        struct process *process;
        while ((process = queue_pick(queue_serving(cpu), cpu)))
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
 * With every run queue locked no process can begin to wait, run or move.
 * Running and blocked processes become known to the new policy when they are
 * next queued.
 */
static void switch_to(const struct setting *setting)
{
    struct list drained;
    list_init(&drained);
    scheduler.ending = true;
    drain(&drained);
    scheduler.ending = false;
    owners_forget();
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

/* The order of a policy's queues may depend on its tunables, so the policy starts again with the
 * new value. */
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

int scheduler_set_group(uint64_t group, uint32_t field, int64_t value)
{
    if (!group_value_allowed(group, field, value))
        return -ERANGE;
    lock_all();
    group_set(&scheduler, (uint32_t)group, field, value);
    trace_record(TRACE_TASK_GROUP, (uint32_t)group, field, (uint64_t)value);
    unlock_all();
    return 0;
}

/* Records the setting as if the policy had been chosen, and then its tunables. All queues are
 * locked. */
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
    use->groups = scheduler.groups;
    use->group = scheduler.group;
    text_copy(use->text, policy_text, sizeof(use->text));
    queue_unlock(queue);
}

bool scheduler_asks_for_owners(void)
{
    return __atomic_load_n(&scheduler.follows_waits, __ATOMIC_SEQ_CST);
}

bool scheduler_orders_waiters(void)
{
    return __atomic_load_n(&scheduler.orders_waiters, __ATOMIC_RELAXED);
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

/* Finds a policy with an inconsistent definition now, not in the middle of a run. */
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
        .overhead_ns = OVERHEAD_NS,
        .seed = boot_argument_number("seed", 1),
        .state = scheduler_state,
        .shape = machine_shape_at_boot(),
    };
    install(&setting);
}
