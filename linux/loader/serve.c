/* SPDX-License-Identifier: MIT */

/*
 * The server: brings policies to this machine, and leaves it to the fair class however it ends. One
 * thread does all of it, waiting for events. It has real-time priority and locked memory, so that
 * no policy can delay a request to stop.
 */

#include "serve.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control_files.h"
#include "machine.h"
#include "requests.h"
#include "scheduler.h"
#include "supervisor.h"
#include "text.h"
#include "trace.h"

#define FAILED      1
#define WRONG_USAGE 2
/* Nanoseconds between checks whether the kernel has ended the policy, and whether a load takes
 * too long; and while a load is being aborted. */
#define LOOK_EVERY 1000000000
#define LOOK_SOON  50000000

struct server {
    int events; /* an epoll descriptor */
    int signals;
    int status_timer; /* a timer */
    int trial;        /* a timer that ends the server; -1: none */
    int lifeline;     /* the server ends with this process; -1: none */
    int loading;      /* descriptor for the end of a load; -1: none */
    int ready_to;     /* a pipe to notify when the server is ready; -1: none */
    bool ended;
};

/* ---- before anything is changed ---- */

/* Returns null for the fair class. */
static const struct policy *policy_named(const char *name)
{
    struct policy_choice choice;
    return policy_choose(name, strlen(name), &choice) ? NULL : choice.policy;
}

bool serve_is_right_usage(const struct serve_options *options)
{
    if (scheduler_accepts(options->policy, options->settings, options->setting_count))
        return true;
    say("%s", scheduler_problem());
    return false;
}

static void report_plan(const struct serve_options *options)
{
    printf("would lock its memory and take real-time priority (SCHED_FIFO)\n"
           "would load the BPF objects of %s\n",
           options->objects);
    if (strcmp(options->policy, FAIR_CLASS))
        printf("would switch all threads of the fair class to the policy %s\n", options->policy);
    else
        printf("would keep all threads in the fair class\n");
    for (size_t i = 0; i < options->setting_count; i++)
        printf("would set %s\n", options->settings[i]);
    if (options->trace)
        printf("would write an event trace to %s\n", options->trace);
    printf("would mount the control files at %s\n"
           "would undo all of this when it ends; nothing was changed\n",
           options->control);
}

bool serve_is_possible(const struct serve_options *options)
{
    struct machine_wishes wishes = {
        .objects = options->objects,
        .policy = policy_named(options->policy),
        .control = options->control,
        .ignore_limits = options->ignore_limits,
    };
    return machine_is_fit(&wishes, options->dry_run);
}

/* ---- priority ---- */

/* Locks the program in memory, so that ending a policy needs no disk. Memory that is mapped
 * later is excluded. Locking an arena of a BPF program would allocate all of it, and leave the
 * program nothing to allocate. */
static void lock_memory(void)
{
    if (mlockall(MCL_CURRENT))
        say("memory is not locked: %s", strerror(errno));
}

static void take_priority(void)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    lock_memory();
    if (sched_setscheduler(0, SCHED_FIFO, &lowest))
        say("no real-time priority: %s. A policy that starves tasks may starve this server, too",
            strerror(errno));
}

/* ---- events ---- */

static bool watch(struct server *server, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    return descriptor >= 0 && epoll_ctl(server->events, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool look_in(const struct server *server, int64_t nanoseconds)
{
    struct itimerspec once = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
    return timerfd_settime(server->status_timer, 0, &once, NULL) == 0;
}

static bool server_begin(struct server *server)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    server->events = epoll_create1(EPOLL_CLOEXEC);
    server->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    server->status_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return watch(server, server->signals) && watch(server, server->status_timer) &&
           look_in(server, LOOK_EVERY);
}

/* Starts the trial now, with the policy active. Returns false if the timer cannot be created. */
static bool begin_trial(struct server *server, int64_t seconds)
{
    struct itimerspec once = {.it_value = {.tv_sec = seconds}};
    server->trial = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return timerfd_settime(server->trial, 0, &once, NULL) == 0 && watch(server, server->trial);
}

/* Returns false if the process has ended. */
static bool tie_to(struct server *server, pid_t process)
{
    server->lifeline = (int)syscall(SYS_pidfd_open, process, 0);
    return watch(server, server->lifeline);
}

static void watch_load(struct server *server)
{
    int descriptor = scheduler_loading();
    if (descriptor == server->loading)
        return;
    if (descriptor >= 0)
        watch(server, descriptor);
    server->loading = descriptor; /* a closed descriptor is not watched any more */
}

static void handle_look(struct server *server)
{
    uint64_t times;
    ssize_t length = read(server->status_timer, &times, sizeof(times));
    (void)length;
    scheduler_check_exit();
    look_in(server, scheduler_check_load() ? LOOK_SOON : LOOK_EVERY);
}

/* Waits for one event, and handles it. */
static void handle_event(struct server *server)
{
    struct epoll_event event;
    watch_load(server);
    if (epoll_wait(server->events, &event, 1, -1) < 1)
        return;
    if (event.data.fd == server->signals)
        server->ended = true;
    else if (event.data.fd == server->status_timer)
        handle_look(server);
    else if (event.data.fd == server->trial) {
        say("the time of --for is over");
        server->ended = true;
    } else if (event.data.fd == server->lifeline) {
        say("the process of --while has ended");
        server->ended = true;
    } else if (event.data.fd == requests_descriptor())
        requests_handle();
    else if (event.data.fd == server->loading) {
        scheduler_handle_loaded();
        server->loading = -1;
        control_files_resume();
    } else if (!control_files_handle()) {
        say("the control files were unmounted");
        server->ended = true;
    }
}

static int begin_trace(const struct serve_options *options)
{
    if (!options->trace)
        return 0;
    struct trace_settings settings = {
        .path = options->trace,
        .in_memory = options->trace_memory,
        .limit_bytes = (uint64_t)options->trace_limit_mib << 20,
        .delay_ms = options->trace_delay_ms,
    };
    return scheduler_begin_trace(settings);
}

/* Starts the first policy: it is loaded before the trace begins. Returns 0, or a negative errno
 * after a message. */
static int begin_policy(struct server *server, const struct serve_options *options)
{
    int error;
    while ((error = scheduler_prepare(options->policy)) == SCHEDULER_IS_LOADING && !server->ended)
        handle_event(server);
    if (server->ended)
        return -EINTR;
    if (!error && begin_trace(options))
        return -EIO;
    if (!error)
        error = scheduler_choose(options->policy, options->settings, options->setting_count);
    if (error)
        say("%s", scheduler_problem());
    return error;
}

/* ---- the whole ---- */

static void report_ready(const struct server *server)
{
    char ready = 1;
    if (server->ready_to >= 0) {
        ssize_t written = write(server->ready_to, &ready, 1);
        (void)written;
        close(server->ready_to);
    }
    supervisor_notify_ready();
}

static int serve_until_ended(struct server *server, const struct serve_options *options)
{
    enum detail detail = !options->trace         ? DETAIL_NONE
                         : options->trace_queues ? DETAIL_EVENTS_AND_QUEUES
                                                 : DETAIL_EVENTS;
    struct scheduler_options scheduler = {.objects = options->objects,
                                          .seed = options->seed,
                                          .load_limit_s = options->load_limit_s,
                                          .ignore_limits = options->ignore_limits,
                                          .detail = detail};
    if (options->lifeline && !tie_to(server, options->lifeline)) {
        say("--while %d: %s; name a running process", options->lifeline, strerror(errno));
        return FAILED;
    }
    if (scheduler_begin(&scheduler) || !watch(server, requests_descriptor()))
        return FAILED;
    if (begin_policy(server, options))
        return FAILED;
    if (control_files_begin(options->control))
        return FAILED;
    if (!watch(server, control_files_descriptor()))
        return FAILED;
    if (options->trial_s && !begin_trial(server, options->trial_s)) {
        say("--for: %s", strerror(errno));
        return FAILED;
    }
    say("serving at %s", options->control);
    report_ready(server);
    while (!server->ended)
        handle_event(server);
    const char *problem = scheduler_trace_problem();
    if (problem)
        say("%s", problem);
    return problem ? FAILED : 0;
}

static int serve_on_host(const struct serve_options *options, int ready_to)
{
    struct server server = {.loading = -1, .trial = -1, .lifeline = -1, .ready_to = ready_to};
    char why[256];
    if (!machine_take_lock(why, sizeof(why))) {
        say("%s", why);
        return WRONG_USAGE;
    }
    take_priority();
    int status = FAILED;
    if (server_begin(&server))
        status = serve_until_ended(&server, options);
    else
        say("the server's descriptors cannot be created: %s; raise the limit `ulimit -n`",
            strerror(errno));
    if (scheduler_end())
        status = FAILED;
    control_files_end();
    machine_release_lock();
    return status;
}

/* Starts the server as a child that continues; returns once it is ready, or has failed. */
static int serve_in_background(const struct serve_options *options)
{
    int ready[2];
    char byte;
    int status;
    if (pipe(ready)) {
        say("--background: %s; use `schedlab-linux serve` without it", strerror(errno));
        return FAILED;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        setsid();
        exit(serve_on_host(options, ready[1]));
    }
    close(ready[1]);
    if (child > 0 && read(ready[0], &byte, 1) == 1)
        return 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return FAILED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/* Raises the limit of open files. Each loaded policy has about fifty, and all may be loaded:
 * more than a process may open by default. */
static void allow_open_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int serve(const struct serve_options *options)
{
    if (!serve_is_right_usage(options) || !serve_is_possible(options))
        return WRONG_USAGE;
    if (options->dry_run) {
        report_plan(options);
        return 0;
    }
    allow_open_files();
    return options->background ? serve_in_background(options) : serve_on_host(options, -1);
}
