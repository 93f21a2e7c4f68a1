/* SPDX-License-Identifier: MIT */

#include "observer.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel_types.h"
#include "linux/bpf/shared.h"
#include "machine.h"

/* Returns false where CPUs take turns. A CPU is then often interrupted in the middle of a visit
 * to the scheduler, and the visit's time would include other CPUs' work. */
static bool can_time_visits(const struct btf *kernel)
{
    return has_tracepoint(kernel, "sched_entry_tp") && !machine_cpus_take_turns();
}

static bool has_visits(const struct bpf_program *program)
{
    return strcmp(bpf_program__name(program), "observe_entry") == 0 ||
           strcmp(bpf_program__name(program), "observe_exit") == 0;
}

/* Returns true if the kernel has the NAME in a program's section "tp_btf/NAME", "fentry/NAME" or
 * "fexit/NAME". */
static bool can_attach(const struct btf *kernel, const struct bpf_program *program)
{
    const char *section = bpf_program__section_name(program);
    const char *name = strchr(section, '/');
    if (name && strncmp(section, "tp_btf/", 7) == 0)
        return has_tracepoint(kernel, name + 1);
    if (name && (strncmp(section, "fentry/", 7) == 0 || strncmp(section, "fexit/", 6) == 0))
        return has_function(kernel, name + 1);
    return true;
}

/* Programs for functions that kernels have under several names, or have inlined: the first
 * existing name is used. */
#define NAMES 3
static const struct {
    const char *program;
    const char *names[NAMES];
} by_name[] = {
    {"observe_yield", {"do_sched_yield", "__do_sys_sched_yield", "__x64_sys_sched_yield"}},
    /* the last two are called right before the first */
    {"observe_end", {"exit_notify", "exit_tasks_rcu_start", "flush_ptrace_hw_breakpoint"}},
    /* the first has its run queue locked */
    {"observe_fork_before_it_is_queued", {"post_init_entity_util_avg", "wake_up_new_task"}},
    {"inherit_attributes", {"post_init_entity_util_avg", "wake_up_new_task"}},
};

/* Returns false if the kernel has nothing to attach the program to. */
static bool fit(const struct btf *kernel, struct bpf_program *program)
{
    const char *const *names = NULL;
    for (size_t i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++) {
        if (strcmp(bpf_program__name(program), by_name[i].program) == 0)
            names = by_name[i].names;
    }
    if (!names)
        return can_attach(kernel, program);
    for (size_t i = 0; i < NAMES && names[i]; i++) {
        if (has_function(kernel, names[i]))
            return bpf_program__set_attach_target(program, 0, names[i]) == 0;
    }
    return false;
}

#define BEFORE_QUEUES "observe_fork_before_it_is_queued"
#define INHERITS      "inherit_attributes" /* the only program that is needed without a trace */

static bool is_needed(const struct bpf_program *program, enum detail detail, bool visits)
{
    const char *name = bpf_program__name(program);
    if (detail == DETAIL_NONE)
        return strcmp(name, INHERITS) == 0;
    if (strcmp(name, BEFORE_QUEUES) == 0)
        return detail == DETAIL_EVENTS_AND_QUEUES;
    return visits || !has_visits(program);
}

void observer_fit(struct bpf_object *observer, enum detail detail)
{
    struct btf *kernel = btf__load_vmlinux_btf();
    if (!kernel)
        return; /* loading will report the error */
    bool visits = can_time_visits(kernel);
    struct bpf_program *program;
    bpf_object__for_each_program(program, observer)
    {
        bool requested = is_needed(program, detail, visits);
        bpf_program__set_autoload(program, requested && fit(kernel, program));
    }
    size_t size = 0;
    struct bpf_map *map = bpf_object__find_map_by_name(observer, ".rodata.told");
    struct observer_settings *settings = map ? bpf_map__initial_value(map, &size) : NULL;
    if (settings && size >= sizeof(*settings))
        *settings = (struct observer_settings){.cpus = machine_cpus(), .visits = visits};
    btf__free(kernel);
}

int observer_start(struct bpf_object *observer)
{
    struct bpf_program *program = bpf_object__find_program_by_name(observer, INHERITS);
    if (!program)
        return -ENOENT;
    /* until the process ends, when the kernel closes it */
    return bpf_program__attach(program) ? 0 : -errno;
}

bool observes_for_trace(const struct bpf_program *program)
{
    enum bpf_prog_type type = bpf_program__type(program);
    return bpf_program__autoload(program) && type == BPF_PROG_TYPE_TRACING &&
           bpf_program__expected_attach_type(program) != BPF_TRACE_ITER &&
           strcmp(bpf_program__name(program), INHERITS) != 0;
}

uint64_t observer_skipped(const struct bpf_object *observer)
{
    static const char *const alone[] = {"observe_mark", "observe_yield"};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        struct bpf_program *program = bpf_object__find_program_by_name(observer, alone[i]);
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof(info);
        if (program && bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0)
            count += info.recursion_misses;
    }
    return count;
}
