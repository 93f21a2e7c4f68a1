/* SPDX-License-Identifier: MIT */

/*
 * Saves machines in files. A file contains the machine's setup and all actions on the machine
 * (sim/recipe.h), not its memory. A file with memory could be crafted: the host cannot check a
 * policy's lists, heaps and trees, and one wrong pointer in them could read or write anywhere. So
 * restoring creates the machine again, and repeats all actions with the functions that check their
 * arguments. Restoring takes as long as the run took, without its trace.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/checkpoint_file.h"
#include "sim/control.h"
#include "sim/recipe_reading.h"
#include "sim/tracing.h"

#define NO_TRACE    "/dev/null" /* the trace's file while actions are repeated */
#define PIECE_TICKS 64

bool simulator_save(struct simulator *simulator, const char *path, struct simulator_error *error)
{
    if (simulator->trace.next)
        trace_flush(&simulator->trace);
    if (trace_failed(simulator) || simulator->status == SIMULATOR_FAILED) {
        *error = simulator->error;
        return false;
    }
    if (simulator->finished) {
        set_error(error, "the run is finished and cannot be saved");
        return false;
    }
    if (simulator->recipe.incomplete) {
        set_error(error, "out of memory while saving the machine's configuration");
        return false;
    }
    return checkpoint_write(simulator, path, error);
}

/* Returns true if more events have happened than the file declares. The file is then forged. This
 * check ensures that a forged file takes no longer than it declares. */
static bool is_too_much(const struct simulator *simulator, const struct simulator_counts *expected)
{
    struct simulator_counts now;
    simulator_count(simulator, &now);
    return now.now > expected->now || now.decisions > expected->decisions ||
           now.ticks > expected->ticks || now.forks > expected->forks ||
           now.wakeups > expected->wakeups || now.idle_switches > expected->idle_switches;
}

/* Returns true if the machine's counts match the file. (It ignores the number of records, which
 * differs if tracing had stopped.) */
static bool is_as_expected(const struct simulator *simulator,
                           const struct simulator_counts *expected)
{
    struct simulator_counts now;
    simulator_count(simulator, &now);
    now.records = expected->records;
    now.process_bytes = expected->process_bytes;
    return memcmp(&now, expected, offsetof(struct simulator_counts, processes)) == 0 &&
           now.processes == expected->processes;
}

static bool run_again(struct simulator *simulator, uint64_t until,
                      const struct simulator_counts *expected)
{
    struct simulator_error unused;
    uint64_t piece = PIECE_TICKS * simulator->scheduler.tick_ns;
    enum simulator_status status = SIMULATOR_TIME;
    for (bool ends = false; !ends && status == SIMULATOR_TIME;) {
        uint64_t next = simulator_next(simulator);
        ends = next >= until || until - next <= piece;
        status = simulator_run(simulator, ends ? until : next + piece, &unused);
        if (status == SIMULATOR_FAILED || is_too_much(simulator, expected))
            return false;
    }
    return true;
}

static bool act_with_text(struct simulator *simulator, const struct recipe_entry *entry,
                          struct recipe_rest *rest)
{
    struct simulator_error unused;
    const char *text = recipe_take_text(rest);
    if (!text)
        return false;
    return entry->act == ACT_POLICY ? simulator_set_policy(simulator, text, &unused)
                                    : simulator_set_tunable(simulator, text, &unused);
}

static bool add_again(struct simulator *simulator, struct recipe_rest *rest)
{
    struct simulator_error unused;
    struct simulator_workload workload;
    if (!recipe_take_workload(rest, &workload))
        return false;
    uint32_t first = simulator_add_workload(simulator, &workload, &unused);
    recipe_free_workload(&workload);
    return first != SIMULATOR_NO_PROGRAM;
}

static bool act_again(struct simulator *simulator, const struct recipe_entry *entry,
                      struct recipe_rest *rest, const struct simulator_counts *expected)
{
    struct simulator_error unused;
    int32_t pid = (int32_t)entry->first;
    switch ((enum recipe_act)entry->act) {
    case ACT_RUN:
        return run_again(simulator, entry->second, expected);
    case ACT_TOUCH:
        return begin_act(simulator, &unused);
    case ACT_FORK:
        return simulator_fork(simulator, entry->first, &unused) != 0;
    case ACT_KILL:
        return simulator_kill(simulator, pid, &unused);
    case ACT_WAKE:
        return simulator_wake(simulator, pid, &unused);
    case ACT_MIGRATE:
        return entry->second <= UINT32_MAX &&
               simulator_migrate(simulator, pid, (uint32_t)entry->second, &unused);
    case ACT_GIVE:
        return simulator_give(simulator, entry->first, entry->second, &unused);
    case ACT_ATTRIBUTE:
        return entry->third <= UINT32_MAX &&
               simulator_set_attribute(simulator, pid, (uint32_t)entry->third, entry->second,
                                       &unused);
    case ACT_POLICY:
    case ACT_TUNABLE:
        return act_with_text(simulator, entry, rest);
    case ACT_ADD:
        return add_again(simulator, rest);
    }
    return false;
}

/* Repeats all actions on the machine, and runs it to its time. */
static bool do_again(struct simulator *simulator, const struct checkpoint_header *header,
                     struct recipe_rest *rest)
{
    while (rest->bytes > 0) {
        const struct recipe_entry *entry = recipe_take(rest, 1, sizeof(*entry));
        if (!entry || !act_again(simulator, entry, rest, &header->counts))
            return false;
    }
    return !header->ran || run_again(simulator, header->until, &header->counts);
}

/* Creates the machine again from its recipe. Returns null if the recipe is not valid. */
static struct simulator *make_again(const struct checkpoint_header *header,
                                    struct recipe_rest *rest)
{
    struct simulator_error unused;
    struct simulator_setup setup;
    struct simulator_workload workload;
    if (!recipe_take_setup(rest, &setup) || !recipe_take_workload(rest, &workload))
        return NULL;
    setup.trace = header->traced ? NO_TRACE : NULL;
    struct simulator *simulator = simulator_create(&setup, &workload, &unused);
    recipe_free_workload(&workload);
    if (simulator && do_again(simulator, header, rest) &&
        is_as_expected(simulator, &header->counts))
        return simulator;
    simulator_destroy(simulator);
    return NULL;
}

/* Continues the trace in this file. */
static bool go_on_tracing(struct simulator *simulator, const struct checkpoint_header *header,
                          const char *path, const char *trace, struct simulator_error *error)
{
    close_trace(simulator);
    if (!trace)
        return true;
    if (header->traced)
        return open_trace(simulator, trace, error);
    set_error(error, "the checkpoint %s: its run had no trace, so it cannot continue with one",
              path);
    return false;
}

struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error)
{
    struct checkpoint_header header;
    unsigned char *recipe = NULL;
    struct simulator *simulator = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) {
        set_error(error, "the checkpoint %s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    const char *flaw = checkpoint_read(file, &header, &recipe);
    fclose(file);
    if (!flaw) {
        struct recipe_rest rest = {recipe, header.recipe_bytes};
        simulator = make_again(&header, &rest);
        flaw = simulator ? NULL : "it was changed: no run has this state";
    }
    free(recipe);
    if (flaw)
        set_error(error, "the checkpoint %s: %s", path, flaw);
    if (simulator && !go_on_tracing(simulator, &header, path, trace, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    return simulator;
}
