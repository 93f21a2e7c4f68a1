/* SPDX-License-Identifier: MIT */

#include "process/process_table.h"

#include <stddef.h>

#include "abi/errors.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "process/owners.h"

#define PID_MAX   1000000000
#define SLOTS_MAX 65536
#define HASH_SIZE 4096

struct spinlock process_tree_lock;
struct list all_processes;

static struct list by_pid[HASH_SIZE];
static int last_pid;
static uint32_t count;

static uint64_t slot_used[SLOTS_MAX / 64];
static uint32_t first_free_word; /* no word before it has a free slot */

/* The boot argument processes: the slots beyond are never free. */
static void limit_slots(void)
{
    uint64_t most = boot_argument_number("processes", SLOTS_MAX);

    if (most < 2 || most > SLOTS_MAX)
        panic("boot argument processes=%lu: it is not within 2 and %d", most, SLOTS_MAX);
    for (uint64_t slot = most; slot < SLOTS_MAX; slot++)
        slot_used[slot / 64] |= 1ul << slot % 64;
}

void process_table_init(void)
{
    spinlock_init(&process_tree_lock, "process tree", LOCK_PROCESS_TREE);
    owners_init();
    list_init(&all_processes);
    for (int i = 0; i < HASH_SIZE; i++)
        list_init(&by_pid[i]);
    limit_slots();
}

static struct list *bucket(int pid)
{
    return &by_pid[(uint32_t)pid % HASH_SIZE];
}

struct process *process_table_find(int pid)
{
    kernel_assert(spinlock_held(&process_tree_lock) || spinlock_held(&owners_lock));
    list_for_each(node, bucket(pid))
    {
        struct process *process = container_of(node, struct process, hash);
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

struct process *process_table_after(int pid)
{
    struct process *start = process_table_find(pid);
    struct list *node = start ? start->all.next : all_processes.next;
    for (; node != &all_processes; node = node->next) {
        struct process *process = container_of(node, struct process, all);
        if (start || process->pid > pid)
            return process;
    }
    return NULL;
}

static int free_pid(void)
{
    do {
        last_pid = last_pid == PID_MAX ? 1 : last_pid + 1;
    } while (process_table_find(last_pid));
    return last_pid;
}

/* Takes the lowest free slot; SLOTS_MAX: there is none. */
static uint32_t take_slot(void)
{
    while (first_free_word < SLOTS_MAX / 64 && slot_used[first_free_word] == UINT64_MAX)
        first_free_word++;
    if (first_free_word == SLOTS_MAX / 64)
        return SLOTS_MAX;
    uint32_t bit = (uint32_t)__builtin_ctzl(~slot_used[first_free_word]);
    slot_used[first_free_word] |= 1ul << bit;
    return first_free_word * 64 + bit;
}

static void give_slot(uint32_t slot)
{
    slot_used[slot / 64] &= ~(1ul << slot % 64);
    if (slot / 64 < first_free_word)
        first_free_word = slot / 64;
}

int process_table_add(struct process *process)
{
    kernel_assert(spinlock_held(&process_tree_lock));
    uint32_t slot = take_slot();
    if (slot == SLOTS_MAX)
        return -EAGAIN;
    process->task.slot = slot;
    process->pid = process->task.pid = free_pid();
    spinlock_acquire(&owners_lock);
    list_append(bucket(process->pid), &process->hash);
    spinlock_release(&owners_lock);
    list_append(&all_processes, &process->all);
    count++;
    return 0;
}

void process_table_remove(struct process *process)
{
    kernel_assert(spinlock_held(&process_tree_lock));
    spinlock_acquire(&owners_lock);
    list_remove(&process->hash);
    spinlock_release(&owners_lock);
    list_remove(&process->all);
    give_slot(process->task.slot);
    count--;
}

uint32_t process_table_count(void)
{
    return count;
}
