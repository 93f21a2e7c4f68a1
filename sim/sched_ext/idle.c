/* SPDX-License-Identifier: MIT */

/* The kernel's tracking of idle CPUs. */

#include "sim/machine.h"
#include "sim/sched_ext/state.h"

static uint64_t *idle_mask(const struct sched_ext *ext)
{
    return kernel_memory(ext, ext->kernel.idle_mask);
}

/* The CPUs of cores that are completely idle. */
static uint64_t *idle_core_mask(const struct sched_ext *ext)
{
    return kernel_memory(ext, ext->has_smt ? ext->kernel.idle_smt_mask : ext->kernel.idle_mask);
}

static const struct cpu_place *place_of(const struct sched_ext *ext, uint32_t cpu)
{
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    return shape ? &shape->cpu[cpu] : NULL;
}

bool has_builtin_idle(const struct sched_ext *ext)
{
    return !has_op(ext, OP_update_idle) || ext->ops_flags & SCX_OPS_KEEP_BUILTIN_IDLE;
}

/* Sets whether all CPUs of the CPU's core count as idle. */
static void set_core(struct sched_ext *ext, uint32_t cpu, bool idle)
{
    uint64_t *cores = idle_core_mask(ext);
    uint32_t i = cpu;
    do {
        mask_set(ext, cores, i, idle && cpu_is_online(ext, i));
        i = place_of(ext, i)->sibling;
    } while (i != cpu);
}

static bool core_is_idle(const struct sched_ext *ext, uint32_t cpu)
{
    uint32_t i = cpu;
    do {
        if (!mask_has(ext, idle_mask(ext), i) && cpu_is_online(ext, i))
            return false;
        i = place_of(ext, i)->sibling;
    } while (i != cpu);
    return true;
}

void update_idle(struct sched_ext *ext, uint32_t cpu, bool idle, bool is_transition)
{
    if (has_builtin_idle(ext)) {
        mask_set(ext, idle_mask(ext), cpu, idle && cpu_is_online(ext, cpu));
        if (ext->has_smt && (!idle || core_is_idle(ext, cpu)))
            set_core(ext, cpu, idle);
    }
    if (is_transition && has_op(ext, OP_update_idle) && !ext->bypasses)
        call_op(ext, OP_update_idle, cpu, idle, 0);
}

bool test_and_clear_idle(struct sched_ext *ext, uint32_t cpu)
{
    if (cpu >= ext->cpu_count)
        return false;
    if (ext->has_smt)
        set_core(ext, cpu, false);
    bool was_idle = mask_has(ext, idle_mask(ext), cpu);
    mask_set(ext, idle_mask(ext), cpu, false);
    return was_idle;
}

/* Claims an idle CPU that is in both masks, the whole core's if `core`. */
static int32_t claim(struct sched_ext *ext, const uint64_t *allowed, const uint64_t *within,
                     bool core)
{
    uint64_t both[CPUMASK_WORDS];
    for (uint32_t word = 0; word < ext->mask_words; word++)
        both[word] = allowed[word] & (within ? within[word] : UINT64_MAX);
    uint32_t cpu;
    while ((cpu = mask_distribute(ext, core ? idle_core_mask(ext) : idle_mask(ext), both)) <
           ext->cpu_count) {
        if (test_and_clear_idle(ext, cpu))
            return (int32_t)cpu;
    }
    return -LINUX_EBUSY;
}

static int32_t pick_within(struct sched_ext *ext, const uint64_t *allowed, const uint64_t *within,
                           uint64_t flags)
{
    int32_t cpu = -LINUX_EBUSY;
    if (ext->has_smt)
        cpu = claim(ext, allowed, within, true);
    if (cpu < 0 && !(flags & SCX_PICK_IDLE_CORE && ext->has_smt))
        cpu = claim(ext, allowed, within, false);
    return cpu;
}

int32_t pick_idle_cpu(struct sched_ext *ext, uint64_t allowed, uint64_t flags)
{
    const uint64_t *mask = mask_at(ext, allowed);
    return mask ? pick_within(ext, mask, NULL, flags) : -LINUX_EBUSY;
}

/* ---- the default of select_cpu() ---- */

struct choice {
    uint64_t allowed[CPUMASK_WORDS];
    uint64_t near[2][CPUMASK_WORDS]; /* CPUs of the previous CPU's cache, and of its node */
    bool has_near[2];                /* false: these are all CPUs */
    uint32_t previous;
    bool may_stay;
};

static void find_near(const struct sched_ext *ext, struct choice *choice)
{
    const struct cpu_place *previous = place_of(ext, choice->previous);
    for (uint32_t cpu = 0; previous && cpu < ext->cpu_count; cpu++) {
        const struct cpu_place *place = place_of(ext, cpu);
        bool in_cache = place->cache == previous->cache;
        bool in_node = place->node == previous->node;
        mask_set(ext, choice->near[0], cpu, in_cache);
        mask_set(ext, choice->near[1], cpu, in_node);
        choice->has_near[0] |= !in_cache;
        choice->has_near[1] |= !in_node;
    }
}

/* Claims an idle CPU: the previous one, one near it, or any. */
static int32_t claim_near(struct sched_ext *ext, const struct choice *choice, bool core)
{
    int32_t cpu = -LINUX_EBUSY;
    bool is_whole = !core || mask_has(ext, idle_core_mask(ext), choice->previous);
    if (choice->may_stay && is_whole && test_and_clear_idle(ext, choice->previous))
        return (int32_t)choice->previous;
    for (int i = 0; i < 2 && cpu < 0; i++) {
        if (choice->has_near[i])
            cpu = claim(ext, choice->allowed, choice->near[i], core);
    }
    return cpu < 0 ? claim(ext, choice->allowed, NULL, core) : cpu;
}

/* Chooses a CPU for a task whose waker is about to sleep. */
static int32_t claim_for_sync(struct sched_ext *ext, const struct choice *choice, uint64_t flags)
{
    uint32_t waker = ext->this_cpu;
    const struct cpu_place *place = place_of(ext, waker);
    bool shares = !place || place->cache == place_of(ext, choice->previous)->cache;
    bool is_whole =
        !(flags & SCX_PICK_IDLE_CORE) || mask_has(ext, idle_core_mask(ext), choice->previous);
    if (shares && is_whole && choice->may_stay && test_and_clear_idle(ext, choice->previous))
        return (int32_t)choice->previous;
    bool any_idle = mask_next(ext, idle_mask(ext), NULL, 0) < ext->cpu_count;
    if (ext->queues[waker].count == 0 && any_idle && mask_has(ext, choice->allowed, waker))
        return (int32_t)waker;
    return -LINUX_EBUSY;
}

int32_t select_cpu_default(struct sched_ext *ext, uint32_t slot, uint32_t previous,
                           uint64_t wake_flags, uint64_t allowed, uint64_t flags)
{
    struct choice choice = {.previous = previous < ext->cpu_count ? previous : 0};
    const uint64_t *also = allowed ? mask_at(ext, allowed) : NULL;
    const uint64_t *task_cpus = task_struct_of(ext, slot)->cpus_mask.bits;
    if (allowed && !also)
        return -LINUX_EINVAL;
    for (uint32_t word = 0; word < ext->mask_words; word++)
        choice.allowed[word] = task_cpus[word] & (also ? also[word] : UINT64_MAX);
    choice.may_stay = mask_has(ext, choice.allowed, choice.previous);
    find_near(ext, &choice);
    int32_t cpu = -LINUX_EBUSY;
    if (wake_flags & SCX_WAKE_SYNC)
        cpu = claim_for_sync(ext, &choice, flags);
    if (cpu < 0 && ext->has_smt)
        cpu = claim_near(ext, &choice, true);
    if (cpu < 0 && !(flags & SCX_PICK_IDLE_CORE && ext->has_smt))
        cpu = claim_near(ext, &choice, false);
    return cpu;
}
