/* SPDX-License-Identifier: MIT */

/*
 * Priority inversion on one CPU. A thread of low priority has a lock; another one of low priority,
 * then one of high priority wait for it. A thread of medium priority computes. Prints which part of
 * its work, in thousandths, it completes before the thread of high priority has the lock. With
 * inheritance the number is small; otherwise it is almost 1000.
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONTROL "/run/schedlab/sched_status"

enum { HIGH = 0, MEDIUM = 5, LOW = 8, LOWEST = 9 };

/* Iterations of a loop, regardless of their time. */
#define OWNER_ROUNDS 1000000
#define HOG_ROUNDS   10000000

static pthread_mutex_t lock;
static atomic_int waiting; /* threads that have the lock or are about to request it */
static atomic_int hog_rounds;
static atomic_bool is_requested; /* the high-priority thread requests the lock */
static atomic_bool done;

static void set_priority(int priority)
{
    FILE *file = fopen(CONTROL, "we");
    if (!file || fprintf(file, "%d priority %d\n", gettid(), priority) < 0 || fclose(file))
        exit(2);
}

static void *held_by_low(void *priority)
{
    set_priority((int)(long)priority);
    waiting++;
    pthread_mutex_lock(&lock);
    while (!is_requested)
        ;
    for (volatile int round = 0; round < OWNER_ROUNDS; round++)
        ;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *compute(void *unused)
{
    set_priority(MEDIUM);
    while (!done && hog_rounds < HOG_ROUNDS)
        hog_rounds++;
    return unused;
}

static void begin(pthread_t *thread, void *(*function)(void *), int priority)
{
    if (pthread_create(thread, NULL, function, (void *)(long)priority))
        exit(2);
}

/* Waits until that many threads have the lock or wait for it; gives them time to arrive. */
static void await(int threads)
{
    while (waiting < threads)
        usleep(1000);
    usleep(5000);
}

int main(void)
{
    pthread_t owner;
    pthread_t next;
    pthread_t hog;
    pthread_mutexattr_t passes_on;
    cpu_set_t first_cpu;
    CPU_ZERO(&first_cpu);
    CPU_SET(0, &first_cpu);
    if (sched_setaffinity(0, sizeof(first_cpu), &first_cpu))
        return 2;
    pthread_mutexattr_init(&passes_on);
    pthread_mutexattr_setprotocol(&passes_on, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock, &passes_on);
    set_priority(HIGH);
    begin(&owner, held_by_low, LOWEST);
    await(1);
    begin(&next, held_by_low, LOW);
    await(2);
    begin(&hog, compute, 0);
    while (hog_rounds == 0) /* preempts the other two */
        usleep(1000);
    int before = hog_rounds;
    is_requested = true;
    pthread_mutex_lock(&lock);
    int after = hog_rounds;
    done = true;
    pthread_mutex_unlock(&lock);
    pthread_join(owner, NULL);
    pthread_join(next, NULL);
    pthread_join(hog, NULL);
    printf("%d\n", (after - before) / (HOG_ROUNDS / 1000));
    return 0;
}
