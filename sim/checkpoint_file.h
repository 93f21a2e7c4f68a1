/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKPOINT_FILE_H
#define SIM_CHECKPOINT_FILE_H

#include <stdio.h>

#include "sim/machine.h"

/* A checkpoint's file: a header, and the recipe (sim/recipe.h) that repeats the run. */

#define CHECKPOINT_BUILD_BYTES 64

struct checkpoint_header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;
    char build[CHECKPOINT_BUILD_BYTES];
    uint64_t recipe_bytes;
    uint64_t recipe_checksum;
    uint64_t until;  /* the end of the machine's last run */
    uint32_t ran;    /* 1: the machine ran since the recipe's last entry */
    uint32_t traced; /* 1: the trace is still being written */
    struct simulator_counts counts;
    uint64_t checksum; /* checksum of all fields before this one */
};

/* Writes the complete file, or no file. A power loss may leave an incomplete file; the checksum
 * detects it. */
bool checkpoint_write(const struct simulator *simulator, const char *path,
                      struct simulator_error *error);
/* Reads the header and the recipe, which the caller frees. Returns an error message, or null if the
 * file is valid. */
const char *checkpoint_read(FILE *file, struct checkpoint_header *header, unsigned char **recipe);

#endif
