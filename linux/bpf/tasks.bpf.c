/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Describes all threads while no schedlab policy is loaded: the rows of a policy's iterator,
 * without the fields that only a policy knows.
 */

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "describe_task.h"

const char terms[] SEC("license") = "Dual MIT/GPL";

SEC("iter/task")
int describe_tasks(struct bpf_iter__task *context)
{
    struct task_struct *thread = context->task;
    struct host_task row;
    if (!thread || thread->flags & PF_KTHREAD)
        return 0;
    describe_task(&row, thread);
    bpf_seq_write(context->meta->seq, &row, sizeof(row));
    return 0;
}
