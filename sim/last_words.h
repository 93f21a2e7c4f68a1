/* SPDX-License-Identifier: MIT */
#ifndef SIM_LAST_WORDS_H
#define SIM_LAST_WORDS_H

#include "sim/simulator.h"

/*
 * What the command says if a policy's hook touches what is not there, divides by zero or does
 * not end: what it is, and the addresses of the functions that it is in, as in the kernel's
 * panic (schedlab/machines/broken_rule.py makes lines of them). Ends with MACHINE_BROKEN.
 */
void last_words_begin(const struct simulator *simulator);
void last_words_end(void);

#endif
