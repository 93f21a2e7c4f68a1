/* SPDX-License-Identifier: MIT */

#include "objects.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel_types.h"
#include "machine.h"
#include "observer.h"
#include "verifier_log.h"

#define VERIFIER_LOG_BYTES (1 << 20)

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

/* ---- messages of libbpf ---- */

/* libbpf's messages about this thread's load; null: they go to standard error. */
static _Thread_local struct text *load_messages;

static int take_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char message[2048];
    if (level != LIBBPF_WARN)
        return 0;
    vsnprintf(message, sizeof(message), format, arguments);
    if (load_messages)
        text_add(load_messages, "%s", message);
    else
        say("%.*s", (int)strcspn(message, "\n"), message);
    return 0;
}

static void ignore_signal(int number)
{
    (void)number;
}

void objects_init(void)
{
    /* does nothing: the signal only interrupts a system call */
    struct sigaction interrupt = {.sa_handler = ignore_signal};
    sigaction(SIGUSR1, &interrupt, NULL);
    libbpf_set_print(take_message);
}

/* ---- opening and loading ---- */

/* Opens an object. Its kernel log goes to `log`, which a failed load leaves filled. */
static struct bpf_object *open_object(const char *folder, const char *name, char *log)
{
    char path[4096];
    LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = log,
                .kernel_log_size = VERIFIER_LOG_BYTES);
    snprintf(path, sizeof(path), "%s/%s.bpf.o", folder, name);
    return bpf_object__open_file(path, &options);
}

/* Makes the object use the observer's maps of linux/bpf/shared_maps.h. */
static int reuse_shared_maps(struct bpf_object *object, const struct shared_objects *shared)
{
    static const char *const names[] = {"attributes", "events", "trace_state", "preempt_reasons",
                                        "observed"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(object, names[i]);
        struct bpf_map *shared_map = bpf_object__find_map_by_name(shared->observer, names[i]);
        int error = !map          ? 0
                    : !shared_map ? -ENOENT
                                  : bpf_map__reuse_fd(map, bpf_map__fd(shared_map));
        if (error)
            return error;
    }
    return 0;
}

static size_t count_instructions(const struct bpf_object *object)
{
    struct bpf_program *program = NULL;
    size_t count = 0;
    while ((program = bpf_object__next_program(object, program)))
        count += bpf_program__autoload(program) ? bpf_program__insn_cnt(program) : 0;
    return count;
}

/* Returns the number of instructions that the verifier processed, over all paths. */
static uint64_t count_verified(const struct bpf_object *object)
{
    struct bpf_program *program = NULL;
    uint64_t count = 0;
    while ((program = bpf_object__next_program(object, program))) {
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof(info);
        if (bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0)
            count += info.verified_insns;
    }
    return count;
}

static int map_of(const struct bpf_object *object, const char *name)
{
    return bpf_object__find_map_fd_by_name(object, name);
}

static struct bpf_link *attach_iterator(const struct bpf_object *object)
{
    struct bpf_program *program = bpf_object__find_program_by_name(object, "describe_tasks");
    return program ? bpf_program__attach_iter(program, NULL) : NULL;
}

/* ---- what all policies share ---- */

static int load_observer(struct shared_objects *shared, char *log)
{
    shared->observer = open_object(shared->folder, "observer", log);
    if (!shared->observer)
        return -errno;
    observer_fit(shared->observer, shared->detail);
    int error = bpf_object__load(shared->observer);
    if (error)
        return error;
    shared->attributes = map_of(shared->observer, "attributes");
    return shared->attributes < 0 ? -ENOENT : observer_start(shared->observer);
}

static int load_tasks(struct shared_objects *shared, char *log)
{
    shared->tasks = open_object(shared->folder, "tasks", log);
    if (!shared->tasks)
        return -errno;
    int error = reuse_shared_maps(shared->tasks, shared);
    if (!error)
        error = bpf_object__load(shared->tasks);
    if (error)
        return error;
    shared->describe_tasks = attach_iterator(shared->tasks);
    return shared->describe_tasks ? 0 : -errno;
}

int shared_objects_load(struct shared_objects *shared, const char *folder, enum detail detail)
{
    struct text messages = {0};
    struct text problem = {0};
    char *log = calloc(1, VERIFIER_LOG_BYTES);
    *shared = (struct shared_objects){.folder = folder, .detail = detail};
    load_messages = &messages;
    int error = log ? load_observer(shared, log) : -ENOMEM;
    const char *name = error ? "observer" : "tasks";
    if (!error)
        error = load_tasks(shared, log);
    load_messages = NULL;
    if (error) {
        explain_failed_load(&problem, name, error, messages.bytes, log);
        say("%s", problem.bytes);
        shared_objects_close(shared);
    }
    text_free(&problem);
    text_free(&messages);
    free(log);
    return error;
}

void shared_objects_close(struct shared_objects *shared)
{
    bpf_link__destroy(shared->describe_tasks);
    bpf_object__close(shared->tasks);
    bpf_object__close(shared->observer);
    *shared = (struct shared_objects){0};
}

/* ---- loading a policy ---- */

static void forget_object(struct policy_object *object)
{
    ring_buffer__free(object->requests);
    bpf_link__destroy(object->describe_tasks);
    bpf_object__close(object->object);
    object->requests = NULL;
    object->describe_tasks = NULL;
    object->operations = NULL;
    object->object = NULL;
    object->state = NOT_LOADED;
}

/* Returns the descriptor of a program, or a negative errno. */
static int program_of(const struct bpf_object *object, const char *name)
{
    const struct bpf_program *program = bpf_object__find_program_by_name(object, name);
    return program ? bpf_program__fd(program) : -ENOENT;
}

/* Finds the parts that the loader uses to control the object. */
static int find_parts(struct policy_object *object)
{
    object->operations = bpf_object__find_map_by_name(object->object, "schedlab_ops");
    object->settings = map_of(object->object, "settings");
    object->shape = map_of(object->object, "shape_given");
    object->exit_info = map_of(object->object, "exit_info");
    object->control_groups = map_of(object->object, "control_groups");
    object->attribute_changed = program_of(object->object, "attribute_changed");
    object->group_changed = program_of(object->object, "group_changed");
    object->describe_tasks = attach_iterator(object->object);
    if (!object->operations || object->settings < 0 || object->shape < 0 || object->exit_info < 0 ||
        object->attribute_changed < 0 || object->group_changed < 0 || !object->describe_tasks) {
        text_add(load_messages, "the object has another version; build it again\n");
        return -ENOENT;
    }
    return 0;
}

/* Called before the object is loaded: the kernel removes unused code. */
static int set_constants(struct policy_object *object)
{
    size_t size = 0;
    struct bpf_map *map = bpf_object__find_map_by_name(object->object, ".rodata.trace");
    bool *has_queues = map ? bpf_map__initial_value(map, &size) : NULL;
    if (!has_queues || size != sizeof(*has_queues))
        return -ENOENT;
    *has_queues = object->shared->detail == DETAIL_EVENTS_AND_QUEUES;
    return 0;
}

/* Callbacks of the adapter that are withheld from the kernel if the policy does not need them or
 * the kernel lacks them. */
static const char *const optional[] = {"cgroup_init", "cgroup_exit", "cgroup_move",
                                       "cgroup_set_weight", "cgroup_set_bandwidth"};

/* Returns where `operations` has the pointer of that name, or null. The map has the layout of
 * the type in `types`. */
static void *callback_place(const struct btf *types, struct bpf_map *operations, const char *name)
{
    size_t size = 0;
    char *bytes = bpf_map__initial_value(operations, &size);
    int id = btf__find_by_name_kind(types, "sched_ext_ops", BTF_KIND_STRUCT);
    const struct btf_type *type = id > 0 ? btf__type_by_id(types, (uint32_t)id) : NULL;
    for (uint32_t i = 0; bytes && type && i < btf_vlen(type); i++) {
        if (strcmp(btf__name_by_offset(types, btf_members(type)[i].name_off), name) == 0)
            return bytes + btf_member_bit_offset(type, i) / 8;
    }
    return NULL;
}

static void drop_callback(struct bpf_object *object, const char *name)
{
    char program[64];
    struct bpf_map *operations = bpf_object__find_map_by_name(object, "schedlab_ops");
    void *place = callback_place(bpf_object__btf(object), operations, name);
    snprintf(program, sizeof(program), "host_%s", name);
    if (place)
        memset(place, 0, sizeof(void *));
    bpf_program__set_autoload(bpf_object__find_program_by_name(object, program), false);
}

static void fit_callbacks(struct policy_object *object)
{
    struct btf *kernel = object->policy->by_groups ? btf__load_vmlinux_btf() : NULL;
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        if (!kernel || !has_callback(kernel, optional[i]))
            drop_callback(object->object, optional[i]);
    }
    btf__free(kernel);
}

static int load(struct policy_object *object, char *log)
{
    object->object = open_object(object->shared->folder, object->name, log);
    if (!object->object)
        return -errno;
    int error = reuse_shared_maps(object->object, object->shared);
    if (!error)
        error = set_constants(object);
    if (error)
        return error;
    fit_callbacks(object);
    say("%s: loading %zu instructions", object->name, count_instructions(object->object));
    error = bpf_object__load(object->object);
    return error ? error : find_parts(object);
}

/* The layout that the system call takes: the C library has no such type. */
struct deadline_class {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* nanoseconds */
    uint64_t deadline;
    uint64_t period;
};

/*
 * Reserves three quarters of a CPU for this thread, regardless of the active policy and the load.
 * More would starve the other threads of that CPU, and the kernel would then blame the policy. If
 * the kernel refuses, the thread runs like any other.
 */
static void take_share_of_a_cpu(void)
{
    struct deadline_class requested = {
        .size = sizeof(requested),
        .policy = SCHED_DEADLINE,
        .runtime = 30000000,
        .deadline = 40000000,
        .period = 40000000,
    };
    syscall(SYS_sched_setattr, 0, &requested, 0);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *load_in_thread(void *argument)
{
    struct policy_object *object = argument;
    struct text messages = {0};
    uint64_t one = 1;
    double start = seconds_now();
    char *log = calloc(1, VERIFIER_LOG_BYTES);
    load_messages = &messages;
    take_share_of_a_cpu();
    int error = log ? load(object, log) : -ENOMEM;
    load_messages = NULL;
    if (error && atomic_load(&object->interrupted))
        error = -EINTR; /* regardless of the error that libbpf returned */
    if (error)
        explain_failed_load(&object->problem, object->name, error, messages.bytes, log);
    else
        say("%s: loaded in %.1f s; the verifier went through %" PRIu64 " instructions",
            object->name, seconds_now() - start, count_verified(object->object));
    object->load_error = error;
    text_free(&messages);
    free(log);
    atomic_store(&object->thread_is_done, true);
    ssize_t written = write(object->thread_done, &one, sizeof(one));
    (void)written;
    return NULL;
}

int policy_object_begin_load(struct policy_object *object)
{
    pthread_attr_t attributes;
    struct sched_param fair = {0};
    text_free(&object->problem);
    object->load_error = 0;
    atomic_store(&object->thread_is_done, false);
    atomic_store(&object->interrupted, false);
    object->thread_done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (object->thread_done < 0)
        return -errno;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setschedparam(&attributes, &fair);
    int error = pthread_create(&object->thread, &attributes, load_in_thread, object);
    pthread_attr_destroy(&attributes);
    if (error) {
        close(object->thread_done);
        return -error;
    }
    object->state = LOADING;
    return 0;
}

int policy_object_finish_load(struct policy_object *object)
{
    pthread_join(object->thread, NULL);
    close(object->thread_done);
    object->thread_done = -1;
    object->state = LOADED;
    if (object->load_error)
        forget_object(object);
    return object->load_error;
}

void policy_object_interrupt_load(struct policy_object *object)
{
    if (object->state != LOADING || atomic_load(&object->thread_is_done))
        return;
    atomic_store(&object->interrupted, true);
    pthread_kill(object->thread, SIGUSR1);
}

/* ---- the active policy ---- */

int policy_object_attach(struct policy_object *object, const struct host_settings *settings,
                         const struct machine_shape *shape)
{
    const uint32_t key = 0;
    const struct host_exit none = {0};
    if (bpf_map_update_elem(object->exit_info, &key, &none, BPF_ANY) ||
        bpf_map_update_elem(object->settings, &key, settings, BPF_ANY) ||
        bpf_map_update_elem(object->shape, &key, shape, BPF_ANY))
        return -errno;
    object->attached = bpf_map__attach_struct_ops(object->operations);
    return object->attached ? 0 : -errno;
}

void policy_object_detach(struct policy_object *object)
{
    bpf_link__destroy(object->attached);
    object->attached = NULL;
    if (!machine_wait_for_fair_class())
        say("%s was detached, but the kernel still reports it", object->name);
}

void policy_object_close(struct policy_object *object)
{
    if (object->attached)
        policy_object_detach(object);
    forget_object(object);
    text_free(&object->problem);
}

bool policy_object_has_exited(const struct policy_object *object, struct host_exit *exit)
{
    const uint32_t key = 0;
    return bpf_map_lookup_elem(object->exit_info, &key, exit) == 0 && exit->kind != 0;
}

int policy_object_watch(struct policy_object *object, handle_request handle, void *context,
                        int *descriptor)
{
    object->requests = ring_buffer__new(map_of(object->object, "requests"), handle, context, NULL);
    if (!object->requests)
        return -errno;
    *descriptor = ring_buffer__epoll_fd(object->requests);
    return 0;
}

void policy_object_consume(struct policy_object *object)
{
    ring_buffer__consume(object->requests);
}

/* Calls a program of type "syscall" with `context`, which the program may change. Returns 0 or a
 * negative errno. */
static int run_program(int program, void *context, uint32_t size)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = size);
    int error = bpf_prog_test_run_opts(program, &options);
    return error ? error : (int)options.retval;
}

int policy_object_set_attribute(const struct policy_object *object, int32_t pid, uint32_t kind,
                                int64_t value)
{
    struct attribute_change change = {.pid = pid, .kind = kind, .value = value};
    int error = run_program(object->attribute_changed, &change, sizeof(change));
    return error ? error : change.result;
}

int policy_object_set_group(const struct policy_object *object, uint32_t group, uint32_t field,
                            int64_t value)
{
    struct group_change change = {.group = group, .field = field, .value = value};
    return run_program(object->group_changed, &change, sizeof(change));
}

bool policy_object_control_group(const struct policy_object *object, uint32_t number,
                                 struct control_group *group)
{
    return bpf_map_lookup_elem(object->control_groups, &number, group) == 0 && group->number > 0;
}
