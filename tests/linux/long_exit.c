/* SPDX-License-Identifier: MIT */

/*
 * Takes long to exit, because it must free much memory on a CPU where its child computes. Writes a
 * note to the trace when the exit begins.
 */

#define _GNU_SOURCE

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"

#define MEMORY (150ul << 20)

int main(void)
{
    cpu_set_t first_cpu;
    CPU_ZERO(&first_cpu);
    CPU_SET(0, &first_cpu);
    if (sched_setaffinity(0, sizeof(first_cpu), &first_cpu))
        return 1;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            ;
    }
    if (mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
             0) == MAP_FAILED)
        return 1;
    prctl(TRACE_MARK_PRCTL, (unsigned long)MARK_NOTE, 1ul, 0ul, 0ul);
    _exit(0);
}
