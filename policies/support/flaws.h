/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_FLAWS_H
#define SCHEDLAB_FLAWS_H

/* Errors of a policy, or of a host's counts. */
enum queue_flaw {
    FLAW_NONE,
    FLAW_LOST,
    FLAW_HELD,
    FLAW_GIVEN,
    FLAW_COUNT,
    FLAW_VERDICT,
    FLAW_CPU,
    FLAW_PLACE,
};

/* The message that follows the policy's name. */
#define BROKE_A_RULE   "broke a rule: "
#define FLAW_LOST_TEXT BROKE_A_RULE "its pick() returned null while tasks are queued that may run"
#define FLAW_HELD_TEXT                                                                             \
    BROKE_A_RULE "its pick() held all tasks back, and no alarm is set that would let them run"
#define FLAW_GIVEN_TEXT BROKE_A_RULE "its pick() or steal() returned a task that is not queued"
#define FLAW_COUNT_TEXT "was in force when a run queue's count of running tasks was wrong"
#define FLAW_VERDICT_TEXT                                                                          \
    BROKE_A_RULE "its tick() or turn_over() returned a verdict that does not exist"
#define FLAW_CPU_TEXT                                                                              \
    BROKE_A_RULE "its place(), push() or balance() named a CPU that does not exist"
#define FLAW_PLACE_TEXT                                                                            \
    BROKE_A_RULE "its place() named a CPU on which the task may not run: task_may_run_on() tells"

#endif
