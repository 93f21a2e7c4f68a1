/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_DRAWS_H
#define EXPLORE_DRAWS_H

/*
 * Replaces policies/random.h for a policy under exploration: the search chooses each draw's result
 * and tries each of draw_values in turn. So a generator has no state, and the exploration covers
 * all possible results of a draw, not one sequence of numbers.
 */
#define SCHEDLAB_RANDOM_H

#include "policies/policy.h"

typedef uint64_t SHARED_MEMORY random_state_t;

/* Returns the number that the search has chosen for this draw. */
uint64_t chosen_draw(void);

POLICY_FUNCTION uint64_t random_splitmix(random_state_t *state)
{
    (void)state;
    return chosen_draw();
}

#endif
