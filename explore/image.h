/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_IMAGE_H
#define EXPLORE_IMAGE_H

#include <stdint.h>

#include "explore/machine.h"

/*
 * A state of the machine, as the words in which it differs from the machine as it was at first.
 * Two states are one if these are equal, byte for byte.
 */

#define IMAGE_BYTES_MOST 16384

struct fingerprint {
    uint64_t low; /* never 0 */
    uint64_t high;
};

/* The machine is as at first. `alike`: tasks that differ in nothing but their place are alike.
 * Returns false if it is too large. */
bool image_begin(uint32_t tasks, uint32_t queues, bool alike);
/* If tasks are alike, puts them in an order that depends only on what is true of them, so that
 * states which differ in the order alone are one: order[i] is where the task was that is at i now.
 */
void image_put_in_order(uint8_t *order);
/* Lessens all words between these two by so much. */
void image_shift(uint64_t low, uint64_t high, uint64_t less);
/* Writes the machine's state. Gives its bytes. */
uint32_t image_take(uint8_t *image);
/* The machine is in that state. */
void image_restore(const uint8_t *image, uint32_t bytes);
/* 128 bits, by which states are told apart. */
struct fingerprint image_fingerprint(const uint8_t *image, uint32_t bytes);

#endif
