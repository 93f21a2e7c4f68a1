/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_WALK_H
#define EXPLORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Tests the search's assumption that states are equivalent if only their times differ. Two machines
 * perform the same random walks; on one of them, all times are moved back after each operation, as
 * in a search. Both policies must decide the same. If not, prints a line on stderr and returns
 * false.
 */
bool walks_agree(uint32_t walks, uint32_t length);
/* Returns the value in sim/checked/begins.h that changes decisions when the clock or run times
 * pass it, on otherwise equal random walks; null if there is none. */
const char *value_that_changes_walks(uint32_t walks, uint32_t length);

#endif
