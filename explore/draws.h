/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_DRAWS_H
#define EXPLORE_DRAWS_H

/*
 * Takes the place of policies/random.h, ahead of a policy that is explored: what would be drawn is
 * chosen by the search, which tries each of draw_values in turn. So a generator has no state, and a
 * policy that draws is explored for what may come of a draw, not for one sequence of numbers.
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
