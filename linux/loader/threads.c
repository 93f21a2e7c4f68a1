/* SPDX-License-Identifier: MIT */

#include "threads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"

#include "policies/support/attributes.h"

#ifndef PIDFD_THREAD /* Linux 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

int store_attribute(int attributes, int32_t pid, uint32_t kind, int64_t value)
{
    struct task_attributes stored = {0};
    int thread = (int)syscall(SYS_pidfd_open, pid, PIDFD_THREAD);
    if (thread < 0)
        return errno == EINVAL ? -ESRCH : -errno;
    if (bpf_map_lookup_elem(attributes, &thread, &stored) || !stored.set) {
        SET_FIRST_ATTRIBUTES(&stored);
        stored.set = 1;
    }
    STORE_ATTRIBUTE(&stored, kind, value);
    int error = bpf_map_update_elem(attributes, &thread, &stored, BPF_ANY) ? -errno : 0;
    close(thread);
    return error;
}

/* Fields of /proc/PID/stat after the name, which may contain anything: state is the first. */
static bool thread_has_flags(int32_t pid, unsigned long flags, bool *ended)
{
    char path[64];
    char line[1024];
    unsigned long thread_flags = 0;
    char state = 'X';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_small_file(path, line, sizeof(line)) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &thread_flags);
    *ended = state == 'X' || state == 'Z';
    return thread_flags & flags;
}

#define PF_KTHREAD 0x00200000 /* of the kernel's task flags */

bool is_users_thread(int32_t pid)
{
    bool ended;
    return !thread_has_flags(pid, PF_KTHREAD, &ended) && !ended;
}

bool is_monitor_thread(int32_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d", pid);
    return access(path, F_OK) == 0;
}

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [HOST_TASK_RUNNABLE] = "runnable",
        [HOST_TASK_RUNNING] = "running",
        [HOST_TASK_BLOCKED] = "blocked",
        [HOST_TASK_ZOMBIE] = "zombie",
    };
    return state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "new";
}

void add_row(struct text *text, const struct scheduler_view *view, const struct host_task *row)
{
    char name[HOST_NAME + 1];
    snprintf(name, sizeof(name), "%.*s", HOST_NAME, row->name);
    struct task_view task = {
        .name = name,
        .pid = row->pid,
        .state = state_name(row->state),
        .priority = row->priority,
        .weight = row->weight,
        .slice = row->managed ? row->slice : 0,
        .tickets = row->managed ? row->drawn : row->tickets,
    };
    add_task(text, view, &task);
}

static struct host_task *read_rows(int descriptor, size_t *count)
{
    size_t room = 64 * sizeof(struct host_task);
    size_t length = 0;
    char *rows = malloc(room);
    ssize_t more = 1;
    while (rows && more > 0) {
        if (length == room) {
            char *larger = realloc(rows, room *= 2);
            if (!larger)
                break;
            rows = larger;
        }
        more = read(descriptor, rows + length, room - length);
        if (more < 0 && errno == EAGAIN)
            more = 1; /* the kernel stopped to let others run */
        else if (more > 0)
            length += (size_t)more;
    }
    if (rows && more) {
        free(rows);
        rows = NULL;
    }
    *count = length / sizeof(struct host_task);
    return (struct host_task *)rows;
}

struct host_task *read_tasks(const struct bpf_link *iterator, size_t *count)
{
    int descriptor = bpf_iter_create(bpf_link__fd(iterator));
    if (descriptor < 0)
        return NULL;
    struct host_task *rows = read_rows(descriptor, count);
    int error = errno;
    close(descriptor);
    errno = error;
    return rows;
}
