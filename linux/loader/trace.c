/* SPDX-License-Identifier: MIT */

#include "trace.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace_format.h"

#include "linux/bpf/shared.h"
#include "observer.h"
#include "trace_file.h"

#define DRAIN_PRIORITY 50 /* of SCHED_FIFO */

#define LINKS_MAX         24
#define CYCLES_PER_SECOND 1000000000 /* the scheduler's visits are measured by the clock */

/*
 * While the thread lives, it owns `file`, `ring` and `reported_lost`; the thread
 * that begins and ends the trace owns the rest.
 */
struct trace {
    struct bpf_object *observer;
    struct bpf_link *links[LINKS_MAX];
    size_t link_count;
    struct trace_state *state; /* the kernel's, too */
    struct ring_buffer *ring;
    int report; /* program */
    uint32_t cpus;
    struct trace_file file;
    bool has_file;
    uint64_t reported_lost; /* the part of state->lost that the trace already reports */
    uint32_t delay_ms;
    pthread_t thread;
    bool has_thread;
    int wake; /* an eventfd: makes the thread end */
    atomic_bool stop;
    atomic_int problem; /* enum trace_problem */
};

static int fail(char *problem, size_t size, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail(char *problem, size_t size, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, size, format, arguments);
    va_end(arguments);
    size_t length = strlen(problem);
    snprintf(problem + length, size - length, ": %s", strerror(error < 0 ? -error : error));
    return error < 0 ? error : -error;
}

static int attach_all(struct trace *trace, char *problem, size_t size)
{
    struct bpf_program *program;
    bpf_object__for_each_program(program, trace->observer)
    {
        if (!observes_for_trace(program))
            continue;
        struct bpf_link *link = trace->link_count < LINKS_MAX ? bpf_program__attach(program) : NULL;
        if (!link)
            return fail(problem, size, errno,
                        "%s cannot be attached to the kernel; use a newer one",
                        bpf_program__name(program));
        trace->links[trace->link_count++] = link;
    }
    return 0;
}

/* --- the ring */

static int take_record(void *context, void *data, size_t size)
{
    struct trace *trace = context;
    const struct trace_record *records = data; /* records that belong together */
    for (size_t i = 0; i < size / sizeof(records[0]); i++)
        trace_file_take(&trace->file, &records[i]);
    return 0;
}

/* Returns 1 if it is written. */
static uint32_t report(struct trace *trace, struct reported_event *event)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = event, .ctx_size_in = sizeof(*event));
    if (!trace || bpf_prog_test_run_opts(trace->report, &options))
        return 0;
    return options.retval;
}

/* Reports lost records as soon as the ring has space, so that a reader learns of them at once. */
static void report_losses(struct trace *trace)
{
    uint64_t lost = __atomic_load_n(&trace->state->lost, __ATOMIC_SEQ_CST);
    struct reported_event event = {.kind = TRACE_LOST, .second = lost - trace->reported_lost};
    if (lost > trace->reported_lost && report(trace, &event))
        trace->reported_lost = lost;
}

static void drain(struct trace *trace)
{
    ring_buffer__consume(trace->ring);
    report_losses(trace);
    trace_file_flush(&trace->file);
    enum trace_problem problem = trace_file_problem(&trace->file);
    if (problem && !atomic_exchange(&trace->problem, (int)problem))
        kill(getpid(), SIGTERM); /* the server ends as if its user had ended it */
}

const char *trace_problem(const struct trace *trace)
{
    static const char *const words[] = {
        [TRACE_GOES_ON] = NULL,
        [TRACE_LIMIT_REACHED] = "the trace reached its limit and ends; raise --trace-limit (in "
                                "memory, a trace may use half of the free memory)",
        [TRACE_DISK_FULL] = "the trace's disk is nearly full and the trace ends; free some space, "
                            "or name a file on another disk",
    };
    return trace ? words[atomic_load(&trace->problem)] : NULL;
}

static void *drain_until_end(void *context)
{
    struct trace *trace = context;
    struct pollfd wake = {.fd = trace->wake, .events = POLLIN};
    pthread_setname_np(pthread_self(), "schedlab-trace");
    while (!atomic_load(&trace->stop)) {
        poll(&wake, 1, (int)trace->delay_ms);
        drain(trace);
    }
    return NULL;
}

/* Uses real-time priority, if allowed: otherwise busy programs could fill the ring. */
static int begin_thread(struct trace *trace)
{
    pthread_attr_t attributes;
    struct sched_param parameter = {.sched_priority = DRAIN_PRIORITY};
    atomic_store(&trace->stop, false);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameter);
    int error = pthread_create(&trace->thread, &attributes, drain_until_end, trace);
    if (error == EPERM)
        error = pthread_create(&trace->thread, NULL, drain_until_end, trace);
    pthread_attr_destroy(&attributes);
    trace->has_thread = error == 0;
    return error;
}

static void end_thread(struct trace *trace)
{
    if (!trace->has_thread)
        return;
    atomic_store(&trace->stop, true);
    eventfd_write(trace->wake, 1); /* if that fails, the thread wakes by itself */
    pthread_join(trace->thread, NULL);
    trace->has_thread = false;
}

/* --- records of the loader */

static void set_text(struct reported_event *event, const char *text)
{
    size_t length = strlen(text);
    event->length = length < TOLD_TEXT ? (uint32_t)length : TOLD_TEXT;
    memcpy(event->text, text, event->length);
}

void trace_policy(struct trace *trace, const char *policy, uint32_t shares_by)
{
    struct reported_event event = {.kind = TRACE_POLICY, .process = shares_by};
    set_text(&event, policy);
    memcpy(&event.second, event.text, 8);
    memcpy(&event.first, event.text + 8, 4);
    report(trace, &event);
}

void trace_tunable(struct trace *trace, const char *name, int64_t value, uint32_t shares_by)
{
    struct reported_event event = {
        .kind = TRACE_TUNABLE, .process = shares_by, .second = (uint64_t)value};
    set_text(&event, name);
    report(trace, &event);
}

void trace_attribute(struct trace *trace, int32_t pid, uint32_t kind, int64_t value)
{
    struct reported_event event = {.kind = TRACE_ATTRIBUTE,
                                   .process = (uint32_t)pid,
                                   .first = kind,
                                   .second = (uint64_t)value};
    report(trace, &event);
}

void trace_group(struct trace *trace, uint32_t group, uint32_t field, int64_t value)
{
    struct reported_event event = {
        .kind = TRACE_TASK_GROUP, .process = group, .first = field, .second = (uint64_t)value};
    report(trace, &event);
}

/* --- begin */

/*
 * Runs on each CPU once. At the start, this writes the START of each. At the end, it ensures that
 * any program of the observer on a CPU has finished: it runs without being preempted.
 */
static void visit_cpus(struct trace *trace)
{
    cpu_set_t *before = CPU_ALLOC(HOST_CPUS);
    cpu_set_t *one = CPU_ALLOC(HOST_CPUS);
    size_t size = CPU_ALLOC_SIZE(HOST_CPUS);
    bool known = before && one && sched_getaffinity(0, size, before) == 0;
    for (uint32_t cpu = 0; known && cpu < trace->cpus; cpu++) {
        struct reported_event nothing = {0};
        CPU_ZERO_S(size, one);
        CPU_SET_S(cpu, size, one);
        if (sched_setaffinity(0, size, one) == 0)
            report(trace, &nothing);
    }
    if (known)
        sched_setaffinity(0, size, before);
    CPU_FREE(before);
    CPU_FREE(one);
}

static int find_tasks(struct trace *trace, char *problem, size_t size)
{
    struct bpf_program *program = bpf_object__find_program_by_name(trace->observer, "find_tasks");
    struct bpf_link *link = program ? bpf_program__attach_iter(program, NULL) : NULL;
    int iterator = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
    int error = iterator < 0 ? errno : 0;
    char nothing[64];
    ssize_t count;
    do {
        count = iterator < 0 ? 0 : read(iterator, nothing, sizeof(nothing));
    } while (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)));
    if (count < 0)
        error = errno;
    if (iterator >= 0)
        close(iterator);
    bpf_link__destroy(link);
    return error ? fail(problem, size, error, "the kernel does not list its threads") : 0;
}

static int open_maps(struct trace *trace, char *problem, size_t size)
{
    int events = bpf_object__find_map_fd_by_name(trace->observer, "events");
    int state = bpf_object__find_map_fd_by_name(trace->observer, "trace_state");
    struct bpf_program *program =
        bpf_object__find_program_by_name(trace->observer, "emit_reported_event");
    if (events < 0 || state < 0 || !program)
        return fail(problem, size, ENOENT,
                    "the observer's object has another version; name its folder with --objects");
    trace->report = bpf_program__fd(program);
    void *shared =
        mmap(NULL, sizeof(struct trace_state), PROT_READ | PROT_WRITE, MAP_SHARED, state, 0);
    if (shared == MAP_FAILED)
        return fail(problem, size, errno, "the trace's state cannot be shared with the kernel");
    trace->state = shared;
    trace->ring = ring_buffer__new(events, take_record, trace, NULL);
    if (!trace->ring)
        return fail(problem, size, errno, "the kernel's ring of records cannot be read");
    trace->wake = eventfd(0, EFD_CLOEXEC);
    if (trace->wake < 0)
        return fail(problem, size, errno, "cannot wake the trace's thread");
    trace->file.hurry = trace->wake;
    return 0;
}

static int open_file(struct trace *trace, const struct trace_settings *settings, char *problem,
                     size_t size)
{
    struct trace_header header = {
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(struct trace_header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = settings->cpus,
        .tick_ns = settings->tick_ns,
        .cycles_per_second = CYCLES_PER_SECOND,
        .seed = settings->seed,
    };
    int error = trace_file_open(&trace->file, settings->path, &header, settings->limit_bytes,
                                settings->in_memory);
    trace->has_file = !error;
    if (error && trace->file.why[0])
        snprintf(problem, size, "%s: the trace cannot be written: %s", settings->path,
                 trace->file.why);
    else if (error)
        fail(problem, size, error,
             "%s: the trace cannot be written; name another file with --trace", settings->path);
    return error;
}

static void turn(struct trace *trace, bool on)
{
    if (trace->state)
        __atomic_store_n(&trace->state->on, on, __ATOMIC_SEQ_CST);
}

static int begin(struct trace *trace, const struct trace_settings *settings, char *problem,
                 size_t size)
{
    int error = open_file(trace, settings, problem, size);
    if (!error)
        error = open_maps(trace, problem, size);
    if (!error)
        error = attach_all(trace, problem, size);
    if (error)
        return error;
    turn(trace, true);
    visit_cpus(trace);
    error = find_tasks(trace, problem, size);
    if (error)
        return error;
    error = begin_thread(trace);
    return error ? fail(problem, size, error, "the trace's thread cannot be started") : 0;
}

static void release(struct trace *trace)
{
    turn(trace, false);
    while (trace->link_count > 0)
        bpf_link__destroy(trace->links[--trace->link_count]);
    ring_buffer__free(trace->ring);
    if (trace->state)
        munmap(trace->state, sizeof(*trace->state));
    if (trace->wake >= 0)
        close(trace->wake);
    if (trace->has_file)
        trace_file_abandon(&trace->file);
    free(trace);
}

int trace_begin(struct trace **made, struct bpf_object *observer,
                const struct trace_settings *settings, char *problem, size_t size)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    if (!trace)
        return fail(problem, size, ENOMEM, "out of memory for the trace; end other programs");
    trace->observer = observer;
    trace->cpus = settings->cpus;
    trace->delay_ms = settings->delay_ms;
    trace->wake = -1;
    int error = begin(trace, settings, problem, size);
    if (error)
        release(trace);
    else
        *made = trace;
    return error;
}

/* --- end */

static uint64_t boot_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the observer's counter of that name, which has a separate section. */
static uint64_t unexplained(struct trace *trace)
{
    uint32_t key = 0;
    uint64_t count = 0;
    int map = bpf_object__find_map_fd_by_name(trace->observer, ".data.unexplained");
    return map >= 0 && bpf_map_lookup_elem(map, &key, &count) == 0 ? count : 0;
}

/* Stops the kernel's writing, and takes all that it has written. */
static void stop(struct trace *trace)
{
    __atomic_store_n(&trace->state->on, 0, __ATOMIC_SEQ_CST);
    visit_cpus(trace);
    end_thread(trace);
    drain(trace);
}

int trace_end(struct trace *trace, struct trace_outcome *outcome, char *problem, size_t size)
{
    *outcome = (struct trace_outcome){0};
    if (!trace)
        return 0;
    stop(trace);
    uint64_t skipped = observer_skipped(trace->observer);
    uint64_t caught = trace->state->caught; /* more than skipped if the trace began within a mark */
    uint64_t lost = trace->state->lost + (skipped > caught ? skipped - caught : 0);
    int error = trace_file_finish(&trace->file, boot_time(), (uint32_t)trace->state->sequence,
                                  lost - trace->reported_lost);
    *outcome = (struct trace_outcome){.records = trace_file_records(&trace->file),
                                      .lost = lost + trace->file.dropped,
                                      .unexplained = unexplained(trace)};
    trace->has_file = false;
    release(trace);
    return error ? fail(problem, size, error, "the trace is not complete") : 0;
}
