/* SPDX-License-Identifier: MIT */

/* Shows a tunable of the scheduling policy, or sets it. */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 2 || argc > 3 || argv[1][0] == '-')
        usage("tunable NAME [VALUE]");
    if (argc == 3) {
        int64_t value = number_argument("tunable", argv[2], INT64_MIN + 1, INT64_MAX);
        return settunable(argv[1], value) < 0 ? complain("tunable", argv[1]) : 0;
    }
    int64_t value;
    if (gettunable(argv[1], &value) < 0)
        return complain("tunable", argv[1]);
    printf("%ld\n", value);
    return 0;
}
