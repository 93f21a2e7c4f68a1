/* SPDX-License-Identifier: MIT */
#ifndef SIM_LAST_WORDS_H
#define SIM_LAST_WORDS_H

#include "sim/simulator.h"

/*
 * Reports a policy's hook that accesses invalid memory, divides by zero or does not end, and exits
 * with MACHINE_BROKEN. Like the kernel's panic, the message has the reason and the addresses of the
 * active functions, which schedlab/machines/outcome.py converts to source lines.
 */
void last_words_begin(const struct simulator *simulator);
void last_words_end(void);

#endif
