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
 * The machine's scheduler: a schedlab policy, or the kernel's fair class, whose name here is
 * "fair". All of it belongs to the main thread.
 */

#define FAIR_CLASS "fair"
#define OTHERS     "scx:" /* prefix of the name of a scheduler that another program has loaded */

struct scheduler_options {
    const char *objects; /* folder */
    uint64_t seed;
    unsigned load_limit_s; /* a load is aborted after this time */
    bool ignore_limits;    /* a policy starts even if limits_in_use() */
    enum detail detail;
};

struct trace_settings;

/* Loads the objects that every policy needs; the fair class stays active. Returns 0, or a
 * negative errno after a message. */
int scheduler_begin(const struct scheduler_options *options);
/* Returns with the fair class active and the trace complete. Otherwise returns a negative errno
 * after a message. */
int scheduler_end(void);

/*
 * Commands. If one fails, nothing has changed, and scheduler_problem() gives the reason. They may
 * change the line. Their results besides 0 and a negative errno:
 */
#define SCHEDULER_IS_LOADING 1 /* retry after scheduler_handle_loaded() was called */

/* "POLICY[:PRESET]", "fair", "PID VALUE", "PID ATTRIBUTE VALUE" or "group NUMBER FIELD VALUE" */
int scheduler_obey(char *line);
/* "NAME VALUE" or "NAME=VALUE" */
int scheduler_obey_tunables(char *line);
/* Begins the event trace; only once. Fills in the settings that describe this machine. Returns
 * 0, or a negative errno after a message. */
int scheduler_begin_trace(struct trace_settings settings);
/* Returns why the trace has to end now; null: it continues, or there is none. */
const char *scheduler_trace_problem(void);
/* Loads the objects for the named policy, and keeps the active one. */
int scheduler_prepare(const char *name);
/* Chooses the policy with its initial tunables. Texts as from a command line. */
int scheduler_choose(const char *name, char *const *settings, size_t count);
/* Returns true if the names and ranges are valid. Does not need scheduler_begin(). */
bool scheduler_accepts(const char *name, char *const *settings, size_t count);

/* Returns the error of the last failed command, or why the kernel has ended a policy since; ""
 * if neither has happened. */
const char *scheduler_problem(void);

/* "rr:table-scan", "fair", "scx:simple". */
const char *scheduler_name(void);

void scheduler_add_status(struct text *text);
void scheduler_add_tunables(struct text *text);
void scheduler_add_policies(struct text *text);
void scheduler_add_problem(struct text *text);

/* ---- events for the main thread ---- */

/* Returns a descriptor that is readable when a load has ended, or -1 if none is in progress. */
int scheduler_loading(void);
void scheduler_handle_loaded(void);
/* Must be called regularly during a load, so that it ends at its limit. Returns true while the
 * load is being aborted, which takes several calls. */
bool scheduler_check_load(void);
/* Aborts the load: it is not needed any more. */
void scheduler_abandon_load(void);
/* Checks whether the kernel has ended the policy, or another program has loaded a scheduler.
 * Must be called regularly. */
void scheduler_check_exit(void);

#endif
