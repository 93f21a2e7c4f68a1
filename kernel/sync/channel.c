/* SPDX-License-Identifier: MIT */

#include "sync/channel.h"

#include <stdbool.h>
#include <stddef.h>

#include "abi/errors.h"
#include "abi/system_calls.h"
#include "lib/list.h"
#include "lib/panic.h"
#include "memory/object.h"
#include "process/owners.h"
#include "process/process.h"
#include "scheduler/scheduler.h"
#include "sync/wait_queue.h"

#define CEILING_BITS 5
#define THINGS_MAX   ((1u << (31 - CEILING_BITS)) - 1)

/* Invariant: it is empty while a process waits. A set of them fits into a page. */
struct channel {
    struct list takers;
    uint32_t count : 31 - CEILING_BITS; /* items in it */
    uint32_t ceiling : CEILING_BITS;    /* 1 more than a priority; 0: none */
    uint32_t is_lock : 1;               /* some process took from it as from a lock */
    int owner; /* PID of the process that must give before the waiting ones continue: it has the
                * lock, or it gave last; 0: not known */
};

_Static_assert(TAKE_LAST == TAKE_CEILING + PRIORITY_LOWEST, "each priority may be a ceiling");
_Static_assert(PRIORITY_LOWEST + 1 < 1 << CEILING_BITS, "a ceiling fits");

struct channel_set {
    struct spinlock lock; /* guards the whole set */
    uint32_t users;       /* processes that use it */
    uint32_t count;
    struct channel channels[CHANNELS_MAX];
};

/* A process that waits; lives on its kernel stack. */
struct taker {
    struct list link; /* of the channel, until it is served */
    struct process *process;
    bool served;
    struct wait_queue woken;
};

static struct object_cache sets;

void channel_init(void)
{
    object_cache_init(&sets, "channels", sizeof(struct channel_set));
}

struct channel_set *channel_set_join(struct channel_set *set)
{
    if (!set)
        return NULL;
    spinlock_acquire(&set->lock);
    set->users++;
    spinlock_release(&set->lock);
    return set;
}

void channel_set_leave(struct channel_set *set)
{
    if (!set)
        return;
    spinlock_acquire(&set->lock);
    bool last = --set->users == 0;
    spinlock_release(&set->lock);
    if (last)
        object_free(&sets, set);
}

int64_t channels_make(int64_t count)
{
    struct process *process = current_process();
    if (count < 1 || count > CHANNELS_MAX)
        return -EINVAL;
    struct channel_set *set = object_allocate(&sets);
    if (!set)
        return -ENOMEM;
    spinlock_init(&set->lock, "channels", LOCK_FILES);
    set->users = 1;
    set->count = (uint32_t)count;
    for (uint32_t i = 0; i < set->count; i++)
        list_init(&set->channels[i].takers);
    channel_set_leave(process->channels);
    process->channels = set;
    return 0;
}

/* Returns null if no channel has this number. */
static struct channel *find_channel(struct channel_set *set, int64_t number)
{
    bool exists = set && number >= 0 && number < set->count;
    return exists ? &set->channels[number] : NULL;
}

static void set_owner(struct channel *channel, int pid)
{
    channel->owner = pid;
    if (!scheduler_asks_for_owners())
        return;
    list_for_each(node, &channel->takers)
    {
        wait_queue_set_owner(&container_of(node, struct taker, link)->woken, pid);
    }
}

/* Serves the waiting processes, the first to come first. Returns how many of `count` remain. */
static uint64_t serve_takers(struct channel *channel, uint64_t count)
{
    while (count > 0 && !list_empty(&channel->takers)) {
        struct taker *taker = container_of(channel->takers.next, struct taker, link);
        list_remove(&taker->link);
        taker->served = true;
        wake_one(&taker->woken); /* it cannot return before the set's lock is free */
        count--;
    }
    return count;
}

static int wait_to_be_served(struct channel_set *set, struct channel *channel)
{
    struct taker taker = {.process = current_process()};
    int error = 0;
    wait_queue_init(&taker.woken, "taker");
    taker.woken.owner = channel->owner;
    list_append(&channel->takers, &taker.link);
    while (!taker.served && !error)
        error = wait_on(&taker.woken, &set->lock, BLOCK_PIPE);
    if (!taker.served)
        list_remove(&taker.link);
    return error;
}

/* Returns the highest ceiling of the process's locks, encoded as in a task. */
static uint32_t ceiling_of(const struct channel_set *set, const struct process *process)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct channel *channel = &set->channels[i];
        bool has = channel->is_lock && channel->ceiling && channel->owner == process->pid;
        if (has && (highest == 0 || channel->ceiling < highest))
            highest = channel->ceiling;
    }
    return highest;
}

/* Gives the lock to the process, or to none if it is null. */
static void hand_lock(struct channel_set *set, struct channel *channel, struct process *process)
{
    set_owner(channel, process ? process->pid : 0);
    if (process && channel->ceiling)
        owners_set_ceiling(process, ceiling_of(set, process));
}

static int64_t count_takers(struct channel *channel)
{
    int64_t count = 0;
    list_for_each(node, &channel->takers)
    {
        count++;
    }
    return count;
}

/* Returns the process that the policy chooses among those waiting after `ordered`. */
static struct taker *choose_taker(const struct channel *channel, const struct list *ordered)
{
    struct taker *chosen = NULL;
    struct queue *queue = scheduler_begin_choice();
    for (struct list *node = ordered->next; node != &channel->takers; node = node->next) {
        struct taker *taker = container_of(node, struct taker, link);
        struct process *process =
            scheduler_choose_waiter(queue, chosen ? chosen->process : NULL, taker->process);
        if (process == taker->process)
            chosen = taker;
    }
    scheduler_end_choice(queue);
    kernel_assert(chosen && !chosen->served);
    return chosen;
}

/* Only some of the waiting processes continue: moves the `count` that the policy chooses to the
 * front. */
static void order_takers(struct channel *channel, uint64_t count)
{
    for (struct list *ordered = &channel->takers; count > 0; count--) {
        struct taker *chosen = choose_taker(channel, ordered);
        list_remove(&chosen->link);
        list_append(ordered->next, &chosen->link); /* before that one */
        ordered = &chosen->link;
    }
}

/* Gives on behalf of the current process. */
static void give(struct channel_set *set, struct channel *channel, uint64_t count, enum give_to to)
{
    struct process *self = current_process();
    bool had = channel->is_lock && channel->owner == self->pid;
    if (scheduler_orders_waiters() && count < (uint64_t)count_takers(channel))
        order_takers(channel, count);
    struct process *heir = list_empty(&channel->takers)
                               ? NULL
                               : container_of(channel->takers.next, struct taker, link)->process;
    if (!channel->is_lock)
        set_owner(channel, self->pid);
    else
        hand_lock(set, channel, heir);
    uint64_t left = serve_takers(channel, count);
    if (to == GIVE_KEEP)
        channel->count = (uint32_t)(channel->count + left) & THINGS_MAX;
    if (had && channel->ceiling)
        owners_set_ceiling(self, ceiling_of(set, self));
}

/* Takes one for the current process, which may wait for it. */
static int take(struct channel_set *set, struct channel *channel, uint32_t as)
{
    if (as >= TAKE_LOCK)
        channel->is_lock = true;
    if (as >= TAKE_CEILING)
        channel->ceiling = (as - TAKE_CEILING + 1) & ((1u << CEILING_BITS) - 1);
    if (channel->count == 0)
        return wait_to_be_served(set, channel);
    if (--channel->count == 0 && channel->is_lock)
        hand_lock(set, channel, current_process());
    return 0;
}

int64_t channel_take(int64_t number, int64_t released_number, int as)
{
    struct channel_set *set = current_process()->channels;
    struct channel *channel = find_channel(set, number);
    struct channel *released = find_channel(set, released_number);
    int error = 0;
    if (!channel || (!released && released_number != RELEASE_NONE))
        return -EINVAL;
    if (as < TAKE_ANY || as > TAKE_LAST)
        return -EINVAL;
    spinlock_acquire(&set->lock);
    if (released && released->count == THINGS_MAX)
        error = -ERANGE;
    else if (released)
        give(set, released, 1, GIVE_KEEP);
    if (!error)
        error = take(set, channel, (uint32_t)as);
    spinlock_release(&set->lock);
    return error;
}

int64_t channel_meet(int64_t number, int64_t processes)
{
    struct channel_set *set = current_process()->channels;
    struct channel *channel = find_channel(set, number);
    int error = 0;
    if (!channel || processes < 1)
        return -EINVAL;
    spinlock_acquire(&set->lock);
    if (count_takers(channel) + 1 < processes)
        error = wait_to_be_served(set, channel);
    else
        serve_takers(channel, UINT64_MAX);
    spinlock_release(&set->lock);
    return error;
}

int64_t channel_give(int64_t number, int64_t count, int to)
{
    struct channel_set *set = current_process()->channels;
    struct channel *channel = find_channel(set, number);
    if (!channel || count < 0 || (to != GIVE_KEEP && to != GIVE_WAITING))
        return -EINVAL;
    spinlock_acquire(&set->lock);
    bool fits = to == GIVE_WAITING || count <= (int64_t)(THINGS_MAX - channel->count);
    if (fits)
        give(set, channel, (uint64_t)count, (enum give_to)to);
    spinlock_release(&set->lock);
    return fits ? 0 : -ERANGE;
}
