/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_WALK_H
#define EXPLORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Tests an assumption of the policy's invariants: states that differ only in their times are
 * equivalent. Two machines do the same random walks. One has all times moved back after each
 * operation, as in a search, and the other never has. Their policies must make the same decisions.
 * Returns false, after a line on stderr, if they do not.
 */
bool walks_agree(uint32_t walks, uint32_t length);
/* Returns the value of sim/checked/begins.h that changes decisions when clock and run times pass
 * it on otherwise equal random walks; null: none does. */
const char *value_that_changes_walks(uint32_t walks, uint32_t length);

#endif
