/* SPDX-License-Identifier: MIT */

/* The functions of sched_ext (scx_bpf_*), of tasks, of groups and of locks, and the table of all
 * functions. */

#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/functions.h"

/* ---- dispatch queues ---- */

FUNCTION(scx_bpf_create_dsq)
{
    return (uint64_t)(int64_t)create_queue(ext_of(guest), arguments[0]);
}

FUNCTION(scx_bpf_destroy_dsq)
{
    destroy_queue(ext_of(guest), arguments[0]);
    return 0;
}

/* Returns true, as the versions with a result do: the task may be dispatched. */
FUNCTION(scx_bpf_dsq_insert)
{
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    if (slot != NONE)
        request_dispatch(ext_of(guest), slot, arguments[1], arguments[2], arguments[3]);
    return slot != NONE;
}
SAME_FUNCTION(scx_bpf_dsq_insert___v2, scx_bpf_dsq_insert)
SAME_FUNCTION(scx_bpf_dispatch, scx_bpf_dsq_insert)

static uint64_t insert_by_vtime(struct guest *guest, uint64_t task, uint64_t queue_id,
                                uint64_t slice, uint64_t vtime, uint64_t flags)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t slot = require_task(ext, task);
    if (slot == NONE)
        return 0;
    task_struct_of(ext, slot)->scx.dsq_vtime = vtime;
    request_dispatch(ext, slot, queue_id, slice, flags | SCX_ENQ_DSQ_PRIQ);
    return 1;
}

FUNCTION(scx_bpf_dsq_insert_vtime)
{
    return insert_by_vtime(guest, arguments[0], arguments[1], arguments[2], arguments[3],
                           arguments[4]);
}
SAME_FUNCTION(scx_bpf_dispatch_vtime, scx_bpf_dsq_insert_vtime)

FUNCTION(__scx_bpf_dsq_insert_vtime)
{
    const struct scx_bpf_dsq_insert_vtime_args *given =
        guest_words(guest, arguments[1], sizeof(*given));
    if (!given) {
        guest_trap(guest, "inserts a task with arguments at invalid address %#llx",
                   (unsigned long long)arguments[1]);
        return 0;
    }
    return insert_by_vtime(guest, arguments[0], given->dsq_id, given->slice, given->vtime,
                           given->enq_flags);
}

FUNCTION(scx_bpf_dsq_move_to_local)
{
    struct sched_ext *ext = ext_of(guest);
    if (ext->dispatching == NONE) {
        scx_error(ext, "tasks can be moved to the local DSQ only in dispatch()");
        return 0;
    }
    flush_requests(ext);
    uint32_t queue =
        arguments[0] & SCX_DSQ_FLAG_BUILTIN ? NONE : find_queue(ext, arguments[0], NONE);
    if (queue == NONE) {
        scx_error(ext, "DSQ %#llx does not exist", (unsigned long long)arguments[0]);
        return 0;
    }
    if (!consume_queue(ext, ext->dispatching, queue))
        return 0;
    ext->dispatched++;
    return 1;
}
SAME_FUNCTION(scx_bpf_dsq_move_to_local___v2, scx_bpf_dsq_move_to_local)
SAME_FUNCTION(scx_bpf_consume, scx_bpf_dsq_move_to_local)

FUNCTION(scx_bpf_dispatch_nr_slots)
{
    const struct sched_ext *ext = ext_of(guest);
    (void)arguments;
    return ext->batch - ext->request_count;
}

FUNCTION(scx_bpf_dispatch_cancel)
{
    struct sched_ext *ext = ext_of(guest);
    (void)arguments;
    if (ext->request_count > 0)
        ext->request_count--;
    else
        scx_error(ext, "no dispatch is left to cancel");
    return 0;
}

FUNCTION(scx_bpf_dsq_nr_queued)
{
    const struct sched_ext *ext = ext_of(guest);
    uint32_t queue = find_queue(ext, arguments[0], ext->this_cpu);
    return queue == NONE ? failure(LINUX_ENOENT) : ext->queues[queue].count;
}

FUNCTION(scx_bpf_dsq_peek)
{
    const struct sched_ext *ext = ext_of(guest);
    uint32_t queue = find_queue(ext, arguments[0], ext->this_cpu);
    bool any = queue != NONE && ext->queues[queue].first != NONE;
    return any ? task_address(ext, ext->queues[queue].first) : 0;
}

FUNCTION(scx_bpf_reenqueue_local)
{
    struct sched_ext *ext = ext_of(guest);
    (void)arguments;
    return ext_reenqueue_local(ext, ext->this_cpu);
}
SAME_FUNCTION(scx_bpf_reenqueue_local___v2, scx_bpf_reenqueue_local)

FUNCTION(scx_bpf_dsq_reenq)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t queue = find_queue(ext, arguments[0], ext->this_cpu);
    if (queue == NONE || queue >= ext->cpu_count)
        scx_error(ext, "only local DSQs can be enqueued again");
    else
        ext_reenqueue_local(ext, queue);
    return 0;
}

/* ---- CPUs ---- */

FUNCTION(scx_bpf_select_cpu_dfl)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t slot = require_task(ext, arguments[0]);
    unsigned char *was_idle = guest_writable(guest, arguments[3], 1);
    uint32_t previous = (uint32_t)arguments[1];
    int32_t cpu = -LINUX_EBUSY;
    if (slot == NONE)
        return previous;
    if (!has_builtin_idle(ext))
        scx_error(ext, "the built-in idle tracking is off");
    else if (task_struct_of(ext, slot)->nr_cpus_allowed > 1)
        cpu = select_cpu_default(ext, slot, previous, arguments[2], 0, 0);
    else if (task_allows(ext, slot, previous) && test_and_clear_idle(ext, previous))
        cpu = (int32_t)previous;
    if (was_idle)
        *was_idle = cpu >= 0;
    return cpu >= 0 ? (uint64_t)cpu : previous;
}

static uint64_t select_within(struct guest *guest, uint64_t task, uint64_t allowed,
                              const struct scx_bpf_select_cpu_and_args *given)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t slot = require_task(ext, task);
    if (slot == NONE)
        return 0;
    return (uint64_t)(int64_t)select_cpu_default(ext, slot, (uint32_t)given->prev_cpu,
                                                 given->wake_flags, allowed, given->flags);
}

FUNCTION(scx_bpf_select_cpu_and)
{
    const struct scx_bpf_select_cpu_and_args given = {(s32)arguments[1], arguments[2],
                                                      arguments[4]};
    return select_within(guest, arguments[0], arguments[3], &given);
}

FUNCTION(__scx_bpf_select_cpu_and)
{
    const struct scx_bpf_select_cpu_and_args *given =
        guest_words(guest, arguments[2], sizeof(*given));
    if (!given) {
        guest_trap(guest, "selects a CPU with arguments at invalid address %#llx",
                   (unsigned long long)arguments[2]);
        return 0;
    }
    return select_within(guest, arguments[0], arguments[1], given);
}

/* Returns the CPU of an argument; NONE with an error if it does not exist. */
static uint32_t require_cpu(struct sched_ext *ext, uint64_t cpu)
{
    if ((uint32_t)cpu < ext->cpu_count)
        return (uint32_t)cpu;
    scx_error(ext, "CPU %d does not exist", (int32_t)cpu);
    return NONE;
}

FUNCTION(scx_bpf_kick_cpu)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t cpu = require_cpu(ext, arguments[0]);
    if (cpu == NONE)
        return 0;
    if (arguments[1] & SCX_KICK_IDLE && arguments[1] & (SCX_KICK_PREEMPT | SCX_KICK_WAIT))
        scx_error(ext, "SCX_KICK_IDLE excludes SCX_KICK_PREEMPT and SCX_KICK_WAIT");
    else if (!ext->bypasses)
        ext_kick(ext, cpu, arguments[1]);
    return 0;
}

FUNCTION(scx_bpf_nr_cpu_ids)
{
    (void)arguments;
    return ext_of(guest)->cpu_count;
}

FUNCTION(scx_bpf_nr_node_ids)
{
    const struct machine_shape *shape = ext_of(guest)->simulator->scheduler.shape;
    (void)arguments;
    return shape ? shape->nodes : 1;
}

FUNCTION(scx_bpf_cpu_node)
{
    struct sched_ext *ext = ext_of(guest);
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    uint32_t cpu = require_cpu(ext, arguments[0]);
    return cpu == NONE ? UINT64_MAX : shape ? shape->cpu[cpu].node : 0;
}

FUNCTION(scx_bpf_get_possible_cpumask)
{
    (void)arguments;
    return guest_address(REGION_KERNEL, ext_of(guest)->kernel.possible_mask);
}

FUNCTION(scx_bpf_get_online_cpumask)
{
    (void)arguments;
    return guest_address(REGION_KERNEL, ext_of(guest)->kernel.online_mask);
}
CONSTANT_FUNCTION(scx_bpf_put_cpumask, 0)

FUNCTION(scx_bpf_get_idle_cpumask)
{
    struct sched_ext *ext = ext_of(guest);
    (void)arguments;
    if (!has_builtin_idle(ext))
        scx_error(ext, "the built-in idle tracking is off");
    return guest_address(REGION_KERNEL, ext->kernel.idle_mask);
}
SAME_FUNCTION(scx_bpf_get_idle_cpumask_node, scx_bpf_get_idle_cpumask)

FUNCTION(scx_bpf_get_idle_smtmask)
{
    const struct sched_ext *ext = ext_of(guest);
    return ext->has_smt ? guest_address(REGION_KERNEL, ext->kernel.idle_smt_mask)
                        : function_scx_bpf_get_idle_cpumask(guest, arguments);
}
SAME_FUNCTION(scx_bpf_get_idle_smtmask_node, scx_bpf_get_idle_smtmask)
CONSTANT_FUNCTION(scx_bpf_put_idle_cpumask, 0)

FUNCTION(scx_bpf_test_and_clear_cpu_idle)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t cpu = require_cpu(ext, arguments[0]);
    return cpu != NONE && has_builtin_idle(ext) && test_and_clear_idle(ext, cpu);
}

FUNCTION(scx_bpf_pick_idle_cpu)
{
    struct sched_ext *ext = ext_of(guest);
    if (!has_builtin_idle(ext)) {
        scx_error(ext, "the built-in idle tracking is off");
        return failure(LINUX_EBUSY);
    }
    return (uint64_t)(int64_t)pick_idle_cpu(ext, arguments[0], arguments[1]);
}

FUNCTION(scx_bpf_pick_idle_cpu_node)
{
    const uint64_t given[5] = {arguments[0], arguments[2]};
    return function_scx_bpf_pick_idle_cpu(guest, given);
}

FUNCTION(scx_bpf_pick_any_cpu)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *allowed = mask_at(ext, arguments[0]);
    int32_t cpu =
        has_builtin_idle(ext) ? pick_idle_cpu(ext, arguments[0], arguments[1]) : -LINUX_EBUSY;
    if (!allowed || cpu >= 0)
        return (uint64_t)(int64_t)cpu;
    uint32_t any = mask_distribute(ext, allowed, NULL);
    return any < ext->cpu_count ? any : failure(LINUX_EBUSY);
}

FUNCTION(scx_bpf_pick_any_cpu_node)
{
    const uint64_t given[5] = {arguments[0], arguments[2]};
    return function_scx_bpf_pick_any_cpu(guest, given);
}

FUNCTION(scx_bpf_cpu_rq)
{
    uint32_t cpu = require_cpu(ext_of(guest), arguments[0]);
    return cpu == NONE ? 0 : rq_address(cpu);
}

FUNCTION(scx_bpf_cpu_curr)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t cpu = require_cpu(ext, arguments[0]);
    return cpu == NONE ? 0 : rq_of(ext, cpu)->curr;
}

FUNCTION(scx_bpf_locked_rq)
{
    (void)arguments;
    return rq_address(ext_of(guest)->this_cpu);
}

/* The fastest CPU of the machine has SCX_CPUPERF_ONE, as CAPACITY_FULL. */
FUNCTION(scx_bpf_cpuperf_cap)
{
    struct sched_ext *ext = ext_of(guest);
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    uint32_t cpu = require_cpu(ext, arguments[0]);
    return cpu == NONE || !shape ? SCX_CPUPERF_ONE : shape->kind[shape->cpu[cpu].kind].capacity[0];
}

FUNCTION(scx_bpf_cpuperf_cur)
{
    struct sched_ext *ext = ext_of(guest);
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    uint32_t cpu = require_cpu(ext, arguments[0]);
    return cpu == NONE || !shape ? SCX_CPUPERF_ONE : shape->cpu[cpu].capacity_now;
}

FUNCTION(scx_bpf_cpuperf_set)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t cpu = require_cpu(ext, arguments[0]);
    if (cpu != NONE && arguments[1] > SCX_CPUPERF_ONE)
        scx_error(ext, "performance %u is above SCX_CPUPERF_ONE", (uint32_t)arguments[1]);
    else if (cpu != NONE)
        rq_of(ext, cpu)->scx.cpuperf_target = (uint32_t)arguments[1];
    return 0;
}

/* ---- tasks ---- */

FUNCTION(scx_bpf_task_running)
{
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    return slot != NONE && task_runs(ext_of(guest), slot);
}

FUNCTION(scx_bpf_task_cpu)
{
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    return slot == NONE ? 0 : cpu_of_task(ext_of(guest), slot);
}

FUNCTION(scx_bpf_task_cgroup)
{
    const struct sched_ext *ext = ext_of(guest);
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    return group_address(ext, slot == NONE ? 0 : ext->tasks[slot].group);
}

FUNCTION(scx_bpf_task_set_slice)
{
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    if (slot != NONE)
        task_struct_of(ext_of(guest), slot)->scx.slice = arguments[1];
    return slot != NONE;
}

FUNCTION(scx_bpf_task_set_dsq_vtime)
{
    uint32_t slot = require_task(ext_of(guest), arguments[0]);
    if (slot != NONE)
        task_struct_of(ext_of(guest), slot)->scx.dsq_vtime = arguments[1];
    return slot != NONE;
}

FUNCTION(bpf_task_from_pid)
{
    const struct sched_ext *ext = ext_of(guest);
    uint32_t slot = task_by_pid(ext, (int32_t)arguments[0]);
    return slot == NONE ? 0 : task_address(ext, slot);
}
SAME_FUNCTION(bpf_task_from_vpid, bpf_task_from_pid)
IDENTITY_FUNCTION(bpf_task_acquire)
CONSTANT_FUNCTION(bpf_task_release, 0)

/* ---- time, messages and counters ---- */

FUNCTION(scx_bpf_now)
{
    (void)arguments;
    return ext_now(ext_of(guest));
}

FUNCTION(scx_bpf_error_bstr)
{
    struct sched_ext *ext = ext_of(guest);
    char text[SCX_EXIT_MSG_LEN];
    format_guest_text(ext, text, sizeof(text), arguments[0], arguments[1], (uint32_t)arguments[2]);
    scx_exit(ext, SCX_EXIT_ERROR_BPF, 0, text);
    return 0;
}

FUNCTION(scx_bpf_exit_bstr)
{
    struct sched_ext *ext = ext_of(guest);
    char text[SCX_EXIT_MSG_LEN];
    format_guest_text(ext, text, sizeof(text), arguments[1], arguments[2], (uint32_t)arguments[3]);
    scx_exit(ext, SCX_EXIT_UNREG_BPF, (int64_t)arguments[0], text);
    return 0;
}

CONSTANT_FUNCTION(scx_bpf_dump_bstr, 0)

FUNCTION(scx_bpf_events)
{
    void *counters = guest_writable(guest, arguments[0], arguments[1]);
    if (counters)
        memset(counters, 0, arguments[1]);
    return 0;
}

/* ---- groups ---- */

IDENTITY_FUNCTION(bpf_cgroup_acquire)
CONSTANT_FUNCTION(bpf_cgroup_release, 0)

FUNCTION(bpf_cgroup_ancestor)
{
    struct sched_ext *ext = ext_of(guest);
    uint32_t group = group_at(ext, arguments[0]);
    const struct cgroup *cgroup = guest_memory(guest, arguments[0], sizeof(*cgroup));
    int32_t level = (int32_t)arguments[1];
    bool exists =
        group != NONE && cgroup && level >= 0 && level <= cgroup->level && level < CGROUP_LEVELS;
    return exists ? cgroup->ancestors[level] : 0;
}

FUNCTION(bpf_cgroup_from_id)
{
    const struct sched_ext *ext = ext_of(guest);
    uint64_t group = arguments[0] - 1;
    return group < GROUPS_MAX && ext->groups[group].exists ? group_address(ext, (uint32_t)group)
                                                           : 0;
}

/* ---- locks and critical sections: one action happens after the other ---- */

CONSTANT_FUNCTION(bpf_rcu_read_lock, 0)
CONSTANT_FUNCTION(bpf_rcu_read_unlock, 0)
CONSTANT_FUNCTION(bpf_preempt_disable, 0)
CONSTANT_FUNCTION(bpf_preempt_enable, 0)
CONSTANT_FUNCTION(bpf_local_irq_save, 0)
CONSTANT_FUNCTION(bpf_local_irq_restore, 0)
CONSTANT_FUNCTION(bpf_res_spin_lock, 0)
CONSTANT_FUNCTION(bpf_res_spin_unlock, 0)
CONSTANT_FUNCTION(bpf_res_spin_lock_irqsave, 0)
CONSTANT_FUNCTION(bpf_res_spin_unlock_irqrestore, 0)

host_function *const ext_functions[KERNEL_FUNCTION_NUMBERS] = {
#define TABLE_ENTRY(name, number, first, last) [number] = function_##name,
    KERNEL_FUNCTIONS(TABLE_ENTRY)
#undef TABLE_ENTRY
};
