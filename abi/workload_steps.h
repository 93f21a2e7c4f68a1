/* SPDX-License-Identifier: MIT */
#ifndef ABI_WORKLOAD_STEPS_H
#define ABI_WORKLOAD_STEPS_H

#include <stdint.h>

/*
 * A workload as programs of steps: what the simulator acts out by itself, and a
 * program of the kernel's user space by system calls. docs/simulator.md has it as text.
 */

enum workload_step_kind {
    STEP_RUN,         /* computes for `value` ns */
    STEP_RUN_UNTIL,   /* computes until it finds, on a CPU, that the time `value` has come */
    STEP_SLEEP,       /* for `value` ns, from when it does this */
    STEP_SLEEP_TICKS, /* until `value` ticks have passed, the next one counted as the first */
    STEP_SLEEP_UNTIL, /* until the time `value`; no sleep if it is over */
    STEP_TIMER,       /* until `value` after the timer `detail` of its own was due last, at first
                       * after its fork; no sleep if that is over, and the timer goes on from now,
                       * or, if `target` is 1, from then */
    STEP_YIELD,
    STEP_FORK, /* a child that does what program `target` says */
    STEP_WAIT, /* for a child to end, or, if `detail` is 1, for all of them; goes on at once if
                * there is none */
    STEP_TAKE, /* one of the channel `target`; waits if it is empty, first come, first served, or as
                * the policy says. `value`: before it, gives one to the channel `value` - 1; 0: to
                * none. `detail`: enum take_as */
    STEP_GIVE, /* `value` to the channel `target`; 0: one to each that waits there. `detail` 1: only
                * to those that wait */
    STEP_ATTRIBUTE,   /* `detail` (enum attribute_kind) of `target` becomes `value` */
    STEP_MARK,        /* `detail` (enum mark_kind), `value`: into the trace */
    STEP_SET_POLICY,  /* the machine's, to text `target`: "name" or "name:preset" */
    STEP_SET_TUNABLE, /* text `target`: "name=value" */
    STEP_LOOP, /* back to the step `target` of its program, which so is done `value` times in all;
                 0: for ever. `detail`: how many loops it is within */
    STEP_EXIT, /* with the status `value` */
    STEP_KILL, /* the process of program `target` that lives and was forked last; if there is none,
                * nothing happens */
    STEP_MEET, /* `value` processes meet at the channel `target`: waits there until it is the last
                * of them, which wakes the others and goes on */
    STEP_SHARED_TIMER, /* as STEP_TIMER, with the timer `target`, which all processes share: at
                        * first it counts from the fork of its first user. `detail`: 1 as
                        * `target` there */
    STEP_SETGROUP, /* `detail` (enum group_field) of the group of tasks `target` becomes `value` */
    STEP_JOB, /* marks that a job is done, and that the next one is released when the step TIMER of
               * the same `detail`, `target` and `value` would go on, which does not count here */
    STEP_AFFINITY, /* `target`, as of STEP_ATTRIBUTE, may run on the CPUs of text `value`: "0-3,8"
                    */
    STEP_ARRIVE,   /* sleeps until the time `value`, at which comes by itself what `detail` (enum
                    * arrival) says; at once if that is over, which is told as `late` */
    STEP_COUNT
};

enum arrival {
    ARRIVE_CHILD, /* plays program `target`, and has the attributes that this sets first */
    ARRIVE_THING, /* one, in the channel `target` */
    ARRIVE_SELF,  /* the process itself, which goes on before all that the policy orders */
    ARRIVE_LAST = ARRIVE_SELF
};

/* Of STEP_ATTRIBUTE and STEP_AFFINITY: the process that does it. Else `target` is a program, and
 * meant is the living process that was forked last to play it; if there is none, nothing happens.
 */
#define WORKLOAD_SELF UINT32_MAX

/* `target` of STEP_JOB: the job that was marked before does not come. */
#define JOB_NONE 2

#define WORKLOAD_LOOPS_MAX         8 /* within each other */
#define WORKLOAD_TIMERS_MAX        8 /* of a process */
#define WORKLOAD_SHARED_TIMERS_MAX 65536

struct workload_step {
    uint8_t kind;
    uint8_t detail;
    uint16_t reserved;
    uint32_t target;
    uint64_t value;
};

#endif
