/* SPDX-License-Identifier: MIT */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/simulator.h"

/*
 * Controls a simulator from outside, between two calls of simulator_run(): for tests that decide at
 * run time, for bindings, and for a run that is saved and resumed.
 *
 * Each action happens at the machine's present time, takes no time, and belongs to no process: a
 * process that it wakes is woken by an interrupt. The CPUs involved are notified, as by another
 * CPU. These CPUs react in the next simulator_run(), even if its end time is the present time.
 *
 * A function that fails returns false with the reason, and changes nothing. Actions on a process
 * that does not exist or has ended fail; actions on a run that has ended fail, too. (A run fails if
 * all processes wait for each other. So if a process waits for an action from outside, another
 * process must be asleep.)
 */

enum simulator_place {
    SIMULATOR_QUEUED = 1,
    SIMULATOR_RUNNING,
    SIMULATOR_BLOCKED,
    SIMULATOR_ENDED, /* ended, and not reaped yet */
};

struct simulator_process {
    int32_t pid;
    int32_t parent;
    uint32_t place;   /* enum simulator_place */
    uint32_t cpu;     /* CPU where the process runs, is queued, or last ran */
    uint32_t program; /* number of its program; UINT32_MAX for init */
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    uint64_t run_time; /* ns, until now */
};

#define SIMULATOR_NO_PROGRAM UINT32_MAX

/* Adds a workload's programs, channels and texts to the existing ones, without starting a process.
 * New and existing programs cannot refer to each other. Times in the workload count from now.
 * simulator_setup.added_steps must have reserved enough memory. Returns the number of the
 * workload's first program, or SIMULATOR_NO_PROGRAM on failure. The other programs have the
 * following numbers. */
uint32_t simulator_add_workload(struct simulator *simulator,
                                const struct simulator_workload *workload,
                                struct simulator_error *error);
/* Forks a child of init that runs the program, with the default attributes. Returns the child's
 * PID, or 0 on failure. Init must run on a CPU before it forks the workload's first process. So a
 * process that is forked here at the start has a lower PID than the workload's first process. */
int32_t simulator_fork(struct simulator *simulator, uint32_t program,
                       struct simulator_error *error);
/* Ends a process, but not init, when it next enters the kernel. A running process ends at its next
 * act or tick, a queued process when it gets a CPU, and a blocked process is woken to end. The
 * children of the ended process become children of init. */
bool simulator_kill(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Ends a process's sleep, or its wait for a channel or a child, as if the awaited event had
 * happened. Fails for init. */
bool simulator_wake(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Moves a queued process to another CPU's queue, as a policy's balance does. */
bool simulator_migrate(struct simulator *simulator, int32_t pid, uint32_t cpu,
                       struct simulator_error *error);
/* Puts `count` items into a channel, at most 2^32 - 1. If `count` is 0, gives one item to each
 * waiting process. */
bool simulator_give(struct simulator *simulator, uint32_t channel, uint64_t count,
                    struct simulator_error *error);
/* Sets an attribute of a process. `kind`: enum attribute_kind of policies/policy.h. */
bool simulator_set_attribute(struct simulator *simulator, int32_t pid, uint32_t kind,
                             uint64_t value, struct simulator_error *error);
/* Switches to a policy. `text`: "name" or "name:preset". */
bool simulator_set_policy(struct simulator *simulator, const char *text,
                          struct simulator_error *error);
/* Sets a tunable of the policy. `text`: "name=value". */
bool simulator_set_tunable(struct simulator *simulator, const char *text,
                           struct simulator_error *error);

/*
 * Reads and writes the schedlab kernel's files sched_status, sched_tunables and sched_policies
 * (docs/system-calls.md), with the same texts.
 */

/* Copies at most `size` bytes of a file's text, including the final 0. Returns the length of the
 * full text, or SIZE_MAX if there is no such file or memory is short. */
size_t simulator_text(const struct simulator *simulator, const char *file, char *buffer,
                      size_t size);
/* Writes a line to a file, which runs a command. Commands of sched_status: "POLICY[:PRESET]" or
 * "PID PRIORITY". Commands of sched_tunables: "NAME VALUE" or "NAME=VALUE". */
bool simulator_command(struct simulator *simulator, const char *file, const char *line,
                       struct simulator_error *error);

/* Lists the processes that have not been reaped, including init, in the order of their slots, up to
 * the array's size. Returns the total number of these processes. */
uint32_t simulator_processes(const struct simulator *simulator, struct simulator_process *processes,
                             uint32_t room);

/*
 * simulator_save() saves the machine's setup and all actions on the machine in a file, completely
 * or not at all. simulator_restore() creates the machine again and repeats all actions, in this
 * process or a later process of the same build. It rejects a file of another build, and a damaged,
 * truncated or forged file. A restored run continues exactly as the saved run would have. Saving
 * writes all records so far to the trace's file, so the traces before and after can be
 * concatenated. `trace`: the file for later records; null: no further trace.
 *
 * Restoring takes as long as the run took until it was saved, without its trace.
 */
bool simulator_save(struct simulator *simulator, const char *path, struct simulator_error *error);
struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error);

#endif
