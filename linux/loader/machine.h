/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_MACHINE_H
#define LINUX_LOADER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policies/registry.h"

/* What this machine is, and whether policies can be brought to it. */

#define KERNEL_FOLDER "/sys/kernel/sched_ext"

/* Returns the number of the highest CPU in use, plus 1, or 0 if the kernel does not say. */
uint32_t machine_cpus(void);
/* Is this a guest of QEMU without KVM, with several CPUs? They take turns on one thread of the
 * host, and what one of them sees as time has the others' turns in it. */
bool machine_cpus_take_turns(void);
/* Returns the time from one tick of the kernel's clock to the next: 1/CONFIG_HZ. */
uint64_t machine_tick_ns(void);

bool machine_has_sched_ext(void);
/* Does a scheduler of sched_ext rule? Its name, as the kernel has it, in `name`. */
bool machine_is_scheduled_by(char *name, size_t size);
/* Is a scheduler of sched_ext loaded, or on its way in or out? Its name, as the kernel has it, in
 * `name`. */
bool machine_is_scheduled_otherwise(char *name, size_t size);
/* Waits, for two seconds at most, until no policy is in force. Returns false if one still is. */
bool machine_wait_for_fair_class(void);

/* Returns what the policy honours of what this machine shares out by the fair class: limits.h. */
unsigned machine_honours(const struct policy *policy);

/* What is asked of a machine before anything is changed on it. */
struct machine_wishes {
    const char *objects;         /* folder of the BPF objects */
    const struct policy *policy; /* whose object must be there; null: the fair class */
    const char *control;         /* folder for the control files */
    bool ignore_limits;
};

/*
 * Looks, and changes nothing. Returns true if all is well. Prints what is amiss on standard
 * error; with `tell_all`, what is well, too, on standard output.
 */
bool machine_is_fit(const struct machine_wishes *wishes, bool tell_all);

/* Takes the right to serve, which one process of the machine has, until it ends. Returns false if
 * another has it. Writes the reason. */
bool machine_take_lock(char *why, size_t size);
void machine_release_lock(void);
/* Returns the PID of the server, or 0 if there is none. The server itself must not ask. */
pid_t machine_server(void);

#endif
