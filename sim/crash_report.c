/* SPDX-License-Identifier: MIT */

#include "sim/crash_report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
#define backtrace(frames, most) 0 /* this C library has no backtrace() */
#endif

#include "abi/machine_status.h"
#include "sim/machine.h"
#include "sim/program_counter.h"

/* If no event happens in the simulated machine for this many CPU seconds, a hook does not end. */
#define PATIENCE 2

#define FRAMES_MAX 32

/* The machine. Global, because a signal handler has no arguments for it. */
static const struct simulator *watched;
static uint64_t seen_happening;
static uint32_t seconds_still;

/* Returns a number that changes with every event in the machine. */
static uint64_t happening(const struct simulator *simulator)
{
    const struct simulator_counts *counts = &simulator->counts;
    return simulator->now + counts->decisions + counts->wakeups + counts->forks + counts->ticks +
           simulator->idle_acts;
}

/* Reports the failure. Calls functions that a signal handler should not call, because the process
 * ends anyway. */
static _Noreturn void say(const char *what, const siginfo_t *information, const void *context)
{
    void *frames[FRAMES_MAX];
    uint64_t pc = program_counter(context);
    int count = backtrace(frames, FRAMES_MAX);
    bool has_started = false;
    fprintf(stderr,
            "schedlab-sim: policy %s at %" PRIu64 " ns: %s in schedlab-sim at pc 0x%" PRIx64,
            watched->policy_name, watched->now, what, address_in_program(pc));
    if (information)
        fprintf(stderr, ", address 0x%" PRIx64, (uint64_t)information->si_addr);
    fprintf(stderr, "\n");
    for (int i = 0; i < count; i++) {
        uint64_t address = (uint64_t)frames[i];
        if (has_started)
            fprintf(stderr, "  0x%" PRIx64 "\n", address_in_program(address - 1));
        has_started |= address == pc;
    }
    _exit(MACHINE_BROKEN);
}

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE};

static void on_fault(int number, siginfo_t *information, void *context)
{
    const char *what = number == SIGFPE ? "division by zero" : "segmentation fault";
    say(what, number == SIGFPE ? NULL : information, context);
}

static void on_second(int number, siginfo_t *information, void *context)
{
    uint64_t now = happening(watched);
    (void)number;
    (void)information;
    seconds_still = now == seen_happening ? seconds_still + 1 : 0;
    seen_happening = now;
    if (seconds_still >= PATIENCE)
        say("endless loop", NULL, context);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(number, &action, NULL);
}

static void set_timer(time_t seconds)
{
    const struct itimerval every = {{seconds, 0}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &every, NULL);
}

void last_words_begin(const struct simulator *simulator)
{
    watched = simulator;
    handle(SIGVTALRM, on_second);
    set_timer(1);
#if !__has_feature(address_sanitizer) /* AddressSanitizer reports by itself */
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        handle(faults[i], on_fault);
#else
    (void)on_fault;
#endif
}

/* A signal may still be on its way: it is dropped, since the simulator's memory is about to go. */
void last_words_end(void)
{
    set_timer(0);
    signal(SIGVTALRM, SIG_IGN);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        signal(faults[i], SIG_DFL);
    watched = NULL;
}
