/* SPDX-License-Identifier: MIT */

#include "load.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "problem.h"
#include "scheduler.h"

static struct policy_object *loading; /* null: none */
static bool is_unwanted;
static time_t until;
static unsigned limit_s;

void load_limit(unsigned seconds)
{
    limit_s = seconds;
}

int load_need(struct policy_object *object)
{
    if (object->state == LOADED)
        return 0;
    if (object->state == LOADING)
        return SCHEDULER_IS_LOADING;
    if (object->load_error) {
        object->load_error = 0; /* the next request tries again */
        return fail(-EIO, "%s", object->problem.bytes);
    }
    if (loading)
        return SCHEDULER_IS_LOADING;
    int error = policy_object_begin_load(object);
    if (error)
        return fail(error,
                    "%s: cannot start a thread to "
                    "load it: %s",
                    object->policy->name, strerror(-error));
    loading = object;
    is_unwanted = false;
    until = time(NULL) + limit_s;
    return SCHEDULER_IS_LOADING;
}

int scheduler_loading(void)
{
    return loading ? loading->thread_done : -1;
}

struct policy_object *load_finish(void)
{
    if (!loading || !atomic_load(&loading->thread_is_done))
        return NULL;
    struct policy_object *object = loading;
    loading = NULL;
    int error = policy_object_finish_load(object);
    if (error && is_unwanted)
        object->load_error = 0;
    else if (error == -EINTR)
        text_add(&object->problem, ", because loading took more than %u s; raise --load-limit",
                 limit_s);
    if (object->load_error)
        say("%s", object->problem.bytes);
    return error ? NULL : object;
}

bool scheduler_check_load(void)
{
    if (!loading || (!is_unwanted && time(NULL) < until))
        return false;
    policy_object_interrupt_load(loading);
    return true;
}

void scheduler_abandon_load(void)
{
    is_unwanted = true;
    scheduler_check_load();
}

void load_end(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    while (loading && !atomic_load(&loading->thread_is_done)) {
        policy_object_interrupt_load(loading);
        nanosleep(&pause, NULL);
    }
    if (loading)
        policy_object_finish_load(loading);
    loading = NULL;
}
