/* SPDX-License-Identifier: MIT */

/* The simulator's side: a policy each of whose hooks asks the one that is elsewhere. */

#include "sim/apart/policy.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/apart/apart.h"
#include "sim/machine.h"

struct policy policy_apart;
extern const struct engine engine_apart;

const struct policy *const policies[] = {&policy_apart};
const uint32_t policy_sources_count = 1;
const uint32_t policies_count = 1;
const char *const policy_files[] = {"apart"};
const struct engine *const engines[] = {&engine_apart};

static struct apart_message message;
static struct apart_machine *machine;
static uint64_t kills;
static struct known {
    struct task task;
    uint64_t may_run;
} known[APART_TASKS]; /* as the other side has them */
static char name[32];
static char tunable_names[POLICY_TUNABLES_MAX][32];
static struct tunable tunables[POLICY_TUNABLES_MAX];

const char *simulator_apart_trouble(void)
{
    return message.answer.trouble;
}

const char *simulator_apart_hook(void)
{
    static const char *const names[] = {
        [APART_DESCRIBE] = "",
        [APART_SCHEDULER_INIT] = "scheduler_init",
        [APART_SHARED_QUEUE] = "shared_queue",
        [APART_SHARES_BY] = "shares_by",
        [APART_QUEUE_INIT] = "queue_init",
        [APART_TASK_INIT] = "task_init",
        [APART_TASK_EXIT] = "task_exit",
        [APART_ENQUEUE] = "enqueue",
        [APART_DEQUEUE] = "dequeue",
        [APART_PICK] = "pick",
        [APART_TICK] = "tick",
        [APART_TIME_SLICE] = "time_slice",
        [APART_STOPPED] = "stopped",
        [APART_TURN_OVER] = "turn_over",
        [APART_ALARM] = "alarm",
        [APART_CHANGED] = "changed",
        [APART_LEAVE] = "leave",
        [APART_WAITERS_CHANGED] = "waiters_changed",
        [APART_OVERTAKES] = "overtakes",
        [APART_PREEMPTS] = "preempts",
        [APART_PLACE] = "place",
        [APART_PUSH] = "push",
        [APART_BALANCE] = "balance",
        [APART_STEAL] = "steal",
    };
    return names[message.call.hook];
}

uint64_t simulator_apart_kills(void)
{
    return kills;
}

static struct simulator *simulator_with(const scheduler_t *scheduler)
{
    return (struct simulator *)(void *)((char *)scheduler - offsetof(struct simulator, scheduler));
}

/* ---- what is told ---- */

static int64_t number_of(const task_t *task)
{
    return task ? (int64_t)task->slot + 1 : 0;
}

static void tell_scheduler(const scheduler_t *scheduler)
{
    struct apart_call *call = &message.call;
    call->cpus = scheduler->cpus;
    call->queues = scheduler->queues;
    call->tick_ns = (int64_t)scheduler->tick_ns;
    call->seed = (int64_t)scheduler->seed;
    call->ending = scheduler->ending;
    call->groups = scheduler->groups;
    memcpy(call->tunables, scheduler->tunable, sizeof(call->tunables));
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        const struct share_group *group = &scheduler->group[i];
        call->group[i] = (struct apart_group){group->parent, group->weight, (int64_t)group->quota,
                                              (int64_t)group->period};
    }
}

#define TELL(field) told->field = (int64_t)queue->field;

static void tell_queues(const struct simulator *simulator)
{
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        const struct run_queue *queue = &simulator->queues[i];
        struct apart_queue *told = &message.call.queue_of[i];
        APART_QUEUE_HOST(TELL)
        APART_QUEUE_POLICY(TELL)
        told->current = number_of(queue->current);
    }
}

#undef TELL
#define TELL(field)      told.field = (int64_t)task->field;
#define TELL_LINK(field) told.field = number_of(task->field);

static struct apart_task told_task(const struct task *task)
{
    struct apart_task told = {.is_bound = task->cpus != NULL};
    APART_TASK_NUMBERS(TELL)
    APART_TASK_LINKS(TELL_LINK)
    if (task->cpus)
        told.may_run = task->cpus->words[0];
    return told;
}

/* It is asked of every task at every call: so what is the host's of a task is compared as it lies.
 */
enum {
    FIRST_END = offsetof(struct task, level),
    SECOND = offsetof(struct task, slice),
    WORD = sizeof(uint64_t)
};
_Static_assert(FIRST_END % WORD == 0 && SECOND % WORD == 0 && sizeof(struct task) % WORD == 0,
               "whole words are the host's");

static uint64_t difference(const void *one, const void *other, size_t from, size_t end)
{
    uint64_t differs = 0;
    for (size_t at = from; at < end; at += WORD) {
        uint64_t left, right;
        memcpy(&left, (const char *)one + at, WORD);
        memcpy(&right, (const char *)other + at, WORD);
        differs |= left ^ right;
    }
    return differs;
}

static bool is_known(const struct task *task)
{
    const struct known *was = &known[task->slot];
    uint64_t differs = difference(task, &was->task, 0, FIRST_END) |
                       difference(task, &was->task, SECOND, sizeof(*task));
    if (task->cpus)
        differs |= task->cpus->words[0] ^ was->may_run;
    return differs == 0;
}

static void tell_tasks(const struct simulator *simulator)
{
    struct apart_call *call = &message.call;
    call->task_count = 0;
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++) {
        const struct process *process = process_at(simulator, slot);
        const struct task *task = &process->task;
        if (process->place == PLACE_FREE || is_known(task))
            continue;
        known[slot] = (struct known){*task, task->cpus ? task->cpus->words[0] : 0};
        call->tasks[call->task_count++] = told_task(task);
    }
}

/* ---- what is heard ---- */

/* Returns null for what is no task, too: then the run has failed. */
static task_t *heard_task(struct simulator *simulator, int64_t number)
{
    if (number == 0)
        return NULL;
    if (number < 0 || number > simulator->most_processes ||
        process_at(simulator, (uint32_t)number - 1)->place == PLACE_FREE) {
        fail(simulator, "policy %s named what is no task", name);
        return NULL;
    }
    return &process_at(simulator, (uint32_t)number - 1)->task;
}

static void hear_changes(struct simulator *simulator)
{
    const struct apart_answer *answer = &message.answer;
    for (int64_t i = 0; i < answer->changed_count; i++) {
        task_t *task = heard_task(simulator, answer->changed[i].task);
        if (task) {
            task->level = (uint64_t)answer->changed[i].level;
            task->lent = (uint64_t)answer->changed[i].lent;
        }
    }
}

#define HEAR(field) queue->field = (__typeof__(queue->field))answer->queue.field;

static void hear_queue(run_queue_t *queue)
{
    const struct apart_answer *answer = &message.answer;
    APART_QUEUE_POLICY(HEAR)
    if (!answer->told)
        return;
    queue->said.told = 1;
    queue->said.pid = (int32_t)answer->said_pid;
    memcpy(queue->said.text, answer->said, sizeof(queue->said.text));
    queue->said.value = answer->said_value;
    queue->said.other = (int32_t)answer->said_other;
}

/* ---- a call ---- */

/* Calls a function of the machine, which executes so many instructions. Returns false if it broke
 * down. */
static bool called(const void *function, uint64_t *executed)
{
    uint64_t left = 0;
    machine->set_fuel(machine->context, machine->hook_instructions);
    machine->error = machine->call(machine->context, function, NULL, 0, NULL, 0, &machine->trap);
    machine->get_fuel(machine->context, &left);
    *executed = machine->hook_instructions - left;
    return !machine->error && !machine->trap;
}

/* The policy's own work is counted, and not how the machine hears of tasks and answers: that grows
 * with their number, whatever the policy does. */
static bool served(void)
{
    uint64_t carrying, own = 0;
    bool good = called(machine->hear, &carrying) && called(machine->serve, &own);
    machine->instructions += own;
    return good && called(machine->answer, &carrying);
}

/* Copies the answer, as far as the tasks go that have changed. */
static void take_answer(void)
{
    const size_t changes = offsetof(struct apart_answer, changed);
    struct apart_answer *answer = &message.answer;
    memcpy(answer, machine->memory, changes);
    if (answer->changed_count < 0 || answer->changed_count > APART_TASKS)
        answer->changed_count = 0;
    memcpy(answer->changed, machine->memory + changes,
           (size_t)answer->changed_count * sizeof(answer->changed[0]));
}

/* Carries the call there, as far as its tasks go, and the answer back. */
static bool carry(void)
{
    const uint64_t end = offsetof(struct apart_message, call.tasks) +
                         (uint64_t)message.call.task_count * sizeof(struct apart_task);
    const uint64_t begin = offsetof(struct apart_message, call);
    machine->is_endless = ++machine->calls > machine->calls_most ||
                          machine->instructions > machine->instructions_most;
    if (machine->is_endless || end > machine->room)
        return false;
    memcpy(machine->memory + begin, (const char *)&message + begin, end - begin);
    const bool good = served();
    take_answer();
    return good;
}

static bool carried(void)
{
    memset(message.answer.trouble, 0, sizeof(message.answer.trouble));
    bool good = carry();
    message.answer.trouble[sizeof(message.answer.trouble) - 1] = 0;
    return good && !message.answer.trouble[0];
}

struct asked {
    enum apart_hook hook;
    run_queue_t *queue; /* null: none */
    const task_t *task;
    const task_t *other;
    int64_t value;
    bool flag;
};

/* Returns the answer's result; 0 in a run that has failed. */
static int64_t ask(const scheduler_t *scheduler, struct asked asked)
{
    struct simulator *simulator = simulator_with(scheduler);
    struct apart_call *call = &message.call;
    if (simulator->status == SIMULATOR_FAILED)
        return 0;
    call->hook = asked.hook;
    call->queue = asked.queue ? (int64_t)(asked.queue - simulator->queues) + 1 : 0;
    call->task = number_of(asked.task);
    call->other = number_of(asked.other);
    call->value = asked.value;
    call->flag = asked.flag;
    tell_scheduler(scheduler);
    tell_queues(simulator);
    tell_tasks(simulator);
    if (!carried()) {
        fail(simulator, "policy %s broke a rule: %s", name,
             message.answer.trouble[0] ? message.answer.trouble : "its machine broke down");
        return 0;
    }
    hear_changes(simulator);
    if (asked.queue)
        hear_queue(asked.queue);
    return message.answer.result;
}

/* Returns the task that the policy hands out of a queue. One of another queue is none. */
static task_t *ask_for_task(run_queue_t *queue, enum apart_hook hook, uint32_t cpu)
{
    struct simulator *simulator = simulator_with(queue->scheduler);
    int64_t number =
        ask(queue->scheduler, (struct asked){.hook = hook, .queue = queue, .value = cpu});
    task_t *task = heard_task(simulator, number);
    if (task && simulator->scheduler.queues > 1 && task->cpu != queue->cpu &&
        ((struct process *)task)->place == PLACE_QUEUED) {
        fail(simulator, "policy %s gave pid %d, which is queued on another CPU", name, task->pid);
        return NULL;
    }
    return task;
}

/* ---- the hooks ---- */

static void ask_scheduler_init(scheduler_t *scheduler)
{
    ask(scheduler, (struct asked){.hook = APART_SCHEDULER_INIT});
    scheduler->follows_waits = message.answer.follows_waits && policy_apart.waiters_changed;
    scheduler->orders_waiters = message.answer.orders_waiters && policy_apart.overtakes;
}

static bool ask_shared_queue(const scheduler_t *scheduler)
{
    return ask(scheduler, (struct asked){.hook = APART_SHARED_QUEUE});
}

static enum share_attribute ask_shares_by(const scheduler_t *scheduler)
{
    int64_t by = ask(scheduler, (struct asked){.hook = APART_SHARES_BY});
    return by == SHARES_BY_TICKETS || by == SHARES_BY_WEIGHT || by == SHARES_BY_NICE ||
                   by == SHARES_BY_GROUPS || by == SHARES_BY_CURRENCIES
               ? (enum share_attribute)by
               : SHARES_EQUAL;
}

static void ask_queue_init(run_queue_t *queue)
{
    ask(queue->scheduler, (struct asked){.hook = APART_QUEUE_INIT, .queue = queue});
}

static void ask_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    ask(scheduler, (struct asked){.hook = APART_TASK_INIT, .task = task, .other = parent});
}

static void ask_task_exit(scheduler_t *scheduler, task_t *task)
{
    ask(scheduler, (struct asked){.hook = APART_TASK_EXIT, .task = task});
}

static void ask_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    ask(queue->scheduler,
        (struct asked){.hook = APART_ENQUEUE, .queue = queue, .task = task, .value = reason});
}

static void ask_dequeue(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler, (struct asked){.hook = APART_DEQUEUE, .queue = queue, .task = task});
}

static task_t *ask_pick(run_queue_t *queue, uint32_t cpu)
{
    return ask_for_task(queue, APART_PICK, cpu);
}

static task_t *ask_steal(run_queue_t *queue, uint32_t cpu)
{
    return ask_for_task(queue, APART_STEAL, cpu);
}

static task_t *ask_alarm(run_queue_t *queue)
{
    return ask_for_task(queue, APART_ALARM, queue->cpu);
}

static enum tick_verdict ask_for_verdict(run_queue_t *queue, enum apart_hook hook, task_t *task)
{
    int64_t verdict =
        ask(queue->scheduler, (struct asked){.hook = hook, .queue = queue, .task = task});
    kills += verdict == TICK_KILL;
    return (enum tick_verdict)verdict;
}

static enum tick_verdict ask_tick(run_queue_t *queue, task_t *task)
{
    return ask_for_verdict(queue, APART_TICK, task);
}

static enum tick_verdict ask_turn_over(run_queue_t *queue, task_t *task)
{
    return ask_for_verdict(queue, APART_TURN_OVER, task);
}

static uint64_t ask_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return (uint64_t)ask(scheduler, (struct asked){.hook = APART_TIME_SLICE, .task = task});
}

static void ask_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    ask(queue->scheduler,
        (struct asked){.hook = APART_STOPPED, .queue = queue, .task = task, .value = reason});
}

static void ask_changed(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler, (struct asked){.hook = APART_CHANGED, .queue = queue, .task = task});
}

static void ask_leave(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler, (struct asked){.hook = APART_LEAVE, .queue = queue, .task = task});
}

static bool ask_waiters_changed(run_queue_t *queue, task_t *owner)
{
    return ask(queue->scheduler,
               (struct asked){.hook = APART_WAITERS_CHANGED, .queue = queue, .task = owner});
}

static bool ask_overtakes(run_queue_t *queue, const task_t *waiter, const task_t *chosen)
{
    return ask(
        queue->scheduler,
        (struct asked){.hook = APART_OVERTAKES, .queue = queue, .task = waiter, .other = chosen});
}

static bool ask_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return ask(
        queue->scheduler,
        (struct asked){.hook = APART_PREEMPTS, .queue = queue, .task = task, .other = running});
}

/* A number of a CPU, of which the host says whether there is one. */
static uint32_t heard_cpu(int64_t result)
{
    return result >= 0 && result < NO_CPU ? (uint32_t)result : NO_CPU;
}

static uint32_t ask_place(const scheduler_t *scheduler, const task_t *task,
                          enum enqueue_reason reason)
{
    return heard_cpu(
        ask(scheduler, (struct asked){.hook = APART_PLACE, .task = task, .value = reason}));
}

static uint32_t ask_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return heard_cpu(ask(scheduler, (struct asked){.hook = APART_PUSH, .value = cpu}));
}

static uint32_t ask_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    return heard_cpu(
        ask(scheduler, (struct asked){.hook = APART_BALANCE, .value = cpu, .flag = idle}));
}

/* ---- which of them there are ---- */

/* Those that every policy apart has: the other side zeroes states in them. */
static const struct policy always = {
    .name = name,
    .meaning = "a policy in a machine of its own",
    .source = "the author of the submission",
    .order = "The policy's author says in which order tasks are served.",
    .tunables = tunables,
    .scheduler_init = ask_scheduler_init,
    .queue_init = ask_queue_init,
    .task_init = ask_task_init,
    .enqueue = ask_enqueue,
    .dequeue = ask_dequeue,
    .pick = ask_pick,
    .tick = ask_tick,
    .time_slice = ask_time_slice,
};

static void take_hooks(int64_t hooks)
{
#define TAKE(HOOK, hook)                                                                           \
    if (hooks >> (HOOK) & 1)                                                                       \
        policy_apart.hook = ask_##hook;
    TAKE(APART_SHARED_QUEUE, shared_queue)
    TAKE(APART_SHARES_BY, shares_by)
    TAKE(APART_TASK_EXIT, task_exit)
    TAKE(APART_STOPPED, stopped)
    TAKE(APART_TURN_OVER, turn_over)
    TAKE(APART_ALARM, alarm)
    TAKE(APART_CHANGED, changed)
    TAKE(APART_LEAVE, leave)
    TAKE(APART_WAITERS_CHANGED, waiters_changed)
    TAKE(APART_OVERTAKES, overtakes)
    TAKE(APART_PREEMPTS, preempts)
    TAKE(APART_PLACE, place)
    TAKE(APART_PUSH, push)
    TAKE(APART_BALANCE, balance)
    TAKE(APART_STEAL, steal)
#undef TAKE
}

static void take_tunables(const struct apart_answer *answer)
{
    int64_t count = answer->tunable_count;
    policy_apart.tunable_count =
        count < 0 || count > POLICY_TUNABLES_MAX ? 0 : (uint32_t)answer->tunable_count;
    for (uint32_t i = 0; i < policy_apart.tunable_count; i++) {
        const struct apart_tunable *told = &answer->tunables[i];
        snprintf(tunable_names[i], sizeof(tunable_names[i]), "%.31s", told->name);
        tunables[i] = (struct tunable){tunable_names[i], "a number of the policy's", told->minimum,
                                       told->standard, told->maximum};
    }
}

static bool take_levels(const struct apart_answer *answer)
{
    if (answer->level_order == LEVELS_NONE)
        return true;
    policy_apart.levels = "Levels are the policy's own.";
    policy_apart.level_order = (enum level_order)answer->level_order;
    return answer->level_order == LEVELS_LOWEST_FIRST ||
           answer->level_order == LEVELS_HIGHEST_FIRST;
}

bool simulator_apart_begin(struct apart_machine *of_policy)
{
    struct apart_answer *answer = &message.answer;
    memset(&message, 0, sizeof(message));
    memset(known, 0, sizeof(known));
    machine = of_policy;
    kills = 0;
    message.call.hook = APART_DESCRIBE;
    if (!carried())
        return false;
    policy_apart = always;
    snprintf(name, sizeof(name), "%.31s", answer->name);
    take_hooks(answer->hooks);
    take_tunables(answer);
    const char *flaw = take_levels(answer) ? policy_flaw(&policy_apart) : "it has no such levels";
    if (flaw)
        snprintf(answer->trouble, sizeof(answer->trouble), "the policy contradicts itself: %s",
                 flaw);
    return !flaw;
}
