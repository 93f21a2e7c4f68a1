/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_IMAGE_H
#define EXPLORE_IMAGE_H

#include <stdint.h>

#include "explore/machine.h"

/*
 * Stores states of the machine.
 *
 * An image has the words that differ from the initial state. Two states are equal if their images
 * are equal, byte for byte.
 */

#define IMAGE_BYTES_MOST 16384

struct fingerprint {
    uint64_t low; /* never 0 */
    uint64_t high;
};

/* Makes the present state the initial one. `alike`: tasks that differ only in their slots are
 * equivalent. Returns false if the machine is too large. */
bool image_begin(uint32_t tasks, uint32_t queues, bool alike);
/* Sorts equivalent tasks by their contents, so that states that differ only in the order of
 * tasks become equal. Sets order[i] to the former place of the task that is now at i. */
void image_put_in_order(uint8_t *order);
/* Subtracts `less` from all words of the state with a value from `low` to `high`. */
void image_shift(uint64_t low, uint64_t high, uint64_t less);
/* Writes the machine's state to `image`, and returns the number of bytes. */
uint32_t image_take(uint8_t *image);
/* Restores the machine's state from an image. */
void image_restore(const uint8_t *image, uint32_t bytes);
/* Returns a 128-bit hash that identifies a state. */
struct fingerprint image_fingerprint(const uint8_t *image, uint32_t bytes);

#endif
