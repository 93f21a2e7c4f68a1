/* SPDX-License-Identifier: MIT */

/*
 * Switches among all policies and presets, a thousand times, under a load that uses every feature.
 * No process is lost: all started work is done, and each forked process can be waited for. The
 * kernel asserts that no process runs twice at once.
 */

#include "policies/policy.h"
#include "tests/guest/policies.h"

enum { SWITCHES = 1000, WORKERS = 12 };

static struct random numbers;

static int number_below(int limit)
{
    return (int)random_below(&numbers, (uint64_t)limit);
}

/* Work units of a worker, which are its exit status. */
static int units;

/* Starts children and waits for them; each exit status is a number of work units. */
static int children_of(int count, int depth)
{
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int pid = test_fork();
        if (pid == 0) {
            spin(number_below(3000));
            exit(depth > 0 ? 1 + children_of(count, depth - 1) : 1);
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        check(wait(&status) > 0 && status > 0);
        sum += status;
    }
    return sum;
}

static void compute(void)
{
    for (int i = 0; i < 20; i++) {
        spin(20000);
        units++;
    }
}

static void sleep_often(void)
{
    for (int i = 0; i < 20; i++) {
        check(sleep(number_below(3)) == 0);
        units++;
    }
}

static void yield_often(void)
{
    for (int i = 0; i < 20; i++) {
        check(yield() == 0);
        spin(number_below(2000));
        units++;
    }
}

static void fork_often(void)
{
    /* 2 children with 2 children with 2 children: 14 processes */
    units = 6 + children_of(2, 2);
}

/* Returns the sum of the bytes that go through a pipe. */
static void talk(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            int one = 1;
            check(write(ends[1], &one, sizeof(one)) == sizeof(one));
            spin(number_below(1000));
        }
        exit(0);
    }
    close(ends[1]);
    int one;
    while (read(ends[0], &one, sizeof(one)) == sizeof(one))
        units += one;
    check(test_wait(pid) == 0);
}

/* Ends children that spin, sleep, or wait for a process that never writes. */
static void kill_children(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    for (int i = 0; i < 20; i++) {
        int pid = test_fork();
        if (pid == 0) {
            char c;
            if (i % 3 == 0)
                sleep(1000000000);
            else if (i % 3 == 1)
                read(ends[0], &c, 1);
            for (;;)
                spin(1000);
        }
        if (i % 2)
            spin(number_below(5000));
        check(kill(pid) == 0 && test_wait(pid) == -1);
        units++;
    }
}

/*
 * Changes attributes of the worker and a child: valid values apply, and invalid ones change
 * nothing.
 */
static void change_attributes(void)
{
    struct process_info row;
    int pid = test_fork();
    if (pid == 0) {
        for (;;) { /* sleeps, or it would starve others at a high priority */
            spin(50000);
            sleep(1);
        }
    }
    for (int i = 0; i < 20; i++) {
        int target = i % 2 ? pid : getpid();
        int priority = number_below(PRIORITY_LOWEST + 1);
        int tickets = 1 + number_below(i % 3 ? 100 : TICKETS_MAX);
        int weight = 1 + number_below(WEIGHT_MAX);
        check(setpriority(target, priority) == 0 && settickets_pid(target, tickets) == 0);
        check(setweight(target, weight) == 0);
        check_error(setpriority(target, PRIORITY_LOWEST + 1), ERANGE);
        check_error(settickets_pid(target, 0), ERANGE);
        check_error(setweight(target, WEIGHT_MAX + 1), ERANGE);
        check(find_process(target, &row) && row.priority == priority);
        check(row.tickets == (uint32_t)tickets && row.weight == (uint32_t)weight);
        units++;
    }
    check(kill(pid) == 0 && test_wait(pid) == -1);
}

/* Sets tunables to their current values, which restarts the policy each time. */
static void set_tunables(void)
{
    for (int i = 0; i < 20; i++) {
        char *words[6];
        char *text = read_text("/proc/sched_tunables");
        char *line = next_line(&text);
        while ((line = next_line(&text)) && number_below(3) > 0)
            ;
        int64_t value;
        if (line && cut_words(line, words, 6) == 6 && text_to_number(words[1], &value))
            check(settunable(words[0], value) == 0 || last_error() == ETUNABLE ||
                  last_error() == ERANGE); /* the policy may have changed */
        units++;
    }
}

/* Switches between urgent and normal, as do the children. */
static void be_urgent_often(void)
{
    for (int i = 0; i < 20; i++) {
        check(seturgent(i % 2) == 0);
        int pid = test_fork();
        if (pid == 0) {
            spin(number_below(3000));
            check(seturgent(number_below(2)) == 0);
            sleep(number_below(2));
            yield();
            exit(7);
        }
        spin(number_below(3000));
        check(test_wait(pid) == 7);
        units++;
    }
}

static void (*const kinds[])(void) = {
    compute,       sleep_often,       yield_often,  fork_often,      talk,
    kill_children, change_attributes, set_tunables, be_urgent_often,
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int start_worker(int number)
{
    int pid = test_fork();
    if (pid == 0) {
        numbers.state = (uint64_t)number;
        kinds[number % KINDS]();
        exit(units);
    }
    return pid;
}

/*
 * The process must run under every policy. In study 1's fast lane, priority 5 is highest, even
 * above 0.
 */
_Noreturn static void switch_among_all(void)
{
    char now[64];
    numbers.state = 12345;
    check(setpriority(getpid(), PRIORITY_DEFAULT) == 0);
    check(settickets(TICKETS_MAX) == 0 && setweight(getpid(), WEIGHT_MAX) == 0);
    for (int i = 0; i < SWITCHES; i++) {
        int pair = i / 2; /* every pair of policies, repeatedly */
        int next = (i % 2 ? pair : pair / policy_count) % policy_count;
        check(setpolicy(policy_names[next]) == 0);
        check(getpolicy(now, sizeof(now)) >= 0);
        if (i % 10 == 0)
            sleep(1);
        else
            spin(number_below(6000));
    }
    exit(0);
}

static void all_policies_take_turns_under_load(void)
{
    char original[64];
    int done = 0;
    int started = 0;
    bool switching = true;
    check(getpolicy(original, sizeof(original)) >= 0);
    list_policies();
    int switcher = test_fork();
    if (switcher == 0)
        switch_among_all();
    while (started < WORKERS)
        start_worker(started++);
    while (switching || done < started) {
        int status;
        int pid = wait(&status);
        check(pid > 0);
        if (pid == switcher) {
            check(status == 0);
            switching = false;
            continue;
        }
        check(status == 20);
        done++;
        if (switching)
            start_worker(started++);
    }
    check_error(wait(NULL), ECHILD);
    check(started >= 10 * WORKERS);
    printf("# %d switches among %d policies and presets, %d workers\n", SWITCHES, policy_count,
           done);
    check(setpolicy(original) == 0);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(all_policies_take_turns_under_load),
    };
    return RUN_TESTS(tests, argc, argv);
}
