/* SPDX-License-Identifier: MIT */
#ifndef ABI_WORKLOAD_STEPS_H
#define ABI_WORKLOAD_STEPS_H

#include <stdint.h>

/*
 * A workload as programs of steps. The simulator runs them itself; a program of the kernel's user
 * space runs them by system calls. docs/simulator.md has their text form.
 */

enum workload_step_kind {
    STEP_RUN,         /* computes for `value` ns */
    STEP_RUN_UNTIL,   /* computes until it observes, on a CPU, that the time `value` has come */
    STEP_SLEEP,       /* for `value` ns, starting when it does this */
    STEP_SLEEP_TICKS, /* until `value` ticks have passed, the next one counted as the first */
    STEP_SLEEP_UNTIL, /* until the time `value`; no sleep if it has passed */
    STEP_TIMER,       /* until `value` after the last expiry of its timer `detail`, initially
                       * after its fork; no sleep if that has passed, and the timer restarts from
                       * now, or, if `target` is 1, from that time */
    STEP_YIELD,
    STEP_FORK, /* a child that runs program `target` */
    STEP_WAIT, /* for a child to end, or, if `detail` is 1, for all of them; continues at once if
                * there is none */
    STEP_TAKE, /* one of the channel `target`; waits if it is empty, first come, first served, or
                * in the policy's order. `value`: before it, gives one to the channel `value` -
                * 1; 0: to none. `detail`: enum take_as */
    STEP_GIVE, /* `value` to the channel `target`; 0: one to each process waiting there. `detail`
                * 1: only to waiting processes */
    STEP_ATTRIBUTE,   /* `detail` (enum attribute_kind) of `target` becomes `value` */
    STEP_MARK,        /* `detail` (enum mark_kind), `value`: into the trace */
    STEP_SET_POLICY,  /* the machine's, to text `target`: "name" or "name:preset" */
    STEP_SET_TUNABLE, /* text `target`: "name=value" */
    STEP_LOOP, /* back to the step `target` of its program, which is thus done `value` times in
                * all; 0: endlessly. `detail`: how many loops contain it */
    STEP_EXIT, /* with the status `value` */
    STEP_KILL, /* the living process of program `target` that was forked last; if there is none,
                * nothing happens */
    STEP_MEET, /* `value` processes meet at the channel `target`: waits there until it is the
                * last of them, which wakes the others and continues */
    STEP_SHARED_TIMER, /* like STEP_TIMER, with the timer `target`, which all processes share:
                        * initially it counts from the fork of its first user. `detail`: 1 like
                        * `target` there */
    STEP_SETGROUP, /* `detail` (enum group_field) of the group of tasks `target` becomes `value` */
    STEP_JOB,      /* marks that a job is done. The next one is released when the step TIMER of the
                    * same `detail`, `target` and `value` would continue; this does not count as its
                    * use */
    STEP_AFFINITY, /* `target`, as in STEP_ATTRIBUTE, may use the CPUs of text `value`: "0-3,8" */
    STEP_ARRIVE,   /* sleeps until the time `value`, when the event `detail` (enum arrival)
                    * happens by itself; at once if that has passed, which is reported as `late` */
    STEP_HOTPLUG,  /* the CPU `target`, which is not CPU 0, goes online if `detail` is 1, or
                    * offline. Only schedulers of sched_ext in the simulator allow this */
    STEP_COUNT
};

enum arrival {
    ARRIVE_CHILD, /* runs program `target`, and has the attributes that this sets first */
    ARRIVE_THING, /* one, in the channel `target` */
    ARRIVE_SELF,  /* the process itself, before all tasks that the policy orders */
    ARRIVE_LAST = ARRIVE_SELF
};

/* For STEP_ATTRIBUTE and STEP_AFFINITY: the process that does it. Otherwise `target` is a
 * program, and refers to its living process that was forked last; if there is none, nothing
 * happens. */
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
