/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_REQUESTS_H
#define LINUX_LOADER_REQUESTS_H

#include <stdbool.h>

#include "objects.h"

/* What policies in the kernel ask of the server: to have a process killed, or to see that the
 * kernel has ended the policy. It belongs to the main thread. */

struct request_listener {
    void (*policy_ended)(void); /* the kernel may have ended the policy */
    const char *(*policy_name)(void);
};

/* Returns false if no requests can be heard; errno says why. */
bool requests_begin(const struct request_listener *listener);
/* From now on what this object's policy asks for is heard. The object is loaded. */
void requests_watch(struct policy_object *object);
/* Returns an epoll descriptor: readable when a policy asks for something. */
int requests_descriptor(void);
void requests_handle(void);
void requests_end(void);

#endif
