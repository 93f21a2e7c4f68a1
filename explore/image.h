/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_IMAGE_H
#define EXPLORE_IMAGE_H

#include <stdint.h>

#include "explore/machine.h"

/*
 * A state of the machine, as the words that differ from its initial state. Two states are equal if
 * these words are equal, byte for byte.
 */

#define IMAGE_BYTES_MOST 16384

struct fingerprint {
    uint64_t low; /* never 0 */
    uint64_t high;
};

/* Sets the present state as initial. `alike`: tasks that differ only in their slots are
 * equivalent. Returns false if the machine is too large. */
bool image_begin(uint32_t tasks, uint32_t queues, bool alike);
/* Sorts equivalent tasks by their properties, so that states which differ only in the order of
 * tasks become equal. order[i] is the former place of the task at i. */
void image_put_in_order(uint8_t *order);
/* Reduces all words between these two by this amount. */
void image_shift(uint64_t low, uint64_t high, uint64_t less);
/* Writes the machine's state. Returns its bytes. */
uint32_t image_take(uint8_t *image);
/* Sets the machine to that state. */
void image_restore(const uint8_t *image, uint32_t bytes);
/* 128 bits that identify a state. */
struct fingerprint image_fingerprint(const uint8_t *image, uint32_t bytes);

#endif
