/* SPDX-License-Identifier: MIT */

/*
 * The seven tests of study 1, section 4.2, which measure priority scheduling:
 * those of timingtests with priorities, and another I/O-bound test.
 */

#include "workloads/api/suite.h"

#define ANY PRIORITY_UNCHANGED

enum { CPU_HEAVY, SWITCH, IO_BOUND, MIXED, CREATION, SHORT, STARVATION, TESTS };

static struct suite_test tests[TESTS] = {
    [CPU_HEAVY] = {"cpu-heavy", {{"cpu", 10, ANY, 1, 20000000, 0, false}}, 0, false, 0},
    [SWITCH] = {"switch", {{"switch", 200, ANY, 0, 0, 0, false}}, 1, false, 0},
    [IO_BOUND] = {"io-bound",
                  {{"io-5", 25, 5, 10, 100000, 1, false}, {"io-0", 25, 0, 10, 100000, 1, false}},
                  0,
                  false,
                  0},
    [MIXED] = {"mixed",
               {{"mix-io", 5, 10, 1, 0, 50, false}, {"mix-cpu", 5, 0, 1, 50000000, 0, false}},
               0,
               true,
               50},
    [CREATION] = {"creation", {{"create", 50, ANY, 0, 0, 0, false}}, 0, false, 0},
    [SHORT] = {"short", {{"short", 200, ANY, 1, 10000, 0, false}}, 50, false, 0},
    [STARVATION] = {"starvation",
                    {{"light", 1, 0, 1, 50000, 0, false}, {"heavy", 5, 10, 1, 20000000, 0, false}},
                    0,
                    false,
                    0},
};

/* In study 2, the I/O-bound test is that of timingtests. */
static void as_in_study_2(void)
{
    tests[IO_BOUND] =
        (struct suite_test){"io-bound", {{"sleep", 100, ANY, 1, 0, 10, false}}, 50, false, 0};
}

int main(int argc, char *argv[])
{
    static const struct suite suite = {
        "Study 1's priority tests: completion time and context switches. All, or the one that\n"
        "comes first: 1 cpu-heavy, 2 switch, 3 io-bound, 4 mixed, 5 creation, 6 short,\n"
        "7 starvation.",
        tests,
        TESTS,
        5,
        as_in_study_2,
    };
    return suite_run(&suite, argc, argv);
}
