/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_CHANNEL_H
#define KERNEL_SYNC_CHANNEL_H

#include <stdint.h>

/*
 * Channels: counting semaphores (Dijkstra 1965) of user programs. A set of them
 * belongs to the process that makes it and to the children that it has from then
 * on; it is gone when the last of them has ended. Processes that wait are served
 * in the order in which they came, or in which the policy lets them go on.
 */
struct channel_set;

void channel_init(void);

/* Returns the set, which a child joins, or null for null. */
struct channel_set *channel_set_join(struct channel_set *set);
/* Null is allowed. */
void channel_set_leave(struct channel_set *set);

/* Makes `count` empty ones for the current process, in place of those that it has. Returns 0,
 * -EINVAL, -ENOMEM.
 */
int64_t channels_make(int64_t count);
/* The channels are those of the current process's set. Gives one to the channel `released`, unless
 * that is RELEASE_NONE, and takes one, for which it may wait: both in one act. Returns 0, -EINVAL
 * (no such channel), -ERANGE (2^26 - 1 things lie in `released`), -EINTR. `as`: enum take_as. */
int64_t channel_take(int64_t channel, int64_t released, int as);
/* Waits there until `processes` have come; the last of them wakes the others. Returns 0, -EINVAL,
 * -EINTR.
 */
int64_t channel_meet(int64_t channel, int64_t processes);
/* `to`: enum give_to. Returns 0, -EINVAL, or -ERANGE: more than 2^26 - 1 things would lie there. */
int64_t channel_give(int64_t channel, int64_t count, int to);

#endif
