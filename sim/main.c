/* SPDX-License-Identifier: MIT */
#include "sim/simulator.h"
int main(void)
{
    return 0;
}
