/* SPDX-License-Identifier: MIT */

#include "sim/speeds.h"

bool begin_speeds(struct simulator *simulator, const char *text, struct simulator_error *error)
{
    struct speeds *speeds = simulator->speeds;
    uint32_t cpus = simulator->scheduler.cpus;
    const char *flaw = shape_read(text, cpus, &speeds->shape, &speeds->model);
    if (flaw) {
        set_error(error, "shape for %u CPUs: %s", cpus, flaw);
        return false;
    }
    simulator->scheduler.shape = &speeds->shape;
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        speeds->speed[cpu] = speed_now(simulator, cpu);
    return true;
}

uint32_t speed_now(const struct simulator *simulator, uint32_t cpu)
{
    const struct speeds *speeds = simulator->speeds;
    const struct cpu_place *place = &speeds->shape.cpu[cpu];
    uint32_t others = speeds->busy[place->core] - (simulator->cpus[cpu].current != NULL);
    return place->capacity_now * speeds->model.threads[others];
}

/* ---- work ---- */

/* No number overflows, because speeds are below 2^20. If a computation is so long that its time
 * would overflow, the time is limited: no run lasts that long. */
void change_pace(const struct simulator *simulator, struct process *process, uint32_t from,
                 uint32_t to)
{
    struct pace *pace = &simulator->speeds->paces[process->task.slot];
    if (from == to || !is_computing(step_of(simulator, process)))
        return;
    uint64_t wholes = process->left / to; /* each takes `from` ns at the new speed */
    int64_t work = (int64_t)(process->left % to * from) - pace->ahead; /* beyond `wholes` */
    int64_t rest = work >= 0 ? (work + to - 1) / to : -(-work / to);
    if (wholes > TIME_MAX / from) {
        process->left = TIME_MAX;
        return;
    }
    int64_t left = (int64_t)(wholes * from) + rest;
    if (left < 0) {
        rest -= left;
        left = 0;
    }
    process->left = (uint64_t)left;
    pace->ahead = (uint32_t)(rest * to - work);
}

static uint32_t cold_time(const struct speeds *speeds, uint32_t from, uint32_t to)
{
    const struct cpu_place *old = &speeds->shape.cpu[from];
    const struct cpu_place *new = &speeds->shape.cpu[to];
    if (old->core == new->core)
        return speeds->model.cold[COLD_CORE];
    if (old->cache == new->cache)
        return speeds->model.cold[COLD_CACHE];
    uint64_t distance = speeds->shape.distance[new->node][old->node];
    return (uint32_t)(speeds->model.cold[COLD_NODE] * distance / DISTANCE_LOCAL);
}

/* Starts the rest of the process's computing step, with `cold` ns of extra work for a cold
 * cache. */
static void compute_cold(struct process *process, struct pace *pace, uint32_t cold)
{
    if (process->left > pace->warm)
        process->left = pace->warm;
    pace->warm = process->left;
    process->left += cold;
}

void warm_up(const struct simulator *simulator, struct process *process, uint32_t cpu)
{
    struct pace *pace = &simulator->speeds->paces[process->task.slot];
    uint32_t cold = 0;
    if (pace->ran_on != RAN_NOWHERE && pace->ran_on != cpu)
        cold = cold_time(simulator->speeds, pace->ran_on, cpu);
    pace->ran_on = cpu;
    if (cold == 0)
        return;
    if (is_computing(step_of(simulator, process)))
        compute_cold(process, pace, cold);
    else
        pace->cold = cold;
}

void begin_pace(const struct simulator *simulator, struct process *process)
{
    const struct speeds *speeds = simulator->speeds;
    struct pace *pace = &speeds->paces[process->task.slot];
    if (!is_computing(step_of(simulator, process)))
        return;
    pace->warm = process->left;
    process->left += pace->cold;
    pace->cold = 0;
    if (process->place == PLACE_RUNNING)
        change_pace(simulator, process, SPEED_FULL, speeds->speed[process->task.cpu]);
}

/* ---- levels ---- */

/* Returns the busy fraction of a time, in units of 1/1024. The time must not be 0. */
static uint64_t part_of(uint64_t busy, uint64_t elapsed)
{
    bool long_ago = elapsed > TIME_MAX / CAPACITY_FULL;
    return long_ago ? busy / (elapsed / CAPACITY_FULL) : busy * CAPACITY_FULL / elapsed;
}

uint32_t demanded_capacity(struct simulator *simulator, const struct cpu *cpu)
{
    const struct machine_shape *shape = &simulator->speeds->shape;
    const struct cpu_place *place = &shape->cpu[cpu->id];
    const struct cpu_kind *kind = &shape->kind[place->kind];
    struct demand *demand = &simulator->speeds->demand[cpu->id];
    uint64_t elapsed = simulator->now - demand->since;
    uint64_t busy = demand->busy + (cpu->current ? simulator->now - demand->busy_from : 0);
    if (elapsed < simulator->scheduler.tick_ns)
        return place->capacity_now;
    *demand = (struct demand){.since = simulator->now, .busy_from = simulator->now};
    uint64_t part = part_of(busy, elapsed);
    uint64_t requested = part * place->capacity_now * 5 / 4 / CAPACITY_FULL;
    uint32_t level = kind->levels - 1;
    while (level > 0 && kind->capacity[level] < requested)
        level--;
    return kind->capacity[level];
}
