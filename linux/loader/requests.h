/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_REQUESTS_H
#define LINUX_LOADER_REQUESTS_H

#include <stdbool.h>

#include "objects.h"

/* Requests of policies in the kernel to the server: kill a process, or notice that the kernel
 * has ended the policy. It belongs to the main thread. */

struct request_listener {
    void (*policy_ended)(void); /* the kernel may have ended the policy */
    const char *(*policy_name)(void);
};

/* Returns false if no requests can be received; errno gives the reason. */
bool requests_begin(const struct request_listener *listener);
/* Starts receiving the requests of this object's policy. The object must be loaded. */
void requests_watch(struct policy_object *object);
/* Returns an epoll descriptor: readable when a policy has a request. */
int requests_descriptor(void);
void requests_handle(void);
void requests_end(void);

#endif
