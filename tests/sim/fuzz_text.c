/* SPDX-License-Identifier: MIT */

/* libFuzzer: any text is read as a workload or refused with a reason; one that is read, is run. */

#include <stdlib.h>
#include <string.h>

#include "sim/simulator.h"
#include "sim/workload.h"

#define TICK_NS 1000000

static void expect(bool good, const struct simulator_error *error)
{
    if (good == (error->text[0] == '\0'))
        return;
    __builtin_trap();
}

static void run(const struct simulator_workload *workload)
{
    struct simulator_error error = {""};
    const struct simulator_setup setup = {
        .policy = "rr", .cpus = 2, .processes = 16, .tick_ns = TICK_NS, .seed = 1};
    struct simulator *simulator = simulator_create(&setup, workload, &error);
    expect(simulator != NULL, &error);
    if (!simulator)
        return;
    /* Programs in which no time passes go on for millions of acts: those are not run. */
    simulator_destroy(simulator);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    struct simulator_error error = {""};
    struct simulator_workload workload;
    char *text = malloc(length + 1);
    if (!text)
        abort();
    memcpy(text, bytes, length);
    text[length] = '\0';
    bool read = simulator_read_workload(&workload, "fuzz", text, TICK_NS, &error);
    expect(read, &error);
    free(text);
    if (read) {
        run(&workload);
        simulator_free_workload(&workload);
    }
    return 0;
}
