/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_DRAWS_H
#define EXPLORE_DRAWS_H

/*
 * Replaces policies/random.h in a policy that is explored.
 *
 * The search chooses the result of each random draw, and tries all of draw_values. So the
 * exploration covers every possible result of a draw, instead of one sequence of random numbers,
 * and a generator has no state.
 */
#define SCHEDLAB_RANDOM_H

#include "policies/policy.h"

typedef uint64_t SHARED_MEMORY random_state_t;

/* Returns the result that the search has chosen for the present draw. */
uint64_t chosen_draw(void);

POLICY_FUNCTION uint64_t random_splitmix(random_state_t *state)
{
    (void)state;
    return chosen_draw();
}

#endif
