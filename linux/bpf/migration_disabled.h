/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_HELD_H
#define LINUX_BPF_HELD_H

#include "numbers.h"

/* Returns true if the thread may not move to another CPU at present, regardless of its CPU set.
 * A BPF program that runs on a thread also forbids moves: it counts as one reason. */
static bool is_held(struct task_struct *thread)
{
    int disabled = thread->migration_disabled;
    return disabled > 1 || (disabled == 1 && thread != bpf_get_current_task_btf());
}

#endif
