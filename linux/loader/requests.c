/* SPDX-License-Identifier: MIT */

#include "requests.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "text.h"
#include "threads.h"

static int requests = -1; /* an epoll descriptor */
static struct request_listener listener;

bool requests_begin(const struct request_listener *who)
{
    listener = *who;
    requests = epoll_create1(EPOLL_CLOEXEC);
    return requests >= 0;
}

void requests_end(void)
{
    close(requests);
    requests = -1;
}

/* only once, regardless of the number of control groups */
static void say_that_numbers_are_used_up(void)
{
    static bool is_reported;
    if (!is_reported)
        say("a policy supports %d groups; further control groups count as part of their parents",
            GROUPS_MAX);
    is_reported = true;
}

/* A policy may not kill the kernel's threads, process 1 or this process. */
static int handle_policy_request(void *context, void *data, size_t size)
{
    const struct host_request *request = data;
    (void)context;
    if (size < sizeof(*request))
        return 0;
    if (request->kind == REQUEST_EXITED)
        listener.policy_ended();
    if (request->kind == REQUEST_FULL)
        say_that_numbers_are_used_up();
    if (request->kind != REQUEST_KILL || request->pid <= 1 || is_monitor_thread(request->pid) ||
        !is_users_thread(request->pid))
        return 0;
    if (kill(request->pid, SIGKILL) == 0)
        say("%s: killed %d", listener.policy_name(), request->pid);
    return 0;
}

void requests_watch(struct policy_object *object)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = object};
    int descriptor;
    if (policy_object_watch(object, handle_policy_request, NULL, &descriptor) ||
        epoll_ctl(requests, EPOLL_CTL_ADD, descriptor, &event))
        say("%s: its requests cannot be received: %s", object->policy->name, strerror(errno));
}

int requests_descriptor(void)
{
    return requests;
}

void requests_handle(void)
{
    struct epoll_event event;
    while (epoll_wait(requests, &event, 1, 0) > 0)
        policy_object_consume(event.data.ptr);
}
