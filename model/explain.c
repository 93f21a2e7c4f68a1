/* SPDX-License-Identifier: MIT */

/* Why a process had to wait: what had the CPU in whose queue it was. All times are cut to the
 * window. */

#include "model/message.h"

#define WAITS_TOLD 50
#define OF_ALL     WAITS_TOLD /* the number of the sums over all waits, beside those of each */
#define IDLE       0xfffffu   /* in the place of a slot */

struct wait {
    int64_t begin;
    int64_t end;
    uint32_t cpu;
    uint8_t why;
};

/* How long a process had a CPU during one of the waits that are told, or during all. */
struct part {
    int64_t key; /* wait, CPU, slot, and 1 more; 0: none */
    int64_t ran;
    uint32_t runs;
};

/* A stretch in which a CPU idled during waits. */
struct inquiry {
    struct model *model;
    struct wait *waits; /* in their order, and apart from each other */
    uint32_t count;
    uint32_t most;
    uint32_t told; /* the number of the first that is told */
    uint32_t slot;
    bool shared;        /* one queue for all CPUs: a process that waits, waits for each of them */
    struct part *parts; /* by a hash of their keys */
    uint32_t parts_mask;
    uint32_t parts_count;
    struct stretch *idle;
    uint32_t idle_count;
    uint32_t idle_most;
};

/* ---- its waits ---- */

static void add_wait(struct inquiry *inquiry, const struct wait *wait)
{
    int64_t begin = later(wait->begin, inquiry->model->begin);
    if (wait->end <= begin || inquiry->count == inquiry->most)
        return;
    inquiry->waits[inquiry->count] = *wait;
    inquiry->waits[inquiry->count++].begin = begin;
}

static void find_waits(struct inquiry *inquiry)
{
    const struct model *model = inquiry->model;
    const struct process *process = process_of(model, inquiry->slot);
    for (uint32_t i = model->spells.first; i < model->spells.last; i++) {
        const struct spell *spell = row_of(model, &model->spells, i);
        if (spell->slot != inquiry->slot || spell->kind != WAIT || !is_of(process, spell->serial))
            continue;
        const struct wait wait = {spell->begin, spell->end, spell->cpu, spell->detail};
        add_wait(inquiry, &wait);
    }
    const struct wait last = {process->since, later(model->now, process->since), process->queue,
                              process->why};
    if (process->living && process->state == RUNNABLE)
        add_wait(inquiry, &last);
    inquiry->told = inquiry->count > WAITS_TOLD ? inquiry->count - WAITS_TOLD : 0;
}

/* The first that ends after this time. */
static uint32_t wait_after(const struct inquiry *inquiry, int64_t time)
{
    uint32_t low = 0, high = inquiry->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (inquiry->waits[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- what had the CPUs ---- */

/* Of more than there is room for, the last are passed over. */
static void add_part(struct inquiry *inquiry, uint32_t wait, uint32_t cpu, uint32_t slot,
                     int64_t ran)
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
            part->ran += ran;
            part->runs++;
            return;
        }
    }
}

/* A process, or none (IDLE), had the CPU: it counts where it meets waits. */
static void meet(struct inquiry *inquiry, uint32_t cpu, uint32_t slot, int64_t begin, int64_t end)
{
    int64_t ran = 0;
    for (uint32_t i = wait_after(inquiry, begin); i < inquiry->count; i++) {
        const struct wait *wait = &inquiry->waits[i];
        int64_t met = earlier(end, wait->end) - later(begin, wait->begin);
        if (wait->begin >= end)
            break;
        if (met <= 0 || (!inquiry->shared && wait->cpu != cpu))
            continue;
        ran += met;
        if (i >= inquiry->told)
            add_part(inquiry, i - inquiry->told, cpu, slot, met);
    }
    if (ran > 0)
        add_part(inquiry, OF_ALL, cpu, slot, ran);
}

static void add_idle(struct inquiry *inquiry, uint32_t cpu, int64_t begin, int64_t end)
{
    if (end <= begin)
        return;
    meet(inquiry, cpu, IDLE, begin, end);
    uint32_t first = wait_after(inquiry, begin);
    if (first == inquiry->count || inquiry->waits[first].begin >= end)
        return;
    if (inquiry->idle_count < inquiry->idle_most)
        inquiry->idle[inquiry->idle_count++] =
            (struct stretch){.begin = begin, .end = end, .cpu = cpu};
}

/* ---- what CPUs did ---- */

/* The time in the window in which a CPU was there. */
static int64_t there_since(const struct model *model, const struct cpu *cpu)
{
    return later(model->begin, cpu->started_at);
}

static int64_t there_until(const struct model *model, const struct cpu *cpu)
{
    return later(earlier(model->now, cpu->ended_at), there_since(model, cpu));
}

/* Each CPU's `busy_now` is, meanwhile, where its last run ended. */
static void add_run(struct inquiry *inquiry, uint32_t number, uint32_t slot, int64_t begin,
                    int64_t end)
{
    const struct model *model = inquiry->model;
    struct cpu *cpu = cpu_of(model, number);
    int64_t since = later(cpu->busy_now, there_since(model, cpu));
    add_idle(inquiry, number, since, earlier(begin, there_until(model, cpu)));
    meet(inquiry, number, slot, begin, end);
    cpu->busy_now = end;
}

static void add_runs(struct inquiry *inquiry)
{
    struct model *model = inquiry->model;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        cpu_of(model, cpu)->busy_now = there_since(model, cpu_of(model, cpu));
    for (uint32_t i = model->spells.first; i < model->spells.last; i++) {
        const struct spell *spell = row_of(model, &model->spells, i);
        if (spell->kind == RUN && spell->end > model->begin)
            add_run(inquiry, spell->cpu, spell->slot, spell->begin, spell->end);
    }
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        const struct cpu *cpu = cpu_of(model, number);
        if (cpu->running != NONE) {
            int64_t begin = process_of(model, cpu->running)->since;
            int64_t end = later(earlier(model->now, cpu->ended_at), begin);
            add_run(inquiry, number, cpu->running, begin, end);
        }
        int64_t since = later(cpu->busy_now, there_since(model, cpu));
        add_idle(inquiry, number, since, there_until(model, cpu));
    }
}

/* ---- idle elsewhere ---- */

static void sort_idle(struct inquiry *inquiry)
{
    struct sortable *order = (struct sortable *)(inquiry->idle + inquiry->idle_most);
    uint32_t count = inquiry->idle_count;
    struct stretch *sorted = (struct stretch *)(order + 2 * count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct sortable){.key = inquiry->idle[i].begin, .index = i};
    sort(order, order + count, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = inquiry->idle[order[i].index];
    __builtin_memcpy(inquiry->idle, sorted, count * sizeof(*sorted));
}

/* The part of a stretch in which it waited, in the queue of a CPU or in any (NONE). */
static int64_t waited_in(const struct inquiry *inquiry, uint32_t queue, int64_t begin, int64_t end)
{
    int64_t waited = 0;
    for (uint32_t i = wait_after(inquiry, begin); i < inquiry->count; i++) {
        const struct wait *wait = &inquiry->waits[i];
        if (wait->begin >= end)
            break;
        if (queue == NONE || wait->cpu == queue)
            waited += later(earlier(end, wait->end) - later(begin, wait->begin), 0);
    }
    return waited;
}

/* Of the waits in one queue, the part in which any other CPU idled. */
static int64_t idle_beside(const struct inquiry *inquiry, uint32_t queue)
{
    int64_t reach = INT64_MIN, waited = 0;
    for (uint32_t i = 0; i < inquiry->idle_count; i++) {
        const struct stretch *idle = &inquiry->idle[i];
        if (idle->cpu == queue || idle->end <= reach)
            continue;
        waited += waited_in(inquiry, queue, later(idle->begin, reach), idle->end);
        reach = idle->end;
    }
    return waited;
}

static int64_t idle_elsewhere(struct inquiry *inquiry)
{
    int64_t waited = 0;
    sort_idle(inquiry);
    if (inquiry->shared)
        return idle_beside(inquiry, NONE);
    for (uint32_t cpu = 0; cpu < inquiry->model->header.cpus; cpu++)
        cpu_of(inquiry->model, cpu)->until = 0;
    for (uint32_t i = 0; i < inquiry->count; i++)
        cpu_of(inquiry->model, inquiry->waits[i].cpu)->until = 1;
    for (uint32_t cpu = 0; cpu < inquiry->model->header.cpus; cpu++) {
        if (cpu_of(inquiry->model, cpu)->until)
            waited += idle_beside(inquiry, cpu);
    }
    return waited;
}

/* ---- told ---- */

/* The parts by wait, the longest first; equal ones by CPU and slot. Returns how many. */
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
            int64_t keys[] = {part->key, -part->ran, part->key >> 40};
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
    return (uint32_t)(part->key - 1) & IDLE;
}

/* `names`: of a list's pid, cpu, ran_ns, runs and name. */
static void write_parts(struct inquiry *inquiry, struct message *message,
                        const char *const names[5], const struct part *parts, uint32_t count)
{
    const struct model *model = inquiry->model;
    int64_t *column[4];
    for (uint32_t i = 0; i < 4; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(&parts[i]);
        column[0][i] = slot == IDLE ? 0 : process_of(model, slot)->pid;
        column[1][i] = (parts[i].key - 1) >> 20 & 0xfffff;
        column[2][i] = parts[i].ran;
        column[3][i] = parts[i].runs;
    }
    message_texts(message, names[4], count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(&parts[i]);
        if (slot != IDLE)
            write_process(message, process_of(model, slot)->named, name_of(model, slot),
                          process_of(model, slot)->pid);
        text_end(message, i);
    }
}

static void write_waits(struct inquiry *inquiry, struct message *message)
{
    static const char *const words[] = {"forked",  "woken", "preempted", "slice over",
                                        "yielded", "moved", "found"};
    static const char *const names[] = {"waits.begin_ns", "waits.end_ns", "waits.cpu"};
    const struct wait *waits = inquiry->waits + inquiry->told;
    uint32_t count = inquiry->count - inquiry->told;
    int64_t *column[3];
    message_several(message, "waits", MODEL_LIST, 0, count);
    for (uint32_t i = 0; i < 3; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, count, count);
    for (uint32_t i = 0; i < count; i++) {
        column[0][i] = waits[i].begin;
        column[1][i] = waits[i].end;
        column[2][i] = waits[i].cpu;
    }
    message_texts(message, "waits.why", count);
    for (uint32_t i = 0; i < count; i++) {
        write_words(message, words[waits[i].why]);
        text_end(message, i);
    }
}

static void write_all_parts(struct inquiry *inquiry, struct message *message)
{
    static const char *const of_waits[] = {"waits.parts.pid", "waits.parts.cpu",
                                           "waits.parts.ran_ns", "waits.parts.runs",
                                           "waits.parts.name"};
    static const char *const of_all[] = {"parts.pid", "parts.cpu", "parts.ran_ns", "parts.runs",
                                         "parts.name"};
    uint32_t count = sort_parts(inquiry), waits = inquiry->count - inquiry->told, told = 0;
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

/* A half for the waits; in the other, idle stretches are sorted before parts are. */
static void divide_scratch(struct inquiry *inquiry)
{
    struct model *model = inquiry->model;
    char *scratch = scratch_of(model);
    size_t quarter = (size_t)(model->scratch_bytes / 4) & ~(size_t)15;
    inquiry->waits = (struct wait *)scratch;
    inquiry->most = (uint32_t)(quarter / sizeof(struct wait));
    inquiry->parts = (struct part *)(scratch + quarter);
    inquiry->parts_mask = 1;
    while (2 * inquiry->parts_mask * sizeof(struct part) < quarter / 2)
        inquiry->parts_mask *= 2;
    inquiry->parts_mask--;
    __builtin_memset(inquiry->parts, 0, (inquiry->parts_mask + 1) * sizeof(struct part));
    inquiry->idle = (struct stretch *)(scratch + 2 * quarter);
    inquiry->idle_most =
        (uint32_t)(2 * quarter / (2 * sizeof(struct stretch) + 2 * sizeof(struct sortable)));
}

/* The slot of the process that bears the PID, or that bore it last. */
static uint32_t find_slot(const struct model *model, uint32_t pid)
{
    uint32_t found = process_find(model, pid);
    for (uint32_t slot = 0; slot < model->slots && found == NONE; slot++) {
        const struct process *process = process_of(model, slot);
        if (process->used && process->pid == pid)
            found = slot;
    }
    for (uint32_t slot = 0; found != NONE && slot < model->slots; slot++) {
        const struct process *process = process_of(model, slot);
        if (!process_of(model, found)->living && process->used && process->pid == pid &&
            process->born_at > process_of(model, found)->born_at)
            found = slot;
    }
    return found;
}

const void *model_explain(struct model *model, uint32_t pid)
{
    struct inquiry inquiry = {.model = model, .shared = has_shared_queue(model)};
    struct message message = message_begin(model);
    int64_t total = 0;
    settle(model);
    inquiry.slot = find_slot(model, pid);
    if (inquiry.slot == NONE)
        return NULL;
    divide_scratch(&inquiry);
    find_waits(&inquiry);
    add_runs(&inquiry);
    for (uint32_t i = 0; i < inquiry.count; i++)
        total += inquiry.waits[i].end - inquiry.waits[i].begin;
    const struct process *process = process_of(model, inquiry.slot);
    message_number(&message, "pid", pid);
    message_texts(&message, "name", 1);
    write_process(&message, process->named, name_of(model, inquiry.slot), pid);
    text_end(&message, 0);
    message_number(&message, "total_ns", total);
    message_number(&message, "idle_elsewhere_ns", idle_elsewhere(&inquiry));
    write_waits(&inquiry, &message);
    write_all_parts(&inquiry, &message);
    return message_end(&message);
}
