/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_REQUESTS_H
#define LINUX_LOADER_REQUESTS_H

#include <stdbool.h>

#include "objects.h"

/* What policies in the kernel ask of the server: to have a process killed, or to see that the
 * kernel has ended the policy. What waits for it is in scheduler.h: scheduler_requests(),
 * scheduler_handle_requests(). It belongs to the main thread. */

/* Returns false if no requests can be heard; errno says why. */
bool requests_begin(void);
/* From now on what this object's policy asks for is heard. The object is loaded. */
void requests_watch(struct policy_object *object);
void requests_end(void);

#endif
