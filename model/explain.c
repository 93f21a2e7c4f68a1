/* SPDX-License-Identifier: MIT */

/*
 * Explains why a process had to wait: what its CPU did at that time.
 *
 * The rules are those of docs/explain.md, which schedlab.analysis.explanation applies to whole
 * traces; a test compares both results. All times are cut to the window.
 */

#include "model/message.h"

#define WAITS_REPORTED 50
#define OF_ALL                                                                                     \
    WAITS_REPORTED /* number of the sums over all waits, distinct from the single                  \
                    * waits */

enum { UNKNOWN = 0xffffd, SCHEDULER, IDLE }; /* used instead of the slot of a process */

/* Time during which the process waited at one CPU. */
struct stay {
    int64_t begin;
    int64_t end;
    uint32_t wait; /* number of the wait that it belongs to */
    uint16_t cpu;
    uint8_t why;
};

/* What one process (or idling, or the scheduler) contributed to one wait, or to all waits. */
struct part {
    int64_t key; /* identifies wait, CPU and slot; 0: the entry is free */
    int64_t duration;
    uint32_t times;
};

struct inquiry {
    struct model *model;
    struct stay *stays; /* sorted by time, without overlap */
    uint32_t count;
    uint32_t most;
    uint32_t waits;
    bool begins;             /* the next stay is the first one of a wait */
    uint32_t first_reported; /* number of the first wait that is reported individually */
    uint32_t next; /* index of the first stay that ends after the present action of the CPU */
    uint32_t slot;
    uint32_t *doings;   /* indices of what CPUs ran, sorted by CPU; where each CPU's part ends is
                         * in `at` */
    uint32_t *visits;   /* the same for passes through the scheduler; where each CPU's part ends
                         * is in `until` */
    struct part *parts; /* a hash table, by key */
    uint32_t parts_mask;
    uint32_t parts_count;
    struct stretch *idle; /* times during waits when any CPU was idle */
    uint32_t idle_count;
    uint32_t idle_most;
};

/* ---- the process's waits ---- */

static void add_stay(struct inquiry *inquiry, const struct spell *spell)
{
    int64_t begin = later(spell->begin, inquiry->model->begin);
    inquiry->begins |= !(spell->detail & MOVED) || inquiry->count == 0;
    if (spell->end <= begin || inquiry->count == inquiry->most)
        return;
    inquiry->waits += inquiry->begins;
    inquiry->begins = false;
    inquiry->stays[inquiry->count++] = (struct stay){.begin = begin,
                                                     .end = spell->end,
                                                     .wait = inquiry->waits - 1,
                                                     .cpu = spell->cpu,
                                                     .why = spell->detail & (uint8_t)~MOVED};
}

static void find_waits(struct inquiry *inquiry)
{
    const struct model *model = inquiry->model;
    const struct process *process = process_of(model, inquiry->slot);
    for (uint32_t i = model->spells.first; i < model->spells.last; i++) {
        const struct spell *spell = row_of(model, &model->spells, i);
        if (spell->slot == inquiry->slot && spell->kind == WAIT && is_of(process, spell->serial))
            add_stay(inquiry, spell);
    }
    const struct spell last = {.begin = process->stay_since,
                               .end = later(model->now, process->stay_since),
                               .cpu = (uint16_t)process->waits_at,
                               .detail = process->why};
    if (process->living && process->state == RUNNABLE)
        add_stay(inquiry, &last);
    inquiry->first_reported = inquiry->waits > WAITS_REPORTED ? inquiry->waits - WAITS_REPORTED : 0;
}

/* Returns the index of the first stay that ends after `time`. */
static uint32_t stay_after(const struct inquiry *inquiry, int64_t time)
{
    uint32_t low = 0, high = inquiry->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (inquiry->stays[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- parts ---- */

/* Adds time to a part. If there are too many parts, further ones are ignored. */
static void add_part(struct inquiry *inquiry, uint32_t wait, uint32_t cpu, uint32_t slot,
                     int64_t duration)
{
    int64_t key = ((int64_t)wait << 40 | (int64_t)cpu << 20 | slot) + 1;
    uint32_t place = (uint32_t)(((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    for (;; place++) {
        struct part *part = &inquiry->parts[place & inquiry->parts_mask];
        if (part->key == 0) {
            if (inquiry->parts_count > inquiry->parts_mask / 2)
                return;
            inquiry->parts_count++;
            *part = (struct part){.key = key};
        }
        if (part->key == key) {
            part->duration += duration;
            part->times++;
            return;
        }
    }
}

static void add_idle(struct inquiry *inquiry, int64_t begin, int64_t end)
{
    if (inquiry->stays[inquiry->next].begin < end && inquiry->idle_count < inquiry->idle_most)
        inquiry->idle[inquiry->idle_count++] = (struct stretch){.begin = begin, .end = end};
}

/* Attributes the time from `begin` to `end`, when `slot` had the CPU, to the waits that overlap
 * it. */
static void meet(struct inquiry *inquiry, uint32_t cpu, uint32_t slot, int64_t begin, int64_t end)
{
    while (inquiry->next < inquiry->count && inquiry->stays[inquiry->next].end <= begin)
        inquiry->next++;
    if (end <= begin || inquiry->next == inquiry->count)
        return;
    if (slot == IDLE)
        add_idle(inquiry, begin, end);
    for (uint32_t i = inquiry->next; i < inquiry->count; i++) {
        const struct stay *stay = &inquiry->stays[i];
        int64_t met = earlier(end, stay->end) - later(begin, stay->begin);
        if (stay->begin >= end)
            break;
        if (met <= 0 || stay->cpu != cpu)
            continue;
        if (stay->wait >= inquiry->first_reported)
            add_part(inquiry, stay->wait - inquiry->first_reported, cpu, slot, met);
        add_part(inquiry, OF_ALL, cpu, slot, met);
    }
}

/* ---- what CPUs did ---- */

/* Returns the CPU that a row is about; NONE: no CPU. */
static uint32_t cpu_of_row(const struct model *model, const struct list *list, uint32_t index)
{
    if (list != &model->spells)
        return ((const struct moment *)row_of(model, list, index))->cpu;
    const struct spell *spell = row_of(model, list, index);
    bool is_visible = spell->kind == RUN || (spell->kind == UNSEEN && !model->has_visits);
    return is_visible ? spell->cpu : NONE;
}

/* Returns the variable for the end of a CPU's part of the sorted indices. */
static uint32_t *end_of(const struct model *model, const struct list *list, uint32_t cpu)
{
    return list == &model->spells ? &cpu_of(model, cpu)->at : &cpu_of(model, cpu)->until;
}

/* Sorts indices of rows by CPU; the rows of each CPU stay in their order. */
static void sort_by_cpu(struct model *model, const struct list *list, uint32_t *sorted)
{
    uint32_t total = 0;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        *end_of(model, list, cpu) = 0;
    for (uint32_t i = list->first, cpu; i < list->last; i++) {
        if ((cpu = cpu_of_row(model, list, i)) != NONE)
            (*end_of(model, list, cpu))++;
    }
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++) {
        uint32_t count = *end_of(model, list, cpu);
        *end_of(model, list, cpu) = total;
        total += count;
    }
    for (uint32_t i = list->first, cpu; i < list->last; i++) {
        if ((cpu = cpu_of_row(model, list, i)) != NONE)
            sorted[(*end_of(model, list, cpu))++] = i;
    }
}

/* Steps through what one CPU did in the window. */
struct walk {
    struct inquiry *inquiry;
    uint32_t cpu;
    uint32_t visit; /* the next pass through the scheduler, before `visits_end` */
    uint32_t visits_end;
    int64_t done; /* time up to which everything was attributed */
    int64_t until;
};

/* Finds the next pass through the scheduler. Returns false if there is none. */
static bool next_visit(const struct walk *walk, int64_t *begin, int64_t *end)
{
    const struct model *model = walk->inquiry->model;
    const struct cpu *cpu = cpu_of(model, walk->cpu);
    if (walk->visit < walk->visits_end) {
        const struct moment *visit =
            row_of(model, &model->happened[VISITS], walk->inquiry->visits[walk->visit]);
        *begin = visit->time;
        *end = visit->time + (int64_t)visit->duration;
        return true;
    }
    *begin = cpu->entered_at;
    *end = walk->until;
    return cpu->entered && walk->visit == walk->visits_end;
}

/* Attributes the time up to `end` to `slot`, except for passes through the scheduler. */
static void go_on(struct walk *walk, uint32_t slot, int64_t end)
{
    int64_t enters, leaves;
    while (walk->done < end && next_visit(walk, &enters, &leaves)) {
        if (enters >= end)
            break;
        enters = later(enters, walk->done);
        leaves = later(leaves, enters);
        meet(walk->inquiry, walk->cpu, slot, walk->done, enters);
        meet(walk->inquiry, walk->cpu, SCHEDULER, enters, earlier(leaves, walk->until));
        walk->done = leaves;
        walk->visit++;
    }
    meet(walk->inquiry, walk->cpu, slot, walk->done, end);
    walk->done = later(walk->done, end);
}

/* Attributes the time up to the present: to the unfinished run, or to unknown activity, or else
 * to idling. */
static void go_to_the_end(struct walk *walk)
{
    const struct model *model = walk->inquiry->model;
    const struct cpu *cpu = cpu_of(model, walk->cpu);
    bool unseen = cpu->unseen_since >= 0 && !model->has_visits;
    if (unseen)
        go_on(walk, IDLE, earlier(cpu->unseen_since, walk->until));
    else if (cpu->running != NONE)
        go_on(walk, IDLE, earlier(process_of(model, cpu->running)->since, walk->until));
    uint32_t last = cpu->running != NONE ? cpu->running : IDLE;
    go_on(walk, unseen ? UNKNOWN : last, walk->until);
    meet(walk->inquiry, walk->cpu, UNKNOWN, later(walk->done, model->begin), model->now);
}

static void walk_cpu(struct inquiry *inquiry, uint32_t number)
{
    const struct model *model = inquiry->model;
    const struct cpu *cpu = cpu_of(model, number), *before = number ? cpu - 1 : NULL;
    struct walk walk = {.inquiry = inquiry,
                        .cpu = number,
                        .visit = before ? before->until : 0,
                        .visits_end = cpu->until,
                        .done = later(model->begin, earlier(cpu->started_at, model->now)),
                        .until = earlier(model->now, cpu->ended_at)};
    inquiry->next = 0;
    meet(inquiry, number, UNKNOWN, model->begin, walk.done);
    for (uint32_t i = before ? before->at : 0; i < cpu->at; i++) {
        const struct spell *spell = row_of(model, &model->spells, inquiry->doings[i]);
        go_on(&walk, IDLE, spell->begin);
        go_on(&walk, spell->kind == RUN ? spell->slot : UNKNOWN, spell->end);
    }
    go_to_the_end(&walk);
}

/* ---- idle CPUs ---- */

/* Returns how much of an idle time overlaps waits of the process. */
static int64_t waited_in(const struct inquiry *inquiry, int64_t begin, int64_t end)
{
    int64_t waited = 0;
    for (uint32_t i = stay_after(inquiry, begin); i < inquiry->count; i++) {
        const struct stay *stay = &inquiry->stays[i];
        if (stay->begin >= end)
            break;
        waited += later(earlier(end, stay->end) - later(begin, stay->begin), 0);
    }
    return waited;
}

static int64_t waited_while_idle(struct inquiry *inquiry)
{
    int64_t reach = INT64_MIN, waited = 0;
    struct sortable *order = (struct sortable *)(inquiry->idle + inquiry->idle_most);
    for (uint32_t i = 0; i < inquiry->idle_count; i++)
        order[i] = (struct sortable){.key = inquiry->idle[i].begin, .index = i};
    sort(order, order + inquiry->idle_count, inquiry->idle_count);
    for (uint32_t i = 0; i < inquiry->idle_count; i++) {
        const struct stretch *idle = &inquiry->idle[order[i].index];
        if (idle->end <= reach)
            continue;
        waited += waited_in(inquiry, later(idle->begin, reach), idle->end);
        reach = idle->end;
    }
    return waited;
}

/* ---- output ---- */

/* Sorts the parts by wait and length, the longest first, and then by CPU and slot. Returns how
 * many there are. */
static uint32_t sort_parts(struct inquiry *inquiry)
{
    struct part *parts = inquiry->parts;
    uint32_t count = 0;
    for (uint32_t i = 0; i <= inquiry->parts_mask; i++) {
        if (parts[i].key != 0)
            parts[count++] = parts[i];
    }
    struct sortable *order = (struct sortable *)(parts + inquiry->parts_mask + 1);
    struct part *sorted = (struct part *)(order + 2 * count);
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t index = turn == 0 ? i : order[i].index;
            const struct part *part = &parts[index];
            int64_t keys[] = {part->key, -part->duration, part->key >> 40};
            order[i] = (struct sortable){.key = keys[turn], .index = index};
        }
        sort(order, order + count, count);
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = parts[order[i].index];
    __builtin_memcpy(parts, sorted, count * sizeof(*parts));
    return count;
}

static uint32_t slot_of(const struct part *part)
{
    return (uint32_t)(part->key - 1) & 0xfffff;
}

/* Writes the columns of a list of parts. `names`: for pid, cpu, duration_ns, times and name. */
static void write_parts(struct inquiry *inquiry, struct message *message,
                        const char *const names[5], const struct part *parts, uint32_t count)
{
    static const char *const others[] = {"(unknown)", "(scheduler)", "(idle)"};
    const struct model *model = inquiry->model;
    int64_t *column[4];
    for (uint32_t i = 0; i < 4; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(&parts[i]);
        column[0][i] = slot >= UNKNOWN ? 0 : process_of(model, slot)->pid;
        column[1][i] = (parts[i].key - 1) >> 20 & 0xfffff;
        column[2][i] = parts[i].duration;
        column[3][i] = parts[i].times;
    }
    message_texts(message, names[4], count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(&parts[i]);
        if (slot >= UNKNOWN)
            write_words(message, others[slot - UNKNOWN]);
        else
            write_process(message, process_of(model, slot)->named, name_of(model, slot),
                          process_of(model, slot)->pid);
        text_end(message, i);
    }
}

/* Writes the list of waits; each has the CPU where it ended. */
static void write_waits(struct inquiry *inquiry, struct message *message)
{
    static const char *const words[] = {"forked",     "woken",   "preempted",
                                        "slice over", "yielded", "found"};
    static const char *const names[] = {"waits.begin_ns", "waits.end_ns", "waits.cpu"};
    uint32_t count = inquiry->waits - inquiry->first_reported;
    int64_t *column[3];
    message_several(message, "waits", MODEL_LIST, 0, count);
    for (uint32_t i = 0; i < 3; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, count, count);
    message_texts(message, "waits.why", count);
    for (uint32_t i = 0; i < inquiry->count; i++) {
        const struct stay *stay = &inquiry->stays[i];
        if (stay->wait < inquiry->first_reported)
            continue;
        uint32_t row = stay->wait - inquiry->first_reported;
        if (i == 0 || stay[-1].wait != stay->wait) {
            column[0][row] = stay->begin;
            write_words(message, words[stay->why]);
            text_end(message, row);
        }
        column[1][row] = stay->end;
        column[2][row] = stay->cpu;
    }
}

static void write_all_parts(struct inquiry *inquiry, struct message *message)
{
    static const char *const of_waits[] = {"waits.parts.pid", "waits.parts.cpu",
                                           "waits.parts.duration_ns", "waits.parts.times",
                                           "waits.parts.name"};
    static const char *const of_all[] = {"parts.pid", "parts.cpu", "parts.duration_ns",
                                         "parts.times", "parts.name"};
    uint32_t count = sort_parts(inquiry), waits = inquiry->waits - inquiry->first_reported,
             told = 0;
    while (told < count && (inquiry->parts[told].key - 1) >> 40 < OF_ALL)
        told++;
    message_add(message, "waits.parts", MODEL_LIST, 0, told, waits);
    uint32_t *ends = message_ends(message);
    for (uint32_t i = 0, part = 0; i < waits; i++) {
        while (part < told && (inquiry->parts[part].key - 1) >> 40 <= i)
            part++;
        ends[i] = part;
    }
    write_parts(inquiry, message, of_waits, inquiry->parts, told);
    message_several(message, "parts", MODEL_LIST, 0, count - told);
    write_parts(inquiry, message, of_all, inquiry->parts + told, count - told);
}

/* Divides the rest of the scratch memory: a quarter for stays, one for parts, and a half for
 * idle times, which are sorted before there are parts. */
static void divide_scratch(struct inquiry *inquiry)
{
    struct model *model = inquiry->model;
    char *scratch = scratch_of(model);
    inquiry->doings = (uint32_t *)scratch;
    inquiry->visits = inquiry->doings + list_count(&model->spells);
    uint64_t used = sizeof(uint32_t) *
                    ((uint64_t)list_count(&model->spells) + list_count(&model->happened[VISITS]));
    used = (used + 15) & ~(uint64_t)15;
    scratch += used;
    size_t quarter = (size_t)((model->scratch_bytes - used) / 4) & ~(size_t)15;
    inquiry->stays = (struct stay *)scratch;
    inquiry->most = (uint32_t)(quarter / sizeof(struct stay));
    inquiry->parts = (struct part *)(scratch + quarter);
    inquiry->parts_mask = 1;
    while (2 * inquiry->parts_mask * sizeof(struct part) < quarter / 2)
        inquiry->parts_mask *= 2;
    inquiry->parts_mask--;
    __builtin_memset(inquiry->parts, 0, (inquiry->parts_mask + 1) * sizeof(struct part));
    inquiry->idle = (struct stretch *)(scratch + 2 * quarter);
    inquiry->idle_most =
        (uint32_t)(2 * quarter / (sizeof(struct stretch) + 2 * sizeof(struct sortable)));
}

/* Returns the slot of the process that has the PID or, if it has ended, had it last. */
static uint32_t find_slot(const struct model *model, uint32_t pid)
{
    uint32_t match = process_find(model, pid);
    for (uint32_t slot = 0; slot < model->slots && match == NONE; slot++) {
        const struct process *process = process_of(model, slot);
        if (process->used && process->pid == pid)
            match = slot;
    }
    for (uint32_t slot = 0; match != NONE && slot < model->slots; slot++) {
        const struct process *process = process_of(model, slot);
        if (!process_of(model, match)->living && process->used && process->pid == pid &&
            process->born_at > process_of(model, match)->born_at)
            match = slot;
    }
    return match;
}

const void *model_explain(struct model *model, uint32_t pid)
{
    struct inquiry inquiry = {.model = model};
    struct message message = message_begin(model);
    int64_t total = 0;
    settle(model);
    inquiry.slot = find_slot(model, pid);
    if (inquiry.slot == NONE)
        return NULL;
    divide_scratch(&inquiry);
    find_waits(&inquiry);
    sort_by_cpu(model, &model->spells, inquiry.doings);
    sort_by_cpu(model, &model->happened[VISITS], inquiry.visits);
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        walk_cpu(&inquiry, cpu);
    for (uint32_t i = 0; i < inquiry.count; i++)
        total += inquiry.stays[i].end - inquiry.stays[i].begin;
    const struct process *process = process_of(model, inquiry.slot);
    message_number(&message, "pid", pid);
    message_texts(&message, "name", 1);
    write_process(&message, process->named, name_of(model, inquiry.slot), pid);
    text_end(&message, 0);
    message_number(&message, "total_ns", total);
    message_number(&message, "beside_idle_ns", waited_while_idle(&inquiry));
    write_waits(&inquiry, &message);
    write_all_parts(&inquiry, &message);
    return message_end(&message);
}
