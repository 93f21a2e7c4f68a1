/* SPDX-License-Identifier: MIT */

/* Tests that a timer's signal that is delivered after the run does not read the simulator. */

#include "sim/crash_report.c"

#include <stdlib.h>

int main(void)
{
    struct simulator *simulator = calloc(1, sizeof(*simulator));
    if (!simulator)
        return 1;
    for (int i = 0; i < 2; i++) {
        last_words_begin(simulator);
        last_words_end();
    }
    free(simulator);
    return raise(SIGVTALRM);
}
