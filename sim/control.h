/* SPDX-License-Identifier: MIT */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/simulator.h"

/*
 * Acts upon a simulator from outside, between two calls of simulator_run(): for tests
 * that decide as they go, for bindings, and for a run that is put aside and continued.
 *
 * Each act happens at the time at which the machine stands, takes no time, and is no
 * process's: what it wakes is woken by an interrupt. CPUs that it
 * concerns are called, as by another CPU; so they hear of it in the next
 * simulator_run(), even if that is until the same time.
 *
 * A function that fails returns false and says why; then nothing has happened. A
 * process that is not there, or has ended, is such a failure; so is a run that is over.
 * (A run fails if all processes wait for each other: a process that is to wait for an act
 * from outside needs another one that sleeps for long.)
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
    uint32_t cpu;     /* that it runs on, is queued on, or ran on last */
    uint32_t program; /* that it plays; UINT32_MAX: it is init */
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    uint64_t run_time; /* ns, until now */
};

#define SIMULATOR_NO_PROGRAM UINT32_MAX

/* Adds a workload's programs, channels and texts to those that are there, of which they know
 * nothing; what counts from the machine's begin counts from now. There must be room:
 * simulator_setup.added_steps. Nothing is started. The number of its first program, which the
 * others follow; SIMULATOR_NO_PROGRAM: failed. */
uint32_t simulator_add_workload(struct simulator *simulator,
                                const struct simulator_workload *workload,
                                struct simulator_error *error);
/* Returns the PID of a child of init that plays the program, with the attributes of a process that
 * is given none, or 0 if it failed. The workload's first process is forked by init, which takes a
 * CPU's turn for it: what is forked before comes before it. */
int32_t simulator_fork(struct simulator *simulator, uint32_t program,
                       struct simulator_error *error);
/* It ends when it is in the kernel next: if it runs, at its next act or tick; if it is queued, when
 * it has a CPU; if it is blocked, it is woken for that. Its children are init's then. Not init. */
bool simulator_kill(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Ends the sleep of one that sleeps, or its waiting for a channel or a child, as if what it waits
 * for had come. Not init's. */
bool simulator_wake(struct simulator *simulator, int32_t pid, struct simulator_error *error);
/* Moves a queued process to another CPU's queue, as a balance of the policy does. */
bool simulator_migrate(struct simulator *simulator, int32_t pid, uint32_t cpu,
                       struct simulator_error *error);
/* Gives `count` things, at most 2^32 - 1, or if that is 0, one to each process that waits. */
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
 * The texts of our kernel's files sched_status, sched_tunables and sched_policies
 * (docs/system-calls.md), as if they were read and written here.
 */

/* Writes at most `size` bytes of a file's text, with the final 0; returns the full length.
 * SIZE_MAX: there is no such file, or no memory. */
size_t simulator_text(const struct simulator *simulator, const char *file, char *buffer,
                      size_t size);
/* Obeys a line: of sched_status "POLICY[:PRESET]" or "PID PRIORITY", of sched_tunables "NAME VALUE"
 * or "NAME=VALUE". */
bool simulator_command(struct simulator *simulator, const char *file, const char *line,
                       struct simulator_error *error);

/* The processes that live or have not been reaped, init among them, in the order of their slots:
 * as many as there is room for. Returns how many there are. */
uint32_t simulator_processes(const struct simulator *simulator, struct simulator_process *processes,
                             uint32_t room);

/*
 * Puts what the machine is made of, and all that was done to it, into a file, whole or not
 * at all; and makes it anew from that and does all of it again, in this process or a later
 * one of the same build. Another build's file is refused, and so is one that is damaged, cut
 * short or made up. What goes on then is what would have gone on, and the traces before and
 * after, one following the other, are the trace of one run: at a save, all so far is in the
 * trace's file. `trace`: the file that is written from now on; null: nothing more is traced.
 *
 * To restore takes as long as the run took until it was saved, without its trace.
 */
bool simulator_save(struct simulator *simulator, const char *path, struct simulator_error *error);
struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error);

#endif
