/* SPDX-License-Identifier: MIT */

#include "sync/channel.h"

#include <stdbool.h>
#include <stddef.h>

#include "abi/errors.h"
#include "abi/system_calls.h"
#include "lib/list.h"
#include "memory/object.h"
#include "process/process.h"
#include "sync/wait_queue.h"

/* Nothing lies there while a process waits. */
struct channel {
    uint64_t count; /* that lie there */
    struct list takers;
};

struct channel_set {
    struct spinlock lock; /* guards all */
    uint32_t users;       /* processes that have it */
    uint32_t count;
    struct channel channels[CHANNELS_MAX];
};

/* A process that waits; lives on its kernel stack. */
struct taker {
    struct list link; /* of the channel, until it is served */
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

/* Returns null if there is none of this number. */
static struct channel *find_channel(struct channel_set *set, int64_t number)
{
    bool there = set && number >= 0 && number < set->count;
    return there ? &set->channels[number] : NULL;
}

/* To those that wait first. How many of `count` are left. */
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
    struct taker taker = {.served = false};
    int error = 0;
    wait_queue_init(&taker.woken, "taker");
    list_append(&channel->takers, &taker.link);
    while (!taker.served && !error)
        error = wait_on(&taker.woken, &set->lock, BLOCK_PIPE);
    if (!taker.served)
        list_remove(&taker.link);
    return error;
}

int64_t channel_take(int64_t number, int64_t released_number)
{
    struct channel_set *set = current_process()->channels;
    struct channel *channel = find_channel(set, number);
    struct channel *released = find_channel(set, released_number);
    int error = 0;
    if (!channel || (!released && released_number != RELEASE_NONE))
        return -EINVAL;
    spinlock_acquire(&set->lock);
    if (released)
        released->count += serve_takers(released, 1);
    if (channel->count > 0)
        channel->count--;
    else
        error = wait_to_be_served(set, channel);
    spinlock_release(&set->lock);
    return error;
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
    uint64_t left = serve_takers(channel, (uint64_t)count);
    if (to == GIVE_KEEP)
        channel->count += left;
    spinlock_release(&set->lock);
    return 0;
}
