/* SPDX-License-Identifier: MIT */

/* Computes how much CPU time each process got in the window, and how much it should have got
 * (docs/metrics.md). */

#include "model/inside.h"
#include "policies/nice_weights.h"

/* ---- sums ---- */

static void begin_sums(struct model *model)
{
    for (uint32_t slot = 0; slot < model->slots; slot++) {
        struct process *process = process_of(model, slot);
        process->run_now = process->ran_in_window;
        process->wait_now = process->waited_in_window;
        process->unseen_now = process->unseen_time;
    }
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        cpu_of(model, cpu)->busy_now = cpu_of(model, cpu)->busy;
}

/* Subtracts the time before the window from the sums. */
static void take_off_the_past(struct model *model)
{
    for (uint32_t i = model->spells.first; i < model->spells.last; i++) {
        const struct spell *spell = row_of(model, &model->spells, i);
        if (spell->begin >= model->begin)
            continue;
        int64_t past = earlier(spell->end, model->begin) - spell->begin;
        struct process *process = process_of(model, spell->slot);
        bool is_its = is_of(process, spell->serial);
        if (spell->kind == RUN)
            cpu_of(model, spell->cpu)->busy_now -= past;
        if (is_its && spell->kind == RUN)
            process->run_now -= past;
        if (is_its && spell->kind == WAIT)
            process->wait_now -= past;
    }
}

static void add_what_goes_on(struct model *model)
{
    for (uint32_t i = 0; i < model->living; i++) {
        struct process *process = process_of(model, living_of(model)[i]);
        int64_t begin = later(process->since, model->begin);
        if (process->state == RUNNABLE)
            process->wait_now += later(model->now - later(process->stay_since, model->begin), 0);
        if (process->unseen)
            process->unseen_now += later(model->now - begin, 0);
        if (process->state != RUNNING)
            continue;
        struct cpu *cpu = cpu_of(model, (uint32_t)process->cpu);
        int64_t until = earlier(cpu->ended_at, model->now);
        int64_t ran = later(until - begin, 0);
        process->run_now += ran;
        cpu->busy_now += ran;
        process->unseen_now += model->now - until;
    }
}

/* ---- shares ---- */

/* Determines which processes belong to the workload. Returns their total running time. */
static int64_t choose_workload(struct model *model)
{
    int64_t total = 0;
    for (uint32_t slot = 0; slot < model->slots; slot++) {
        struct process *process = process_of(model, slot);
        process->of_workload = process->used && process->exit_at >= model->begin &&
                               !process->outside && !is_monitor(model, process->pid);
        if (process->of_workload)
            total += process->run_now;
    }
    return total;
}

static double weight_of(const struct model *model, const struct process *process)
{
    uint32_t by = model->policy.shares_by;
    if (by == SHARES_EQUAL && model->weights_used)
        by = SHARES_BY_WEIGHT;
    else if (by == SHARES_EQUAL && model->tickets_used)
        by = SHARES_BY_TICKETS;
    else if (by == SHARES_EQUAL && model->nices_used)
        by = SHARES_BY_NICE;
    if (by == SHARES_BY_WEIGHT)
        return (double)later(process->share_weight, 1);
    if (by == SHARES_BY_NICE || by == SHARES_BY_GROUPS)
        return (double)nice_weight((int32_t)process->share_nice);
    return by == SHARES_BY_TICKETS || by == SHARES_BY_CURRENCIES
               ? (double)later(process->share_tickets, 1)
               : 1;
}

/* Returns how much of a CPU the process demanded, at most 1 (docs/metrics.md: Demand). */
static double demand_of(const struct model *model, const struct process *process)
{
    int64_t run = later(process->run_now, 0), wait = later(process->wait_now, 0);
    int64_t lived =
        earlier(process->removed_at, model->now) - later(process->born_at, model->begin);
    int64_t known = later(lived - process->unseen_now - wait, run);
    double part = run > 0 ? (double)run / (double)known : 1;
    double waited = process->exit_at == NEVER ? (double)wait : 0;
    double demand = ((double)run + waited * part) / (double)elapsed_of(model);
    return demand < 1 ? demand : 1;
}

struct claim {
    double weight;
    double demand;
    double weight_from_level; /* total weight of this claim and all with a larger demand ÷ weight */
    double gets;
    struct process *process; /* the process; null: the claim is that of a group */
    uint32_t group;          /* the group that it belongs to or, for the claim of a group, that
                              * group */
};

/* A group of weight 100 counts as much as a process of nice 0, or as 100 tickets. */
#define GROUP_UNIT   1024
#define PROCESS_UNIT 100

struct group_claims {
    const struct share_group *of;
    uint32_t count;
    double demand[GROUPS_MAX];
    double gets[GROUPS_MAX];
};

/* Returns the bits of a number that is at least 0: they have the same order as the numbers. */
static int64_t bits_of(double value)
{
    union {
        double real;
        int64_t bits;
    } both = {.real = value};
    return both.bits;
}

/* Sorts by demand ÷ weight, and then by demand, so that the result does not depend on the order
 * of processes. */
static void sort_claims(struct claim *claims, uint32_t count, void *scratch)
{
    struct sortable *order = scratch, *spare = order + count;
    struct claim *sorted = (struct claim *)(spare + count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct sortable){.key = bits_of(claims[i].demand), .index = i};
    sort(order, spare, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct claim *claim = &claims[order[i].index];
        order[i].key = bits_of(claim->demand / claim->weight);
    }
    sort(order, spare, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = claims[order[i].index];
    __builtin_memcpy(claims, sorted, count * sizeof(*claims));
}

/* Divides CPUs among claims. Claims are satisfied in the order of demand ÷ weight. Once one
 * cannot be, the rest is divided by weight (Bertsekas and Gallager, Data Networks, 1987). */
static void fill(struct claim *claims, uint32_t count, double cpus)
{
    double taken = 0, weight = 0, level = -1;
    for (uint32_t i = count; i-- > 0;)
        claims[i].weight_from_level = weight += claims[i].weight;
    for (uint32_t i = 0; i < count; i++) {
        struct claim *claim = &claims[i];
        double left = cpus > taken ? cpus - taken : 0;
        double level_part = left / claim->weight_from_level;
        if (level < 0 && claim->demand > claim->weight * level_part)
            level = level_part;
        claim->gets = level < 0 ? claim->demand : claim->weight * level;
        taken += claim->demand;
    }
}

/* Divides a group's CPU time among its processes and child groups. `parts` must have room for
 * all of them. */
static void fill_group(struct claim *claims, uint32_t count, struct group_claims *all,
                       uint32_t group, struct claim *parts)
{
    uint32_t match = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (claims[i].group == group)
            parts[match++] = claims[i];
    }
    for (uint32_t i = group + 1; i < all->count; i++) {
        if (all->of[i].parent == group && all->demand[i] > 0)
            parts[match++] = (struct claim){.weight = (double)all->of[i].weight * GROUP_UNIT,
                                            .demand = all->demand[i],
                                            .group = i};
    }
    sort_claims(parts, match, parts + match);
    fill(parts, match, all->gets[group]);
    for (uint32_t i = 0; i < match; i++) {
        if (parts[i].process)
            parts[i].process->ideal = parts[i].gets;
        else
            all->gets[parts[i].group] = parts[i].gets;
    }
}

/* Divides CPU time in the hierarchy of groups, level by level (docs/metrics.md: Groups). */
static void fill_groups(const struct model *model, struct claim *claims, uint32_t count)
{
    struct group_claims all = {.of = model->group, .count = model->groups ? model->groups : 1};
    bool currencies = model->policy.shares_by == SHARES_BY_CURRENCIES;
    for (uint32_t i = 0; i < count; i++) {
        claims[i].weight *= currencies ? GROUP_UNIT : PROCESS_UNIT;
        if (claims[i].group >= all.count)
            claims[i].group = 0;
        claims[i].process->ideal = 0;
        all.demand[claims[i].group] += claims[i].demand;
    }
    for (uint32_t i = all.count; i-- > 0;) {
        const struct share_group *settings = &all.of[i];
        double most =
            settings->quota ? (double)settings->quota / (double)settings->period : all.demand[i];
        all.demand[i] = all.demand[i] < most ? all.demand[i] : most;
        if (i > 0)
            all.demand[settings->parent] += all.demand[i];
    }
    double cpus = (double)model->header.cpus;
    all.gets[0] = all.demand[0] < cpus ? all.demand[0] : cpus;
    for (uint32_t i = 0; i < all.count; i++) {
        if (all.gets[i] > 0)
            fill_group(claims, count, &all, i, claims + count);
    }
    for (uint32_t i = 0; i < count; i++)
        claims[i].gets = claims[i].process->ideal;
}

static void allot(struct model *model, struct claim *claims, uint32_t count)
{
    double *gets = (double *)(claims + count);
    if (model->policy.shares_by == SHARES_BY_GROUPS ||
        model->policy.shares_by == SHARES_BY_CURRENCIES) {
        fill_groups(model, claims, count);
    } else {
        sort_claims(claims, count, gets);
        fill(claims, count, (double)model->header.cpus);
    }
    for (uint32_t i = 0; i < count; i++)
        gets[i] = claims[i].gets;
    double total = sum_up(gets, gets + count, count);
    for (uint32_t i = 0; i < count && total > 0; i++)
        claims[i].process->ideal = claims[i].gets / total;
}

void shares_compute(struct model *model)
{
    struct claim *claims = scratch_of(model);
    uint32_t count = 0;
    begin_sums(model);
    take_off_the_past(model);
    add_what_goes_on(model);
    int64_t total = choose_workload(model);
    for (uint32_t slot = 0; slot < model->slots; slot++) {
        struct process *process = process_of(model, slot);
        process->share = total != 0 ? (double)process->run_now / (double)total : 0;
        process->ideal = -1;
        if (process->of_workload)
            claims[count++] =
                (struct claim){.weight = weight_of(model, process),
                               .demand = demand_of(model, process),
                               .process = process,
                               .group = (uint32_t)process->attribute[ATTRIBUTE_TASKGROUP]};
    }
    allot(model, claims, count);
    for (uint32_t i = 0; i < count; i++) {
        claims[i].process->demand_by_settings = claims[i].process->ideal;
        claims[i].weight = 1;
    }
    if (model->policy.shares_by == SHARES_EQUAL)
        allot(model, claims, count);
}
