/* SPDX-License-Identifier: MIT */

/* Writes frames: the present state and recent events, which docs/monitor.md describes. */

#include "model/message.h"

#define RUN_NUMBERS     7 /* numbers per drawn run */
#define RUNS_SHOWN      2000
#define DECISIONS_SHOWN 100
#define MARKS_SHOWN     200 /* maximum number of new marks in a frame; the last ones are shown */

/* ---- drawn runs ---- */

static void write_drawn(int64_t *row, const struct drawn *run, bool levels)
{
    row[0] = run->cpu;
    row[1] = run->pid;
    row[2] = run->begin;
    row[3] = run->end;
    row[4] = levels ? (int64_t)run->level : -1;
    row[5] = run->how;
    row[6] = run->waited;
}

/* Writes the unfinished runs; the next frame will replace them. */
static void show_running(struct model *model)
{
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        struct cpu *cpu = cpu_of(model, number);
        cpu->is_shown = cpu->running != NONE;
        if (!cpu->is_shown)
            continue;
        const struct process *process = process_of(model, cpu->running);
        cpu->shown = (struct drawn){
            .begin = process->since,
            .end = earlier(model->now, cpu->ended_at),
            .waited = process->waited,
            .pid = process->pid,
            .level = process->level,
            .cpu = (uint16_t)number,
            .how = GOES_ON,
        };
    }
}

static uint32_t count_running(const struct model *model)
{
    uint32_t count = 0;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        count += cpu_of(model, cpu)->is_shown;
    return count;
}

static void write_runs(struct model *model, struct message *message, const struct list *runs)
{
    uint32_t count = list_count(runs) + count_running(model);
    bool levels = has_levels(model);
    int64_t *row = message_several(message, "timeline.runs", MODEL_I64, RUN_NUMBERS, count);
    for (uint32_t i = runs->first; i < runs->last; i++, row += RUN_NUMBERS)
        write_drawn(row, row_of(model, runs, i), levels);
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        const struct cpu *cpu = cpu_of(model, number);
        if (!cpu->is_shown)
            continue;
        write_drawn(row, &cpu->shown, levels);
        row += RUN_NUMBERS;
    }
}

static void write_timeline(struct model *model, struct message *message, const struct list *runs,
                           const struct list *idle, uint32_t thinned)
{
    write_runs(model, message, runs);
    int64_t *row =
        message_several(message, "timeline.idle_while_queued", MODEL_I64, 3, list_count(idle));
    for (uint32_t i = idle->first; i < idle->last; i++, row += 3) {
        const struct stretch *stretch = row_of(model, idle, i);
        row[0] = stretch->cpu;
        row[1] = stretch->begin;
        row[2] = stretch->end;
    }
    message_number(message, "timeline.thinned", thinned);
}

/* ---- marks ---- */

struct chosen_marks {
    const struct mark *mark[MARKS_MAX + LIVES_MAX];
    uint32_t count;
};

/* The last marks in a span of numbers, up to a maximum. */
struct range {
    uint64_t after;
    uint64_t to;
    uint32_t most;
};

static void choose_marks(struct chosen_marks *chosen, const struct mark *marks, uint64_t count,
                         uint32_t most, struct range range)
{
    uint64_t first = count > most ? count - most : 0;
    while (count > first && marks[(count - 1) % most].number > range.to)
        count--;
    while (first < count && marks[first % most].number <= range.after)
        first++;
    if (count - first > range.most)
        first = count - range.most;
    for (; first < count; first++)
        chosen->mark[chosen->count++] = &marks[first % most];
}

/* Chooses the marks to show. If there are too many, events of the system have priority over
 * those of processes. */
static void choose_all_marks(const struct model *model, struct chosen_marks *chosen,
                             struct range range)
{
    const struct marks *marks = &model->marks;
    choose_marks(chosen, marks->other, marks->others, MARKS_MAX, range);
    range.most -= chosen->count;
    choose_marks(chosen, marks->life, marks->lives, LIVES_MAX, range);
    for (uint32_t i = 1; i < chosen->count; i++) { /* both lists are sorted by number */
        const struct mark *mark = chosen->mark[i];
        uint32_t place = i;
        for (; place > 0 && chosen->mark[place - 1]->number > mark->number; place--)
            chosen->mark[place] = chosen->mark[place - 1];
        chosen->mark[place] = mark;
    }
}

static void write_marks(const struct model *model, struct message *message, struct range range)
{
    struct chosen_marks chosen = {.count = 0};
    choose_all_marks(model, &chosen, range);
    uint32_t count = chosen.count;
    message_several(message, "marks", MODEL_LIST, 0, count);
    int64_t *time = message_add(message, "marks.time_ns", MODEL_I64, 0, count, count);
    for (uint32_t i = 0; i < count; i++)
        time[i] = chosen.mark[i]->time;
    int32_t *pid = message_add(message, "marks.pid", MODEL_I32, 0, count, count);
    for (uint32_t i = 0; i < count; i++)
        pid[i] = (int32_t)chosen.mark[i]->pid;
    message_texts(message, "marks.kind", count);
    for (uint32_t i = 0; i < count; i++) {
        write_words(message, mark_kind(chosen.mark[i]));
        text_end(message, i);
    }
    message_texts(message, "marks.text", count);
    for (uint32_t i = 0; i < count; i++) {
        write_mark(message, chosen.mark[i]);
        text_end(message, i);
    }
}

/* ---- decisions ---- */

struct chosen_decisions {
    const struct decisions *all;
    uint64_t first;
    uint32_t count;
};

static const struct decision *decision_at(const struct chosen_decisions *chosen, uint32_t index)
{
    return &chosen->all->row[(chosen->first + index) % DECISIONS_MAX];
}

static struct chosen_decisions choose_decisions(const struct model *model, struct range range)
{
    const struct decisions *all = &model->decisions;
    struct chosen_decisions chosen = {.all = all};
    uint64_t end = all->stored;
    chosen.first = end > DECISIONS_MAX ? end - DECISIONS_MAX : 0;
    while (end > chosen.first && all->row[(end - 1) % DECISIONS_MAX].number > range.to)
        end--;
    while (chosen.first < end && all->row[chosen.first % DECISIONS_MAX].number <= range.after)
        chosen.first++;
    if (end - chosen.first > range.most)
        chosen.first = end - range.most;
    chosen.count = (uint32_t)(end - chosen.first);
    return chosen;
}

static void write_decision_numbers(struct message *message, const struct chosen_decisions *chosen)
{
    static const char *const names[] = {"decisions.number", "decisions.time_ns",
                                        "decisions.cpu",    "decisions.pid",
                                        "decisions.waited", "decisions.remark"};
    int64_t *column[6];
    for (uint32_t i = 0; i < 6; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, chosen->count, chosen->count);
    for (uint32_t i = 0; i < chosen->count; i++) {
        const struct decision *decision = decision_at(chosen, i);
        column[0][i] = (int64_t)decision->number;
        column[1][i] = decision->time;
        column[2][i] = decision->cpu;
        column[3][i] = decision->pid;
        column[4][i] = decision->waited;
        column[5][i] = (int64_t)decision->remark;
    }
}

static void write_candidates(struct message *message, const struct chosen_decisions *chosen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < chosen->count; i++)
        count += decision_at(chosen, i)->candidates;
    int64_t *row = message_add(message, "decisions.candidates", MODEL_I64, 2, count, chosen->count);
    uint32_t *ends = message_ends(message);
    count = 0;
    for (uint32_t i = 0; i < chosen->count; i++) {
        const struct decision *decision = decision_at(chosen, i);
        for (uint32_t j = 0; j < decision->candidates; j++, row += 2) {
            row[0] = decision->candidate[j];
            row[1] = decision->worth[j];
        }
        ends[i] = count += decision->candidates;
    }
}

static void write_decisions(const struct model *model, struct message *message, struct range range)
{
    struct chosen_decisions chosen = choose_decisions(model, range);
    message_several(message, "decisions", MODEL_LIST, 0, chosen.count);
    write_decision_numbers(message, &chosen);
    message_texts(message, "decisions.name", chosen.count);
    for (uint32_t i = 0; i < chosen.count; i++) {
        const struct decision *decision = decision_at(&chosen, i);
        write_process(message, decision->named, &decision->name, decision->pid);
        text_end(message, i);
    }
    message_texts(message, "decisions.text", chosen.count);
    for (uint32_t i = 0; i < chosen.count; i++) {
        write_decision(message, decision_at(&chosen, i));
        text_end(message, i);
    }
    write_candidates(message, &chosen);
}

/* ---- all ---- */

static void write_policy(struct model *model, struct message *message)
{
    static const char *const shares[] = {
        [SHARES_EQUAL] = "equal",      [SHARES_BY_TICKETS] = "tickets",
        [SHARES_BY_WEIGHT] = "weight", [SHARES_BY_NICE] = "nice",
        [SHARES_BY_GROUPS] = "groups", [SHARES_BY_CURRENCIES] = "currencies"};
    const struct policy *policy = model->policy.policy;
    message_texts(message, "policy", 1);
    write_name(message, &model->policy.text);
    text_end(message, 0);
    message_text(message, "shares_by", shares[model->policy.shares_by]);
    message_flag(message, "levels", has_levels(model));
    message_flag(message, "levels_rise", policy && policy->level_order == LEVELS_HIGHEST_FIRST);
    message_flag(message, "shared_queue", has_shared_queue(model));
}

const void *model_frame(struct model *model, size_t max_runs)
{
    struct message message = message_begin(model);
    uint32_t most = max_runs < UINT32_MAX ? (uint32_t)max_runs : UINT32_MAX;
    settle(model);
    shares_compute(model);
    message_number(&message, "now_ns", model->now);
    write_policy(model, &message);
    write_cpus(model, &message);
    write_processes(model, &message);
    write_metrics(model, &message);
    show_running(model);
    uint32_t thinned = drawing_thin(model, most > 0 ? most : 1);
    write_timeline(model, &message, &model->fresh, &model->fresh_idle, thinned);
    drawing_record(model);
    struct range marks = {model->marks.shown, model->marks.count, MARKS_SHOWN};
    write_marks(model, &message, marks);
    model->marks.shown = model->marks.count;
    struct range decisions = {model->decisions.shown, model->decisions.count, DECISIONS_SHOWN};
    write_decisions(model, &message, decisions);
    model->decisions.shown = model->decisions.count;
    model->has_shown = true;
    message_number(&message, "events", (int64_t)model->events);
    message_number(&message, "lost", (int64_t)model->lost);
    return message_end(&message);
}

const void *model_history(struct model *model)
{
    if (!model->has_shown)
        return model_frame(model, RUNS_SHOWN);
    struct message message = message_begin(model);
    struct range marks = {0, model->marks.shown, MARKS_MAX + LIVES_MAX};
    struct range decisions = {0, model->decisions.shown, DECISIONS_MAX};
    write_timeline(model, &message, &model->past, &model->past_idle, 0);
    write_marks(model, &message, marks);
    write_decisions(model, &message, decisions);
    return message_end(&message);
}
