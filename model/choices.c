/* SPDX-License-Identifier: MIT */

/* The choices of the policy (which task to run), and the processes among which it chose. */

#include "model/message.h"

#define DETAILED   64  /* of simultaneous choices, this many of the latest are kept with details */
#define SUMMED_MAX 256 /* tickets are summed only in queues with at most this many processes */

/* Returns the first time of choices with details, so that DETAILED of them do. Returns 0 if
 * there are exactly enough in all, and -1 if there are fewer. */
static int64_t detail_from(const struct model *model, const struct trace_record *records,
                           size_t count, uint32_t kind, uint32_t other)
{
    size_t match = 0;
    int64_t time = 0;
    while (count > 0 && match <= DETAILED) {
        const struct trace_record *record = &records[--count];
        if ((record->kind != kind && record->kind != other) || record->cpu >= model->header.cpus)
            continue;
        if (++match == DETAILED)
            time = (int64_t)record->time;
    }
    if (match < DETAILED)
        return -1;
    return match > DETAILED ? time : 0;
}

/* Computes the first time of choices with details, because only the last ones are shown. */
void choices_plan(struct model *model, const struct trace_record *records, size_t count)
{
    int64_t from = detail_from(model, records, count, TRACE_DECISION, TRACE_DECISION);
    if (from < 0)
        from = detail_from(model, records, count, TRACE_DECISION, TRACE_SWITCH);
    model->detail_from = later(from, 0);
}

/* The sum of the tickets among which a ticket was drawn, or -1 if unknown. */
struct draw {
    struct decision *decision;
    uint64_t tickets;
    uint64_t level;
    uint32_t others;
    bool by_level;
};

static void add_other(struct model *model, struct draw *draw, uint32_t slot, int64_t time)
{
    const struct process *process = process_of(model, slot);
    struct rank_key rank = rank_of(model, process, time);
    struct decision *decision = draw->decision;
    if (decision->candidates < CANDIDATES_MAX) {
        uint64_t worth = has_tickets(model) ? rank.tickets : rank.level;
        decision->candidate[decision->candidates] = process->pid;
        decision->worth[decision->candidates++] = (int64_t)worth;
    }
    if (!draw->by_level || rank.level == draw->level)
        draw->tickets += rank.tickets;
    draw->others++;
}

static void add_others(struct model *model, struct draw *draw, uint32_t chosen, uint32_t cpu)
{
    const struct decision *decision = draw->decision;
    uint32_t slot = cpu_of(model, has_shared_queue(model) ? 0 : cpu)->queue_first;
    for (uint32_t i = 0; i <= SUMMED_MAX && slot != NONE; i++) {
        if (slot != chosen)
            add_other(model, draw, slot, decision->time);
        slot = process_of(model, slot)->next;
    }
    /* a task that was queued again may not have left its CPU yet */
    uint32_t running = cpu_of(model, cpu)->running;
    if (running != NONE && running != chosen && draw->others < decision->waited)
        add_other(model, draw, running, decision->time);
}

static void describe(struct model *model, uint32_t slot, const struct decision *choice)
{
    struct decisions *decisions = &model->decisions;
    const struct process *process = process_of(model, slot);
    struct decision *decision = &decisions->row[decisions->stored++ % DECISIONS_MAX];
    *decision = *choice;
    decision->number = decisions->count;
    decision->pid = process->pid;
    decision->level = process->next_level;
    decision->policy = model->policy.policy;
    decision->parts = model->policy.ticket_parts;
    decision->named = process->named;
    if (process->named)
        decision->name = *name_of(model, slot);
    struct rank_key rank = rank_of(model, process, decision->time);
    struct draw draw = {.decision = decision, .tickets = rank.tickets, .level = rank.level};
    draw.by_level = draws(model) && has_levels(model);
    add_others(model, &draw, slot, decision->cpu);
    decision->tickets = draw.others == decision->waited ? (int64_t)draw.tickets : -1;
}

void apply_decision(struct model *model, const struct trace_record *record)
{
    uint32_t slot = process_find(model, record->process);
    int64_t time = (int64_t)record->time;
    model->decisions.count++;
    cpu_of(model, record->cpu)->decided = slot == NONE ? 0 : process_of(model, slot)->serial;
    if (slot == NONE)
        return;
    if (remark_is_level(model) && !model->has_queue_records)
        process_of(model, slot)->next_level =
            record->second < INT32_MAX ? (uint32_t)record->second : INT32_MAX;
    if (time < model->detail_from)
        return;
    const struct decision choice = {
        .time = time, .cpu = record->cpu, .waited = record->first, .remark = record->second};
    describe(model, slot, &choice);
}

/* Handles a choice without a DECISION record; its annotation is 0. */
void silent_choice(struct model *model, uint32_t slot, int64_t time, uint32_t cpu)
{
    model->decisions.count++;
    if (remark_is_level(model) && !model->has_queue_records)
        process_of(model, slot)->next_level = 0;
    if (time < model->detail_from)
        return;
    uint32_t queue = has_shared_queue(model) ? 0 : cpu;
    const struct decision choice = {
        .time = time, .cpu = cpu, .waited = cpu_of(model, queue)->queue_count};
    describe(model, slot, &choice);
}

/* ---- texts ---- */

/* Writes a time as milliseconds with three decimals. */
static void write_time(struct message *message, uint64_t nanoseconds)
{
    uint64_t microseconds = nanoseconds / 1000 + (nanoseconds % 1000 >= 500);
    write_thousands(message, microseconds / 1000);
    write_byte(message, '.');
    write_byte(message, (char)('0' + microseconds / 100 % 10));
    write_byte(message, (char)('0' + microseconds / 10 % 10));
    write_byte(message, (char)('0' + microseconds % 10));
    write_words(message, " ms");
}

static void write_ticket(struct message *message, const struct decision *decision)
{
    if (decision->parts > 1) {
        write_number(message, decision->remark / decision->parts);
        write_words(message, ", by current tickets");
        return;
    }
    write_number(message, decision->remark);
    if (decision->tickets < 0 || decision->remark >= (uint64_t)decision->tickets)
        return;
    write_words(message, " of ");
    write_signed(message, decision->tickets);
}

static void write_remark(struct message *message, const struct decision *decision)
{
    if (decision->policy->remark_kind == REMARK_TIME)
        write_time(message, decision->remark);
    else if (decision->policy->remark_kind == REMARK_TICKET)
        write_ticket(message, decision);
    else
        write_number(message, decision->remark);
}

void write_decision(struct message *message, const struct decision *decision)
{
    const struct policy *policy = decision->policy;
    if (!policy) {
        write_words(message, decision->remark ? "remark " : "");
        if (decision->remark)
            write_number(message, decision->remark);
        return;
    }
    for (const char *next = policy->remark ? policy->remark : ""; *next != '\0'; next++) {
        if (next[0] == '{' && next[1] == '}') {
            write_remark(message, decision);
            next++;
        } else {
            write_byte(message, *next);
        }
    }
    if (policy->remark_kind == REMARK_TICKET && policy->level_order != LEVELS_NONE) {
        write_words(message, " at level ");
        write_number(message, decision->level);
    }
}
