/* SPDX-License-Identifier: MIT */
#ifndef SIM_RECIPE_H
#define SIM_RECIPE_H

#include "sim/simulator.h"

/*
 * A recipe determines a machine. It contains the machine's setup, its workload, and all actions
 * from outside with their times. sim/checkpoint.c repeats them to create the same machine.
 *
 * Each part takes a multiple of 8 bytes. A text consists of its length, including the final 0, and
 * its characters. A workload consists of the numbers of programs, texts and channels, then each
 * program (name, number of steps, steps), then the texts, then the channels.
 */

enum recipe_act {
    ACT_RUN,   /* run until the time in the field `second` (ns) */
    ACT_TOUCH, /* a failed action, which has resumed ticks (begin_act()) */
    ACT_FORK,  /* in this act and the following acts, `first` and `second` are the function's
                * arguments */
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
 * costs, without the unused entries after their last policy. */
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
    size_t touched;     /* position of an ACT_TOUCH at the end; 0: none */
    bool incomplete;    /* memory was short, so the recipe is not complete */
    bool ran;           /* the machine ran since the last entry */
    uint64_t ran_until; /* end of this run (ns) */
};

/* Returns the bytes of a part with its padding. */
static inline size_t recipe_padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Returns the size of the costs (bytes), without the unused entries after their last policy. */
size_t recipe_costs_bytes(const struct simulator_costs *costs);

void recipe_begin(struct recipe *recipe, const struct simulator_setup *setup,
                  const struct simulator_workload *workload);
void recipe_end(struct recipe *recipe);

void recipe_note_run(struct recipe *recipe, uint64_t until);
/* Records that an action was requested. If the action succeeds, its entry replaces this entry. */
void recipe_note_touch(struct recipe *recipe);
void recipe_note(struct recipe *recipe, enum recipe_act act, uint32_t first, uint64_t second,
                 uint64_t third);
void recipe_note_text(struct recipe *recipe, enum recipe_act act, const char *text);
void recipe_note_workload(struct recipe *recipe, const struct simulator_workload *workload);

#endif
