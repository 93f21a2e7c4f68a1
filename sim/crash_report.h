/* SPDX-License-Identifier: MIT */
#ifndef SIM_LAST_WORDS_H
#define SIM_LAST_WORDS_H

#include "sim/simulator.h"

/*
 * The command's message if a policy's hook accesses invalid memory, divides by zero or does not
 * end. It gives the reason and the addresses of the active functions, as in the kernel's panic
 * (schedlab/machines/broken_rule.py converts them to lines). Ends with MACHINE_BROKEN.
 */
void last_words_begin(const struct simulator *simulator);
void last_words_end(void);

#endif
