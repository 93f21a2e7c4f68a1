/* SPDX-License-Identifier: MIT */

/* The kernel's structures of tasks and CPUs, which programs read. */

#include <string.h>

#include "policies/nice_weights.h"
#include "policies/support/cpu_set.h"
#include "sim/machine.h"
#include "sim/process.h"
#include "sim/sched_ext/state.h"

#define NICE_PRIORITY 120 /* the kernel's priority of nice 0 */
#define WEIGHT_NORMAL 100 /* of nice 0 */
#define WEIGHT_LIMIT  10000
#define RUNQUEUE_AT   64 /* `runqueues` in KERNEL_VARIABLES */

static const uint64_t cpufreq_khz = 1000000;

uint64_t rq_address(uint32_t cpu)
{
    return guest_address(REGION_VARIABLES, (uint64_t)cpu * KERNEL_VARIABLE_STRIDE + RUNQUEUE_AT);
}

struct rq *rq_of(const struct sched_ext *ext, uint32_t cpu)
{
    return guest_memory(&ext->guest, rq_address(cpu), sizeof(struct rq));
}

uint32_t task_at(const struct sched_ext *ext, uint64_t address)
{
    uint64_t first = task_address(ext, 0);
    uint64_t slot = (address - first) / sizeof(struct task_struct);
    bool valid =
        address >= first && slot < ext->task_limit && address == task_address(ext, (uint32_t)slot);
    return valid && ext->tasks[slot].exists ? (uint32_t)slot : NONE;
}

uint32_t require_task(struct sched_ext *ext, uint64_t address)
{
    uint32_t slot = task_at(ext, address);
    if (slot == NONE)
        guest_trap(&ext->guest, "there is no task at %#llx", (unsigned long long)address);
    return slot;
}

uint32_t task_by_pid(const struct sched_ext *ext, int32_t pid)
{
    for (uint32_t slot = 0; slot < ext->simulator->most_processes; slot++) {
        if (ext->tasks[slot].exists && process_at(ext->simulator, slot)->task.pid == pid)
            return slot;
    }
    return NONE;
}

uint32_t cpu_of_task(const struct sched_ext *ext, uint32_t slot)
{
    return process_at(ext->simulator, slot)->task.cpu;
}

bool task_runs(const struct sched_ext *ext, uint32_t slot)
{
    const struct process *process = process_at(ext->simulator, slot);
    return ext->simulator->cpus[process->task.cpu].current == process;
}

uint32_t running_task(const struct sched_ext *ext, uint32_t cpu)
{
    const struct process *process = ext->simulator->cpus[cpu].current;
    return process ? process->task.slot : NONE;
}

bool task_has_cpu(const struct sched_ext *ext, uint32_t slot, uint32_t cpu)
{
    return cpu < ext->cpu_count && task_may_run_on(&process_at(ext->simulator, slot)->task, cpu);
}

bool task_allows(const struct sched_ext *ext, uint32_t slot, uint32_t cpu)
{
    return task_has_cpu(ext, slot, cpu) && cpu_is_online(ext, cpu);
}

/* ---- tasks ---- */

static uint32_t weight_of(int32_t nice)
{
    uint64_t weight =
        (nice_weight(nice) * WEIGHT_NORMAL + NICE_WEIGHT_USUAL / 2) / NICE_WEIGHT_USUAL;
    return weight < 1 ? 1 : weight > WEIGHT_LIMIT ? WEIGHT_LIMIT : (uint32_t)weight;
}

static void fill_cpus(struct sched_ext *ext, uint32_t slot)
{
    struct task_struct *task = task_struct_of(ext, slot);
    const task_t *of = &process_at(ext->simulator, slot)->task;
    task->nr_cpus_allowed = 0;
    for (uint32_t cpu = 0; cpu < ext->cpu_count; cpu++) {
        bool may = task_may_run_on(of, cpu);
        mask_set(ext, task->cpus_mask.bits, cpu, may);
        task->nr_cpus_allowed += may;
    }
}

void fill_task_attributes(struct sched_ext *ext, uint32_t slot)
{
    struct task_struct *task = task_struct_of(ext, slot);
    int32_t nice = process_at(ext->simulator, slot)->task.nice;
    task->static_prio = task->normal_prio = task->prio = NICE_PRIORITY + nice;
    task->scx.weight = weight_of(nice);
    task->se.load.weight = nice_weight(nice) * 1024;
    fill_cpus(ext, slot);
}

void fill_task_relations(struct sched_ext *ext, uint32_t slot)
{
    struct task_struct *task = task_struct_of(ext, slot);
    uint32_t group = ext->tasks[slot].group;
    uint64_t parts = ext->kernel.groups + group * sizeof(struct group_structures);
    const struct process *process = process_at(ext->simulator, slot);
    const struct process *parent = process_parent(ext->simulator, process);
    bool known = ext->tasks[parent->task.slot].exists;
    task->parent = task->real_parent = known ? task_address(ext, parent->task.slot)
                                             : guest_address(REGION_KERNEL, ext->kernel.idle_task);
    task->group_leader = task_address(ext, slot);
    task->mm = task->active_mm = guest_address(REGION_KERNEL, ext->kernel.memory_map);
    task->cred = task->real_cred = guest_address(REGION_KERNEL, ext->kernel.credentials);
    task->signal = guest_address(REGION_KERNEL, ext->kernel.signals);
    task->sched_task_group =
        guest_address(REGION_KERNEL, parts + offsetof(struct group_structures, task_group));
    task->cgroups =
        guest_address(REGION_KERNEL, parts + offsetof(struct group_structures, css_set));
}

void fill_task(struct sched_ext *ext, uint32_t slot)
{
    struct task_struct *task = task_struct_of(ext, slot);
    const struct process *process = process_at(ext->simulator, slot);
    const char *name = name_of(ext->simulator, program_of(ext->simulator, process));
    memset(task, 0, sizeof(*task));
    task->pid = task->tgid = process->task.pid;
    task->policy = TASK_POLICY_EXT;
    task->thread_info.cpu = process->task.cpu;
    task->wake_cpu = task->recent_used_cpu = (int)process->task.cpu;
    task->cpus_ptr = task_address(ext, slot) + offsetof(struct task_struct, cpus_mask);
    task->start_time = task->start_boottime = ext_now(ext);
    task->se.sum_exec_runtime = process->task.run_time;
    strncpy(task->comm, name, sizeof(task->comm) - 1);
    task->scx.sticky_cpu = task->scx.holding_cpu = task->scx.selected_cpu = -1;
    task->scx.ddsp_dsq_id = SCX_DSQ_INVALID;
    task->scx.slice = SCX_SLICE_DFL;
    fill_task_attributes(ext, slot);
    fill_task_relations(ext, slot);
}

/* ---- CPUs ---- */

static void set_variable(struct sched_ext *ext, uint32_t cpu, uint64_t offset, uint64_t value)
{
    uint64_t address =
        guest_address(REGION_VARIABLES, (uint64_t)cpu * KERNEL_VARIABLE_STRIDE + offset);
    memcpy(guest_memory(&ext->guest, address, 8), &value, 8);
}

/* Sets the variables that describe the CPU's cache: its first CPU, and its number of CPUs. */
static void fill_cache(struct sched_ext *ext, uint32_t cpu)
{
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    uint32_t first = NONE;
    uint32_t size = 0;
    for (uint32_t i = 0; i < ext->cpu_count; i++) {
        if (shape && shape->cpu[i].cache != shape->cpu[cpu].cache)
            continue;
        first = first == NONE ? i : first;
        size++;
    }
    set_variable(ext, cpu, 0, first);
    set_variable(ext, cpu, 8, size);
    set_variable(ext, cpu, 16, guest_address(REGION_KERNEL, ext->kernel.cpufreq));
}

static void fill_cpu(struct sched_ext *ext, uint32_t cpu)
{
    struct rq *rq = rq_of(ext, cpu);
    rq->cpu = (int)cpu;
    rq->curr = rq->idle = guest_address(REGION_KERNEL, ext->kernel.idle_task);
    rq->cpu_capacity = SCX_CPUPERF_ONE;
    rq->scx.flags = SCX_RQ_ONLINE;
    mask_set(ext, kernel_memory(ext, ext->kernel.possible_mask), cpu, true);
    mask_set(ext, online_mask(ext), cpu, true);
    mask_set(ext, kernel_memory(ext, ext->kernel.idle_mask), cpu, true);
    mask_set(ext, kernel_memory(ext, ext->kernel.idle_smt_mask), cpu, true);
    fill_cache(ext, cpu);
}

void begin_kernel(struct sched_ext *ext)
{
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    struct task_struct *idle = kernel_memory(ext, ext->kernel.idle_task);
    struct cpufreq_policy *frequency = kernel_memory(ext, ext->kernel.cpufreq);
    *frequency =
        (struct cpufreq_policy){.min = cpufreq_khz, .max = cpufreq_khz, .cur = cpufreq_khz};
    frequency->cpuinfo.max_freq = frequency->cpuinfo.min_freq = cpufreq_khz;
    idle->flags = TASK_FLAG_IDLE;
    strncpy(idle->comm, "swapper", sizeof(idle->comm) - 1);
    for (uint32_t cpu = 0; shape && cpu < ext->cpu_count; cpu++)
        ext->has_smt |= shape->cpu[cpu].sibling != cpu;
    for (uint32_t cpu = 0; cpu < ext->cpu_count; cpu++)
        fill_cpu(ext, cpu);
}
