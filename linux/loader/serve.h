/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SERVE_H
#define LINUX_LOADER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_MAX 32

struct serve_options {
    const char *policy;
    char *settings[SETTINGS_MAX]; /* NAME=VALUE */
    size_t setting_count;
    const char *control;
    const char *objects;
    const char *trace; /* null: no trace */
    bool trace_memory; /* the trace stays in memory until the end */
    bool trace_queues;
    unsigned trace_delay_ms;
    bool background;
    bool dry_run;
    bool ignore_limits; /* policies begin where limits are in use that they do not honour */
    uint64_t seed;
    unsigned load_limit_s;
    int64_t trial_s; /* after which it ends by itself; 0: it goes on */
};

/* Returns the exit status. */
int serve(const struct serve_options *options);

#endif
