/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A policy as a scheduler of Linux. Built with
 *
 *     -DPOLICY_SOURCE='"policies/rr.c"' -DPOLICY=policy_rr -DPOLICY_NAME='"rr"'
 *
 * this maps the callbacks of sched_ext to the hooks of policies/policy.h. A thread that the policy
 * picks gets an endless slice. The policy's tick() ends its turn: it sets `turn` in the thread's
 * slot and the slice to 0. Linux then asks dispatch() for the next thread.
 *
 * The policy does not see what Linux schedules itself. A kernel thread that runs briefly, or a
 * real-time thread, is to the policy what an interrupt is on the schedlab kernel. The interrupted
 * thread resumes afterwards.
 *
 * docs/linux-adapter.md explains what each callback does, and lists special cases.
 */

/* clang-format off */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
/* clang-format on */

#include "interrupts.h"
#include "language.h"
#include "migration_disabled.h"
#include "shared.h"

#include "policies/policy.h"
#include "policies/support/attributes.h"

#include POLICY_SOURCE

#include "outside.h"
#include "policy_life.h"

char _license[] SEC("license") = "GPL";

_Static_assert(HOST_TUNABLES == POLICY_TUNABLES_MAX, "the loader gives each tunable its value");

/* Longer than any turn: only the policy ends turns. */
#define HOLD_NS 3600000000000ull

#ifndef WATCHDOG_MS
#define WATCHDOG_MS 30000 /* the longest that the kernel allows */
#endif

#define PICKS_MAX 8 /* in one dispatch(): a picked thread may have to run elsewhere */

/* ---- queueing and removing a thread ---- */

static __always_inline uint32_t reason_of(const slot_t *slot, uint64_t enqueue_flags)
{
    if (slot->fresh)
        return ENQUEUE_NEW;
    if (enqueue_flags & SCX_ENQ_WAKEUP || slot->stopped == STOP_BLOCKED)
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

/* The thread is already in the policy's queue, by dispatch(). If another CPU has picked it
 * since, it goes to that CPU. */
static __noinline void hand_over(struct task_struct *thread, slot_t *slot, u64 flags)
{
    uint32_t custody = __sync_lock_test_and_set(&slot->custody, CUSTODY_OURS);
    if (custody < CUSTODY_SENT)
        return;
    slot->custody = CUSTODY_LINUX;
    scx_bpf_dsq_insert(thread, SCX_DSQ_LOCAL_ON | (custody - CUSTODY_SENT), HOLD_NS, flags);
}

/* Records the waker: the thread on this CPU, or an interrupt. */
static __noinline void note_waker(slot_t *slot)
{
    slot->task.waker = in_interrupt() ? 0 : (int32_t)bpf_get_current_pid_tgid();
    slot->task.waker_cpu = bpf_get_smp_processor_id();
}

/* Places a thread as the policy requested at the end of its turn. Any CPU may pick it after
 * this. */
static __noinline void place_again(slot_t *slot, uint32_t cpu)
{
    if (!add_thread(slot, place_thread(slot, ENQUEUE_MOVED, cpu), ENQUEUE_MOVED))
        give_up("was ended: a run queue stays locked");
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
    end_wait(thread, slot);
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
    if (POLICY.leave && slot->stopped == STOP_BLOCKED &&
        queue_number(slot->task.cpu) != queue_number(cpu))
        forget(slot);
    if (reason == ENQUEUE_WOKEN)
        note_waker(slot);
    slot->custody = CUSTODY_OURS;
    learn_traced_pid(slot, thread);
    bool moves = reason == ENQUEUE_EXPIRED && slot->moves;
    if (!add_thread(slot, cpu, reason))
        give_up("was ended: a run queue stays locked");
    if (moves)
        place_again(slot, cpu);
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

/* Gives the chosen thread to its CPU. If host_enqueue() for it is still to come, `custody` tells
 * hand_over() the CPU. */
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
    uint32_t pid = told_queues ? choice->slot->traced : (uint32_t)choice->slot->task.pid;
    if (choice->remark && pid)
        trace_emit(TRACE_DECISION, pid, choice->queued, choice->remark);
}

/* Ends a thread for the policy that is about to end and whose turn has ended. It may have lost
 * its PID, which a pick needs. Linux then schedules it like its own threads. */
static __noinline void end_for_policy(slot_t *slot)
{
    take_away(slot, STOP_ENDED);
    if (slot->known)
        policy_exit_task(&POLICY, &host->scheduler, &slot->task);
    slot->known = 0;
}

/* The thread that was leaving is picked again. */
static __always_inline void stay(struct task_struct *thread, slot_t *slot, uint32_t cpu)
{
    slot->custody = CUSTODY_LINUX;
    slot->task.counted = slot->task.picked_since;
    start_turn_timer(cpu, slot);
    scx_bpf_task_set_slice(thread, HOLD_NS);
}

/* Gives the CPU its next thread. Returns false if none may run. */
static __always_inline bool give_next(uint32_t cpu, struct task_struct *previous, slot_t *leaving)
{
    uint32_t picks_max = unseen(PICKS_MAX);
    for (uint32_t picks = unseen(0); picks < picks_max && can_loop; picks++) {
        struct choice choice = {0};
        if (!choose_home(cpu, leaving, &choice)) {
            give_up("was ended: a run queue stays locked");
            return true;
        }
        if (!choice.slot) {
            if (pull(cpu, true))
                continue;
            return false;
        }
        trace_choice(&choice);
        if (previous && choice.slot == leaving && choice.cpu == cpu) {
            stay(previous, leaving, cpu);
            return true;
        }
        send(&choice, cpu);
        if (choice.cpu == cpu)
            return true;
    }
    return false;
}

SEC("struct_ops/dispatch")
void BPF_PROG(host_dispatch, s32 this_cpu, struct task_struct *previous)
{
    USE_ARENA();
    uint32_t cpu = (uint32_t)this_cpu;
    slot_t *leaving = NULL;
    if (previous && previous->scx.flags & SCX_TASK_QUEUED)
        leaving = slot_of(previous);
    if (leaving && leaving->place == PLACE_CPU && (!leaving->turn || is_held(previous))) {
        scx_bpf_task_set_slice(previous, HOLD_NS);
        return;
    }
    if (leaving && previous->flags & PF_EXITING) {
        end_for_policy(leaving);
        leaving = NULL;
    }
    if (leaving)
        learn_traced_pid(leaving, previous);
    /* A thread that Linux schedules continues: nothing else would run, and without a slice it
     * would be taken off. */
    if (!give_next(cpu, previous, leaving) && previous && !leaving)
        scx_bpf_task_set_slice(previous, SCX_SLICE_DFL);
    if (leaving && leaving->custody == CUSTODY_LEAVING && leaving->place == PLACE_NOWHERE)
        place_again(leaving, cpu);
    check();
}

/* ---- a thread runs ---- */

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
    slot->task.counted = now;
    report_pending(slot);
    start_turn_timer((uint32_t)scx_bpf_task_cpu(thread), slot);
}

SEC("struct_ops/stopping")
void BPF_PROG(host_stopping, struct task_struct *thread, bool runnable)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    /* Linux also stops a running thread to change its CPUs, nice value or group. It then
     * continues: it did not block. */
    if (runnable || thread->__state == TASK_IS_RUNNING) {
        if (slot->place == PLACE_CPU)
            account(slot, clock_ns());
        slot->task.counted = 0;
        return;
    }
    if (slot->place != PLACE_NOWHERE)
        take_away(slot, thread->__state & TASK_IS_DEAD ? STOP_ENDED : STOP_BLOCKED);
    slot->custody = CUSTODY_LINUX;
    slot->turn = 0;
    begin_wait(thread, slot);
    check();
}

SEC("struct_ops/tick")
void BPF_PROG(host_tick, struct task_struct *thread)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    uint32_t cpu = (uint32_t)scx_bpf_task_cpu(thread);
    if (judge(slot, cpu, true) == TICK_KILL)
        ask_loader(REQUEST_KILL, slot->task.pid);
    start_turn_timer(cpu, slot);
    if (slot->turn)
        trace_preempt_reason(cpu, slot->known ? PREEMPT_SLICE : PREEMPT_POLICY);
    /* Kernel threads that wait for this CPU run within a tick; then the policy's thread resumes. */
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
    struct task_attributes *child_attributes = bpf_task_storage_get(&attributes, thread, NULL, 0);
    struct task_attributes *given = NULL;
    if (!child_attributes && forked)
        given = bpf_task_storage_get(&attributes, bpf_get_current_task_btf(), NULL, 0);
    if (given && given->set)
        INHERIT_ATTRIBUTES(&slot->task, given);
    else
        read_attributes(slot, child_attributes);
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
    slot_t *parent = arguments->fork ? slot_of(bpf_get_current_task_btf()) : NULL;
    inherit_attributes(thread, slot, arguments->fork);
    join_control_group(thread, slot, parent, arguments);
    read_allowed(slot, thread->cpus_ptr);
    slot->fresh = arguments->fork;
    if (arguments->fork)
        introduce(slot, ENQUEUE_NEW, parent);
    entry->slot = slot;
    return 0;
}

/* The thread changes to another class, or ends. */
SEC("struct_ops/disable")
void BPF_PROG(host_disable, struct task_struct *thread)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot || slot->place == PLACE_NOWHERE)
        return;
    take_away(slot, STOP_BLOCKED);
    slot->custody = CUSTODY_LINUX;
    slot->turn = 0;
    check();
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
    if (POLICY.leave && slot->stopped == STOP_BLOCKED)
        forget(slot);
    leave_waits(slot);
    if (slot->known)
        policy_exit_task(&POLICY, &host->scheduler, &slot->task);
    leave_control_group(thread, slot);
    entry->slot = NULL;
    release_slot(slot->task.slot);
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
    .disable = (void *)host_disable,
    .exit_task = (void *)host_exit_task,
    /* the loader drops these if the policy does not use groups or the kernel lacks them */
    .cgroup_init = (void *)host_cgroup_init,
    .cgroup_exit = (void *)host_cgroup_exit,
    .cgroup_move = (void *)host_cgroup_move,
    .cgroup_set_weight = (void *)host_cgroup_set_weight,
    .cgroup_set_bandwidth = (void *)host_cgroup_set_bandwidth,
    .init = (void *)host_init,
    .exit = (void *)host_exit,
    .flags = SCX_OPS_ENQ_LAST, /* a CPU idles if its thread is held: docs/linux-adapter.md */
    .timeout_ms = WATCHDOG_MS,
    .name = "schedlab_" POLICY_NAME,
};
