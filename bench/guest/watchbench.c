/* SPDX-License-Identifier: MIT */

/*
 * Measures the cost of monitoring: a fixed amount of work of several processes, of them one only
 * computing and the others computing and sleeping in turn. At the same time steer is asked for
 * sched_status at each period, as by a monitor. A period of 0: no monitoring. In instructions of
 * this CPU, for a machine with one CPU.
 *
 *     bench watched PROCESSES INSTRUCTIONS
 *     bench status-reads PROCESSES READS
 */

#include "user/library/user.h"

enum { LONG_WORK = 200000000, SHORT_WORK = 50000, ROUNDS_IN_ALL = 2000 };
enum { PAUSE_NS = 1000000, SETTLE_NS = 50000000 };

static const char question[] = "@@ 1 read sched_status\n";
static int *requests; /* shared with the children */

static uint64_t instructions(void)
{
    uint64_t count;
    __asm__ volatile(".option push\n .option arch, +zicsr\n csrr %0, 0xc02\n .option pop"
                     : "=r"(count)::"memory");
    return count;
}

static void compute(uint32_t iterations)
{
    for (uint32_t i = 0; i < iterations; i++)
        __asm__ volatile("" : "+r"(i));
}

static void doze(int64_t rounds)
{
    for (int64_t i = 0; i < rounds; i++) {
        compute(SHORT_WORK);
        sleep_ns(PAUSE_NS);
    }
}

/* Runs steer in a child, with `ends` as its console. */
_Noreturn static void become_steer(const int ends[2])
{
    static char *const steer[] = {"steer", NULL};
    close(0);
    dup(ends[0]);
    close(ends[0]);
    close(ends[1]);
    become_program("watchbench", steer);
}

/* Runs in a child, until it is killed. */
_Noreturn static void ask(int descriptor, int64_t period_ns)
{
    for (int64_t next = clock_ns() + period_ns;; next += period_ns) {
        sleep_until_ns(next);
        write(descriptor, question, (int)sizeof(question) - 1);
        ++*requests;
    }
}

/* Returns the PID of the requesting process. Steer's input ends when no process can send
 * requests any more, and then steer ends, too. */
static int start_watching(int64_t period_ns)
{
    int ends[2];
    if (pipe(ends) < 0)
        exit(complain("watchbench", "pipe"));
    if (fork() == 0)
        become_steer(ends);
    close(ends[0]);
    sleep_ns(SETTLE_NS); /* it first measures its own cost */
    int asker = fork();
    if (asker == 0)
        ask(ends[1], period_ns);
    close(ends[1]);
    return asker;
}

static void work(int64_t processes)
{
    for (int64_t i = 0; i < processes; i++) {
        if (fork() != 0)
            continue;
        if (i == 0)
            compute(LONG_WORK);
        else
            doze(ROUNDS_IN_ALL / (processes - 1));
        exit(0);
    }
    for (int64_t i = 0; i < processes; i++)
        wait(NULL);
}

int main(int argc, char *argv[])
{
    if (argc != 3)
        usage("watchbench PROCESSES PERIOD_MS");
    int64_t processes = number_argument("watchbench", argv[1], 2, 1000);
    int64_t period_ns = number_argument("watchbench", argv[2], 0, 1000) * 1000000;
    requests = shared_memory(sizeof(*requests));
    int asker = period_ns > 0 ? start_watching(period_ns) : 0;
    uint64_t start = instructions();
    work(processes);
    uint64_t took = instructions() - start;
    int reads = *requests;
    if (asker > 0)
        kill(asker);
    while (wait(NULL) > 0)
        ;
    printf("bench watched %ld %lu\n", processes, took);
    printf("bench status-reads %ld %d\n", processes, reads);
    return 0;
}
