/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_REGISTRY_H
#define SCHEDLAB_REGISTRY_H

/*
 * The policies of this program, and functions that read and describe them as
 * text. For hosts only. Nothing here allocates, locks or calls a library.
 *
 * Texts are passed with their length and need no terminating null. So a part of
 * a command line or of a user's buffer works.
 */

#include "policy.h"

/*
 * The sources of policies; written by tools/make_policy_table.sh from the names of policies/NAME.c:
 * rr, wrr, lottery, priority, mlfq, then the others by name. A policy's index is its number; a
 * machine starts with 0.
 *
 * The numbered policies are followed by the sources in policies/studies/. Each has the name of a
 * policy and holds presets of it, with separate algorithms and tunables. To a user, such a preset
 * is like any other.
 */
extern const struct policy *const policies[];
extern const uint32_t policies_count;       /* the numbered ones */
extern const uint32_t policy_sources_count; /* all */
extern const char *const policy_files[];    /* of each source: the file's name, without directory
                                             * and .c */

enum policy_error {
    POLICY_OK,
    POLICY_ERROR_TEXT, /* not in the expected form */
    POLICY_ERROR_POLICY,
    POLICY_ERROR_PRESET,
    POLICY_ERROR_TUNABLE,
    POLICY_ERROR_RANGE,
};

/* Returns what is wrong, as the end of an error message: "no such policy". */
const char *policy_error_text(enum policy_error error);

/* A policy and the preset that gives its tunables their values. */
struct policy_choice {
    const struct policy *policy; /* the source that holds the preset */
    const struct preset *preset; /* null: the policy's own defaults */
};

#define NO_TUNABLE UINT32_MAX

/* Returns null if no policy has that name. */
const struct policy *policy_find(const char *name, size_t length);
const struct preset *preset_find(const struct policy *policy, const char *name, size_t length);

/* Returns the place of a tunable in policy->tunables and scheduler->tunable, or NO_TUNABLE if none
 * has that name. */
uint32_t tunable_find(const struct policy *policy, const char *name, size_t length);

/* Returns the number of the policy with this name; policies_count: it has none. */
uint32_t policy_number(const struct policy *policy);
/* Returns the index of `source` in policies; policy_sources_count: not found. */
uint32_t policy_source(const struct policy *source);
/* Returns the next source of the same name, which holds more presets, or null if there is none. */
const struct policy *policy_next_source(const struct policy *source);

/*
 * Reads "NAME", "NAME:PRESET" or a policy's number, which chooses the preset that declares it.
 * After an error `*choice` is unchanged. POLICY_ERROR_POLICY or _PRESET.
 */
enum policy_error policy_choose(const char *text, size_t length, struct policy_choice *choice);

/* Gives every tunable the choice's value. Call it before policy->scheduler_init(). */
void policy_set_defaults(scheduler_t *scheduler, const struct policy_choice *choice);

/* Returns the value that `choice` gives to the tunable at `index`. */
int64_t policy_default(const struct policy_choice *choice, uint32_t index);

/* Sets one tunable, or changes nothing. POLICY_ERROR_TUNABLE (no such index) or _RANGE. Call it
 * before policy->scheduler_init(). */
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
 * Checks the policy's definition. Returns null if it is consistent, else what
 * is wrong. Hosts check every policy once, when they start.
 */
const char *policy_flaw(const struct policy *policy);

#endif
