/* SPDX-License-Identifier: MIT */

/* Functions for `play` on Linux. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/cpu_list.h"
#include "workloads/api/host.h"
#include "workloads/api/workload.h"

/* ---- the family: a process group, which the initially started process waits for ---- */

static pid_t family;

static void end_family(int signal_number)
{
    kill(-family, SIGKILL);
    _exit(128 + signal_number);
}

/* The signal handler of a member. */
static void end_descendants(int signal_number)
{
    (void)signal_number;
    kill(0, SIGKILL);
}

void host_begin_family(void)
{
    int status;
    family = fork();
    if (family < 0)
        host_fail("fork");
    setpgid(family, family ? family : getpid()); /* on both sides: neither waits for the other */
    if (family == 0) {
        signal(SIGTERM, end_descendants);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a child does not outlive the process that started it */
        return;
    }
    host_begin_arrivals(); /* it handles the family's end, regardless of what runs */
    signal(SIGINT, end_family);
    signal(SIGTERM, end_family);
    signal(SIGHUP, end_family);
    while (waitpid(family, &status, 0) < 0 && errno == EINTR)
        ;
    kill(-family, SIGKILL);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Its class precedes those of policies. Without the right to use it, the process may be late. */
void host_begin_arrivals(void)
{
    const struct sched_param parameters = {.sched_priority = 1};
    syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
}

void *host_shared_memory(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int host_open_path(const char *path, uint64_t *bytes)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status) < 0)
        return -1;
    *bytes = (uint64_t)status.st_size;
    return descriptor;
}

/* ---- channels: a taker draws a number, and waits until it is served, as in a shop ---- */

struct channel {
    uint64_t taken;   /* numbers that were drawn */
    uint64_t given;   /* lower numbers are served */
    uint32_t changes; /* of `given`: the word that waiters sleep on */
};

static struct channel *channels;

bool host_channels_make(uint32_t count)
{
    channels = host_shared_memory(count * sizeof(*channels));
    return channels != NULL;
}

/* Waiters sleep in 32 groups by their numbers, so that few are woken in vain. */
static uint32_t group_of(uint64_t number)
{
    return 1u << number % 32;
}

static void wake(struct channel *channel, uint64_t first, uint64_t end)
{
    uint32_t groups = end - first >= 32 ? UINT32_MAX : 0;
    for (uint64_t number = first; number < end && groups != UINT32_MAX; number++)
        groups |= group_of(number);
    __atomic_fetch_add(&channel->changes, 1, __ATOMIC_SEQ_CST);
    if (groups)
        syscall(SYS_futex, &channel->changes, FUTEX_WAKE_BITSET, INT32_MAX, NULL, NULL, groups);
}

bool host_channel_give(uint32_t number, uint64_t count, enum give_to to)
{
    struct channel *channel = &channels[number];
    uint64_t given = __atomic_load_n(&channel->given, __ATOMIC_SEQ_CST);
    uint64_t more;
    do {
        uint64_t taken = __atomic_load_n(&channel->taken, __ATOMIC_SEQ_CST);
        uint64_t waiting = taken > given ? taken - given : 0;
        more = to == GIVE_WAITING && count > waiting ? waiting : count;
    } while (!__atomic_compare_exchange_n(&channel->given, &given, given + more, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    wake(channel, given, given + more);
    return true;
}

static uint64_t draw_number(struct channel *channel)
{
    return __atomic_fetch_add(&channel->taken, 1, __ATOMIC_SEQ_CST);
}

static void await_service(struct channel *channel, uint64_t number)
{
    for (;;) {
        uint32_t changes = __atomic_load_n(&channel->changes, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&channel->given, __ATOMIC_SEQ_CST) > number)
            return;
        syscall(SYS_futex, &channel->changes, FUTEX_WAIT_BITSET, changes, NULL, NULL,
                group_of(number));
    }
}

/* It takes its number before it releases: so a signal in between belongs to it. */
bool host_channel_take(uint32_t number, int64_t released, int as)
{
    (void)as; /* Linux does not need the owner */
    uint64_t ticket = draw_number(&channels[number]);
    if (released != RELEASE_NONE)
        host_channel_give((uint32_t)released, 1, GIVE_KEEP);
    await_service(&channels[number], ticket);
    return true;
}

/* No other process takes there: so the numbers identify the last one. */
bool host_channel_meet(uint32_t number, uint64_t processes)
{
    uint64_t ticket = draw_number(&channels[number]);
    if ((ticket + 1) % processes == 0)
        host_channel_give(number, processes, GIVE_KEEP);
    await_service(&channels[number], ticket);
    return true;
}

/* ---- time ---- */

bool host_sleep_until(int64_t time)
{
    struct timespec until = {time / 1000000000, time % 1000000000};
    if (time <= workload_nanoseconds())
        return false;
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    return true;
}

void host_sleep_ns(int64_t time)
{
    host_sleep_until(workload_nanoseconds() + time);
}

void host_sleep_ticks(uint64_t ticks)
{
    int64_t tick = (int64_t)host_tick_ns();
    if (ticks > 0)
        host_sleep_until((workload_nanoseconds() / tick + (int64_t)ticks) * tick);
}

void host_set_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

bool host_set_affinity(int process, const uint64_t *cpus)
{
    size_t bytes = CPU_LIST_WORDS * sizeof(*cpus);
    return syscall(SYS_sched_setaffinity, process, bytes, cpus) == 0 || errno == ESRCH;
}

/* Tries shorter than a tick of the kernel: some of them have no interrupt. */
uint64_t host_burn_speed(void)
{
    return fastest_burn(50000, 60);
}
