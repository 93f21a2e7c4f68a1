/* SPDX-License-Identifier: MIT */

/*
 * Settings from workloads to the scheduler on Linux: by the files of `schedlab-linux serve`, in the
 * directory named by WORKLOAD_CONTROL, or /run/schedlab. Without these files no schedlab policy is
 * active. Then attributes are ignored, and the policy cannot be changed.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workloads/api/host.h"
#include "workloads/api/workload.h"

#include "abi/attribute_names.h"
#include "abi/group_names.h"

/* One write is one command. Returns false, with errno, on failure; ENOSYS: no server runs. */
static bool notify_scheduler(const char *file, const char *command)
{
    char path[4096];
    const char *folder = getenv("WORKLOAD_CONTROL");
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : "/run/schedlab", file);
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
        errno = errno == ENOENT ? ENOSYS : errno;
        return false;
    }
    size_t bytes = strlen(command);
    bool obeyed = write(descriptor, command, bytes) == (ssize_t)bytes;
    int error = errno;
    close(descriptor);
    errno = error;
    return obeyed;
}

/* Linux itself has two of the attributes, which its own class uses. */
static bool set_linux_attribute(int process, enum attribute_kind kind, uint64_t value)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } requested = {.size = sizeof(requested)};
    if (kind == ATTRIBUTE_NICE)
        return setpriority(PRIO_PROCESS, (id_t)process, (int)(int64_t)value) == 0;
    if (kind != ATTRIBUTE_SLICE)
        return true;
    if (syscall(SYS_sched_getattr, process, &requested, sizeof(requested), 0) < 0)
        return false;
    requested.runtime = value;
    return syscall(SYS_sched_setattr, process, &requested, 0) == 0;
}

/* A process that has ended needs no attributes any more. */
bool host_set_attribute(int process, enum attribute_kind kind, uint64_t value)
{
    if (!set_linux_attribute(process ? process : gettid(), kind, value))
        return errno == ESRCH;
    char command[64];
    snprintf(command, sizeof(command), "%d %s %" PRId64, process ? process : gettid(),
             attribute_names[kind], (int64_t)value);
    return notify_scheduler("sched_status", command) || errno == ENOSYS || errno == ESRCH;
}

bool host_set_group(uint32_t group, enum group_field field, uint64_t value)
{
    char command[64];
    snprintf(command, sizeof(command), "group %u %s %" PRId64, group, group_field_names[field],
             (int64_t)value);
    return notify_scheduler("sched_status", command);
}

bool host_set_policy(const char *text)
{
    return notify_scheduler("sched_status", text);
}

bool host_set_tunable(const char *text)
{
    return notify_scheduler("sched_tunables", text);
}

static void set_current(const char *what, enum attribute_kind kind, int value)
{
    if (!host_set_attribute(0, kind, (uint64_t)(int64_t)value))
        host_fail(what);
}

void workload_priority(int priority)
{
    set_current("setpriority", ATTRIBUTE_PRIORITY, priority);
}

void workload_tickets(int tickets)
{
    set_current("settickets", ATTRIBUTE_TICKETS, tickets);
}

void workload_weight(int weight)
{
    set_current("setweight", ATTRIBUTE_WEIGHT, weight);
}
