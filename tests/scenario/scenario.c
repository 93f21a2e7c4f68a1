/* SPDX-License-Identifier: MIT */

/*
 * Plays a scenario on the kernel.
 *
 * usage: scenario SCENARIO POLICY
 */

#include "policies/policy.h"
#include "tests/scenario/ties.h"
#include "user/library/user.h"
#include "workloads/api/workload.h"

static const struct scenario *scenario;
static int pids[TIES_ROLES]; /* PIDs of the roles that the caller or its ancestors have forked */

static void must(int result, const char *what)
{
    if (result < 0) {
        complain("scenario", what);
        exit(1);
    }
}

_Noreturn static void play(uint32_t role);

static void fork_role(uint32_t role)
{
    must(mark(MARK_NOTE, scenario_label(&scenario->roles[role])), "mark");
    int pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        pids[role] = getpid();
        play(role);
    }
    pids[role] = pid;
}

static void sleep_until(int tick)
{
    sleep(tick - uptime());
}

/* Steps are short compared with the unit of work. */
static void work_until(int tick)
{
    while (uptime() < tick)
        workload_burn(SCENARIO_WORK_NS / 10 / WORKLOAD_BURN_INSTRUCTIONS);
}

static void perform(const struct step *step)
{
    switch (step->act) {
    case ACT_END:
        break;
    case ACT_FORK:
        fork_role(step->role);
        break;
    case ACT_WAIT:
        must(wait(NULL), "wait");
        break;
    case ACT_SLEEP_UNTIL:
        sleep_until(SCENARIO_START + step->value);
        break;
    case ACT_WORK_UNTIL:
        work_until(SCENARIO_START + step->value);
        break;
    case ACT_YIELD:
        yield();
        break;
    case ACT_SET_PRIORITY:
        must(setpriority(pids[step->role], step->value), "setpriority");
        break;
    case ACT_SET_TICKETS:
        must(settickets_pid(pids[step->role], step->value), "settickets_pid");
        break;
    case ACT_SET_WEIGHT:
        must(setweight(pids[step->role], step->value), "setweight");
        break;
    }
}

_Noreturn static void play(uint32_t role)
{
    const struct step *step = scenario->roles[role].steps;
    for (;; step++) {
        workload_burn(step->work * (SCENARIO_WORK_NS / WORKLOAD_BURN_INSTRUCTIONS));
        if (step->act == ACT_END)
            exit(0);
        perform(step);
    }
}

static uint32_t assigned_cpu(void)
{
    int count;
    uint32_t cpu = 0;
    struct process_info *table = process_table(&count);
    must(table ? 0 : -1, "getpinfo");
    for (int i = 0; i < count; i++) {
        if (table[i].pid == getpid())
            cpu = table[i].cpu;
    }
    free(table);
    return cpu;
}

/*
 * The first role runs on the last CPU, wherever the machine has started this program: of two CPUs
 * that are idle except for the caller, round-robin gives a child the other.
 */
static void begin_on_last_cpu(void)
{
    struct system_stats stats;
    must(getstats(&stats), "getstats");
    if (assigned_cpu() == stats.cpus - 1)
        return;
    int status = -1;
    int pid = fork();
    must(pid, "fork");
    if (pid > 0) {
        must(wait(&status), "wait");
        exit(status);
    }
    if (assigned_cpu() != stats.cpus - 1) {
        fprintf(2, "scenario: there is no other CPU that is idle\n");
        exit(1);
    }
}

int main(int argc, char *argv[])
{
    if (argc != 3 || strcmp(argv[1], ties.name) != 0) {
        fprintf(2, "usage: scenario %s POLICY\n", ties.name);
        return 2;
    }
    scenario = &ties;
    begin_on_last_cpu();
    if (uptime() >= SCENARIO_START) {
        fprintf(2, "scenario: it must begin before tick %d\n", SCENARIO_START);
        return 1;
    }
    sleep_until(SCENARIO_START);
    must(setpolicy(argv[2]), "setpolicy");
    must(mark(MARK_GROUP, scenario_label(&scenario->roles[0])), "mark");
    must(mark(MARK_BEGIN, 0), "mark");
    pids[0] = getpid();
    play(0);
}
