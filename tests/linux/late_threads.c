// SPDX-License-Identifier: MIT
// Preloaded into QEMU: simulates a host that stops threads at the worst moments. Sometimes the
// thread of the emulated CPUs leaves their code late, and the main loop starts its next round late.
// Nothing else changes.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

static void be_late(uint32_t one_in, uint32_t most_us)
{
    static _Thread_local uint64_t drawn = 88172645463325252; // Xorshift (Marsaglia 2003).
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    if (drawn % one_in == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * (drawn / one_in % most_us)}, NULL);
}

__attribute__((noreturn)) void __longjmp_chk(sigjmp_buf place, int value)
{
    be_late(64, 100);
    siglongjmp(place, value);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *signals)
{
    static int (*behind)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    if (!behind)
        *(void **)&behind = dlsym(RTLD_NEXT, "ppoll");
    int ready = behind(files, count, limit, signals);
    be_late(4, 300);
    return ready;
}
