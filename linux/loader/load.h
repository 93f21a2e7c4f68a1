/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_LOAD_H
#define LINUX_LOADER_LOAD_H

#include "objects.h"

/* Loads a policy's object, one at a time at most. The verifier takes its time in a thread, while
 * the main thread, which owns all of this, continues. scheduler.h has the functions for what
 * waits: scheduler_loading(), scheduler_check_load(), scheduler_abandon_load(). */

/* Sets the seconds after which a load is aborted. */
void load_limit(unsigned seconds);
/* Begins to load the object, unless it is loaded or loading. Returns 0 if it is loaded,
 * SCHEDULER_IS_LOADING or a negative errno. */
int load_need(struct policy_object *object);
/* Completes the load if the thread has finished. Returns the object if it is loaded now, or
 * null. */
struct policy_object *load_finish(void);
/* Aborts the load, and waits for the thread. */
void load_end(void);

#endif
