/* SPDX-License-Identifier: MIT */

#include "explore/laws/first_come.h"

static const struct law law = {.of_pick = first_come_first_served, .ranks = true};
