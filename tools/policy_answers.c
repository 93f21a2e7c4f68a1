/* SPDX-License-Identifier: MIT */

/*
 * A library of the host: what policies answer under any values of their tunables,
 * about a machine and tasks of which no more is known than a trace tells. So what
 * is shown of a policy is computed by the policy.
 * python/schedlab/toolchain/policy_answers.py calls it.
 */

#include "policies/registry.h"
#include "policies/support/hooks.h"

/* A policy under which a machine runs. */
struct question {
    const char *policy; /* NAME or NAME:PRESET, with its final 0 */
    uint64_t tick_ns;
    int64_t tunables[POLICY_TUNABLES_MAX]; /* in the order of policy->tunables */
};

struct answer {
    uint64_t shared_queue; /* 1: one queue serves all CPUs */
    uint64_t ticket_parts;
};

struct waiting {
    uint64_t level; /* as it was queued; then: as it is served */
    uint64_t since; /* nanoseconds */
    int32_t pid;
    int32_t priority;
    uint32_t weight;
    uint32_t unused;
    uint64_t tickets; /* as they were set; then: with how many it draws */
};

struct asked {
    const struct policy *policy;
    struct scheduler scheduler;
    uint64_t state[POLICY_SCHEDULER_BYTES / 8];
};

/* Returns false if there is no such policy. */
static bool ask(struct asked *asked, const struct question *question)
{
    struct policy_choice choice;
    size_t length = 0;
    while (question->policy[length] != '\0')
        length++;
    if (policy_choose(question->policy, length, &choice) != POLICY_OK)
        return false;
    *asked = (struct asked){.policy = choice.policy};
    asked->scheduler = (struct scheduler){
        .cpus = 1, .queues = 1, .tick_ns = question->tick_ns, .state = asked->state};
    for (uint32_t i = 0; i < choice.policy->tunable_count; i++)
        asked->scheduler.tunable[i] = question->tunables[i];
    policy_init_scheduler(asked->policy, &asked->scheduler);
    return true;
}

bool policy_answer(const struct question *question, struct answer *answer)
{
    struct asked asked;
    if (!ask(&asked, question))
        return false;
    answer->shared_queue = policy_wants_shared_queue(asked.policy, &asked.scheduler);
    answer->ticket_parts = policy_ticket_parts(asked.policy, &asked.scheduler);
    return true;
}

/* Gives each of the tasks the level and the tickets with which it stands at `now`. */
bool policy_standing(const struct question *question, uint64_t now, struct waiting *tasks,
                     uint64_t count)
{
    struct asked asked;
    if (!ask(&asked, question))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const struct task task = {
            .pid = tasks[i].pid,
            .priority = tasks[i].priority,
            .tickets = (uint32_t)tasks[i].tickets,
            .weight = tasks[i].weight,
            .queued_since = tasks[i].since,
            .level = tasks[i].level,
        };
        tasks[i].level = policy_level(asked.policy, &asked.scheduler, &task, now);
        tasks[i].tickets = policy_tickets(asked.policy, &asked.scheduler, &task);
    }
    return true;
}
