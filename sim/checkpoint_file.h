/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKPOINT_FILE_H
#define SIM_CHECKPOINT_FILE_H

#include <stdio.h>

#include "sim/machine.h"

/* A checkpoint's file: a header, and the recipe. */

#define CHECKPOINT_BUILD_BYTES 64

struct checkpoint_header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;
    char build[CHECKPOINT_BUILD_BYTES];
    uint64_t recipe_bytes;
    uint64_t recipe_checksum;
    uint64_t until;  /* the time of its last run */
    uint32_t ran;    /* 1: it ran since the recipe's last entry */
    uint32_t traced; /* the trace is still being written */
    struct simulator_counts counts;
    uint64_t checksum; /* of everything before it */
};

/* Writes the whole file, or none. (Checksums detect a file that a power loss left incomplete.) */
bool checkpoint_write(const struct simulator *simulator, const char *path,
                      struct simulator_error *error);
/* Reads the header and the recipe, which the caller frees. Returns null, or what is wrong. */
const char *checkpoint_read(FILE *file, struct checkpoint_header *header, unsigned char **recipe);

#endif
