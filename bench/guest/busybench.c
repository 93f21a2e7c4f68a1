/* SPDX-License-Identifier: MIT */

/*
 * Measures the total cost of a fixed amount of CPU-bound work, ticks and context switches included:
 * instructions of this CPU, for a machine with one CPU. Runs with and without tracing show the cost
 * of tracing.
 *
 *     bench cpu-bound 1 INSTRUCTIONS
 */

#include "user/library/user.h"

#define PROCESSES  8
#define ITERATIONS 20000000u

static uint64_t instructions(void)
{
    uint64_t count;
    __asm__ volatile(".option push\n .option arch, +zicsr\n csrr %0, 0xc02\n .option pop"
                     : "=r"(count)::"memory");
    return count;
}

static void compute(void)
{
    for (uint32_t i = 0; i < ITERATIONS; i++)
        __asm__ volatile("" : "+r"(i));
}

int main(void)
{
    uint64_t start = instructions();
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            compute();
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    printf("bench cpu-bound 1 %lu\n", instructions() - start);
    return 0;
}
