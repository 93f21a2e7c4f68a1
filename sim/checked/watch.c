/* SPDX-License-Identifier: MIT */

#include "sim/checked/watch.h"

#include <inttypes.h>
#ifndef UNSANITIZED
#include <sanitizer/common_interface_defs.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "abi/machine_status.h"
#include "policies/support/rounds.h"
#include "sim/program_counter.h"

#define DECISIONS 10
/* A hook is reported if the timer finds the same call unfinished this many times. */
#define PATIENCE 2
#define CHECK_US 100000 /* CPU time (µs) between two checks of the timer */

struct decision {
    uint64_t time;
    uint32_t cpu;
    uint32_t queued;
    int32_t pid; /* 0: none */
};

static const struct watched *watched;
static const struct simulator_setup *setup;
static struct watch_call in_force; /* the present call of a hook; its `name` is null outside of
                                    * hooks */
static uint64_t calls;             /* calls of hooks so far */
static struct decision decisions[DECISIONS];
static uint64_t decisions_made;
static struct {
    struct decision *all;
    uint64_t count, room;
    uint64_t same; /* number of equal decisions so far, in the configuration that is compared */
    struct decision other;
    enum { KEEP_NOTHING, KEEP, COMPARE, PARTED } state;
} kept;
static struct watch_waits waits;
/* Since when each task has been waiting for a CPU. */
static struct waiting {
    uint64_t begin;    /* simulated time plus 1; 0: the task does not wait */
    uint64_t run_time; /* the task's run time at `begin` */
} *waiting;
static uint64_t kills;

/* The last hook that handled a task and changed the policy's data about it. */
struct touch {
    const char *hook; /* null: none */
    uint64_t function;
    uint64_t time;
};
static struct touch *touches;    /* by slot of the task */
static const struct touch *lost; /* the last touch of a task that the policy has lost; null: none */
static enum asks asks;

/* ---- the host's fields ---- */

struct field {
    const char *name;
    size_t offset;
    size_t bytes;
};

#define FIELD(type, member)                                                                        \
    {#member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member)}

static const struct field task_fields[] = {
    FIELD(task, pid),
    FIELD(task, slot),
    FIELD(task, priority),
    FIELD(task, tickets),
    FIELD(task, weight),
    FIELD(task, nice),
    FIELD(task, cpu),
    FIELD(task, group),
    FIELD(task, run_time),
    FIELD(task, counted),
    FIELD(task, queued_since),
    FIELD(task, picked_since),
    FIELD(task, selections),
    FIELD(task, state),
    FIELD(task, slice),
    FIELD(task, runtime),
    FIELD(task, deadline),
    FIELD(task, period),
    FIELD(task, waits_for),
    FIELD(task, first_waiter),
    FIELD(task, next_waiter),
    FIELD(task, previous_waiter),
    FIELD(task, ceiling),
    FIELD(task, waker),
    FIELD(task, waker_cpu),
    FIELD(task, cpus),
    {NULL, 0, 0},
};

static const struct field queue_fields[] = {
    FIELD(run_queue, scheduler), FIELD(run_queue, now),
    FIELD(run_queue, cpu),       FIELD(run_queue, queued),
    FIELD(run_queue, running),   FIELD(run_queue, current),
    FIELD(run_queue, state),     {NULL, 0, 0},
};

static const struct field scheduler_fields[] = {
    FIELD(scheduler, cpus),    FIELD(scheduler, queues),
    FIELD(scheduler, tick_ns), FIELD(scheduler, seed),
    FIELD(scheduler, ending),  FIELD(scheduler, tunable),
    FIELD(scheduler, state),   FIELD(scheduler, groups),
    FIELD(scheduler, group),   {NULL, 0, 0},
};

/* Values before the hook. */
static struct scheduler scheduler_before;
static struct run_queue *queues_before;
static struct task *tasks_before;

/* ---- reporting ---- */

static void say_decisions(void)
{
    uint64_t first = decisions_made > DECISIONS ? decisions_made - DECISIONS : 0;
    fprintf(stderr, decisions_made ? "its last decisions:\n" : "it has made no decision yet\n");
    for (uint64_t i = first; i < decisions_made; i++) {
        const struct decision *decision = &decisions[i % DECISIONS];
        if (!watched || watched->now)
            fprintf(stderr, "  %10.3f ms", (double)decision->time / 1e6);
        fprintf(stderr, "  CPU %u: ", decision->cpu);
        if (decision->pid)
            fprintf(stderr, "pid %d", decision->pid);
        else
            fprintf(stderr, "none");
        fprintf(stderr, " of %u queued\n", decision->queued);
    }
}

static void say_circumstances(void)
{
    if (!in_force.name)
        return;
    fprintf(stderr, "in its hook %s()", in_force.name);
    if (in_force.task)
        fprintf(stderr, " for pid %d", in_force.task->pid);
    if (in_force.queue)
        fprintf(stderr, ", run queue of CPU %u with %u queued", in_force.queue->cpu,
                in_force.queue->queued);
    if (watched && watched->now)
        fprintf(stderr, ", at %.3f ms", (double)*watched->now / 1e6);
    if (setup)
        fprintf(stderr, ", CPUs: %u, policy %s%s%s", setup->cpus, setup->policy,
                setup->tunables ? " " : "", setup->tunables ? setup->tunables : "");
    fprintf(stderr, "\n  0x%" PRIx64 "\n",
            address_in_program(lost ? lost->function : in_force.function));
    say_decisions();
}

void watch_broken(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "schedlab-sim: policy %s broke a rule: ", in_force.policy->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    say_circumstances();
    _exit(MACHINE_BROKEN);
}

/* AddressSanitizer calls this function after it has reported an error. */
static void on_death(void)
{
    fflush(stdout);
    say_circumstances();
    _exit(MACHINE_BROKEN);
}

#ifdef UNSANITIZED
static void say_stack(void)
{
}

static void on_fault(int number, siginfo_t *information, void *context)
{
    (void)information;
    fprintf(stderr, "schedlab-sim: policy %s: fault %d in its hook %s() at 0x%" PRIx64 "\n",
            in_force.policy ? in_force.policy->name : "", number,
            in_force.name ? in_force.name : "", address_in_program(program_counter(context)));
    on_death();
}

/* Installs handlers of faults, with a separate stack: endless recursion in a hook uses up
 * the normal one. */
static void watch_for_faults(void)
{
    static char stack[1 << 16];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int faults[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE};
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigaction(faults[i], &action, NULL);
}
#else
static void say_stack(void)
{
    __sanitizer_print_stack_trace();
}

static void watch_for_faults(void)
{
    __sanitizer_set_death_callback(on_death);
}
#endif

/* Reports the present hook if the timer has found the same call several times: it does not end. */
static void on_timer(int number, siginfo_t *information, void *context)
{
    static uint64_t met;
    static uint32_t times;
    (void)number;
    (void)information;
    if (!in_force.name || met != calls) {
        met = calls;
        times = 0;
        return;
    }
    if (++times < PATIENCE)
        return;
    fprintf(stderr, "schedlab-sim: policy %s: endless loop in its hook %s() at 0x%" PRIx64 "\n",
            in_force.policy->name, in_force.name, address_in_program(program_counter(context)));
    say_stack();
    say_circumstances();
    _exit(MACHINE_BROKEN);
}

/* ---- before and after ---- */

void watch_for_loops(void)
{
    const struct itimerval every = {{0, CHECK_US}, {0, CHECK_US}};
    const struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(SIGVTALRM, &action, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    watch_for_faults();
}

void watch_setup(const struct simulator_setup *next)
{
    if (!setup)
        watch_for_loops();
    setup = next;
    decisions_made = 0;
    kept.same = 0;
}

static const struct task *task_at(uint32_t place)
{
    return (const struct task *)(const void *)(watched->tasks + place * watched->task_bytes);
}

#define BYTES_AFTER_POINTERS (sizeof(struct scheduler) - offsetof(struct scheduler, groups))

/* Returns the bytes of the pointers to the queues of existing CPUs. */
static size_t bytes_of_pointers(void)
{
    return watched->scheduler->cpus * sizeof(watched->scheduler->queue[0]);
}

static size_t bytes_of_queues(void)
{
    return watched->scheduler->cpus * sizeof(*queues_before);
}

void watch_machine(const struct watched *machine)
{
    free(queues_before);
    free(tasks_before);
    free(waiting);
    free(touches);
    queues_before = NULL;
    tasks_before = NULL;
    waiting = NULL;
    touches = NULL;
    watched = machine;
    if (!machine)
        return;
    queues_before = calloc(1, bytes_of_queues());
    tasks_before = calloc(machine->task_count, sizeof(*tasks_before));
    waiting = calloc(machine->task_count, sizeof(*waiting));
    touches = calloc(machine->task_count, sizeof(*touches));
}

/* Copies words. The C library's function would be slow, because AddressSanitizer checks each of its
 * accesses. */
static __attribute__((no_builtin("memcpy"))) void copy(void *to, const void *from, size_t bytes)
{
    uint64_t *new = to;
    const uint64_t *old = from;
    for (size_t i = 0; i < bytes / sizeof(*new); i++)
        new[i] = old[i];
}

static void touch(const struct task *task)
{
    uint64_t from = (uint64_t)task - (uint64_t)watched->tasks;
    touches[from / watched->task_bytes] = (struct touch){
        in_force.name,
        in_force.function,
        watched->now ? *watched->now : 0,
    };
}

void watch_begin(struct watch_call call)
{
    in_force = call;
    calls++;
    if (!watched)
        return;
    if (call.task && call.changes_task)
        touch(call.task);
    copy(&scheduler_before, watched->scheduler, offsetof(struct scheduler, queue));
    copy(scheduler_before.queue, watched->scheduler->queue, bytes_of_pointers());
    copy(&scheduler_before.groups, &watched->scheduler->groups, BYTES_AFTER_POINTERS);
    copy(queues_before, watched->queues, bytes_of_queues());
    for (uint32_t i = 0; i < watched->task_count; i++)
        copy(&tasks_before[i], task_at(i), sizeof(tasks_before[i]));
}

/* Returns the name of the first field that differs, or null. */
static const char *changed_field(const struct field *fields, const void *before, const void *after)
{
    for (const struct field *field = fields; field->name; field++) {
        if (memcmp((const char *)before + field->offset, (const char *)after + field->offset,
                   field->bytes) != 0)
            return field->name;
    }
    return NULL;
}

static void check_fields(const char *what, const struct field *fields, const void *before,
                         const void *after, int32_t pid)
{
    const char *field = changed_field(fields, before, after);
    char whose[32] = "";
    if (pid)
        snprintf(whose, sizeof(whose), " of pid %d", pid);
    if (field)
        watch_broken("%s() wrote to %s->%s%s, which is the host's", in_force.name, what, field,
                     whose);
}

/* Compares words. */
static bool is_same(const void *before, const void *after, size_t bytes)
{
    const uint64_t *old = before;
    const uint64_t *new = after;
    uint64_t difference = 0;
    for (size_t i = 0; i < bytes / sizeof(*old); i++)
        difference |= old[i] ^ new[i];
    return difference == 0;
}

/* Returns whether the host's fields of a task are unchanged: those before and after the policy's
 * fields. */
static bool task_is_as_before(const struct task *before, const struct task *after)
{
    return is_same(before, after, offsetof(struct task, level)) &&
           is_same(&before->state, &after->state,
                   sizeof(struct task) - offsetof(struct task, state));
}

static bool queue_is_as_before(const struct run_queue *before, const struct run_queue *after)
{
    return is_same(before, after, offsetof(struct run_queue, remark)) &&
           before->state == after->state;
}

static bool scheduler_is_as_before(const struct scheduler *before, const struct scheduler *after)
{
    return is_same(before, after, offsetof(struct scheduler, queue)) &&
           is_same(before->queue, after->queue, bytes_of_pointers()) &&
           is_same(&before->groups, &after->groups, BYTES_AFTER_POINTERS);
}

static void check_scheduler(void)
{
    const struct scheduler *scheduler = watched->scheduler;
    check_fields("scheduler", scheduler_fields, &scheduler_before, scheduler, 0);
    if (memcmp(scheduler_before.queue, scheduler->queue, bytes_of_pointers()) != 0)
        watch_broken("%s() wrote to scheduler->queue, which is the host's", in_force.name);
}

void watch_end(void)
{
    for (uint32_t i = 0; watched && i < watched->scheduler->cpus; i++) {
        const struct run_queue *queue = &watched->queues[i];
        if (!queue_is_as_before(&queues_before[i], queue))
            check_fields("queue", queue_fields, &queues_before[i], queue, 0);
    }
    for (uint32_t i = 0; watched && i < watched->task_count; i++) {
        const struct task *task = task_at(i);
        if (!task_is_as_before(&tasks_before[i], task))
            check_fields("task", task_fields, &tasks_before[i], task, tasks_before[i].pid);
    }
    if (watched && !scheduler_is_as_before(&scheduler_before, watched->scheduler))
        check_scheduler();
    in_force.name = NULL;
}

/* ---- checking results ---- */

static bool is_task(const struct task *task)
{
    uint64_t from = (uint64_t)task - (uint64_t)watched->tasks;
    return from < watched->task_count * watched->task_bytes && from % watched->task_bytes == 0;
}

/* Returns how many queued tasks may run on the CPU, including tasks that the policy holds back. */
static uint32_t queued_for(const struct run_queue *queue, uint32_t cpu)
{
    uint32_t count = queue->queued;
    for (uint32_t i = 0; queue_bars(queue, cpu) && i < watched->task_count; i++) {
        const struct task *task = task_at(i);
        bool is_on_queue = watched->scheduler->queues == 1 || task->cpu == queue->cpu;
        count -= is_on_queue && !task_may_run_on(task, cpu) && watched->is_queued(task);
    }
    return count;
}

/* Returns, of the queue's tasks that may run on the CPU, the task that no hook has handled for
 * longest. Returns null if there is none. */
static const struct task *longest_untouched(const struct run_queue *queue, uint32_t cpu)
{
    const struct task *match = NULL;
    for (uint32_t i = 0; i < watched->task_count; i++) {
        const struct task *task = task_at(i);
        bool is_on_queue = watched->scheduler->queues == 1 || task->cpu == queue->cpu;
        if (!is_on_queue || !touches[i].hook || !watched->is_queued(task) ||
            !task_may_run_on(task, cpu))
            continue;
        if (!match || touches[i].time < lost->time) {
            match = task;
            lost = &touches[i];
        }
    }
    return match;
}

static _Noreturn void say_lost(const struct run_queue *queue, uint32_t cpu, uint32_t count)
{
    /* it is not known which tasks are held */
    const struct task *task = queue->held ? NULL : longest_untouched(queue, cpu);
    char when[40] = "";
    char last[100] = "";
    if (task && watched->now)
        snprintf(when, sizeof(when), ", at %.3f ms", (double)lost->time / 1e6);
    if (task)
        snprintf(last, sizeof(last), ": pid %d, which was last in %s()%s", task->pid, lost->hook,
                 when);
    watch_broken("%s() returned null while %u task%s queued that may run%s", in_force.name, count,
                 count == 1 ? " is" : "s are", last);
}

void watch_taken(const struct task *task, uint32_t cpu, bool required)
{
    const struct run_queue *queue = in_force.queue;
    if (!watched)
        return;
    uint32_t ineligible = watched->scheduler->ending ? 0 : queue->held;
    uint32_t queued = task || !required ? 0 : queued_for(queue, cpu);
    if (queued > ineligible)
        say_lost(queue, cpu, queued - ineligible);
    if (task && !is_task(task))
        watch_broken("%s() returned an address that is not a task", in_force.name);
    if (task && !watched->is_queued(task))
        watch_broken("%s() returned pid %d, which is not queued", in_force.name, task->pid);
    if (task && watched->scheduler->queues > 1 && task->cpu != queue->cpu)
        watch_broken("%s() returned pid %d, which is queued on CPU %u, from the queue of CPU %u",
                     in_force.name, task->pid, task->cpu, queue->cpu);
    if (task)
        touch(task);
}

void watch_verdict(uint32_t verdict)
{
    if (verdict > TICK_MOVE)
        watch_broken("%s() returned the verdict %u, which does not exist", in_force.name, verdict);
    kills += verdict == TICK_KILL;
}

uint64_t watch_kills(void)
{
    return kills;
}

void watch_slice(uint64_t slice)
{
    if (slice == 0)
        watch_broken("%s() returned a slice of 0 ticks", in_force.name);
}

void watch_cpu(uint32_t cpu, bool none_allowed)
{
    const struct task *task = in_force.task;
    if (!watched || (none_allowed && cpu == NO_CPU))
        return;
    if (cpu < watched->scheduler->queues && task && !task_may_run_on(task, cpu))
        watch_broken("%s() named CPU %u, on which pid %d may not run; check with task_may_run_on()",
                     in_force.name, cpu, task->pid);
    if (cpu < watched->scheduler->queues)
        return;
    watch_broken("%s() named CPU %u; there are only %u", in_force.name, cpu,
                 watched->scheduler->queues);
}

/* ---- waits ---- */

void watch_asks(enum asks requested)
{
    asks = requested;
}

bool watch_is_silent(const struct run_queue *queue, uint32_t cpu)
{
    return watched && asks == ASKS_SILENT && queue->queued > 0 && queued_for(queue, cpu) == 0;
}

/* Updates since when a task has been waiting. A wait continues while the task is moved, changed,
 * or refused by a CPU, and ends when the task has run. A task that was just picked still counts
 * as queued. */
static void note_wait(uint32_t place, uint64_t now)
{
    const struct task *task = task_at(place);
    struct waiting *wait = &waiting[place];
    if (!watched->is_queued(task)) {
        wait->begin = 0;
        return;
    }
    if (wait->begin == 0 || wait->run_time != task->run_time)
        *wait = (struct waiting){now - (now + setup->policy_clock - task->queued_since) + 1,
                                 task->run_time};
    uint64_t length = now + 1 - wait->begin;
    if (length > waits.longest)
        waits =
            (struct watch_waits){length, task->pid, watched->scheduler->cpus, waits.never_served};
}

/* Returns how long (ns) one turn of all competing tasks takes, as a limit for this task's wait. */
static uint64_t round_of(const struct policy *policy, const struct task *task)
{
    uint64_t round = 0;
    for (uint32_t i = 0; i < watched->task_count; i++) {
        const struct task *other = task_at(i);
        bool competes = other->pid > 0 && (other->counted || watched->is_queued(other));
        uint64_t part = competes ? round_part(policy, watched->scheduler, task, other) : 0;
        round = part < NO_LIMIT - round ? round + part : NO_LIMIT;
    }
    return round;
}

/* Fails if a task has waited for longer than the policy may let it. While a queue holds tasks
 * back, no wait counts, because the host does not know which tasks these are. */
static void check_wait(uint32_t place, uint64_t now)
{
    const struct task *task = task_at(place);
    struct waiting *wait = &waiting[place];
    if (wait->begin == 0)
        return;
    if (in_force.queue->held > 0)
        wait->begin = now + 1;
    uint64_t length = now + 1 - wait->begin;
    uint64_t limit =
        longest_wait(in_force.policy, watched->scheduler, round_of(in_force.policy, task));
    if (length > limit)
        watch_broken("pick() let pid %d wait for %.3f ms; the limit by .rounds is %.3f ms",
                     task->pid, (double)length / 1e6, (double)limit / 1e6);
}

static void note_waits(void)
{
    for (uint32_t i = 0; i < watched->task_count; i++) {
        note_wait(i, *watched->now);
        if (asks == ASKS_CHECKED && kept.state == COMPARE)
            check_wait(i, *watched->now);
    }
}

void watch_end_of_setup(void)
{
    const uint64_t now = *watched->now;
    for (uint32_t i = 0; i < watched->task_count; i++) {
        const struct task *task = task_at(i);
        note_wait(i, now);
        waits.never_served +=
            waiting[i].begin > 0 && task->selections == 0 && now + 1 - waiting[i].begin >= now / 2;
    }
}

void watch_forget_waits(void)
{
    waits = (struct watch_waits){0};
}

struct watch_waits watch_waits(void)
{
    return waits;
}

/* ---- decisions ---- */

void watch_keep_decisions(void)
{
    kept.count = 0;
    kept.state = KEEP;
}

void watch_compare_decisions(void)
{
    kept.state = COMPARE;
}

static void keep_decision(struct decision decision)
{
    if (kept.count == kept.room) {
        kept.room = kept.room ? 2 * kept.room : 4096;
        kept.all = realloc(kept.all, kept.room * sizeof(*kept.all));
    }
    if (kept.all)
        kept.all[kept.count++] = decision;
}

static void compare_decision(struct decision decision)
{
    const struct decision *right = &kept.all[kept.same];
    kept.other = decision;
    if (kept.same < kept.count && right->time == decision.time && right->cpu == decision.cpu &&
        right->pid == decision.pid)
        kept.same++;
    else
        kept.state = PARTED;
}

bool watch_decided_the_same(char *text, size_t bytes)
{
    bool same = kept.state == COMPARE && kept.same == kept.count;
    if (same)
        return true;
    if (kept.state == PARTED)
        snprintf(text, bytes, "after %" PRIu64 " decisions CPU %u picks pid %d at %.3f ms",
                 kept.same, kept.other.cpu, kept.other.pid, (double)kept.other.time / 1e6);
    else
        snprintf(text, bytes, "it makes %" PRIu64 " decisions", kept.same);
    if (kept.same < kept.count) {
        const struct decision *right = &kept.all[kept.same];
        size_t used = strlen(text);
        snprintf(text + used, bytes - used, ", instead of pid %d on CPU %u at %.3f ms", right->pid,
                 right->cpu, (double)right->time / 1e6);
    }
    return false;
}

void watch_decision(uint32_t cpu, const struct task *task)
{
    if (!watched)
        return;
    struct decision decision = {watched->now ? *watched->now : 0, cpu, in_force.queue->queued,
                                task ? task->pid : 0};
    decisions[decisions_made++ % DECISIONS] = decision;
    if (task && kept.state == KEEP)
        keep_decision(decision);
    else if (task && kept.state == COMPARE)
        compare_decision(decision);
    if (watched->now)
        note_waits();
}
