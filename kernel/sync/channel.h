/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_CHANNEL_H
#define KERNEL_SYNC_CHANNEL_H

#include <stdint.h>

/*
 * Channels: counting semaphores (Dijkstra 1965) of user programs. A set of them belongs to the
 * process that creates it and to its later children; it is freed when the last of them has ended.
 * Waiting processes are served in the order of arrival, or in the policy's order.
 */
struct channel_set;

void channel_init(void);

/* Returns the set, which a child joins, or null for null. */
struct channel_set *channel_set_join(struct channel_set *set);
/* Null is allowed. */
void channel_set_leave(struct channel_set *set);

/* Creates `count` empty channels for the current process, replacing its present ones. Returns 0,
 * -EINVAL, -ENOMEM. */
int64_t channels_make(int64_t count);
/* The channels belong to the current process's set. Gives one to the channel `released`, unless
 * that is RELEASE_NONE, and takes one, possibly after waiting: both atomically. Returns 0,
 * -EINVAL (no such channel), -ERANGE (`released` has 2^26 - 1 items), -EINTR. `as`: enum
 * take_as. */
int64_t channel_take(int64_t channel, int64_t released, int as);
/* Waits there until `processes` have come; the last of them wakes the others. Returns 0,
 * -EINVAL, -EINTR. */
int64_t channel_meet(int64_t channel, int64_t processes);
/* `to`: enum give_to. Returns 0, -EINVAL, or -ERANGE: it would have more than 2^26 - 1 items. */
int64_t channel_give(int64_t channel, int64_t count, int to);

#endif
