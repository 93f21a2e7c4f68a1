/* SPDX-License-Identifier: MIT */

/* The simulator's side of a policy in a separate machine: a struct policy, whose hooks send
 * calls to the module and receive its answers. */

#include "sim/apart/policy.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/apart/apart.h"
#include "sim/machine.h"

struct policy policy_separate;
extern const struct engine engine_separate;

const struct policy *const policies[] = {&policy_separate};
const uint32_t policy_sources_count = 1;
const uint32_t policies_count = 1;
const char *const policy_files[] = {"apart"};
const struct engine *const engines[] = {&engine_separate};

static struct separate_message message;
static struct separate_machine *machine;
#define STRUCTURE_MOST 512 /* maximum bytes of a task or a queue in the module's memory */
/* After this many calls, one call compares all tasks (see send_tasks()). */
#define CALLS_CHECKED 256
static const struct simulator *asking; /* the last that has called a hook */
static bool is_silent;                 /* see is_suppressed() */
static char misplaced[100];            /* the message of simulator_separate_misplaced() */
static uint64_t kills;
static struct known {
    struct task task;
    uint64_t may_run;
} known[SEPARATE_TASKS]; /* what the module knows of each task and, below, of each queue */
static struct separate_queue known_queues[SEPARATE_CPUS];
/* The previous call: its two tasks and the task that it returned, the running tasks, and how
 * often attributes had changed. */
static struct {
    int64_t tasks[3], running[SEPARATE_CPUS];
    uint64_t changes;
} latest;
static struct scheduler known_scheduler; /* without `queue` */
static bool knows_scheduler;
static char name[32];
static char tunable_names[POLICY_TUNABLES_MAX][32];
static struct tunable tunables[POLICY_TUNABLES_MAX];

const char *simulator_separate_trouble(void)
{
    return message.answer.trouble;
}

const char *simulator_separate_hook(void)
{
    static const char *const names[] = {
        [SEPARATE_DESCRIBE] = "",
        [SEPARATE_SCHEDULER_INIT] = "scheduler_init",
        [SEPARATE_SHARED_QUEUE] = "shared_queue",
        [SEPARATE_SHARES_BY] = "shares_by",
        [SEPARATE_QUEUE_INIT] = "queue_init",
        [SEPARATE_TASK_INIT] = "task_init",
        [SEPARATE_TASK_EXIT] = "task_exit",
        [SEPARATE_ENQUEUE] = "enqueue",
        [SEPARATE_DEQUEUE] = "dequeue",
        [SEPARATE_PICK] = "pick",
        [SEPARATE_TICK] = "tick",
        [SEPARATE_TIME_SLICE] = "time_slice",
        [SEPARATE_STOPPED] = "stopped",
        [SEPARATE_TURN_OVER] = "turn_over",
        [SEPARATE_ALARM] = "alarm",
        [SEPARATE_CHANGED] = "changed",
        [SEPARATE_LEAVE] = "leave",
        [SEPARATE_WAITERS_CHANGED] = "waiters_changed",
        [SEPARATE_OVERTAKES] = "overtakes",
        [SEPARATE_PREEMPTS] = "preempts",
        [SEPARATE_PLACE] = "place",
        [SEPARATE_PUSH] = "push",
        [SEPARATE_BALANCE] = "balance",
        [SEPARATE_STEAL] = "steal",
    };
    return names[message.call.hook];
}

uint32_t simulator_separate_queue(void)
{
    return message.call.queue > 0 ? (uint32_t)message.call.queue - 1 : NO_CPU;
}

uint32_t simulator_separate_cpu(void)
{
    /* A queue may serve all CPUs. */
    return message.call.hook == SEPARATE_PICK ? (uint32_t)message.call.value
                                              : simulator_separate_queue();
}

bool simulator_separate_is_queued(uint32_t slot)
{
    if (!asking || slot >= asking->most_processes)
        return false;
    const struct process *process = process_at(asking, slot);
    return process->place == PLACE_QUEUED &&
           (asking->scheduler.queues == 1 || process->task.cpu + 1 == message.call.queue);
}

int32_t simulator_separate_task_pid(void)
{
    const int64_t number = message.call.task;
    return asking && number > 0 ? process_at(asking, (uint32_t)number - 1)->task.pid : 0;
}

void simulator_separate_silence(void)
{
    is_silent = true;
}

const char *simulator_separate_misplaced(void)
{
    return misplaced;
}

uint64_t simulator_separate_kills(void)
{
    return kills;
}

static struct simulator *simulator_with(const scheduler_t *scheduler)
{
    return (struct simulator *)(void *)((char *)scheduler - offsetof(struct simulator, scheduler));
}

/* ---- sending a call ---- */

struct hook_call {
    enum separate_hook hook;
    run_queue_t *queue; /* null: none */
    const task_t *task;
    const task_t *other;
    int64_t value;
    bool flag;
};

static int64_t number_of(const task_t *task)
{
    return task ? (int64_t)task->slot + 1 : 0;
}

static bool is_known_scheduler(const scheduler_t *scheduler)
{
    const struct scheduler *was = &known_scheduler;
    return knows_scheduler && scheduler->cpus == was->cpus && scheduler->queues == was->queues &&
           scheduler->tick_ns == was->tick_ns && scheduler->overhead_ns == was->overhead_ns &&
           scheduler->seed == was->seed && scheduler->ending == was->ending &&
           scheduler->groups == was->groups &&
           memcmp(scheduler->tunable, was->tunable, sizeof(was->tunable)) == 0 &&
           memcmp(scheduler->group, was->group, sizeof(was->group)) == 0;
}

static void send_scheduler(const scheduler_t *scheduler)
{
    struct separate_scheduler *fields = &message.call.scheduler;
    message.call.scheduler_changed = !is_known_scheduler(scheduler);
    if (!message.call.scheduler_changed)
        return;
    known_scheduler = *scheduler;
    knows_scheduler = true;
    fields->cpus = scheduler->cpus;
    fields->queues = scheduler->queues;
    fields->tick_ns = (int64_t)scheduler->tick_ns;
    fields->overhead_ns = (int64_t)scheduler->overhead_ns;
    fields->seed = (int64_t)scheduler->seed;
    fields->ending = scheduler->ending;
    fields->groups = scheduler->groups;
    memcpy(fields->tunables, scheduler->tunable, sizeof(fields->tunables));
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        const struct share_group *group = &scheduler->group[i];
        fields->group[i] = (struct separate_group){group->parent, group->weight,
                                                   (int64_t)group->quota, (int64_t)group->period};
    }
}

#define DIFFERS(field) differs |= (uint64_t)(was->field ^ (int64_t)queue->field);

static bool is_known_queue(const struct separate_queue *was, const struct run_queue *queue)
{
    uint64_t differs = (uint64_t)(was->current ^ number_of(queue->current));
    SEPARATE_QUEUE_HOST(DIFFERS)
    SEPARATE_QUEUE_POLICY(DIFFERS)
    return was->number != 0 && differs == 0;
}

#define SEND(field) fields->field = (int64_t)queue->field;

static void send_queues(const struct simulator *simulator)
{
    struct separate_call *call = &message.call;
    call->queue_count = 0;
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        const struct run_queue *queue = &simulator->queues[i];
        if (is_known_queue(&known_queues[i], queue))
            continue;
        struct separate_queue *fields = &call->queues[call->queue_count++];
        fields->number = (int64_t)i + 1;
        SEPARATE_QUEUE_HOST(SEND)
        SEPARATE_QUEUE_POLICY(SEND)
        fields->current = number_of(queue->current);
        known_queues[i] = *fields;
    }
}

#undef SEND
#define SEND(field)      fields.field = (int64_t)task->field;
#define SEND_LINK(field) fields.field = number_of(task->field);

static struct separate_task task_fields(const struct task *task)
{
    struct separate_task fields = {.is_bound = task->cpus != NULL};
    SEPARATE_TASK_NUMBERS(SEND)
    SEPARATE_TASK_LINKS(SEND_LINK)
    if (task->cpus)
        fields.may_run = task->cpus->words[0];
    return fields;
}

/* Compares tasks as raw memory, because every call compares many. The host's fields are those
 * before `level` and those from `slice` on. */
enum {
    FIRST_END = offsetof(struct task, level),
    SECOND = offsetof(struct task, slice),
    WORD = sizeof(uint64_t)
};
_Static_assert(FIRST_END % WORD == 0 && SECOND % WORD == 0 && sizeof(struct task) % WORD == 0,
               "whole words belong to the host");

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

static void send_task(const struct simulator *simulator, uint32_t slot)
{
    struct separate_call *call = &message.call;
    const struct process *process = process_at(simulator, slot);
    const struct task *task = &process->task;
    if (is_known(task) || process->place == PLACE_FREE)
        return;
    known[slot] = (struct known){*task, task->cpus ? task->cpus->words[0] : 0};
    call->tasks[call->task_count++] = task_fields(task);
}

static void send_all_tasks(const struct simulator *simulator)
{
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++)
        send_task(simulator, slot);
}

static void send_by_number(const struct simulator *simulator, int64_t number)
{
    if (number > 0 && number <= simulator->most_processes)
        send_task(simulator, (uint32_t)number - 1);
}

/* Sends the tasks that run now, or ran at the previous call, if they have changed. */
static void send_running(const struct simulator *simulator)
{
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        const struct process *current = simulator->cpus[i].current;
        int64_t number = current ? number_of(&current->task) : 0;
        if (number != latest.running[i])
            send_by_number(simulator, latest.running[i]);
        send_by_number(simulator, number);
        latest.running[i] = number;
    }
}

/* Sends the tasks that have changed since the last call. Between two calls, the host changes
 * only running tasks, the tasks of these calls, attributes and, if the policy follows waits,
 * waiters. So a call need not compare all tasks. One call in CALLS_CHECKED does, to verify this. */
static void send_tasks(struct simulator *simulator, const struct hook_call *hook_call)
{
    struct separate_call *call = &message.call;
    call->task_count = 0;
    if (simulator->scheduler.follows_waits || simulator->attribute_changes != latest.changes) {
        latest.changes = simulator->attribute_changes;
        send_all_tasks(simulator);
    }
    for (uint32_t i = 0; i < sizeof(latest.tasks) / sizeof(latest.tasks[0]); i++)
        send_by_number(simulator, latest.tasks[i]);
    send_by_number(simulator, number_of(hook_call->task));
    send_by_number(simulator, number_of(hook_call->other));
    send_running(simulator);
    if (machine->calls % CALLS_CHECKED != 0)
        return;
    const int64_t fields = call->task_count;
    send_all_tasks(simulator);
    if (call->task_count != fields)
        fail(simulator, "the simulator changed a task without notifying the policy");
}

/* ---- receiving an answer ---- */

/* Returns the task with a number of an answer; null for 0. If the number is invalid, fails the
 * run and returns null. */
static task_t *heard_task(struct simulator *simulator, int64_t number)
{
    if (number == 0)
        return NULL;
    if (number < 0 || number > simulator->most_processes ||
        process_at(simulator, (uint32_t)number - 1)->place == PLACE_FREE) {
        fail(simulator, "policy %s named an address that is not a task", name);
        return NULL;
    }
    return &process_at(simulator, (uint32_t)number - 1)->task;
}

static void hear_changes(struct simulator *simulator)
{
    const struct separate_answer *answer = &message.answer;
    for (int64_t i = 0; i < answer->changed_count; i++) {
        task_t *task = heard_task(simulator, answer->changed[i].task);
        if (task) {
            task->level = (uint64_t)answer->changed[i].level;
            task->lent = (uint64_t)answer->changed[i].lent;
        }
    }
}

#define HEAR(field)                                                                                \
    queue->field = (__typeof__(queue->field))answer->queue.field;                                  \
    was->field = answer->queue.field;

static void hear_queue(run_queue_t *queue)
{
    const struct separate_answer *answer = &message.answer;
    struct separate_queue *was = &known_queues[queue->cpu];
    SEPARATE_QUEUE_POLICY(HEAR)
    if (!answer->told)
        return;
    queue->said.told = 1;
    queue->said.pid = (int32_t)answer->said_pid;
    memcpy(queue->said.text, answer->said, sizeof(queue->said.text));
    queue->said.value = answer->said_value;
    queue->said.other = (int32_t)answer->said_other;
}

/* ---- a call ---- */

/* Calls the hook in the module. Counts only the instructions of this call: the transfer of tasks
 * costs instructions that depend on the number of tasks, not on the policy. */
static bool served(void)
{
    uint64_t executed = 0;
    bool good = separate_call(machine, SEPARATE_SERVE, &executed);
    machine->instructions += executed;
    return good;
}

static uint64_t address_of(const void *part)
{
    return machine->place +
           (uint64_t)((const unsigned char *)part - (const unsigned char *)&message);
}

/* Copies a part of `message` to the same place in the module's memory. */
static void carry_part(const void *part, size_t bytes)
{
    separate_write(machine, address_of(part), part, bytes);
}

static void take_part(void *part, size_t bytes)
{
    separate_read(machine, address_of(part), part, bytes);
}

/* Copies the answer from the module, with as many changed tasks as it has. Returns false if the
 * module crashed. */
static bool take_answer(void)
{
    struct separate_answer *answer = &message.answer;
    uint64_t carrying;
    const bool good = separate_call(machine, SEPARATE_ANSWER, &carrying);
    take_part(answer, offsetof(struct separate_answer, changed));
    if (answer->changed_count < 0 || answer->changed_count > SEPARATE_TASKS)
        answer->changed_count = 0;
    take_part(answer->changed, (size_t)answer->changed_count * sizeof(answer->changed[0]));
    return good;
}

static void carry_call(void)
{
    const struct separate_call *call = &message.call;
    carry_part(call, offsetof(struct separate_call, scheduler));
    if (call->scheduler_changed)
        carry_part(&call->scheduler, sizeof(call->scheduler));
    carry_part(call->queues, (size_t)call->queue_count * sizeof(call->queues[0]));
    carry_part(call->tasks, (size_t)call->task_count * sizeof(call->tasks[0]));
}

static bool may_be_called(void)
{
    machine->is_endless = ++machine->calls > machine->calls_most ||
                          machine->instructions > machine->instructions_most;
    return !machine->is_endless && sizeof(message) <= machine->room;
}

/* Sends the changed parts of the call, calls the hook, and receives the answer. Returns false if
 * the module crashed. */
static bool carry(void)
{
    uint64_t carrying;
    if (!may_be_called())
        return false;
    carry_call();
    bool good = separate_call(machine, SEPARATE_HEAR, &carrying) && served();
    if (good)
        return take_answer();
    take_part(message.answer.trouble, sizeof(message.answer.trouble));
    return false;
}

/* Copies of the structures in the module's memory that a hook may write to. Comparing them shows
 * whether it has. */
struct structures {
    unsigned char queue[STRUCTURE_MOST], task[STRUCTURE_MOST], other[STRUCTURE_MOST];
};

static void look_at(struct structures *seen, const struct hook_call *hook_call)
{
    const struct separate_description *description = &message.description;
    const int64_t queue =
        description->queues_at + (message.call.queue - 1) * description->queue_bytes;
    const int64_t task = description->tasks_at + hook_call->task->slot * description->task_bytes;
    const int64_t other = description->tasks_at + hook_call->other->slot * description->task_bytes;
    separate_read(machine, (uint64_t)queue, seen->queue, (size_t)description->queue_bytes);
    separate_read(machine, (uint64_t)task, seen->task, (size_t)description->task_bytes);
    separate_read(machine, (uint64_t)other, seen->other, (size_t)description->task_bytes);
}

static bool has_written(const struct structures *before, const struct hook_call *hook_call)
{
    const struct separate_description *description = &message.description;
    struct structures now;
    look_at(&now, hook_call);
    return memcmp(before->queue, now.queue, (size_t)description->queue_bytes) != 0 ||
           memcmp(before->task, now.task, (size_t)description->task_bytes) != 0 ||
           memcmp(before->other, now.other, (size_t)description->task_bytes) != 0;
}

/* Returns true if a call repeats the previous call for another CPU. The host asks for each CPU
 * whether a queued task preempts the running one. Nothing changes in between, so the module has
 * all data already. */
static bool is_repeated(const struct hook_call *hook_call)
{
    const struct separate_call *call = &message.call;
    return hook_call->hook == SEPARATE_PREEMPTS && call->hook == SEPARATE_PREEMPTS &&
           call->queue == known_queues[hook_call->queue->cpu].number &&
           (int64_t)hook_call->queue->now == known_queues[hook_call->queue->cpu].now &&
           !message.answer.told;
}

/* Does the same as carry() for a repeated call: sends no tasks and queues, and receives an
 * answer only if the hook has written to its arguments. If the hook changed the levels of other
 * tasks, the next answer contains these changes; the host does not read the levels before. */
static bool carry_again(const struct hook_call *hook_call)
{
    struct structures before;
    if (!may_be_called())
        return false;
    look_at(&before, hook_call);
    message.answer.changed_count = 0;
    carry_part(&message.call, offsetof(struct separate_call, scheduler_changed));
    const bool good = served();
    if (good && has_written(&before, hook_call))
        return take_answer();
    take_part(&message.answer.result, sizeof(message.answer.result));
    if (!good)
        take_part(message.answer.trouble, sizeof(message.answer.trouble));
    return good;
}

static bool carried(const struct hook_call *again)
{
    memset(message.answer.trouble, 0, sizeof(message.answer.trouble));
    bool good = again ? carry_again(again) : carry();
    message.answer.trouble[sizeof(message.answer.trouble) - 1] = 0;
    return good && !message.answer.trouble[0];
}

/* Sends a call and returns the hook's result, or 0 if the run has failed. */
static int64_t ask(const scheduler_t *scheduler, struct hook_call hook_call)
{
    struct simulator *simulator = simulator_with(scheduler);
    struct separate_call *call = &message.call;
    asking = simulator;
    if (simulator->status == SIMULATOR_FAILED)
        return 0;
    const bool again = is_repeated(&hook_call);
    call->hook = hook_call.hook;
    call->queue = hook_call.queue ? (int64_t)(hook_call.queue - simulator->queues) + 1 : 0;
    call->task = number_of(hook_call.task);
    call->other = number_of(hook_call.other);
    call->value = hook_call.value;
    call->flag = hook_call.flag;
    if (!again) {
        send_scheduler(scheduler);
        send_queues(simulator);
        send_tasks(simulator, &hook_call);
    }
    if (!carried(again ? &hook_call : NULL)) {
        fail(simulator, "policy %s broke a rule: %s", name,
             message.answer.trouble[0] ? message.answer.trouble : "its machine failed");
        return 0;
    }
    hear_changes(simulator);
    if (hook_call.queue)
        hear_queue(hook_call.queue);
    latest.tasks[0] = call->task;
    latest.tasks[1] = call->other;
    latest.tasks[2] = message.answer.result; /* used only if the result is a task */
    return message.answer.result;
}

/* Calls a hook that takes a task out of a queue. Returns the task or null; also null if the task
 * is in another queue. */
static task_t *ask_for_task(run_queue_t *queue, enum separate_hook hook, uint32_t cpu)
{
    struct simulator *simulator = simulator_with(queue->scheduler);
    int64_t number =
        ask(queue->scheduler, (struct hook_call){.hook = hook, .queue = queue, .value = cpu});
    task_t *task = heard_task(simulator, number);
    if (task && simulator->scheduler.queues > 1 && task->cpu != queue->cpu &&
        ((struct process *)task)->place == PLACE_QUEUED) {
        fail(simulator, "policy %s gave pid %d, which is queued on another CPU", name, task->pid);
        return NULL;
    }
    return task;
}

/* Returns true if no task of the queue may run on the CPU, and such requests are suppressed. */
static bool is_suppressed(const run_queue_t *queue, uint32_t cpu)
{
    const struct simulator *simulator = simulator_with(queue->scheduler);
    if (!is_silent || !queue_bars(queue, cpu))
        return false;
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++) {
        const struct process *process = process_at(simulator, slot);
        if (process->place == PLACE_QUEUED && task_may_run_on(&process->task, cpu) &&
            (simulator->scheduler.queues == 1 || process->task.cpu == queue->cpu))
            return false;
    }
    return true;
}

/* Requests a task for a CPU, and notes if the task may not run there. */
static task_t *ask_for_cpu(run_queue_t *queue, enum separate_hook hook, uint32_t cpu)
{
    task_t *task = is_suppressed(queue, cpu) ? NULL : ask_for_task(queue, hook, cpu);
    if (task && !misplaced[0] && !task_may_run_on(task, cpu) && !queue->scheduler->ending)
        snprintf(misplaced, sizeof(misplaced),
                 "%s() it returned pid %d for CPU %u, where this task may not run",
                 simulator_separate_hook(), task->pid, cpu);
    return task;
}

/* ---- the hooks ---- */

static void ask_scheduler_init(scheduler_t *scheduler)
{
    ask(scheduler, (struct hook_call){.hook = SEPARATE_SCHEDULER_INIT});
    scheduler->follows_waits = message.answer.follows_waits && policy_separate.waiters_changed;
    scheduler->orders_waiters = message.answer.orders_waiters && policy_separate.overtakes;
}

static bool ask_shared_queue(const scheduler_t *scheduler)
{
    return ask(scheduler, (struct hook_call){.hook = SEPARATE_SHARED_QUEUE});
}

static enum share_attribute ask_shares_by(const scheduler_t *scheduler)
{
    int64_t by = ask(scheduler, (struct hook_call){.hook = SEPARATE_SHARES_BY});
    return by == SHARES_BY_TICKETS || by == SHARES_BY_WEIGHT || by == SHARES_BY_NICE ||
                   by == SHARES_BY_GROUPS || by == SHARES_BY_CURRENCIES
               ? (enum share_attribute)by
               : SHARES_EQUAL;
}

static void ask_queue_init(run_queue_t *queue)
{
    ask(queue->scheduler, (struct hook_call){.hook = SEPARATE_QUEUE_INIT, .queue = queue});
}

static void ask_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    ask(scheduler, (struct hook_call){.hook = SEPARATE_TASK_INIT, .task = task, .other = parent});
}

static void ask_task_exit(scheduler_t *scheduler, task_t *task)
{
    ask(scheduler, (struct hook_call){.hook = SEPARATE_TASK_EXIT, .task = task});
}

static void ask_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    ask(queue->scheduler,
        (struct hook_call){
            .hook = SEPARATE_ENQUEUE, .queue = queue, .task = task, .value = reason});
}

static void ask_dequeue(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler,
        (struct hook_call){.hook = SEPARATE_DEQUEUE, .queue = queue, .task = task});
}

static task_t *ask_pick(run_queue_t *queue, uint32_t cpu)
{
    return ask_for_cpu(queue, SEPARATE_PICK, cpu);
}

static task_t *ask_steal(run_queue_t *queue, uint32_t cpu)
{
    return ask_for_cpu(queue, SEPARATE_STEAL, cpu);
}

static task_t *ask_alarm(run_queue_t *queue)
{
    return ask_for_task(queue, SEPARATE_ALARM, queue->cpu);
}

static enum tick_verdict ask_for_verdict(run_queue_t *queue, enum separate_hook hook, task_t *task)
{
    int64_t verdict =
        ask(queue->scheduler, (struct hook_call){.hook = hook, .queue = queue, .task = task});
    kills += verdict == TICK_KILL;
    return (enum tick_verdict)verdict;
}

static enum tick_verdict ask_tick(run_queue_t *queue, task_t *task)
{
    return ask_for_verdict(queue, SEPARATE_TICK, task);
}

static enum tick_verdict ask_turn_over(run_queue_t *queue, task_t *task)
{
    return ask_for_verdict(queue, SEPARATE_TURN_OVER, task);
}

static uint64_t ask_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return (uint64_t)ask(scheduler, (struct hook_call){.hook = SEPARATE_TIME_SLICE, .task = task});
}

static void ask_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    ask(queue->scheduler,
        (struct hook_call){
            .hook = SEPARATE_STOPPED, .queue = queue, .task = task, .value = reason});
}

static void ask_changed(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler,
        (struct hook_call){.hook = SEPARATE_CHANGED, .queue = queue, .task = task});
}

static void ask_leave(run_queue_t *queue, task_t *task)
{
    ask(queue->scheduler, (struct hook_call){.hook = SEPARATE_LEAVE, .queue = queue, .task = task});
}

static bool ask_waiters_changed(run_queue_t *queue, task_t *owner)
{
    return ask(queue->scheduler,
               (struct hook_call){.hook = SEPARATE_WAITERS_CHANGED, .queue = queue, .task = owner});
}

static bool ask_overtakes(run_queue_t *queue, const task_t *waiter, const task_t *chosen)
{
    return ask(queue->scheduler,
               (struct hook_call){
                   .hook = SEPARATE_OVERTAKES, .queue = queue, .task = waiter, .other = chosen});
}

static bool ask_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return ask(queue->scheduler,
               (struct hook_call){
                   .hook = SEPARATE_PREEMPTS, .queue = queue, .task = task, .other = running});
}

/* Converts a result to the number of a CPU. The host checks that the CPU exists. */
static uint32_t heard_cpu(int64_t result)
{
    return result >= 0 && result < NO_CPU ? (uint32_t)result : NO_CPU;
}

static uint32_t ask_place(const scheduler_t *scheduler, const task_t *task,
                          enum enqueue_reason reason)
{
    return heard_cpu(
        ask(scheduler, (struct hook_call){.hook = SEPARATE_PLACE, .task = task, .value = reason}));
}

static uint32_t ask_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return heard_cpu(ask(scheduler, (struct hook_call){.hook = SEPARATE_PUSH, .value = cpu}));
}

static uint32_t ask_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    return heard_cpu(
        ask(scheduler, (struct hook_call){.hook = SEPARATE_BALANCE, .value = cpu, .flag = idle}));
}

/* ---- hooks of a policy ---- */

/* The hooks that are called for every policy, because the policy's side clears the states of
 * tasks in them. */
static const struct policy always = {
    .name = name,
    .meaning = "a separate policy",
    .source = "the author of the submission",
    .order = "The policy's author defines the order of service.",
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
        policy_separate.hook = ask_##hook;
    TAKE(SEPARATE_SHARED_QUEUE, shared_queue)
    TAKE(SEPARATE_SHARES_BY, shares_by)
    TAKE(SEPARATE_TASK_EXIT, task_exit)
    TAKE(SEPARATE_STOPPED, stopped)
    TAKE(SEPARATE_TURN_OVER, turn_over)
    TAKE(SEPARATE_ALARM, alarm)
    TAKE(SEPARATE_CHANGED, changed)
    TAKE(SEPARATE_LEAVE, leave)
    TAKE(SEPARATE_WAITERS_CHANGED, waiters_changed)
    TAKE(SEPARATE_OVERTAKES, overtakes)
    TAKE(SEPARATE_PREEMPTS, preempts)
    TAKE(SEPARATE_PLACE, place)
    TAKE(SEPARATE_PUSH, push)
    TAKE(SEPARATE_BALANCE, balance)
    TAKE(SEPARATE_STEAL, steal)
#undef TAKE
}

static void take_tunables(const struct separate_description *description)
{
    int64_t count = description->tunable_count;
    policy_separate.tunable_count =
        count < 0 || count > POLICY_TUNABLES_MAX ? 0 : (uint32_t)description->tunable_count;
    for (uint32_t i = 0; i < policy_separate.tunable_count; i++) {
        const struct separate_tunable *fields = &description->tunables[i];
        snprintf(tunable_names[i], sizeof(tunable_names[i]), "%.31s", fields->name);
        tunables[i] = (struct tunable){tunable_names[i], "a number defined by the policy",
                                       fields->minimum, fields->standard, fields->maximum};
    }
}

static bool take_levels(const struct separate_description *description)
{
    if (description->level_order == LEVELS_NONE)
        return true;
    policy_separate.levels = "The policy defines the levels.";
    policy_separate.level_order = (enum level_order)description->level_order;
    return description->level_order == LEVELS_LOWEST_FIRST ||
           description->level_order == LEVELS_HIGHEST_FIRST;
}

/* Accepts the addresses in a description. Returns false if the queues or tasks would not fit
 * into the module's memory. */
static bool take_places(const struct separate_description *description)
{
    const int64_t end = (int64_t)(machine->place + machine->room);
    return description->queue_bytes > 0 && description->queue_bytes <= STRUCTURE_MOST &&
           description->task_bytes > 0 && description->task_bytes <= STRUCTURE_MOST &&
           description->queues_at >= 0 && description->tasks_at >= 0 &&
           description->queues_at <= end - description->queue_bytes * SEPARATE_CPUS &&
           description->tasks_at <= end - description->task_bytes * SEPARATE_TASKS;
}

bool simulator_separate_begin(struct separate_machine *of_policy)
{
    const struct separate_description *description = &message.description;
    struct separate_answer *answer = &message.answer;
    memset(&message, 0, sizeof(message));
    memset(known, 0, sizeof(known));
    memset(known_queues, 0, sizeof(known_queues));
    memset(&latest, 0, sizeof(latest));
    knows_scheduler = false;
    machine = of_policy;
    asking = NULL;
    kills = 0;
    is_silent = false;
    misplaced[0] = 0;
    message.call.hook = SEPARATE_DESCRIBE;
    if (!carried(NULL))
        return false;
    take_part(&message.description, sizeof(message.description));
    policy_separate = always;
    snprintf(name, sizeof(name), "%.31s", description->name);
    take_hooks(description->hooks);
    take_tunables(description);
    const char *flaw = !take_levels(description)   ? "it has no such levels"
                       : !take_places(description) ? "its structures have no address"
                                                   : policy_flaw(&policy_separate);
    if (flaw)
        snprintf(answer->trouble, sizeof(answer->trouble),
                 "the policy's definitions are "
                 "inconsistent: %s",
                 flaw);
    return !flaw;
}
