/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_REGISTRY_H
#define SCHEDLAB_REGISTRY_H

/*
 * The policies of this program, and what is said about them in text. For hosts:
 * policies do not need it. Nothing here allocates, locks or calls a library.
 *
 * Texts are given with their length and need no null at the end, so that a part
 * of a command line or of a user's buffer will do.
 */

#include "policy.h"

/*
 * The sources of policies; written by tools/make_policy_table.sh from the names of
 * policies/NAME.c: rr, wrr, lottery, priority, mlfq, then the others by name. A
 * policy's place is its number, and 0 is what a machine starts with.
 *
 * Those that have numbers are followed by the sources in policies/studies/. Each bears the
 * name of a policy and holds presets of it, which have algorithms and tunables of their
 * own; to a person who chooses one it is a preset like the others.
 */
extern const struct policy *const policies[];
extern const uint32_t policies_count;       /* those that have numbers */
extern const uint32_t policy_sources_count; /* all */
extern const char *const policy_files[];    /* of each: the file's name, without folder and .c */

enum policy_error {
    POLICY_OK,
    POLICY_ERROR_TEXT, /* not of the form that is wanted */
    POLICY_ERROR_POLICY,
    POLICY_ERROR_PRESET,
    POLICY_ERROR_TUNABLE,
    POLICY_ERROR_RANGE,
};

/* What is wrong, as the end of an error message: "no such policy". */
const char *policy_error_text(enum policy_error error);

/* A policy, and the preset of it that gives its tunables their values. */
struct policy_choice {
    const struct policy *policy; /* the source that holds the preset */
    const struct preset *preset; /* null: the policy's own defaults */
};

#define NO_TUNABLE UINT32_MAX

/* Returns null if there is none of that name. */
const struct policy *policy_find(const char *name, size_t length);
const struct preset *preset_find(const struct policy *policy, const char *name, size_t length);

/* Returns the place of a tunable in policy->tunables and scheduler->tunable, or NO_TUNABLE if none
 * has that name. */
uint32_t tunable_find(const struct policy *policy, const char *name, size_t length);

/* The number of the policy that bears this name; policies_count: it has none. */
uint32_t policy_number(const struct policy *policy);
/* The place of `source` in policies; policy_sources_count: it is not there. */
uint32_t policy_source(const struct policy *source);
/* Returns the next source of the same name, which holds more presets, or null if there is none. */
const struct policy *policy_next_source(const struct policy *source);

/*
 * Reads "NAME", "NAME:PRESET" or a policy's number, which chooses the preset that says so. After
 * an error `*choice` is unchanged. POLICY_ERROR_POLICY or _PRESET.
 */
enum policy_error policy_choose(const char *text, size_t length, struct policy_choice *choice);

/* Gives every tunable the choice's value. Before policy->scheduler_init(). */
void policy_set_defaults(scheduler_t *scheduler, const struct policy_choice *choice);

/* The value that `choice` gives to the tunable at `index`. */
int64_t policy_default(const struct policy_choice *choice, uint32_t index);

/* Sets one tunable, or changes nothing. POLICY_ERROR_TUNABLE (no such index) or _RANGE. Before
 * policy->scheduler_init(). */
enum policy_error tunable_set(scheduler_t *scheduler, const struct policy *policy, uint32_t index,
                              int64_t value);

/*
 * Reads "NAME=VALUE" or "NAME VALUE", the value a decimal number, and checks its
 * range. After an error `*index` and `*value` are unchanged. POLICY_ERROR_TEXT,
 * _TUNABLE or _RANGE.
 */
enum policy_error tunable_parse(const struct policy *policy, const char *text, size_t length,
                                uint32_t *index, int64_t *value);

/*
 * Is what the policy says of itself sound? Null: yes; else what is wrong. Hosts
 * ask it of every policy once, when they start.
 */
const char *policy_flaw(const struct policy *policy);

#endif
