/* SPDX-License-Identifier: MIT */

/* Replaces sim/sched_ext/ in builds without files, which cannot read images. */

#include "sim/machine.h"
#include "sim/sched_ext/engine.h"

const struct policy policy_sched_ext = {.name = "scx"};
const struct engine engine_sched_ext = {.policy = &policy_sched_ext};

const char *sched_ext_path(const char *policy)
{
    (void)policy;
    return NULL;
}

struct sched_ext *sched_ext_create(const char *path, uint32_t cpus, uint32_t processes,
                                   struct simulator_error *error)
{
    (void)cpus;
    (void)processes;
    set_error(error, "%.200s: this build has no sched_ext", path);
    return NULL;
}

bool sched_ext_write_callbacks(struct sched_ext *ext, const char *path,
                               struct simulator_error *error)
{
    (void)ext;
    (void)path;
    (void)error;
    return false;
}

void sched_ext_destroy(struct sched_ext *ext)
{
    (void)ext;
}

const char *sched_ext_name(const struct sched_ext *ext)
{
    (void)ext;
    return "";
}
