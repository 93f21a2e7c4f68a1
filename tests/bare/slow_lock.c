/* SPDX-License-Identifier: MIT */

/*
 * Loaded before QEMU's libraries: each CPU of the guest comes to a lock a moment
 * late. What QEMU reads before it takes a lock, and uses after it, is old by then
 * on any host, not only on one that was busy at the right instant.
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
