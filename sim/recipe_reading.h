/* SPDX-License-Identifier: MIT */
#ifndef SIM_RECIPE_READING_H
#define SIM_RECIPE_READING_H

#include "sim/recipe.h"

/* Reads the parts of a recipe in their order, from bytes that any program may have written. */

/* The unread rest. It lies at a multiple of 8. */
struct recipe_rest {
    unsigned char *next;
    size_t bytes;
};

/* Returns null if fewer bytes remain. */
void *recipe_take(struct recipe_rest *rest, uint64_t count, size_t item_bytes);
/* Returns null if there is no text. */
const char *recipe_take_text(struct recipe_rest *rest);
bool recipe_take_setup(struct recipe_rest *rest, struct simulator_setup *setup);
/* Names, steps, texts and channels keep their places. Returns false if there is no valid
 * workload; nothing must then be freed. */
bool recipe_take_workload(struct recipe_rest *rest, struct simulator_workload *workload);
void recipe_free_workload(struct simulator_workload *workload);

#endif
