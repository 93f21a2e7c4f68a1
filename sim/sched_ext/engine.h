/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_ENGINE_H
#define SIM_SCHED_EXT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/simulator.h"

/*
 * The engine that runs schedulers of sched_ext, instead of a policy of schedlab. A policy named
 * "scx:IMAGE" is the image (image.h) of such a scheduler. engine_sched_ext follows Linux's
 * kernel/sched/ext.c in the order of operations.
 */

struct engine;
struct policy;
struct sched_ext;

/* A policy without hooks: the engine reads from it what every policy has, such as a name. */
extern const struct policy policy_sched_ext;
extern const struct engine engine_sched_ext;

/* Returns the path of the image if a policy's name is that of a sched_ext scheduler, or null. */
const char *sched_ext_path(const char *policy);

/* Reads an image. Returns null and the reason if that fails. */
struct sched_ext *sched_ext_create(const char *path, uint32_t cpus, uint32_t processes,
                                   struct simulator_error *error);
/* Writes a line for each later callback: time in ns, CPU, name, and PID or 0. */
bool sched_ext_write_callbacks(struct sched_ext *ext, const char *path,
                               struct simulator_error *error);
/* Null is allowed. */
void sched_ext_destroy(struct sched_ext *ext);
/* Returns the name that the scheduler gives itself. */
const char *sched_ext_name(const struct sched_ext *ext);

#endif
