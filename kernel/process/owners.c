/* SPDX-License-Identifier: MIT */

#include "process/owners.h"

#include <stddef.h>

#include "lib/panic.h"
#include "process/process_table.h"
#include "scheduler/cpu.h"
#include "scheduler/scheduler.h"

#include "policies/support/waits.h"

struct spinlock owners_lock;
static struct list waiting; /* the processes that have an owner, by `owned` */

static struct process *process_of_task(task_t *task)
{
    return container_of(task, struct process, task);
}

MECHANISM_FUNCTION void notify_owner(scheduler_t *unused, task_t *owner, uint32_t acting_cpu)
{
    (void)unused;
    (void)acting_cpu;
    scheduler_waiters_changed(process_of_task(owner));
}

void owners_init(void)
{
    spinlock_init(&owners_lock, "owners", LOCK_OWNERS);
    list_init(&waiting);
}

/* Returns null for 0, and for a process that has ended. */
static struct process *find_owner(int pid)
{
    struct process *owner = pid ? process_table_find(pid) : NULL;
    return owner && !__atomic_load_n(&owner->owns_nothing, __ATOMIC_SEQ_CST) ? owner : NULL;
}

static void link_to(struct process *process, struct process *owner)
{
    if (process->task.waits_for)
        list_remove(&process->owned);
    wait_for_task(NULL, &process->task, owner ? &owner->task : NULL, this_cpu()->id);
    if (process->task.waits_for)
        list_append(&waiting, &process->owned);
}

void owners_name(struct process *process, int owner)
{
    if (!scheduler_asks_for_owners())
        return;
    spinlock_acquire(&owners_lock);
    if (scheduler_asks_for_owners())
        link_to(process, find_owner(owner));
    spinlock_release(&owners_lock);
}

void owners_name_again(struct process *process, int owner)
{
    spinlock_acquire(&process->lock);
    if (process->state == PROCESS_BLOCKED)
        owners_name(process, owner);
    spinlock_release(&process->lock);
}

void owners_set_ceiling(struct process *process, uint32_t ceiling)
{
    spinlock_acquire(&owners_lock);
    if (scheduler_asks_for_owners())
        set_task_ceiling(NULL, &process->task, ceiling, this_cpu()->id);
    process->task.ceiling = ceiling;
    spinlock_release(&owners_lock);
}

void owners_changed(struct process *process)
{
    if (!scheduler_asks_for_owners())
        return;
    spinlock_acquire(&owners_lock);
    notify_owners(NULL, process->task.waits_for, this_cpu()->id);
    spinlock_release(&owners_lock);
}

/* No owner is named unless the policy asks. A policy that asks may be switched to at this
 * moment. It then sees what is stored here before it reads, or is seen here. So either the
 * process is not named after this, or the processes that wait for it are released. */
void owners_end(struct process *process)
{
    __atomic_store_n(&process->owns_nothing, true, __ATOMIC_SEQ_CST);
    if (!scheduler_asks_for_owners())
        return;
    spinlock_acquire(&owners_lock);
    while (process->task.first_waiter) {
        list_remove(&process_of_task(process->task.first_waiter)->owned);
        unlink_waiter(process->task.first_waiter);
    }
    spinlock_release(&owners_lock);
}

void owners_forget(void)
{
    kernel_assert(spinlock_held(&owners_lock));
    while (!list_empty(&waiting)) {
        struct process *process = container_of(waiting.next, struct process, owned);
        list_remove(&process->owned);
        unlink_waiter(&process->task);
    }
}
