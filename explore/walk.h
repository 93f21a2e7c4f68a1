/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_WALK_H
#define EXPLORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a law assumes, so that states are one which differ in their times alone, is tried: on random
 * walks of two machines that do the same, of which one has all times moved back after each
 * operation, as in a search, and the other never has. Their policies must decide the same. Returns
 * false, after a line on stderr, if they do not.
 */
bool walks_agree(uint32_t walks, uint32_t length);
/* Returns the value of sim/checked/begins.h whose passing by clock and run times changes decisions
 * on random walks that are the same elsewhere; null: none does. */
const char *value_that_changes_walks(uint32_t walks, uint32_t length);

#endif
