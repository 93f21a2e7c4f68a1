/* SPDX-License-Identifier: MIT */
#ifndef SIM_RECIPE_H
#define SIM_RECIPE_H

#include "sim/simulator.h"

/*
 * Everything that determines a machine, as bytes: its setup, its workload, and all actions from
 * outside with their times. Repeating them gives the same machine: sim/checkpoint.c.
 *
 * Each part takes a multiple of 8 bytes. A text is its length, with the final 0, and its
 * characters. A workload is its numbers of programs, texts and channels; each program's name,
 * number of steps and steps; the texts; the channels.
 */

enum recipe_act {
    ACT_RUN,   /* until `second` */
    ACT_TOUCH, /* the action failed, but ticks have resumed (begin_act()) */
    ACT_FORK,  /* in the following acts `first` and `second` are the function's arguments */
    ACT_KILL,
    ACT_WAKE,
    ACT_MIGRATE,
    ACT_GIVE,
    ACT_ATTRIBUTE,
    ACT_POLICY,  /* a text follows */
    ACT_TUNABLE, /* a text follows */
    ACT_ADD,     /* a workload follows */
};

struct recipe_entry {
    uint32_t act; /* enum recipe_act */
    uint32_t first;
    uint64_t second;
    uint64_t third;
};

/* The numbers of struct simulator_setup. Policy, tunables and shape follow as texts, then the
 * costs up to their last policy. */
struct recipe_setup {
    uint32_t cpus;
    uint32_t processes;
    uint64_t tick_ns;
    uint64_t seed;
    uint32_t added_steps;
    uint32_t trace_queues;
    uint64_t policy_clock;
    uint64_t policy_run_time;
};

struct recipe {
    unsigned char *bytes;
    size_t used;
    size_t room;
    size_t touched;     /* the position of a final ACT_TOUCH; 0: there is none */
    bool incomplete;    /* memory was short: it is not complete */
    bool ran;           /* since the last entry, */
    uint64_t ran_until; /* until this time */
};

/* Returns the bytes that a part of this length takes. */
static inline size_t recipe_padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Returns the bytes of the costs, up to their last policy. */
size_t recipe_costs_bytes(const struct simulator_costs *costs);

void recipe_begin(struct recipe *recipe, const struct simulator_setup *setup,
                  const struct simulator_workload *workload);
void recipe_end(struct recipe *recipe);

void recipe_note_run(struct recipe *recipe, uint64_t until);
/* Records that an action was requested. If it succeeds, its own entry replaces this one. */
void recipe_note_touch(struct recipe *recipe);
void recipe_note(struct recipe *recipe, enum recipe_act act, uint32_t first, uint64_t second,
                 uint64_t third);
void recipe_note_text(struct recipe *recipe, enum recipe_act act, const char *text);
void recipe_note_workload(struct recipe *recipe, const struct simulator_workload *workload);

#endif
