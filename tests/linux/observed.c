/* SPDX-License-Identifier: MIT */

/*
 * Uses everything that a trace of Linux shows: forks, pipes, threads, sleeps, yields, exec, a death
 * by signal. Just before its end, each thread marks Linux's statistics of it: nanoseconds running
 * ("run") and waiting ("wait"), and the number of times that it got a CPU ("turns").
 * tests/linux/traces holds recordings of it; tests/linux/test_linux_trace.py says how to make them
 * again.
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"

#define ROUNDS 20

static void mark(enum mark_kind kind, uint64_t value)
{
    prctl(TRACE_MARK_PRCTL, (unsigned long)kind, (unsigned long)value, 0ul, 0ul);
}

static uint64_t characters(const char *text)
{
    uint64_t value = 0;
    memcpy(&value, text, strlen(text) < 8 ? strlen(text) : 8);
    return value;
}

static void report(const char *name, uint64_t value)
{
    mark(MARK_NAME, characters(name));
    mark(MARK_VALUE, value);
}

static void report_account(void)
{
    char path[64];
    char text[128] = "";
    struct timespec ran;
    snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", gettid());
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof(text), file))
        exit(1);
    fclose(file);
    char *end;
    strtoull(text, &end, 10); /* ran until the last tick */
    uint64_t waited = strtoull(end, &end, 10);
    uint64_t turns = strtoull(end, &end, 10);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    report("run", (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec);
    report("wait", waited);
    report("turns", turns);
}

static void burn(int rounds)
{
    for (volatile int i = 0; i < rounds; i++)
        ;
}

static pid_t begin(const char *group)
{
    pid_t pid = fork();
    if (pid == 0)
        mark(MARK_GROUP, characters(group));
    return pid;
}

_Noreturn static void end(int status)
{
    report_account();
    _exit(status);
}

/* One process writes and waits for the answer of the other. */
static void play_ball(void)
{
    int outward[2];
    int back[2];
    char ball = 0;
    if (pipe(outward) || pipe(back))
        exit(1);
    if (begin("ball") == 0) {
        for (int i = 0; i < ROUNDS; i++)
            if (read(outward[0], &ball, 1) != 1 || write(back[1], &ball, 1) != 1)
                _exit(1);
        end(0);
    }
    if (begin("ball") == 0) {
        for (int i = 0; i < ROUNDS; i++)
            if (write(outward[1], &ball, 1) != 1 || read(back[0], &ball, 1) != 1)
                _exit(1);
        end(0);
    }
}

static void *work_in_thread(void *unused)
{
    for (int i = 0; i < ROUNDS / 4; i++) {
        burn(20000);
        usleep(500);
    }
    report_account();
    return unused;
}

static void run_threads(void)
{
    pthread_t threads[3];
    prctl(PR_SET_NAME, "threads");
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work_in_thread, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    end(0);
}

/* Calls exec() in a thread that is not the process's first. */
static void *become(void *program)
{
    execl(program, "observed", "was-thread", NULL);
    return NULL;
}

static void become_another(char *program)
{
    pthread_t thread;
    pthread_create(&thread, NULL, become, program);
    pthread_join(thread, NULL);
    _exit(1);
}

static void kill_one(void)
{
    pid_t pid = begin("killed");
    if (pid == 0)
        for (;;)
            burn(1000);
    usleep(3000);
    kill(pid, SIGKILL);
}

static void do_all(char *program)
{
    play_ball();
    for (int i = 0; i < 4; i++) {
        if (begin("short") == 0) {
            burn(2000);
            end(i);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (begin("yield") == 0) {
            for (int round = 0; round < ROUNDS; round++)
                sched_yield();
            end(0);
        }
    }
    if (begin("sleep") == 0) {
        for (int round = 0; round < ROUNDS; round++)
            usleep(300);
        end(0);
    }
    if (begin("threads") == 0)
        run_threads();
    if (begin("exec") == 0)
        become_another(program);
    for (int i = 0; i < 2; i++) {
        if (begin("cpu") == 0) {
            burn(3000000);
            end(0);
        }
    }
    kill_one();
}

int main(int count, char **arguments)
{
    if (count > 1)
        end(7);
    mark(MARK_BEGIN, 0);
    do_all(arguments[0]);
    while (wait(NULL) > 0)
        ;
    mark(MARK_END, 0);
    report_account();
    return 0;
}
