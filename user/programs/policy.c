/* SPDX-License-Identifier: MIT */

/* Shows the scheduling policy, or switches to another one. */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    char policy[64];
    if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
        usage("policy [NAME[:PRESET]]");
    if (argc == 2)
        return setpolicy(argv[1]) < 0 ? complain("policy", argv[1]) : 0;
    if (getpolicy(policy, sizeof(policy)) < 0)
        return complain("policy", "getpolicy");
    printf("%s\n", policy);
    return 0;
}
