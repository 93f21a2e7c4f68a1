/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A policy as a scheduler of Linux. Built with
 *
 *     -DPOLICY_SOURCE='"policies/rr.c"' -DPOLICY=policy_rr -DPOLICY_NAME='"rr"'
 *
 * this maps the callbacks of sched_ext to the hooks of policies/policy.h. A
 * thread that the policy picks gets a slice without end. The policy's tick() ends
 * its turn: it sets `turn` in the thread's slot and the slice to 0, and Linux then
 * asks dispatch() for the next thread.
 *
 * The policy does not see what Linux schedules by itself: a kernel thread that runs
 * for a moment, or a real-time thread, is to the policy what an interrupt is on our
 * own kernel. The thread that was pushed aside goes on afterwards.
 *
 * docs/linux.md tells which callback does what, and which cases are special.
 */

/* clang-format off */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
/* clang-format on */

#include "language.h"
#include "shared.h"

#include "policies/policy.h"
#include "policies/support/attributes.h"

#include "describe_task.h"
#include "shared_maps.h"
#include "trace_emit.h"

#include POLICY_SOURCE

#include "run_queue.h"

char _license[] SEC("license") = "GPL";

_Static_assert(HOST_TUNABLES == POLICY_TUNABLES_MAX, "the loader gives each tunable its value");

#define ESRCH  3
#define ENOMEM 12
#define EINVAL 22
#define ERANGE 34

#define PF_EXITING   0x4
#define TASK_IS_DEAD 0x80

/* Longer than any turn: the policy alone ends turns. */
#define HOLD_NS 3600000000000ull

#ifndef WATCHDOG_MS
#define WATCHDOG_MS 30000 /* the longest that the kernel allows */
#endif

/*
 * Marks a function that the verifier checks once for each program, whatever its arguments
 * are; it checks all other functions anew at each call. Such a function may not be called
 * with a lock held, and may return nothing but numbers. (It is weak because the compiler
 * would otherwise drop the arguments that some policy does not use.)
 */
#define PROVED __weak __noinline
#define ARENA  __attribute__((btf_decl_tag("arg:arena"))) /* marks a pointer into the arena */

#define PICKS_MAX 8 /* in one dispatch(): a thread that is picked may have to run elsewhere */

static __always_inline uint64_t clock_ns(void)
{
    return bpf_ktime_get_boot_ns();
}

static __always_inline struct lock *lock_of(uint32_t cpu)
{
    uint32_t key = queue_number(cpu);
    return bpf_map_lookup_elem(&queue_locks, &key);
}

/* Ends the policy, with a message that names it. */
static __noinline void give_up(const char *what)
{
    static char format[] = "policy %s: %s"; /* the kernel asks for memory that could be written */
    static const char name[] = POLICY_NAME;
    unsigned long long arguments[] = {(unsigned long)name, (unsigned long)what};
    scx_bpf_error_bstr(format, arguments, sizeof(arguments));
}

static __noinline void report_flaw(void)
{
    if (flaw == FLAW_LOST)
        give_up(FLAW_LOST_TEXT);
    else if (flaw == FLAW_GIVEN)
        give_up(FLAW_GIVEN_TEXT);
    else if (flaw == FLAW_COUNT)
        give_up(FLAW_COUNT_TEXT);
}

static __always_inline void check(void)
{
    if (flaw)
        report_flaw();
}

static __always_inline void preempt(uint32_t cpu, enum preempt_reason reason)
{
    trace_preempt_reason(cpu, reason);
    scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
}

static __always_inline void run_errand(uint64_t errand)
{
    if (ERRAND_KIND(errand) == ERRAND_CHANGE)
        preempt(ERRAND_CPU(errand), PREEMPT_POLICY);
    else if (ERRAND_KIND(errand) == ERRAND_WAKE)
        scx_bpf_kick_cpu((s32)ERRAND_CPU(errand), SCX_KICK_IDLE);
    else if (ERRAND_KIND(errand) == ERRAND_PREEMPT)
        preempt(ERRAND_CPU(errand), PREEMPT_WAKEUP);
}

/* Asks the loader, if the ring has room. A request that is lost does no harm: a kill is asked for
 * anew at each tick. */
static __noinline void ask_loader(enum host_request_kind kind, int32_t pid)
{
    struct host_request *request = bpf_ringbuf_reserve(&requests, sizeof(*request), 0);
    if (!request)
        return;
    request->kind = kind;
    request->pid = pid;
    bpf_ringbuf_submit(request, 0);
}

/* ---- the trace's records of queues ---- */

/* True if each enqueue() is traced. The loader sets it before it loads this object: if it is
 * false, the verifier removes the code below as dead. */
const volatile bool told_queues SEC(".rodata.trace");

/*
 * A QUEUED record that is being made. Its sequence number is taken while the queue is
 * locked, so that no CPU that picks the thread can write a record with a lower one. A BPF
 * program may call no kernel function while it holds a lock: so room in the ring is
 * reserved before, and the record is kept here until the lock is free. (The room is held
 * by a dynptr, which must be given back even if there was no room: so the verifier has one
 * case to check instead of two.)
 */
struct queued {
    struct bpf_dynptr place;
    struct trace_state *state;
    struct trace_record record; /* of kind 0: no thread was queued */
    uint32_t has_place;
};

static __always_inline void queued_begin(struct queued *queued, uint64_t now)
{
    uint32_t key = 0;
    if (!told_queues)
        return;
    queued->state = bpf_map_lookup_elem(&trace_state, &key);
    queued->has_place =
        unseen(bpf_ringbuf_reserve_dynptr(&events, sizeof(queued->record), 0, &queued->place) == 0);
    trace_fill(&queued->record, now, 0, 0, 0, 0, 0);
}

/* The queue is locked. */
static __always_inline void queued_note(struct queued *queued, const slot_t *slot)
{
    if (!told_queues || !queued->state || !queued->state->on)
        return;
    queued->record.kind = TRACE_QUEUED;
    queued->record.process = slot->traced;
    queued->record.first = queue_number(slot->task.cpu);
    queued->record.second = slot->task.level;
    if (queued->has_place)
        queued->record.sequence = trace_numbers(queued->state, 1);
    else
        __sync_fetch_and_add(&queued->state->lost, 1);
}

static __always_inline void queued_end(struct queued *queued)
{
    if (!told_queues)
        return;
    if (queued->record.kind) {
        bpf_dynptr_write(&queued->place, 0, &queued->record, sizeof(queued->record), 0);
        bpf_ringbuf_submit_dynptr(&queued->place, BPF_RB_NO_WAKEUP);
    } else {
        bpf_ringbuf_discard_dynptr(&queued->place, BPF_RB_NO_WAKEUP);
    }
}

/* Notes the PID by which the trace knows a thread: exec() may have given it another one, which the
 * trace does not have yet. A queued thread calls no exec(). */
static __always_inline void learn_traced_pid(slot_t *slot, struct task_struct *thread)
{
    if (!told_queues)
        return;
    struct observed *known = bpf_task_storage_get(&observed, thread, NULL, 0);
    slot->traced = known && known->pid ? known->pid : (uint32_t)thread->pid;
}

/* ---- a thread is queued and removed ---- */

/* Puts a thread into the queue of `cpu`. Returns false if the lock could not be had. */
PROVED bool add_thread(slot_t *slot ARENA, uint32_t cpu, uint32_t reason)
{
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    slot->task.cpu = cpu;
    queue_add(queue, slot, reason);
    queued_note(&queued, slot);
    uint64_t errand = announce(queue, slot);
    bpf_res_spin_unlock(&lock->spin);
    queued_end(&queued);
    run_errand(errand);
    return true;
}

/* Removes a thread from its queue or its CPU. Returns false if the lock could not be had, or if
 * the thread was moved to another queue before its own was locked. */
static __noinline bool remove_thread(slot_t *slot, uint32_t stop)
{
    uint64_t now = clock_ns();
    uint32_t cpu = slot->task.cpu;
    struct lock *lock = lock_of(cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return false;
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    bool moved = queue_number(slot->task.cpu) != queue_number(cpu);
    if (!moved && slot->place == PLACE_CPU)
        leave(queue, slot, stop);
    else if (!moved && slot->place == PLACE_QUEUED)
        queue_remove(queue, slot);
    bpf_res_spin_unlock(&lock->spin);
    return !moved;
}

/* Removes a thread, however often it is moved to another queue meanwhile. */
PROVED void take_away(slot_t *slot ARENA, uint32_t stop)
{
    while (can_loop) {
        if (remove_thread(slot, stop))
            return;
    }
    give_up("a run queue stays locked");
}

static __always_inline uint32_t reason_of(const slot_t *slot, uint64_t enqueue_flags)
{
    if (slot->fresh)
        return ENQUEUE_NEW;
    if (enqueue_flags & SCX_ENQ_WAKEUP)
        return ENQUEUE_WOKEN;
    return slot->turn ? slot->turn - 1 : ENQUEUE_PREEMPTED;
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(host_select_cpu, struct task_struct *thread, s32 previous, u64 wake_flags)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot) {
        bool idle = false;
        return scx_bpf_select_cpu_dfl(thread, previous, wake_flags, &idle);
    }
    uint32_t reason = wake_flags & SCX_WAKE_FORK ? ENQUEUE_NEW : ENQUEUE_WOKEN;
    return (s32)place_thread(slot, reason, (uint32_t)previous);
}

/* Queues a thread that the policy does not schedule: it runs next on its CPU, at once if it has
 * been woken. */
static __always_inline void serve_directly(struct task_struct *thread, u64 flags)
{
    u64 preempt = flags & SCX_ENQ_WAKEUP ? SCX_ENQ_PREEMPT : 0;
    scx_bpf_dsq_insert(thread, SCX_DSQ_LOCAL, SCX_SLICE_DFL, flags | preempt);
}

/* The thread is in the policy's queue already, by dispatch(). If another CPU has picked it since,
 * it goes to that CPU. */
static __noinline void hand_over(struct task_struct *thread, slot_t *slot, u64 flags)
{
    uint32_t custody = __sync_lock_test_and_set(&slot->custody, CUSTODY_OURS);
    if (custody < CUSTODY_SENT)
        return;
    slot->custody = CUSTODY_LINUX;
    scx_bpf_dsq_insert(thread, SCX_DSQ_LOCAL_ON | (custody - CUSTODY_SENT), HOLD_NS, flags);
}

SEC("struct_ops/enqueue")
void BPF_PROG(host_enqueue, struct task_struct *thread, u64 flags)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    uint32_t cpu = (uint32_t)scx_bpf_task_cpu(thread);
    if (!slot) {
        serve_directly(thread, flags);
        return;
    }
    if (slot->custody == CUSTODY_LEAVING || slot->custody >= CUSTODY_SENT) {
        hand_over(thread, slot, flags);
        return;
    }
    if (slot->place == PLACE_CPU && !slot->turn && slot->task.cpu == cpu) {
        scx_bpf_dsq_insert(thread, SCX_DSQ_LOCAL, HOLD_NS, flags);
        return;
    }
    uint32_t reason = reason_of(slot, flags);
    slot->fresh = 0;
    if (slot->place != PLACE_NOWHERE)
        take_away(slot, STOP_RUNNABLE);
    slot->custody = CUSTODY_OURS;
    learn_traced_pid(slot, thread);
    if (!add_thread(slot, cpu, reason))
        give_up("a run queue stays locked");
    check();
}

/* Linux takes a queued thread back, to change it or to run it. */
SEC("struct_ops/dequeue")
void BPF_PROG(host_dequeue, struct task_struct *thread, u64 flags)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot || slot->place != PLACE_QUEUED)
        return;
    take_away(slot, STOP_RUNNABLE);
    slot->custody = CUSTODY_LINUX;
    check();
}

/* ---- a CPU asks for its next thread ---- */

struct choice {
    slot_t *slot;    /* null: no thread */
    uint32_t cpu;    /* where it is to run */
    uint32_t queued; /* how many threads stayed queued */
    uint64_t remark;
};

static __always_inline void note_choice(struct choice *choice, queue_t *queue, slot_t *slot,
                                        uint32_t cpu)
{
    choice->slot = slot;
    choice->cpu = cpu;
    if (!slot)
        return;
    if (!may_run_on(slot, cpu))
        choice->cpu = lowest_allowed(slot);
    enter(queue, slot, choice->cpu);
    choice->queued = queue->view.queued;
    choice->remark = queue->view.remark;
}

/* Picks from the CPU's own queue, once `leaving` is back in it: the thread whose turn is over, or
 * null. Returns false if the lock could not be had. */
PROVED bool choose_own(uint32_t cpu, slot_t *leaving ARENA, struct choice *choice)
{
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!choice || !lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    if (leaving && leaving->place == PLACE_CPU && leaving->turn) {
        uint32_t reason = leaving->turn - 1;
        leave(queue, leaving, STOP_RUNNABLE);
        leaving->custody = CUSTODY_LEAVING;
        queue_add(queue, leaving, reason);
        queued_note(&queued, leaving);
    }
    note_choice(choice, queue, queue_pick(queue, cpu), cpu);
    bpf_res_spin_unlock(&lock->spin);
    queued_end(&queued);
    return true;
}

/* Moves one thread between the queues of two CPUs; that of the lower CPU is locked first. Returns
 * what is to be done once no lock is held. */
PROVED uint64_t move_locked(uint32_t from, uint32_t to, uint32_t low, uint32_t high)
{
    uint64_t errand = 0;
    uint64_t now = clock_ns();
    struct lock *first = lock_of(low);
    struct lock *second = lock_of(high);
    struct queued queued;
    queued_begin(&queued, now);
    if (!first || !second || low == high || bpf_res_spin_lock(&first->spin)) {
        queued_end(&queued);
        return 0;
    }
    if (bpf_res_spin_lock(&second->spin)) {
        bpf_res_spin_unlock(&first->spin);
        queued_end(&queued);
        return 0;
    }
    queue_of(from)->view.now = now;
    queue_of(to)->view.now = now;
    slot_t *slot = move(queue_of(from), queue_of(to), to);
    if (slot) {
        queued_note(&queued, slot);
        errand = announce(queue_of(to), slot);
    }
    bpf_res_spin_unlock(&second->spin);
    bpf_res_spin_unlock(&first->spin);
    queued_end(&queued);
    return errand;
}

static __always_inline uint64_t move_between(uint32_t from, uint32_t to)
{
    return move_locked(from, to, from < to ? from : to, from < to ? to : from);
}

/* Pulls a thread to `cpu` if the policy names a CPU to take it from. Returns false if it names
 * none. */
PROVED bool pull(uint32_t cpu, bool idle)
{
    uint32_t from = unseen(policy_balance(&POLICY, &host->scheduler, cpu, idle));
    if (from == NO_CPU)
        return false;
    uint64_t errand = move_between(from, cpu);
    if (!idle)
        run_errand(errand);
    return true;
}

/* Gives the chosen thread to its CPU. If host_enqueue() has yet to come for it, `custody` tells
 * hand_over() to which CPU it goes. */
static __noinline void send(const struct choice *choice, uint32_t cpu)
{
    slot_t *slot = choice->slot;
    if (__sync_val_compare_and_swap(&slot->custody, CUSTODY_LEAVING, CUSTODY_SENT + choice->cpu) ==
        CUSTODY_LEAVING)
        return;
    slot->custody = CUSTODY_LINUX;
    struct task_struct *thread = bpf_task_from_pid(slot->task.pid);
    if (!thread)
        return;
    u64 queue = choice->cpu == cpu ? SCX_DSQ_LOCAL : SCX_DSQ_LOCAL_ON | choice->cpu;
    scx_bpf_dsq_insert(thread, queue, HOLD_NS, 0);
    bpf_task_release(thread);
}

static __always_inline void trace_choice(const struct choice *choice)
{
    if (choice->remark)
        trace_emit(TRACE_DECISION,
                   told_queues ? choice->slot->traced : (uint32_t)choice->slot->task.pid,
                   choice->queued, choice->remark);
}

/* Returns false if a thread must stay on its CPU for now: it is ending, or may not migrate. */
static __always_inline bool may_leave(struct task_struct *thread)
{
    int held = thread->migration_disabled;
    /* A BPF program that runs on a thread forbids migration itself: that counts one. */
    bool stuck = held > 1 || (held == 1 && thread != bpf_get_current_task_btf());
    return !(thread->flags & PF_EXITING) && !stuck;
}

SEC("struct_ops/dispatch")
void BPF_PROG(host_dispatch, s32 this_cpu, struct task_struct *previous)
{
    USE_ARENA();
    uint32_t cpu = (uint32_t)this_cpu;
    slot_t *leaving = NULL;
    if (previous && previous->scx.flags & SCX_TASK_QUEUED)
        leaving = slot_of(previous);
    if (leaving && leaving->place == PLACE_CPU && (!leaving->turn || !may_leave(previous))) {
        scx_bpf_task_set_slice(previous, HOLD_NS);
        return;
    }
    if (leaving)
        learn_traced_pid(leaving, previous);
    uint32_t picks_max = unseen(PICKS_MAX);
    for (uint32_t picks = unseen(0); picks < picks_max && can_loop; picks++) {
        struct choice choice = {0};
        if (!choose_own(cpu, leaving, &choice)) {
            give_up("a run queue stays locked");
            return;
        }
        if (!choice.slot) {
            if (pull(cpu, true))
                continue;
            break;
        }
        trace_choice(&choice);
        if (previous && choice.slot == leaving && choice.cpu == cpu) {
            leaving->custody = CUSTODY_LINUX;
            leaving->accounted = clock_ns();
            scx_bpf_task_set_slice(previous, HOLD_NS);
            break;
        }
        send(&choice, cpu);
        if (choice.cpu == cpu)
            break;
    }
    check();
}

/* ---- a thread runs ---- */

/* A thread runs that the policy did not pick: its class has just changed, or Linux chose it by
 * itself. */
PROVED void occupy(slot_t *slot ARENA, uint32_t cpu, uint64_t now)
{
    struct lock *lock = lock_of(cpu);
    if (slot->place == PLACE_QUEUED)
        take_away(slot, STOP_RUNNABLE);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return;
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    slot->custody = CUSTODY_LINUX;
    slot->known = 0;
    slot->fresh = 0;
    enter(queue, slot, cpu);
    slot->turn = ENQUEUE_ADOPTED + 1; /* from the next tick on */
    bpf_res_spin_unlock(&lock->spin);
}

SEC("struct_ops/running")
void BPF_PROG(host_running, struct task_struct *thread)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    uint64_t now = clock_ns();
    if (slot->place != PLACE_CPU)
        occupy(slot, (uint32_t)scx_bpf_task_cpu(thread), now);
    slot->accounted = now;
}

SEC("struct_ops/stopping")
void BPF_PROG(host_stopping, struct task_struct *thread, bool runnable)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    if (runnable) {
        if (slot->place == PLACE_CPU)
            account(slot, clock_ns());
        slot->accounted = 0;
        return;
    }
    if (slot->place != PLACE_NOWHERE)
        take_away(slot, thread->__state & TASK_IS_DEAD ? STOP_ENDED : STOP_BLOCKED);
    slot->custody = CUSTODY_LINUX;
    slot->turn = 0;
    check();
}

PROVED uint32_t judge(slot_t *slot ARENA, uint32_t cpu)
{
    uint32_t verdict = TICK_CONTINUE;
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return verdict;
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    account(slot, now);
    if (!slot->known)
        slot->turn = ENQUEUE_ADOPTED + 1;
    else if (slot->place == PLACE_CPU)
        verdict = POLICY.tick(&queue->view, &slot->task);
    if (verdict == TICK_PREEMPT)
        slot->turn = ENQUEUE_EXPIRED + 1;
    bpf_res_spin_unlock(&lock->spin);
    return verdict;
}

PROVED void push(uint32_t cpu)
{
    uint32_t to = unseen(policy_push(&POLICY, &host->scheduler, cpu));
    if (to != NO_CPU)
        run_errand(move_between(cpu, to));
}

SEC("struct_ops/tick")
void BPF_PROG(host_tick, struct task_struct *thread)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    uint32_t cpu = (uint32_t)scx_bpf_task_cpu(thread);
    if (judge(slot, cpu) == TICK_KILL)
        ask_loader(REQUEST_KILL, slot->task.pid);
    if (slot->turn)
        trace_preempt_reason(cpu, slot->known ? PREEMPT_SLICE : PREEMPT_POLICY);
    /* Kernel threads that wait for this CPU run within a tick; the policy's thread then goes on. */
    if (slot->turn || scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0)
        scx_bpf_task_set_slice(thread, 0);
    push(cpu);
    pull(cpu, false);
    check();
}

SEC("struct_ops/yield")
bool BPF_PROG(host_yield, struct task_struct *from, struct task_struct *to)
{
    USE_ARENA();
    if (to)
        return false;
    slot_t *slot = slot_of(from);
    if (slot && slot->place == PLACE_CPU)
        slot->turn = (slot->known ? ENQUEUE_YIELDED : ENQUEUE_ADOPTED) + 1;
    scx_bpf_task_set_slice(from, 0);
    return true;
}

SEC("struct_ops/set_cpumask")
void BPF_PROG(host_set_cpumask, struct task_struct *thread, const struct cpumask *mask)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (slot)
        read_allowed(slot, mask);
}

/* ---- a thread begins and ends ---- */

static __noinline void inherit_attributes(struct task_struct *thread, slot_t *slot, bool forked)
{
    struct task_attributes *own = bpf_task_storage_get(&attributes, thread, NULL, 0);
    if (!own && forked)
        own = bpf_task_storage_get(&attributes, bpf_get_current_task_btf(), NULL, 0);
    read_attributes(slot, own);
}

SEC("struct_ops/init_task")
s32 BPF_PROG(host_init_task, struct task_struct *thread, struct scx_init_task_args *arguments)
{
    USE_ARENA();
    if (thread->flags & PF_KTHREAD)
        return 0;
    struct slot_of *entry =
        bpf_task_storage_get(&slot_of_thread, thread, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    uint32_t number = entry && host ? unseen(allocate_slot()) : SLOTS_MAX;
    if (!entry || !host || number >= SLOTS_MAX)
        return 0; /* Linux serves it */
    slot_t *slot = &host->slots[number];
    clear_slot(slot);
    slot->task.pid = thread->pid;
    slot->task.slot = number;
    slot->task.cpu = (uint32_t)scx_bpf_task_cpu(thread);
    slot->task.state = slot->policy_state;
    inherit_attributes(thread, slot, arguments->fork);
    read_allowed(slot, thread->cpus_ptr);
    slot->fresh = arguments->fork;
    if (arguments->fork)
        introduce(slot, ENQUEUE_NEW, slot_of(bpf_get_current_task_btf()));
    entry->slot = slot;
    return 0;
}

SEC("struct_ops/exit_task")
void BPF_PROG(host_exit_task, struct task_struct *thread, struct scx_exit_task_args *arguments)
{
    USE_ARENA();
    struct slot_of *entry = bpf_task_storage_get(&slot_of_thread, thread, NULL, 0);
    if (!entry || !entry->slot)
        return;
    slot_t *slot = entry->slot;
    if (slot->place != PLACE_NOWHERE)
        take_away(slot, STOP_ENDED);
    if (slot->known)
        policy_exit_task(&POLICY, &host->scheduler, &slot->task);
    entry->slot = NULL;
    release_slot(slot->task.slot);
}

/* ---- the policy begins and ends ---- */

static __noinline void clear(uint64_t SHARED_MEMORY *words, uint32_t count)
{
    for (uint32_t i = unseen(0); i < count && can_loop; i++)
        words[i] = 0;
}

static __noinline void init_scheduler(const struct host_settings *values)
{
    clear((uint64_t SHARED_MEMORY *)host,
          unseen(__builtin_offsetof(struct host, queues) / sizeof(uint64_t)));
    clear(host->slots_used, unseen(SLOT_WORDS));
    host->scheduler.cpus = values->cpus;
    host->scheduler.tick_ns = values->tick_ns;
    host->scheduler.seed = values->seed;
    for (uint32_t i = 0; i < HOST_TUNABLES; i++)
        host->scheduler.tunable[i] = values->tunable[i];
    host->scheduler.state = host->policy_state;
    policy_init_scheduler(&POLICY, &host->scheduler);
    host->scheduler.queues = policy_run_queues(&POLICY, &host->scheduler);
}

static __noinline void init_queues(void)
{
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        queue_t *queue = &host->queues[cpu % POLICY_CPUS_MAX];
        queue->view.now = clock_ns();
        queue->view.state = queue->policy_state;
        host->occupant[cpu % POLICY_CPUS_MAX] = NULL;
        run_queue_begin(&POLICY, &host->scheduler, &queue->view, cpu);
    }
}

SEC("struct_ops.s/init")
s32 BPF_PROG(host_init)
{
    USE_ARENA();
    uint32_t key = 0;
    struct host_settings *values = bpf_map_lookup_elem(&settings, &key);
    if (!values || values->cpus == 0 || values->cpus > POLICY_CPUS_MAX)
        return -EINVAL;
    if (!host)
        host = bpf_arena_alloc_pages(&arena, NULL, HOST_PAGES, -1, 0);
    if (!host)
        return -ENOMEM;
    flaw = FLAW_NONE;
    init_scheduler(values);
    init_queues();
    return 0;
}

SEC("struct_ops.s/exit")
void BPF_PROG(host_exit, struct scx_exit_info *information)
{
    uint32_t key = 0;
    struct host_exit *told = bpf_map_lookup_elem(&exit_info, &key);
    if (!told)
        return;
    bpf_probe_read_kernel_str(told->reason, sizeof(told->reason), information->reason);
    bpf_probe_read_kernel_str(told->message, sizeof(told->message), information->msg);
    told->exit_code = information->exit_code;
    told->kind = (int32_t)information->kind;
    ask_loader(REQUEST_EXITED, 0);
}

/* ---- from outside ---- */

/* Keeps an attribute with the thread: its children inherit it, and the next policy finds it. */
static __noinline int keep_attribute(struct task_struct *thread, uint32_t kind, int64_t value)
{
    struct task_attributes *kept =
        bpf_task_storage_get(&attributes, thread, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!kept)
        return -ENOMEM;
    if (!kept->set) {
        kept->priority = PRIORITY_DEFAULT;
        kept->tickets = TICKETS_DEFAULT;
        kept->weight = WEIGHT_DEFAULT;
        kept->set = 1;
    }
    STORE_ATTRIBUTE(kept, kind, value);
    return 0;
}

/* The queue is locked. A queued thread is queued anew; the CPU of a running one picks again.
 * Returns what is to be done once no lock is held. */
static __noinline uint64_t change_locked(queue_t *queue, slot_t *slot, uint32_t kind, int64_t value)
{
    if (slot->place == PLACE_QUEUED) {
        queue_remove(queue, slot);
        STORE_ATTRIBUTE(&slot->task, kind, value);
        queue_add(queue, slot, ENQUEUE_MOVED);
        return announce(queue, slot);
    }
    STORE_ATTRIBUTE(&slot->task, kind, value);
    if (slot->place != PLACE_CPU)
        return 0;
    if (!slot->turn)
        slot->turn = ENQUEUE_PREEMPTED + 1;
    return ERRAND(ERRAND_CHANGE, slot->task.cpu);
}

/* Returns false if the thread was moved to another queue meanwhile, or the lock could not be had.
 */
static __noinline bool change_slot(slot_t *slot, uint32_t kind, int64_t value)
{
    uint64_t now = clock_ns();
    uint32_t cpu = slot->task.cpu;
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    uint64_t errand = 0;
    queue_t *queue = queue_of(cpu);
    queue->view.now = now;
    bool there = queue_number(slot->task.cpu) == queue_number(cpu);
    if (there)
        errand = change_locked(queue, slot, kind, value);
    if (there && slot->place == PLACE_QUEUED)
        queued_note(&queued, slot);
    bpf_res_spin_unlock(&lock->spin);
    queued_end(&queued);
    run_errand(errand);
    return there;
}

static __noinline int change_attribute(struct task_struct *thread, uint32_t kind, int64_t value)
{
    unsigned long flags;
    int error = keep_attribute(thread, kind, value);
    if (error)
        return error;
    slot_t *slot = slot_of(thread);
    bpf_local_irq_save(&flags);
    trace_emit(TRACE_ATTRIBUTE, (uint32_t)thread->pid, kind, (uint64_t)value);
    if (slot && host) {
        while (can_loop) {
            if (change_slot(slot, kind, value))
                break;
        }
    }
    bpf_local_irq_restore(&flags);
    return 0;
}

/* Run by the loader when a user sets an attribute of a thread. */
SEC("syscall")
int attribute_changed(struct attribute_change *change)
{
    USE_ARENA();
    change->result = -ERANGE;
    if (!attribute_allowed(change->kind, change->value))
        return 0;
    change->result = -ESRCH;
    struct task_struct *thread = bpf_task_from_pid(change->pid);
    if (!thread)
        return 0;
    if (!(thread->flags & PF_KTHREAD))
        change->result = change_attribute(thread, change->kind, change->value);
    bpf_task_release(thread);
    return 0;
}

/* Writes a row for each thread of a program, from which the loader makes sched_status. */

SEC("iter/task")
int describe_tasks(struct bpf_iter__task *context)
{
    USE_ARENA();
    struct task_struct *thread = context->task;
    struct host_task row;
    if (!thread || thread->flags & PF_KTHREAD)
        return 0;
    describe_task(&row, thread);
    slot_t *slot = slot_of(thread);
    if (slot && slot->known) {
        row.managed = 1;
        row.slice = POLICY.time_slice(&host->scheduler, &slot->task);
        row.drawn = policy_tickets(&POLICY, &host->scheduler, &slot->task);
        row.level = slot->task.level;
        row.selections = slot->task.selections;
    }
    bpf_seq_write(context->meta->seq, &row, sizeof(row));
    return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops schedlab_ops = {
    .select_cpu = (void *)host_select_cpu,
    .enqueue = (void *)host_enqueue,
    .dequeue = (void *)host_dequeue,
    .dispatch = (void *)host_dispatch,
    .tick = (void *)host_tick,
    .running = (void *)host_running,
    .stopping = (void *)host_stopping,
    .yield = (void *)host_yield,
    .set_cpumask = (void *)host_set_cpumask,
    .init_task = (void *)host_init_task,
    .exit_task = (void *)host_exit_task,
    .init = (void *)host_init,
    .exit = (void *)host_exit,
    .timeout_ms = WATCHDOG_MS,
    .name = "schedlab_" POLICY_NAME,
};
