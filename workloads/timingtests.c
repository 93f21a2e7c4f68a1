/* SPDX-License-Identifier: MIT */

/*
 * The seven tests of study 1, section 4.1, which measure round-robin: the time
 * until all processes have ended, and the number of context switches.
 * docs/workloads.md describes each with its parameters.
 */

#include "workloads/api/suite.h"

#define ANY PRIORITY_UNCHANGED

enum { CPU_HEAVY, SWITCH, IO_BOUND, MIXED, CREATION, SHORT, STARVATION, TESTS };

static struct suite_test tests[TESTS] = {
    [CPU_HEAVY] = {"cpu-heavy", {{"cpu", 10, ANY, 1, 20000000, 0, false}}, 0, false, 0},
    [SWITCH] = {"switch", {{"switch", 200, ANY, 0, 0, 0, false}}, 1, false, 0},
    [IO_BOUND] = {"io-bound", {{"sleep", 100, ANY, 1, 0, 10, false}}, 50, false, 0},
    [MIXED] = {"mixed",
               {{"mix-io", 5, ANY, 1, 0, 50, false}, {"mix-cpu", 5, ANY, 1, 50000000, 0, false}},
               0,
               true,
               50},
    [CREATION] = {"creation", {{"create", 50, ANY, 0, 0, 0, false}}, 0, false, 0},
    [SHORT] = {"short", {{"short", 200, ANY, 1, 10000, 0, false}}, 50, false, 0},
    [STARVATION] = {"starvation",
                    {{"light", 1, ANY, 1, 50000, 0, false},
                     {"heavy", 5, ANY, 1, 20000000, 0, false}},
                    0,
                    false,
                    0},
};

/* Its baseline, before it reduced two of the tests. */
static void as_in_study_2(void)
{
    tests[SWITCH].groups[0].processes = 500;
    tests[CREATION].groups[0].echo = true;
    tests[CREATION].batch = 1;
    tests[MIXED].shortest = false;
}

int main(int argc, char *argv[])
{
    static const struct suite suite = {
        "Study 1's timing tests: completion time and context switches. All, or the one that\n"
        "comes first: 1 cpu-heavy, 2 switch, 3 io-bound, 4 mixed, 5 creation, 6 short,\n"
        "7 starvation.",
        tests,
        TESTS,
        0,
        as_in_study_2,
    };
    return suite_run(&suite, argc, argv);
}
