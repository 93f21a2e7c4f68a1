/* SPDX-License-Identifier: MIT */

/*
 * Explores every sequence of operations on the policy that is compiled in.
 *
 * Exit status 0: no rule was broken. MACHINE_BROKEN: a rule was broken; the shortest sequence that
 * breaks it is on stdout, and the error is on stderr, in the format of the checked simulator.
 * `./schedlab explore` reads both.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/machine_status.h"
#include "explore/image.h"
#include "explore/machine.h"
#include "explore/search.h"
#include "explore/walk.h"

#define WALKS       200
#define WALK_LENGTH 100

enum { EXIT_FAILED = 1, EXIT_WRONG_USAGE = 2 };

static const char usage[] = "usage: schedlab-explore POLICY TUNABLE=VALUE,... TASKS QUEUES DEPTH "
                            "SECONDS MEGABYTES WORKERS\n"
                            "                        ATTRIBUTES NAMED\n";

static const char *const ends[] = {
    [SEARCH_COMPLETE] = "complete", [SEARCH_DEPTH] = "depth",   [SEARCH_TIME] = "time",
    [SEARCH_MEMORY] = "memory",     [SEARCH_BROKEN] = "broken", [SEARCH_FAILED] = "failed",
};

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int count, char **arguments)
{
    if (count != 11) {
        fputs(usage, stderr);
        return EXIT_WRONG_USAGE;
    }
    struct setup setup = {
        .policy = arguments[1],
        .tunables = *arguments[2] ? arguments[2] : NULL,
        .tasks = number(arguments[3]),
        .queues = number(arguments[4]),
        .words = arguments[9],
        .acting = strcmp(arguments[10], "acting") == 0,
    };
    struct search_limits limits = {
        .depth = number(arguments[5]),
        .seconds = number(arguments[6]),
        .bytes = (uint64_t)number(arguments[7]) << 20,
        .workers = number(arguments[8]),
    };
    if (setup.tasks < 1 || setup.tasks > TASKS_MOST || setup.queues < 1 ||
        setup.queues > QUEUES_MOST || limits.workers < 1) {
        fprintf(stderr, "tasks: 1 to %d; queues: 1 to %d\n", TASKS_MOST, QUEUES_MOST);
        return EXIT_WRONG_USAGE;
    }
    if (!machine_begin(&setup))
        return EXIT_WRONG_USAGE;
    if (!image_begin(setup.tasks, setup.queues, machine_has_tasks_alike())) {
        fputs("the machine is too large\n", stderr);
        return EXIT_FAILED;
    }
    if (strcmp(arguments[10], "walking") == 0)
        return walks_agree(WALKS, WALK_LENGTH) ? 0 : EXIT_FAILED;
    const char *value = value_that_changes_walks(WALKS, WALK_LENGTH);
    if (value) {
        fprintf(stderr,
                "schedlab-sim: policy %s broke a rule: its decisions change while clock and run "
                "times pass %s\n",
                setup.policy, value);
        return MACHINE_BROKEN;
    }
    struct search_result result = search(&limits);
    printf("end %s depth %u states %" PRIu64 " transitions %" PRIu64 "\n", ends[result.end],
           result.depth, result.states, result.transitions);
    if (result.end == SEARCH_FAILED) {
        perror("schedlab-explore");
        return EXIT_FAILED;
    }
    if (result.end != SEARCH_BROKEN)
        return 0;
    search_print();
    fputs("the sequence that broke a rule no longer breaks one\n", stderr);
    return EXIT_FAILED;
}
