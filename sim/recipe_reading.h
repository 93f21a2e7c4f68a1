/* SPDX-License-Identifier: MIT */
#ifndef SIM_RECIPE_READING_H
#define SIM_RECIPE_READING_H

#include "sim/recipe.h"

/* Reads the parts of a recipe in order. The bytes cannot be trusted, because any program may have
 * written them. */

/* The unread rest of a recipe. Its address is a multiple of 8. */
struct recipe_rest {
    unsigned char *next;
    size_t bytes;
};

/* Returns the next `count` elements, or null if fewer bytes remain. */
void *recipe_take(struct recipe_rest *rest, uint64_t count, size_t item_bytes);
/* Returns the next text, or null if there is none. */
const char *recipe_take_text(struct recipe_rest *rest);
bool recipe_take_setup(struct recipe_rest *rest, struct simulator_setup *setup);
/* Reads a workload. Its names, steps, texts and channels point into the recipe's bytes. Returns
 * false if the workload is invalid; the caller then frees nothing. */
bool recipe_take_workload(struct recipe_rest *rest, struct simulator_workload *workload);
void recipe_free_workload(struct simulator_workload *workload);

#endif
