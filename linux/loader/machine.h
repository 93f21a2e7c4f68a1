/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_MACHINE_H
#define LINUX_LOADER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policies/registry.h"

/* Properties of this machine, and whether it can run policies. */

#define KERNEL_FOLDER "/sys/kernel/sched_ext"

/* Returns the number of the highest CPU in use, plus 1, or 0 if the kernel does not say. */
uint32_t machine_cpus(void);
/* Returns true for a guest of QEMU without KVM, with several CPUs. Its CPUs take turns on one
 * thread of the host, and each CPU's time includes the others' turns. */
bool machine_cpus_take_turns(void);
/* Returns the time from one tick of the kernel's clock to the next: 1/CONFIG_HZ. */
uint64_t machine_tick_ns(void);

bool machine_has_sched_ext(void);
/* Returns true if a scheduler of sched_ext schedules the machine; `name` gets its name in the
 * kernel. */
bool machine_is_scheduled_by(char *name, size_t size);
/* Returns true if a scheduler of sched_ext is loaded, loading or unloading; `name` gets its name
 * in the kernel. */
bool machine_has_other_scheduler(char *name, size_t size);
/* Waits, for two seconds at most, until no policy is active. Returns false if one still is. */
bool machine_wait_for_fair_class(void);

/* Returns the features of the machine's fair class that the policy honours: limits.h. */
unsigned machine_honours(const struct policy *policy);

/* Requirements to check before anything is changed on a machine. */
struct machine_wishes {
    const char *objects;         /* directory of the BPF objects */
    const struct policy *policy; /* its object must exist; null: the fair class */
    const char *control;         /* directory for the control files */
    bool ignore_limits;
};

/*
 * Checks, and changes nothing. Returns true if all requirements are met. Prints the problems on
 * standard error and, with `tell_all`, the passed checks on standard output.
 */
bool machine_is_fit(const struct machine_wishes *wishes, bool tell_all);

/* Takes the exclusive right to serve on this machine, until the process ends. Returns false if
 * another process holds it. Writes the reason. */
bool machine_take_lock(char *why, size_t size);
void machine_release_lock(void);
/* Returns the PID of the server, or 0 if there is none. The server itself must not call it. */
pid_t machine_server(void);

#endif
