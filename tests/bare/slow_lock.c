/* SPDX-License-Identifier: MIT */

/*
 * Preloaded into QEMU: delays each guest CPU before it takes a lock. State that QEMU reads before
 * the lock and uses after it is then stale on every host, not only on a host that is busy at the
 * right instant.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MOMENT_NS 50000

static bool is_guest_cpu(void)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return strncmp(name, "CPU ", 4) == 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*lock)(pthread_mutex_t *);
    if (!lock)
        *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (is_guest_cpu())
        nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
    return lock(mutex);
}
