/* SPDX-License-Identifier: MIT */

/*
 * Interprets levels, annotations and tickets with the code of the active policy itself. For a
 * policy that this program does not have, only the trace's data are available.
 */

#include "model/inside.h"
#include "policies/support/attributes.h"
#include "policies/support/hooks.h"

static bool same_text(const struct text *one, const struct text *other)
{
    uint32_t same = 0;
    while (same < one->bytes && same < other->bytes && one->byte[same] == other->byte[same])
        same++;
    return one->bytes == other->bytes && same == one->bytes;
}

static uint32_t base_bytes(const struct text *text)
{
    uint32_t bytes = 0;
    while (bytes < text->bytes && text->byte[bytes] != ':')
        bytes++;
    return bytes;
}

/* Sets the tunables of the policy. It ignores values that the policy does not allow. */
static void set_tunables(struct in_force *force, const struct policy_choice *choice)
{
    policy_set_defaults(&force->scheduler, choice);
    for (uint32_t i = 0; i < force->tunable_count; i++) {
        const struct set_tunable *set = &force->tunable[i];
        uint32_t index = tunable_find(choice->policy, set->name.byte, set->name.bytes);
        if (index != NO_TUNABLE)
            tunable_set(&force->scheduler, choice->policy, index, set->value);
    }
}

/* Returns a scheduler with one CPU and without any tasks, for questions to the policy. */
static struct scheduler *scheduler_of(struct in_force *force)
{
    force->scheduler.state = force->state;
    return &force->scheduler;
}

static void ask(struct model *model, struct in_force *force)
{
    struct policy_choice choice;
    force->source = NULL;
    force->wants_shared_queue = false;
    force->ticket_parts = 1;
    force->policy = policy_find(force->text.byte, base_bytes(&force->text));
    if (!force->policy || policy_choose(force->text.byte, force->text.bytes, &choice) != POLICY_OK)
        return;
    force->source = choice.policy;
    force->scheduler = (struct scheduler){.cpus = 1, .queues = 1, .tick_ns = model->header.tick_ns};
    __builtin_memset(force->state, 0, sizeof(force->state));
    set_tunables(force, &choice);
    policy_init_scheduler(force->source, scheduler_of(force));
    force->wants_shared_queue = policy_wants_shared_queue(force->source, scheduler_of(force));
    force->ticket_parts = policy_ticket_parts(force->source, scheduler_of(force));
}

static uint32_t share_attribute(uint32_t number)
{
    bool known = number == SHARES_BY_TICKETS || number == SHARES_BY_WEIGHT ||
                 number == SHARES_BY_NICE || number == SHARES_BY_GROUPS ||
                 number == SHARES_BY_CURRENCIES;
    return known ? number : SHARES_EQUAL;
}

/* Activates the policy. */
void policy_start(struct model *model, const struct text *text, uint32_t shares_by)
{
    struct in_force *force = &model->policy;
    force->text = *text;
    force->shares_by = share_attribute(shares_by);
    force->tunable_count = 0;
    force->levels_seen = force->shared_seen = false;
    ask(model, force);
}

static struct set_tunable *find(struct in_force *force, const struct text *name)
{
    for (uint32_t i = 0; i < force->tunable_count; i++) {
        if (same_text(&force->tunable[i].name, name))
            return &force->tunable[i];
    }
    return NULL;
}

/* Stores a tunable's value. Ignores tunables beyond the maximum number that a policy can have. */
void policy_set(struct model *model, const struct text *name, int64_t value, uint32_t shares_by)
{
    struct in_force *force = &model->policy;
    struct set_tunable *set = find(force, name);
    if (!set && force->tunable_count < POLICY_TUNABLES_MAX)
        set = &force->tunable[force->tunable_count++];
    if (set)
        *set = (struct set_tunable){*name, value};
    force->shares_by = share_attribute(shares_by);
    ask(model, force);
}

/* Removes the value again, because the name was incomplete. */
void policy_unset(struct model *model, const struct text *name)
{
    struct in_force *force = &model->policy;
    struct set_tunable *set = find(force, name);
    if (!set)
        return;
    force->tunable_count--;
    for (; set < &force->tunable[force->tunable_count]; set++)
        *set = set[1];
}

/* Returns true if the policy has levels; if it is unknown, whether the trace has shown any. */
bool has_levels(const struct model *model)
{
    const struct in_force *force = &model->policy;
    return force->policy ? force->policy->level_order != LEVELS_NONE : force->levels_seen;
}

bool remark_is_level(const struct model *model)
{
    return model->policy.policy && model->policy.policy->remark_kind == REMARK_LEVEL;
}

bool draws(const struct model *model)
{
    return model->policy.policy && model->policy.policy->remark_kind == REMARK_TICKET;
}

/* Returns true if tickets tell more about waiting tasks than levels do. */
bool has_tickets(const struct model *model)
{
    return draws(model) || (!has_levels(model) && model->policy.shares_by == SHARES_BY_TICKETS);
}

/* Returns the value, limited to what hosts allow, because a trace may contain any. */
static int64_t allowed(uint32_t kind, int64_t value)
{
    return earlier(later(value, attribute_lowest(kind)), attribute_highest(kind));
}

struct rank_key rank_of(struct model *model, const struct process *process, int64_t now)
{
    struct in_force *force = &model->policy;
    struct rank_key rank_key = {process->next_level, (uint64_t)process->tickets};
    if (!force->source || (!force->source->level && !force->source->tickets))
        return rank_key;
    const struct task task = {
        .pid = (int32_t)process->pid,
        .priority = (int32_t)allowed(ATTRIBUTE_PRIORITY, process->priority),
        .tickets = (uint32_t)allowed(ATTRIBUTE_TICKETS, process->tickets),
        .weight = (uint32_t)allowed(ATTRIBUTE_WEIGHT, process->weight),
        .queued_since = (uint64_t)process->since,
        .level = process->next_level,
    };
    rank_key.level = policy_level(force->source, scheduler_of(force), &task, (uint64_t)now);
    rank_key.tickets = policy_tickets(force->source, scheduler_of(force), &task);
    return rank_key;
}
