/* SPDX-License-Identifier: MIT */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/simulator.h"

/*
 * Acts upon a simulator from outside, between two calls of simulator_run(): for tests that decide
 * at run time, for bindings, and for a run that is saved and resumed.
 *
 * Each action happens at the machine's present time, takes no time, and belongs to no process: a
 * process that it wakes is woken by an interrupt. The CPUs involved are notified, as by another
 * CPU. They react in the next simulator_run(), even if that runs until the same time.
 *
 * A function that fails returns false with the reason; then nothing has happened. Acting on a
 * process that does not exist or has ended is such a failure; so is acting on a run that has ended.
 * (A run fails if all processes wait for each other. So a process that waits for an action from
 * outside needs another process that sleeps for long.)
 */

enum simulator_place {
    SIMULATOR_QUEUED = 1,
    SIMULATOR_RUNNING,
    SIMULATOR_BLOCKED,
    SIMULATOR_ENDED, /* and not reaped yet */
};

struct simulator_process {
    int32_t pid;
    int32_t parent;
    uint32_t place;   /* enum simulator_place */
    uint32_t cpu;     /* where it runs, is queued, or last ran */
    uint32_t program; /* its program; UINT32_MAX: it is init */
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    uint64_t run_time; /* ns, until now */
};

#define SIMULATOR_NO_PROGRAM UINT32_MAX

/* Adds a workload's programs, channels and texts to the existing ones, which are independent of
 * it. Times counted from the machine's start count from now. simulator_setup.added_steps must
 * reserve memory for it. Nothing is started. Returns the number of its first program, which the
 * others follow; SIMULATOR_NO_PROGRAM: failed. */
uint32_t simulator_add_workload(struct simulator *simulator,
                                const struct simulator_workload *workload,
                                struct simulator_error *error);
/* Returns the PID of a new child of init that runs the program, with the default attributes, or
 * 0 on failure. Init forks the workload's first process, which takes a turn on a CPU: processes
 * forked before that come earlier. */
int32_t simulator_fork(struct simulator *simulator, uint32_t program,
                       struct simulator_error *error);
/* Ends a process, but not init, when it next enters the kernel. A running process ends at its
 * next act or tick, a queued process when it gets a CPU, and a blocked process is woken to end.
 * Its children then belong to init. */
bool simulator_kill(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Ends a process's sleep, or its wait for a channel or a child, as if the awaited event had
 * happened. Not for init. */
bool simulator_wake(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Moves a queued process to another CPU's queue, as a policy's balance does. */
bool simulator_migrate(struct simulator *simulator, int32_t pid, uint32_t cpu,
                       struct simulator_error *error);
/* Puts `count` items into a channel, at most 2^32 - 1. If that is 0, gives one to each waiting
 * process. */
bool simulator_give(struct simulator *simulator, uint32_t channel, uint64_t count,
                    struct simulator_error *error);
/* `kind`: enum attribute_kind of policies/policy.h. */
bool simulator_set_attribute(struct simulator *simulator, int32_t pid, uint32_t kind,
                             uint64_t value, struct simulator_error *error);
/* "name" or "name:preset". */
bool simulator_set_policy(struct simulator *simulator, const char *text,
                          struct simulator_error *error);
/* "name=value". */
bool simulator_set_tunable(struct simulator *simulator, const char *text,
                           struct simulator_error *error);

/*
 * The texts of the schedlab kernel's files sched_status, sched_tunables and sched_policies
 * (docs/system-calls.md), as if they were read and written here.
 */

/* Writes at most `size` bytes of a file's text, with the final 0; returns the full length.
 * SIZE_MAX: no such file, or memory is short. */
size_t simulator_text(const struct simulator *simulator, const char *file, char *buffer,
                      size_t size);
/* Runs a line as a command: of sched_status "POLICY[:PRESET]" or "PID PRIORITY", of
 * sched_tunables "NAME VALUE" or "NAME=VALUE". */
bool simulator_command(struct simulator *simulator, const char *file, const char *line,
                       struct simulator_error *error);

/* Lists the processes that live or have not been reaped, including init, in the order of their
 * slots, up to the array's size. Returns their total number. */
uint32_t simulator_processes(const struct simulator *simulator, struct simulator_process *processes,
                             uint32_t room);

/*
 * Saves the machine's setup, and all actions on it, in a file, completely or not at all. Restoring
 * creates the machine again and repeats all actions, in this process or a later one of the same
 * build. A file of another build is refused, and so is a damaged, truncated or forged one. A
 * restored run continues exactly as the saved run would have. The traces before and after,
 * concatenated, are the trace of one run: a save writes all records so far to the trace's file.
 * `trace`: the file for later records; null: no further trace.
 *
 * Restoring takes as long as the run took until it was saved, without its trace.
 */
bool simulator_save(struct simulator *simulator, const char *path, struct simulator_error *error);
struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error);

#endif
