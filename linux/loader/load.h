/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_LOAD_H
#define LINUX_LOADER_LOAD_H

#include "objects.h"

/* The load of a policy's object, of which one at most is under way: the verifier takes its time in
 * a thread, while the main thread, to which all of this belongs, goes on. What waits for it is in
 * scheduler.h: scheduler_loading(), scheduler_check_load(), scheduler_abandon_load(). */

/* The seconds after which a load is broken off. */
void load_limit(unsigned seconds);
/* Begins to load the object, unless that is done or under way. Returns 0 if it is loaded,
 * SCHEDULER_IS_LOADING or a negative errno. */
int load_need(struct policy_object *object);
/* Takes the end of the load, if it has ended. Returns the object if it is loaded now, or null. */
struct policy_object *load_finish(void);
/* Breaks the load off, and waits until it is. */
void load_end(void);

#endif
