/* SPDX-License-Identifier: MIT */

#include "observer.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel_types.h"
#include "linux/bpf/shared.h"
#include "machine.h"

/* Where CPUs take turns, one is often taken off in the middle of a visit to the scheduler, and the
 * visit would have the others' work in it. */
static bool can_time_visits(const struct btf *kernel)
{
    return has_tracepoint(kernel, "sched_entry_tp") && !machine_cpus_take_turns();
}

static bool tells_visits(const struct bpf_program *program)
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

/* Programs for what kernels have under several names, or put into other functions: the first name
 * that this one has is taken. */
static const struct {
    const char *program;
    const char *names[3];
} by_name[] = {
    {"observe_yield", {"do_sched_yield", "__do_sys_sched_yield", "__x64_sys_sched_yield"}},
    /* The last two are called right before the first. */
    {"observe_end", {"exit_notify", "exit_tasks_rcu_start", "flush_ptrace_hw_breakpoint"}},
};

static void fit_name(const struct btf *kernel, struct bpf_program *program,
                     const char *const names[3])
{
    for (size_t i = 0; program && i < 3; i++) {
        if (!has_function(kernel, names[i]))
            continue;
        bpf_program__set_attach_target(program, 0, names[i]);
        bpf_program__set_autoload(program, true);
        return;
    }
}

static void fit_names(const struct btf *kernel, const struct bpf_object *observer)
{
    for (size_t i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++)
        fit_name(kernel, bpf_object__find_program_by_name(observer, by_name[i].program),
                 by_name[i].names);
}

#define BEFORE_QUEUES "observe_fork_before_it_is_queued"
#define INHERITS      "inherit_attributes" /* the one program that is of use without a trace */

static void leave_out_all_for_traces(struct bpf_object *observer)
{
    struct bpf_program *program;
    bpf_object__for_each_program(program, observer)
    {
        bpf_program__set_autoload(program, strcmp(bpf_program__name(program), INHERITS) == 0);
    }
}

void observer_fit(struct bpf_object *observer, enum told told_of)
{
    struct btf *kernel = told_of == TOLD_NOTHING ? NULL : btf__load_vmlinux_btf();
    if (told_of == TOLD_NOTHING)
        leave_out_all_for_traces(observer);
    if (!kernel)
        return; /* loading will say what is wrong */
    bool visits = can_time_visits(kernel);
    bool queues = told_of == TOLD_EVENTS_AND_QUEUES;
    struct bpf_program *program;
    bpf_object__for_each_program(program, observer)
    {
        bool wanted = queues || strcmp(bpf_program__name(program), BEFORE_QUEUES) != 0;
        wanted = wanted && (visits || !tells_visits(program));
        bpf_program__set_autoload(program, wanted && can_attach(kernel, program));
    }
    fit_names(kernel, observer);
    size_t size = 0;
    struct bpf_map *map = bpf_object__find_map_by_name(observer, ".rodata.told");
    struct observer_settings *told = map ? bpf_map__initial_value(map, &size) : NULL;
    if (told && size >= sizeof(*told))
        *told = (struct observer_settings){.cpus = machine_cpus(), .visits = visits};
    btf__free(kernel);
}

int observer_start(struct bpf_object *observer)
{
    struct bpf_program *program = bpf_object__find_program_by_name(observer, INHERITS);
    if (!program)
        return -ENOENT;
    /* Until the process ends, when the kernel closes it. */
    return bpf_program__attach(program) ? 0 : -errno;
}

bool observes_for_trace(const struct bpf_program *program)
{
    enum bpf_prog_type type = bpf_program__type(program);
    return bpf_program__autoload(program) && type == BPF_PROG_TYPE_TRACING &&
           bpf_program__expected_attach_type(program) != BPF_TRACE_ITER &&
           strcmp(bpf_program__name(program), INHERITS) != 0;
}
