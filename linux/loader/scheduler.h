/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SCHEDULER_H
#define LINUX_LOADER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "objects.h"
#include "text.h"

#include "policies/support/scheduler_text.h"

/*
 * By what this machine schedules: a policy of ours, or the kernel's own fair
 * class, which goes by the name "fair" here. All of it belongs to the main thread.
 */

#define FAIR_CLASS "fair"
#define OTHERS                                                                                     \
    "scx:" /* what stands before the name of a scheduler that another program has loaded */

struct scheduler_options {
    const char *objects; /* folder */
    uint64_t seed;
    unsigned load_limit_s; /* after which a load is broken off */
    bool ignore_limits;    /* a policy takes over although limits_in_use() */
    enum told told;
};

struct trace_settings;

/* Loads what every policy needs; the fair class stays in force. Returns 0, or a negative errno, and
 * said.
 */
int scheduler_begin(const struct scheduler_options *options);
/* The fair class is in force when this returns, and the trace complete. Returns 0, or a negative
 * errno, and said: it is not. */
int scheduler_end(void);

/*
 * Commands. Each is obeyed, or nothing has changed, and scheduler_problem() says
 * why. They may change the line. What they give besides 0 and a negative errno:
 */
#define SCHEDULER_IS_LOADING 1 /* ask again once scheduler_handle_loaded() was called */

/* "POLICY[:PRESET]", "fair", "PID VALUE", "PID ATTRIBUTE VALUE" or "group NUMBER FIELD VALUE" */
int scheduler_obey(char *line);
/* "NAME VALUE" or "NAME=VALUE" */
int scheduler_obey_tunables(char *line);
/* Begins the event trace; once. What the settings say of this machine is filled in. Returns 0, or a
 * negative errno, and said. */
int scheduler_begin_trace(struct trace_settings settings);
/* Returns why the trace has to end now, in words; null: it goes on, or there is none. */
const char *scheduler_trace_problem(void);
/* Loads what the policy of that name needs, and leaves the one in force. */
int scheduler_prepare(const char *name);
/* The policy, and its tunables from the beginning on. Texts as from a command line. */
int scheduler_choose(const char *name, char *const *settings, size_t count);
/* Would that be obeyed, as far as names and ranges go? Needs no scheduler_begin(). */
bool scheduler_accepts(const char *name, char *const *settings, size_t count);

/* Returns what was wrong with the last command that failed, or why the kernel has ended a policy
 * since; "" if neither has happened. */
const char *scheduler_problem(void);

/* "rr:table-scan", "fair", "scx:simple". */
const char *scheduler_name(void);

void scheduler_add_status(struct text *text);
void scheduler_add_tunables(struct text *text);
void scheduler_add_policies(struct text *text);
void scheduler_add_problem(struct text *text);

/* ---- what the main thread waits for ---- */

/* Returns a descriptor that is readable when a load has ended, or -1 if none goes on. */
int scheduler_loading(void);
void scheduler_handle_loaded(void);
/* To be called now and then while a load goes on, so that it ends at its limit. Returns true if it
 * is being broken off, which takes some calls. */
bool scheduler_check_load(void);
/* Breaks the load off: it is not wanted any more. */
void scheduler_abandon_load(void);
/* Has the kernel ended the policy, or another program brought one of its own? To be called now and
 * then. */
void scheduler_check_exit(void);

#endif
