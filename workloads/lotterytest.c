/* SPDX-License-Identifier: MIT */

/*
 * The six lottery tests of study 1, section 4.3: processes with tickets, and the part of the CPUs
 * that each group of them gets. `lotterytest 1` or `lotterytest low`; docs/workloads.md explains
 * each.
 *
 * By default all processes line up at a gate and start together, and all CPU-bound ones compute
 * until the window ends: the shares are those of a competition. With -o 1 they do the same as in
 * the study's program: each starts when it is forked, yields the CPU after each burst, and some
 * have little to do.
 */

#include "workloads/api/workload.h"

enum { GROUPS_MAX = 4, MEMBERS_MAX = 64, PRIORITY_FIRST = 0, TICKETS_MOST = 1000000 };

enum behaviour { CPU_BOUND, IO_BOUND, SHORT_LIVED, MIXED };

struct group {
    const char *label;
    int processes;
    int tickets;
    enum behaviour behaviour;
};

struct lottery_test {
    const char *name;
    struct group groups[GROUPS_MAX];
    bool interleaved;       /* a process of the third group, then the first, then the second … */
    int64_t original_burst; /* with -o 1: bursts from one yield to the next, */
    int64_t original_work;  /* and yields until a CPU-bound process ends */
};

/* In the study, 500 million iterations or 100 million: more than the test lasts. */
#define WITHOUT_END INT64_MAX

static const struct lottery_test tests[] = {
    {
        "low",
        {{"A", 1, 30, CPU_BOUND}, {"B", 1, 20, CPU_BOUND}, {"C", 1, 10, CPU_BOUND}},
        false,
        1,
        WITHOUT_END,
    },
    {
        "basic",
        {{"A+B", 2, 30, CPU_BOUND},
         {"C+D", 2, 20, CPU_BOUND},
         {"E+F", 2, 10, CPU_BOUND},
         {"G+H", 2, 5, CPU_BOUND}},
        false,
        1,
        WITHOUT_END,
    },
    {
        "switch",
        {{"A", 17, 30, CPU_BOUND}, {"B", 17, 20, CPU_BOUND}, {"C", 16, 10, CPU_BOUND}},
        true,
        20,
        WITHOUT_END,
    },
    {
        "starve",
        {{"A+B", 2, 50, CPU_BOUND}, {"C+D", 2, 10, CPU_BOUND}, {"E+F+G+H", 4, 1, CPU_BOUND}},
        false,
        1,
        2000,
    },
    {
        "grouped",
        {{"1", 10, 1, CPU_BOUND}, {"2", 10, 5, CPU_BOUND}, {"3", 10, 10, CPU_BOUND}},
        false,
        1,
        WITHOUT_END,
    },
    {
        "mixed",
        {{"CPU", 5, 20, CPU_BOUND},
         {"I/O", 5, 15, IO_BOUND},
         {"short", 5, 10, SHORT_LIVED},
         {"mixed", 5, 5, MIXED}},
        false,
        1,
        200,
    },
};

enum { TESTS = sizeof(tests) / sizeof(tests[0]) };

static const struct lottery_test *test;
static int64_t ticks = 500;
static int64_t warm_up = 100;
static int64_t tick_work = 100000;
static int64_t yield_work;
static int64_t original;
static int64_t original_work; /* 0: the test's */
static int64_t opening;       /* the tick when the window opens */
static bool is_open;

/* Members that compete until the window ends. The first to notice the time opens the window, and
 * closes it. */

static bool window_is_over(void)
{
    int64_t now = workload_ticks();
    if (now >= opening && !is_open) {
        workload_open();
        is_open = true;
    }
    if (now < opening + ticks)
        return false;
    workload_end();
    return true;
}

/* Returns a small part of a tick: the window opens and ends at most this late. */
static int64_t step_work(void)
{
    return yield_work ? yield_work : tick_work / 20;
}

/* Computes until the window ends, or for that many iterations. Returns false if the window has
 * ended. */
static bool compute(int64_t iterations)
{
    int64_t step = step_work();
    for (int64_t left = iterations; left > 0; left -= step) {
        workload_burn((uint64_t)(left < step ? left : step));
        if (yield_work)
            workload_yield();
        if (window_is_over())
            return false;
    }
    return true;
}

static void compete(enum behaviour behaviour)
{
    switch (behaviour) {
    case CPU_BOUND: /* always wants a CPU */
        compute(INT64_MAX);
        break;
    case IO_BOUND: /* a hundredth of a tick, then sleeps until the next: a hundredth of a CPU */
        do {
            workload_burn((uint64_t)tick_work / 100);
            workload_sleep(1);
        } while (!window_is_over());
        break;
    case SHORT_LIVED: /* a fifth of a tick, once, when the window has opened */
        workload_sleep(warm_up + 1);
        workload_burn((uint64_t)tick_work / 5);
        break;
    case MIXED: /* one to three ticks, then sleeps for the rest of one: four fifths of a CPU */
        while (compute(tick_work + (int64_t)workload_random(2 * (uint64_t)tick_work)))
            workload_sleep(1);
        break;
    }
}

/* Members as in the study's program, until they are stopped. A burst is 5,000 iterations there. */

static void burst(int64_t count)
{
    int64_t iterations = yield_work ? yield_work : 5000;
    workload_burn((uint64_t)(iterations * count));
}

static void work_as_in_the_study(enum behaviour behaviour)
{
    int64_t i;
    int64_t work = original_work ? original_work : test->original_work;
    switch (behaviour) {
    case CPU_BOUND:
        for (i = 0; i < work; i++) {
            workload_yield();
            burst(test->original_burst);
        }
        break;
    case IO_BOUND:
        for (i = 0; i < 1000; i++)
            workload_sleep(1);
        break;
    case SHORT_LIVED:
        burst(20);
        break;
    case MIXED:
        for (i = 0; i < 1000; i++) {
            burst(2);
            workload_sleep(1);
        }
        break;
    }
}

/* The processes */

static void member(int64_t number)
{
    const struct group *group = &test->groups[number];
    workload_group(group->label);
    workload_tickets(group->tickets);
    if (original) {
        work_as_in_the_study(group->behaviour);
    } else {
        opening = workload_gate_wait();
        compete(group->behaviour);
    }
}

static int64_t start_in_order(int pids[MEMBERS_MAX])
{
    int64_t count = 0;
    for (int group = 0; group < GROUPS_MAX; group++) {
        for (int i = 0; i < test->groups[group].processes; i++)
            pids[count++] = workload_start(member, group);
    }
    return count;
}

static int64_t start_interleaved(int pids[MEMBERS_MAX])
{
    static const int order[] = {2, 0, 1};
    int64_t count = 0;
    for (int i = 0; i < MEMBERS_MAX; i++) {
        for (int place = 0; place < 3; place++) {
            if (i < test->groups[order[place]].processes)
                pids[count++] = workload_start(member, order[place]);
        }
    }
    return count;
}

static int64_t start_members(int pids[MEMBERS_MAX])
{
    return test->interleaved ? start_interleaved(pids) : start_in_order(pids);
}

/*
 * All start at the beginning of a tick, and are measured once they have competed for a while: a
 * policy may favour processes that have just been woken. The parent must be picked at once, to
 * release all in one tick; the members open and close the window.
 */
static int run_competition(void)
{
    int pids[MEMBERS_MAX];
    workload_window(ticks);
    workload_gate_make();
    int64_t count = start_members(pids);
    workload_gate_gather(count);
    workload_tickets(TICKETS_MOST);
    workload_priority(PRIORITY_FIRST);
    workload_sleep(1);
    workload_gate_open(count, workload_ticks() + warm_up);
    return workload_finish();
}

/* The window includes the forks: the study's counts begin with each process. */
static int run_as_in_the_study(void)
{
    int pids[MEMBERS_MAX];
    workload_begin();
    int64_t count = start_members(pids);
    workload_sleep(ticks);
    workload_end();
    for (int64_t i = 0; i < count; i++)
        workload_stop(pids[i]);
    return workload_finish();
}

/* Returns null if none is named. */
static const struct lottery_test *choose_test(int *argc, char *argv[])
{
    const char *names[TESTS];
    for (int i = 0; i < TESTS; i++)
        names[i] = tests[i].name;
    int chosen = workload_choose(argc, argv, names, TESTS);
    return chosen < 0 ? NULL : &tests[chosen];
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'t', "ticks that are measured", &ticks, 1, 1000000},
        {'u', "ticks before them, in which all compete already", &warm_up, 0, 1000000},
        {'w', "iterations that fill a tick, 10 ns of a 1 GHz CPU each", &tick_work, 100,
         1000000000},
        {'y', "iterations of CPU work from one yield to the next; 0: none, or with -o 1: 5000",
         &yield_work, 0, 1000000000},
        {'o', "1: the original, as the study's program has it: its yields, its finite work",
         &original, 0, 1},
        {'n', "with -o 1: yields until a CPU-bound process ends; 0: the test's number",
         &original_work, 0, 1000000000},
    };
    test = choose_test(&argc, argv);
    workload_init(argc, argv,
                  "One of study 1's lottery tests, which comes first: 1 low, 2 basic, 3 switch,\n"
                  "4 starve, 5 grouped, 6 mixed.",
                  options, sizeof(options) / sizeof(options[0]));
    if (!test)
        workload_wrong_usage(argv[0], "no test", "name one first");
    return original ? run_as_in_the_study() : run_competition();
}
