// SPDX-License-Identifier: MIT
//
// Makes QEMU's two threads take turns when QEMU counts instructions: its main loop runs only while
// the thread of the emulated CPUs waits. It is a library that is loaded before QEMU's own.
//
// Where idle time passes at once (-icount sleep=off), the main loop advances the clock to the next
// timer as soon as it sees that all CPUs halt. But each timer wakes it, too, so it looks while the
// CPUs run. Two moments cause errors. First, it may look between the instruction that halts the
// last CPU and the line of QEMU that adds up the instructions since the last timer. Then the clock
// advances too far by that number. Second, it may look just after that line. Then the timer that
// makes CPUs take turns keeps another phase. The result depends on how the host schedules two
// threads, so a run of the same guest occasionally differs. QEMU's record mode excludes the first
// error, for machines with one CPU.
//
// Invariant: after the main thread takes the lock of all devices, and until it wakes the CPUs'
// thread, that thread is in pthread_cond_wait().

#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Bounds the wait for actions that only the main loop can do while the CPUs are permanently busy.
// An example is switching off a guest whose kernel asked for that and now tests in a loop whether
// it was done.
enum { PATIENCE_MS = 10000 };

// The lock of all devices. The main thread waits with it once it has started the CPUs' thread.
static pthread_mutex_t *_Atomic device_lock;
// The condition that the CPUs' thread waits for.
static pthread_cond_t *_Atomic cpus_woken;
// UNKNOWN: the CPUs' thread has not waited in the known way, and QEMU is left unchanged.
static _Atomic enum { UNKNOWN, WAITING, RUNNING } cpus;
// Written to each time the CPUs' thread begins to wait.
static int doorbell = -1;

static struct {
    int (*lock)(pthread_mutex_t *);
    int (*wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*signal)(pthread_cond_t *);
    int (*broadcast)(pthread_cond_t *);
} libc;

static void find(const char *name, const char *version, void *function)
{
    *(void **)function = dlvsym(RTLD_NEXT, name, version);
}

// Libraries that start before this one call the functions that are replaced here.
static void prepare(void)
{
    if (doorbell >= 0)
        return;
    find("pthread_mutex_lock", "GLIBC_2.2.5", &libc.lock);
    find("pthread_cond_wait", "GLIBC_2.3.2", &libc.wait);
    find("pthread_cond_signal", "GLIBC_2.3.2", &libc.signal);
    find("pthread_cond_broadcast", "GLIBC_2.3.2", &libc.broadcast);
    doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static bool in_main_thread(void)
{
    static _Thread_local enum { UNASKED, YES, NO } answer;
    if (answer == UNASKED)
        answer = gettid() == getpid() ? YES : NO;
    return answer == YES;
}

static void ring(void)
{
    uint64_t one = 1;
    (void)!write(doorbell, &one, sizeof one);
}

// Ends early if a signal comes: QEMU may be asked to end.
static void await_cpus(void)
{
    while (cpus == RUNNING) {
        struct pollfd bell = {.fd = doorbell, .events = POLLIN};
        if (poll(&bell, 1, PATIENCE_MS) <= 0)
            return;
        uint64_t rung;
        (void)!read(doorbell, &rung, sizeof rung);
    }
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    prepare();
    if (mutex == device_lock && in_main_thread())
        await_cpus();
    return libc.lock(mutex);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    prepare();
    if (in_main_thread() && !device_lock)
        device_lock = mutex;
    if (in_main_thread() || mutex != device_lock)
        return libc.wait(condition, mutex);
    cpus_woken = condition;
    cpus = WAITING;
    ring();
    int result = libc.wait(condition, mutex);
    cpus = RUNNING;
    return result;
}

// The CPUs' thread counts as running from its wake-up, not from when the host lets it run.
static void note_waking(const pthread_cond_t *condition)
{
    if (condition == cpus_woken)
        cpus = RUNNING;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    prepare();
    note_waking(condition);
    return libc.signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    prepare();
    note_waking(condition);
    return libc.broadcast(condition);
}
