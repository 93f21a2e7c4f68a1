/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_DESCRIBE_TASK_H
#define LINUX_BPF_DESCRIBE_TASK_H

/* For iterators over threads: the columns that do not depend on the scheduler. */

#include "shared_maps.h"

#include "policies/policy.h"

/* From include/linux/sched.h; vmlinux.h lacks it. */
#ifndef PF_KTHREAD
#define PF_KTHREAD 0x00200000
#endif
#define EXITED 0x30 /* EXIT_DEAD | EXIT_ZOMBIE */

static __attribute__((noinline, unused)) uint32_t host_task_state(const struct task_struct *thread)
{
    if (thread->exit_state & EXITED)
        return HOST_TASK_ZOMBIE;
    if (thread->on_cpu)
        return HOST_TASK_RUNNING;
    return thread->__state == 0 ? HOST_TASK_RUNNABLE : HOST_TASK_BLOCKED;
}

/* Fills in the whole row; fields that only a policy knows are 0. */

static __attribute__((always_inline, unused)) inline void describe_task(struct host_task *row,
                                                                        struct task_struct *thread)
{
    struct task_attributes *stored = bpf_task_storage_get(&attributes, thread, NULL, 0);
    __builtin_memset(row, 0, sizeof(*row));
    row->pid = thread->pid;
    row->tgid = thread->tgid;
    row->state = host_task_state(thread);
    row->cpu = thread->thread_info.cpu;
    row->priority = stored && stored->set ? stored->priority : PRIORITY_DEFAULT;
    row->tickets = stored && stored->set ? stored->tickets : TICKETS_DEFAULT;
    row->weight = stored && stored->set ? stored->weight : WEIGHT_DEFAULT;
    row->drawn = row->tickets;
    bpf_probe_read_kernel_str(row->name, sizeof(row->name), thread->comm);
}

#endif
