/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SERVE_H
#define LINUX_LOADER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SETTINGS_MAX 32

struct serve_options {
    const char *policy;
    char *settings[SETTINGS_MAX]; /* NAME=VALUE */
    size_t setting_count;
    size_t configured_settings; /* the first of these come from a configuration file */
    const char *control;
    const char *objects;
    const char *trace; /* null: no trace */
    bool trace_memory; /* the trace stays in memory until the end */
    bool trace_queues;
    unsigned trace_delay_ms;
    unsigned trace_limit_mib;
    bool background;
    bool dry_run;
    bool ignore_limits; /* policies start even where limits are in use that they do not honour */
    uint64_t seed;
    unsigned load_limit_s;
    int64_t trial_s; /* the server ends after this time; 0: no limit */
    pid_t lifeline;  /* the server ends with this process; 0: none */
};

/* Returns true if names and ranges are valid. Else prints why not. */
bool serve_is_right_usage(const struct serve_options *options);
/* Returns true if this machine can serve. Else prints why not. Changes nothing. */
bool serve_is_possible(const struct serve_options *options);
/* Returns the exit status. */
int serve(const struct serve_options *options);

#endif
