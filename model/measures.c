/* SPDX-License-Identifier: MIT */

/* The metrics over the window, by the definitions of docs/metrics.md. */

#include "model/message.h"

/* ---- what counts ---- */

static bool counts(const struct model *model, const struct moment *moment)
{
    const struct process *process = process_of(model, moment->slot);
    return moment->time >= model->begin && is_of(process, moment->serial) && process->of_workload;
}

/* Collects the values of the workload's processes. Returns their number. */
static uint32_t values_of(const struct model *model, enum moments what, int64_t *values,
                          uint32_t most)
{
    const struct list *list = &model->happened[what];
    uint32_t count = 0;
    for (uint32_t i = list->first; i < list->last && count < most; i++) {
        const struct moment *moment = row_of(model, list, i);
        if (counts(model, moment))
            values[count++] = moment->value;
    }
    return count;
}

static int64_t count_of(const struct model *model, enum moments what)
{
    const struct list *list = &model->happened[what];
    int64_t count = 0;
    for (uint32_t i = list->first; i < list->last; i++)
        count += counts(model, row_of(model, list, i));
    return count;
}

/* Sums of events that belong to no process: their number, and the sum of their values. */
struct tally {
    int64_t count;
    int64_t sum;
};

static struct tally tally_of(const struct model *model, enum moments what)
{
    const struct list *list = &model->happened[what];
    struct tally tally = {0};
    for (uint32_t i = list->first; i < list->last; i++) {
        const struct moment *moment = row_of(model, list, i);
        if (moment->time < model->begin)
            continue;
        tally.count++;
        tally.sum += moment->value;
    }
    return tally;
}

/* ---- results ---- */

static void write_mean(struct message *message, const char *name, const int64_t *values,
                       uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    if (count > 0)
        message_real(message, name, (double)sum / count);
    else
        message_null(message, name);
}

/* Jain's index (Jain, Chiu and Hawe, 1984) of values that are not below 0. */
static void write_fairness(struct message *message, const char *name, double *values,
                           uint32_t count)
{
    double *squares = values + count, *spare = squares + count;
    double largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    if (largest <= 0) {
        message_null(message, name);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] /= largest; /* so that squares neither overflow nor vanish */
        squares[i] = values[i] * values[i];
    }
    double sum = sum_up(values, spare, count);
    message_real(message, name, sum * sum / (count * sum_up(squares, spare, count)));
}

/* Interpolates between two values, if the quantile falls there. `spare` is as long. */
static double quantile(const int64_t *values, int64_t *spare, uint32_t count, double part)
{
    double place = (count - 1) * part;
    uint32_t lower = (uint32_t)place;
    double low = (double)value_of_rank(values, spare, count, lower);
    if (place == lower)
        return low;
    double high = (double)value_of_rank(values, spare, count, lower + 1);
    return low == high ? low : (place - lower) * (high - low) + low;
}

static void write_latencies(struct model *model, struct message *message)
{
    int64_t *values = scratch_of(model);
    uint32_t most = (uint32_t)(model->scratch_bytes / 2 / sizeof(int64_t));
    uint32_t count = values_of(model, LATENCIES, values, most);
    if (count == 0) {
        message_null(message, "metrics.wakeup_median_ns");
        message_null(message, "metrics.wakeup_p99_ns");
        message_null(message, "metrics.wakeup_maximum_ns");
        return;
    }
    int64_t *spare = values + count;
    message_real(message, "metrics.wakeup_median_ns", quantile(values, spare, count, 0.5));
    message_real(message, "metrics.wakeup_p99_ns", quantile(values, spare, count, 0.99));
    message_real(message, "metrics.wakeup_maximum_ns",
                 (double)value_of_rank(values, spare, count, count - 1));
}

static void write_turnarounds(struct model *model, struct message *message)
{
    int64_t *values = scratch_of(model);
    uint32_t most = (uint32_t)(model->scratch_bytes / 5 / sizeof(int64_t));
    uint32_t count = values_of(model, TURNAROUNDS, values, most), known = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] >= 0)
            values[known++] = values[i];
    }
    double *reals = (double *)(values + known);
    for (uint32_t i = 0; i < known; i++)
        reals[i] = (double)values[i];
    double seconds = (double)(model->now - model->begin) / SECOND;
    message_number(message, "metrics.finished", count);
    message_real(message, "metrics.throughput_per_s", seconds > 0 ? count / seconds : 0);
    write_mean(message, "metrics.turnaround_ns", values, known);
    write_fairness(message, "metrics.fairness_turnaround", reals, known);
}

static void write_responses(struct model *model, struct message *message)
{
    int64_t *values = scratch_of(model);
    uint32_t most = (uint32_t)(model->scratch_bytes / sizeof(int64_t));
    write_mean(message, "metrics.response_ns", values, values_of(model, RESPONSES, values, most));
}

static void write_waiting(struct model *model, struct message *message)
{
    int64_t *values = scratch_of(model);
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < model->slots; slot++) {
        if (process_of(model, slot)->of_workload)
            values[count++] = process_of(model, slot)->wait_now;
    }
    write_mean(message, "metrics.waiting_ns", values, count);
}

static void write_share_fairness(struct model *model, struct message *message)
{
    double *values = scratch_of(model);
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < model->slots; slot++) {
        const struct process *process = process_of(model, slot);
        if (process->of_workload && process->demand_by_settings > 0)
            values[count++] = process->share / process->demand_by_settings;
    }
    write_fairness(message, "metrics.fairness", values, count);
}

/* The scheduler's part of the CPUs' time. */
static void write_overhead(struct model *model, struct message *message)
{
    double elapsed = (double)(model->now - model->begin);
    double cycles = elapsed * ((double)model->header.cycles_per_second / SECOND);
    if (elapsed > 0 && model->has_visits)
        message_real(message, "metrics.overhead",
                     (double)tally_of(model, VISITS).sum / (model->header.cpus * cycles));
    else
        message_null(message, "metrics.overhead");
}

static int64_t busy(const struct model *model)
{
    int64_t busy = 0;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        busy += cpu_of(model, cpu)->busy_now;
    return busy;
}

static int64_t idle_while_queued(const struct model *model)
{
    const struct list *list = &model->happened[IDLE_WHILE_QUEUED];
    int64_t sum = 0;
    for (uint32_t i = list->first; i < list->last; i++) {
        const struct moment *idle = row_of(model, list, i);
        if (idle->time >= model->begin)
            sum += idle->time - later(idle->value, model->begin);
    }
    return sum;
}

static void write_rates(struct model *model, struct message *message)
{
    int64_t elapsed = model->now - model->begin;
    double seconds = (double)elapsed / SECOND;
    double switches = (double)tally_of(model, SWITCHES).count;
    double migrations = (double)count_of(model, MIGRATIONS);
    double capacity = (double)(model->header.cpus * elapsed);
    message_real(message, "metrics.utilisation", elapsed > 0 ? (double)busy(model) / capacity : 0);
    message_real(message, "metrics.switches_per_s", elapsed > 0 ? switches / seconds : 0);
    message_real(message, "metrics.migrations_per_s", elapsed > 0 ? migrations / seconds : 0);
}

/* Writes the cost of monitoring: the run time of the monitor's own processes, and records times
 * the cost of one. */
static void write_cost(struct model *model, struct message *message)
{
    double capacity = (double)(elapsed_of(model) * model->header.cpus);
    int64_t ran = 0;
    for (uint32_t slot = 0; slot < model->slots && model->monitor_count > 0; slot++) {
        const struct process *process = process_of(model, slot);
        if (process->used && is_monitor(model, process->pid))
            ran += process->run_now;
    }
    double steering = (double)ran / capacity;
    double tracing = (double)tally_of(model, BATCHES).sum * model->record_cost / capacity;
    message_real(message, "cost.steering", steering);
    message_real(message, "cost.tracing", tracing);
    message_real(message, "cost.total", steering + tracing);
}

void write_metrics(struct model *model, struct message *message)
{
    message_number(message, "metrics.window_ns", model->now - model->begin);
    write_turnarounds(model, message);
    write_responses(model, message);
    write_waiting(model, message);
    write_latencies(model, message);
    message_number(message, "metrics.wakeups", count_of(model, WAKEUPS));
    write_share_fairness(model, message);
    write_overhead(model, message);
    write_rates(model, message);
    message_number(message, "metrics.idle_while_queued_ns", idle_while_queued(model));
    write_cost(model, message);
}
