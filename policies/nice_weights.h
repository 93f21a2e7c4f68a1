/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_NICE_WEIGHTS_H
#define SCHEDLAB_NICE_WEIGHTS_H

#include "policy.h"

/*
 * Linux's weights of the nice levels. Each level has about 1.25 times the weight of the next. So if
 * two tasks compete, one level more costs a task about a tenth of the CPU.
 */
#define NICE_WEIGHT_USUAL 1024 /* of nice 0 */

static const uint32_t nice_weights[NICE_LAST - NICE_FIRST + 1] = {
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, /* -20 to -11 */
    9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,  /* -10 to -1 */
    1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,   /* 0 to 9 */
    110,   87,    70,    56,    45,    36,    29,    23,    18,    15,    /* 10 to 19 */
};

POLICY_FUNCTION uint64_t nice_weight(int32_t nice)
{
    uint32_t level = (uint32_t)(nice - NICE_FIRST);
    return level <= NICE_LAST - NICE_FIRST ? nice_weights[level] : NICE_WEIGHT_USUAL;
}

#endif
