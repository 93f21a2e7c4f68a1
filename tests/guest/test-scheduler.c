/* SPDX-License-Identifier: MIT */

/* The system calls of the scheduler: attributes, tables, policies, tunables, under load. */

#include "abi/trace_format.h"
#include "policies/policy.h"
#include "tests/guest/check.h"

static struct process_info row_of(int pid)
{
    struct process_info row;
    check(find_process(pid, &row));
    return row;
}

/* Attributes */

static void priorities_have_a_range(void)
{
    static const int bad[] = {-1, PRIORITY_LOWEST + 1, 100, INT32_MAX, INT32_MIN};
    for (int priority = PRIORITY_HIGHEST; priority <= PRIORITY_LOWEST; priority++) {
        check(setpriority(getpid(), priority) == 0);
        check(row_of(getpid()).priority == priority);
    }
    check(setpriority(getpid(), 3) == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_error(setpriority(getpid(), bad[i]), ERANGE);
        check(row_of(getpid()).priority == 3);
    }
}

static void tickets_have_a_range(void)
{
    static const int bad[] = {0, -1, TICKETS_MAX + 1, INT32_MAX, INT32_MIN};
    check(settickets(1) == 0 && row_of(getpid()).tickets == 1);
    check(settickets(TICKETS_MAX) == 0 && row_of(getpid()).tickets == TICKETS_MAX);
    check(settickets_pid(getpid(), 17) == 0 && row_of(getpid()).tickets == 17);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_error(settickets(bad[i]), ERANGE);
        check_error(settickets_pid(getpid(), bad[i]), ERANGE);
        check(row_of(getpid()).tickets == 17);
    }
}

static void weights_have_a_range(void)
{
    static const int bad[] = {0, -1, WEIGHT_MAX + 1, INT32_MAX, INT32_MIN};
    for (int weight = 1; weight <= WEIGHT_MAX; weight++) {
        check(setweight(getpid(), weight) == 0);
        check(row_of(getpid()).weight == (uint32_t)weight);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_error(setweight(getpid(), bad[i]), ERANGE);
        check(row_of(getpid()).weight == WEIGHT_MAX);
    }
}

static void attributes_of_others_can_be_set(void)
{
    int pid = start_sleeper();
    check(setpriority(pid, 2) == 0 && settickets_pid(pid, 44) == 0 && setweight(pid, 7) == 0);
    struct process_info row = row_of(pid);
    check(row.priority == 2 && row.tickets == 44 && row.weight == 7);
    struct process_info current = row_of(getpid());
    check(current.priority == PRIORITY_DEFAULT && current.tickets == TICKETS_DEFAULT);
    check(current.weight == WEIGHT_DEFAULT);
    end_child(pid);
    check_error(setpriority(pid, 2), ESRCH);
    check_error(settickets_pid(pid, 2), ESRCH);
    check_error(setweight(pid, 2), ESRCH);
    check_error(setpriority(-1, 2), ESRCH);
    check_error(setpriority(INT32_MAX, 2), ESRCH);
}

static void who_has_ended_has_no_attributes(void)
{
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    for (int i = 0; i < 1000 && row_of(pid).state != PROCESS_ZOMBIE; i++)
        sleep(1);
    struct process_info before = row_of(pid);
    check_error(setpriority(pid, 2), ESRCH);
    check_error(settickets_pid(pid, 2), ESRCH);
    check_error(setweight(pid, 2), ESRCH);
    struct process_info after = row_of(pid);
    check(before.priority == after.priority && before.tickets == after.tickets);
    check(before.weight == after.weight);
    check(test_wait(pid) == 0);
}

/* A PID of 0 is the caller. */
static void attributes_of_oneself_can_be_set(void)
{
    check(setpriority(0, 1) == 0 && settickets_pid(0, 9) == 0 && setweight(0, 3) == 0);
    struct process_info row = row_of(getpid());
    check(row.priority == 1 && row.tickets == 9 && row.weight == 3);
    check_error(setpriority(0, PRIORITY_LOWEST + 1), ERANGE);
    check_error(settickets_pid(0, 0), ERANGE);
    check_error(setweight(0, WEIGHT_MAX + 1), ERANGE);
    check_error(setpriority(INT32_MIN, 2), ESRCH);
    check_error(settickets_pid(INT32_MAX, 0), ESRCH);
    row = row_of(getpid());
    check(row.priority == 1 && row.tickets == 9 && row.weight == 3);
}

/* A PID of -n is group n. */
static void groups_get_attributes_at_once(void)
{
    int pids[] = {start_sleeper(), start_sleeper(), start_sleeper()};
    check(setattribute(pids[0], ATTRIBUTE_TASKGROUP, 3) == 0);
    check(setattribute(pids[1], ATTRIBUTE_TASKGROUP, 3) == 0);
    check(setpriority(-3, 2) == 0 && settickets_pid(-3, 44) == 0 && setweight(-3, 7) == 0);
    for (int i = 0; i < 3; i++) {
        struct process_info row = row_of(pids[i]);
        bool grouped = i < 2;
        check(row.priority == (grouped ? 2 : PRIORITY_DEFAULT));
        check(row.tickets == (grouped ? 44 : TICKETS_DEFAULT));
        check(row.weight == (grouped ? 7 : WEIGHT_DEFAULT));
    }
    check_error(setpriority(-3, PRIORITY_LOWEST + 1), ERANGE);
    check_error(setpriority(-4, 2), ESRCH);
    for (int i = 0; i < 3; i++)
        end_child(pids[i]);
    check_error(setpriority(-3, 2), ESRCH);
}

static void attributes_of_running_ones_can_be_set(void)
{
    for (int i = 0; i < 4; i++) {
        int pid = test_fork();
        if (pid == 0) {
            for (;;)
                spin(1000);
        }
        for (int j = 0; j < 50; j++) {
            check(setpriority(pid, j % (PRIORITY_LOWEST + 1)) == 0);
            check(settickets_pid(pid, j + 1) == 0);
            check(setweight(pid, j % WEIGHT_MAX + 1) == 0);
            if (j % 10 == 0)
                sleep(1);
        }
        check(row_of(pid).tickets == 50);
        end_child(pid);
    }
}

/* A group keeps its values; a refused value changes nothing. */
static void groups_have_parents_weights_and_limits(void)
{
    static const struct {
        int group, field;
        int64_t value;
    } bad[] = {
        {0, GROUP_PARENT, 0},
        {0, GROUP_WEIGHT, 1},
        {2, GROUP_PARENT, 2},
        {2, GROUP_PARENT, -1},
        {2, GROUP_WEIGHT, 0},
        {2, GROUP_WEIGHT, 10001},
        {2, GROUP_QUOTA, 999999},
        {2, GROUP_QUOTA, -1},
        {2, GROUP_PERIOD, 0},
        {2, GROUP_PERIOD, 1000000001},
        {GROUPS_MAX, GROUP_WEIGHT, 1},
        {-1, GROUP_WEIGHT, 1},
        {2, 0, 1},
        {2, GROUP_PERIOD + 1, 1},
    };
    int64_t value;
    check(setgroup(1, GROUP_WEIGHT, 300) == 0 && setgroup(2, GROUP_PARENT, 1) == 0);
    check(setgroup(2, GROUP_QUOTA, 5000000) == 0 && setgroup(2, GROUP_PERIOD, 20000000) == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_error(setgroup(bad[i].group, bad[i].field, bad[i].value), ERANGE);
    check(setattribute(0, ATTRIBUTE_TASKGROUP, 2) == 0);
    int pid = start_sleeper();
    check(getattribute(pid, ATTRIBUTE_TASKGROUP, &value) == 0 && value == 2);
    check_error(setattribute(pid, ATTRIBUTE_TASKGROUP, GROUPS_MAX), ERANGE);
    end_child(pid);
}

static void children_inherit_attributes(void)
{
    check(setpriority(getpid(), 8) == 0 && settickets(123) == 0 && setweight(getpid(), 2) == 0);
    int pid = start_sleeper();
    struct process_info row = row_of(pid);
    check(row.priority == 8 && row.tickets == 123 && row.weight == 2);
    /* Afterwards, each process has its values. */
    check(setpriority(getpid(), 1) == 0);
    check(row_of(pid).priority == 8);
    end_child(pid);

    pid = test_fork();
    if (pid == 0) {
        char *const arguments[] = {"sleep", "100000", NULL};
        exec("/sleep", arguments);
        exit(1);
    }
    wait_until_blocked(pid, BLOCK_SLEEP);
    check(row_of(pid).priority == 1 && row_of(pid).tickets == 123);
    end_child(pid);
}

/* Tables */

static void the_own_row_is_right(void)
{
    spin(100000);
    struct process_info row = row_of(getpid());
    check(row.state == PROCESS_RUNNING && row.reason == BLOCK_NONE);
    check(strcmp(row.name, "test-scheduler") == 0);
    check(row.parent > 0 && row.parent != getpid());
    check(row.run_time > 0 || row.selections > 0);
    check((int64_t)row.created <= clock_ns());
    check(row.first_run >= row.created);
    check(row.time_slice > 0);
    struct system_stats stats;
    check(getstats(&stats) == 0);
    check(row.cpu < stats.cpus);
    struct process_info init = row_of(1);
    check(strcmp(init.name, "init") == 0);
}

static void blocked_rows_say_why(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    int sleeper = start_sleeper();
    int reader = test_fork();
    if (reader == 0) {
        char c;
        read(ends[0], &c, 1);
        exit(0);
    }
    wait_until_blocked(sleeper, BLOCK_SLEEP);
    wait_until_blocked(reader, BLOCK_PIPE);
    check(row_of(reader).parent == getpid());
    kill(sleeper);
    kill(reader);
    check(wait(NULL) > 0 && wait(NULL) > 0);
}

static void zombies_are_shown(void)
{
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    for (int i = 0; i < 1000 && row_of(pid).state != PROCESS_ZOMBIE; i++)
        sleep(1);
    check(row_of(pid).state == PROCESS_ZOMBIE);
    check(test_wait(pid) == 0);
    struct process_info row;
    check(!find_process(pid, &row));
}

static void the_table_fits_its_room(void)
{
    static struct process_info rows[8];
    for (int i = 0; i < 4; i++) {
        if (test_fork() == 0)
            sleep(1000000);
    }
    for (int capacity = 1; capacity <= 6; capacity++) {
        memset(rows, 0x55, sizeof(rows));
        check(getpinfo(rows, capacity) == capacity);
        check(rows[capacity].pid == 0x55555555);
    }
    check(getpinfo(NULL, 0) >= 6);
    int n = getpinfo(rows, -1);
    check(n == -1 || n >= 6); /* refused, or counted */
    for (int i = 0; i < 4; i++) {
        int count;
        struct process_info *table = process_table(&count);
        for (int j = 0; j < count; j++) {
            if (table[j].parent == getpid()) {
                check(kill(table[j].pid) == 0);
                break;
            }
        }
        free(table);
        check(wait(NULL) > 0);
    }
}

static void figures_of_the_machine_grow(void)
{
    struct system_stats before;
    struct system_stats after;
    check(getstats(&before) == 0);
    int64_t switches = getcontextswitches();
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    check(test_wait(pid) == 0);
    sleep(2);
    check(getstats(&after) == 0);
    check(after.cpus >= 1 && after.cpus == before.cpus);
    check(after.time > before.time && after.tick_ns == before.tick_ns && after.tick_ns > 0);
    check(after.finished > before.finished);
    check(after.context_switches > before.context_switches);
    check(getcontextswitches() > switches && switches > 0);
    check(after.processes >= 3);
    check(after.free_pages < after.memory_pages);
}

static void cpus_have_figures_of_their_own(void)
{
    struct system_stats before;
    struct system_stats after;
    uint64_t switches = 0;
    uint64_t idle_switches = 0;
    check(getstats(&before) == 0);
    for (uint32_t cpu = 0; cpu < before.cpus; cpu++) {
        struct cpu_stats stats;
        check(getcpustats((int)cpu, &stats) == 0);
        switches += stats.context_switches;
        idle_switches += stats.idle_switches;
        check((stats.queue_waits > 0) == (stats.queue_wait_cycles > 0));
        check((stats.process_waits > 0) == (stats.process_wait_cycles > 0));
    }
    check(getstats(&after) == 0);
    check(before.context_switches <= switches && switches <= after.context_switches);
    check(before.idle_switches <= idle_switches && idle_switches <= after.idle_switches);
    struct cpu_stats unused;
    check_error(getcpustats((int)before.cpus, &unused), EINVAL);
    check_error(getcpustats(-1, &unused), EINVAL);
    check_error(getcpustats(0, NULL), EFAULT);
}

/* Policies */

static char original[64];

static void policies_have_names(void)
{
    static const char *const bad[] = {
        "",    "no-such", "rr:", "rr:no-such",      ":rr",  "rr::rr",  "RR",
        "rr ", " rr",     ":",   "rr:table-scan:x", "rr\n", "1000000", "-1"};
    char now[64];
    check(getpolicy(original, sizeof(original)) >= 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check(setpolicy(bad[i]) == -1);
        check(last_error() == EPOLICY);
        check(getpolicy(now, sizeof(now)) >= 0 && strcmp(now, original) == 0);
    }
    check(setpolicy("rr:table-scan") == 0);
    check(getpolicy(now, sizeof(now)) >= 0 && strcmp(now, "rr:table-scan") == 0);
    check(setpolicy("rr") == 0);
    check(getpolicy(now, sizeof(now)) >= 0 && strcmp(now, "rr") == 0);
    check(setpolicy(original) == 0);
}

static void getpolicy_needs_room(void)
{
    char small[2] = {'x', 'y'};
    check(getpolicy(small, 1) == -1);
    check(getpolicy(small, 0) == -1);
    check(getpolicy(small, -1) == -1);
    check(small[1] == 'y');
}

/* Work of all kinds, which ends without a kill. */
_Noreturn static void work(int kind)
{
    int ends[2];
    for (int round = 0; round < 30; round++) {
        switch (kind % 5) {
        case 0:
            spin(300000);
            break;
        case 1:
            sleep(1);
            break;
        case 2: {
            int pid = fork();
            if (pid == 0)
                exit(7);
            int status;
            if (pid < 0 || wait(&status) != pid || status != 7)
                exit(1);
            break;
        }
        case 3:
            spin(10000);
            yield();
            break;
        default: {
            char c = 1;
            if (pipe(ends) < 0)
                exit(1);
            int pid = fork();
            if (pid == 0) {
                spin(1000);
                write(ends[1], &c, 1);
                exit(0);
            }
            if (read(ends[0], &c, 1) != 1 || wait(NULL) != pid)
                exit(1);
            close(ends[0]);
            close(ends[1]);
        }
        }
    }
    exit(0);
}

/* Calls `disturb` while processes of all kinds work. */
static void work_under(void (*disturb)(int step))
{
    enum { WORKERS = 15 };
    for (int i = 0; i < WORKERS; i++) {
        if (test_fork() == 0)
            work(i);
    }
    int disturber = test_fork();
    if (disturber == 0) {
        for (int step = 0;; step++)
            disturb(step);
    }
    for (int left = WORKERS; left > 0; left--) {
        int status;
        int pid = wait(&status);
        check(pid > 0 && pid != disturber && status == 0);
    }
    check(kill(disturber) == 0);
    check(test_wait(disturber) == -1);
}

static void switch_policy(int step)
{
    check(setpolicy(step % 2 ? "rr" : "rr:table-scan") == 0);
    if (step % 3 == 0)
        sleep(1);
    else
        spin(20000);
}

static void policies_switch_under_load(void)
{
    check(getpolicy(original, sizeof(original)) >= 0);
    work_under(switch_policy);
    check(setpolicy(original) == 0);
}

static void change_attributes(int step)
{
    int count;
    struct process_info *table = process_table(&count);
    check(table);
    for (int i = 0; i < count; i++) {
        if (table[i].parent != 1 && table[i].pid != 1)
            setpriority(table[i].pid, step % (PRIORITY_LOWEST + 1));
        settickets_pid(table[i].pid, step % 100 + 1);
    }
    free(table);
    sleep(1);
}

static void attributes_change_under_load(void)
{
    work_under(change_attributes);
}

/* Tunables */

static void change_slice(int step)
{
    check(settunable("slice", step % 5 + 1) == 0);
    spin(50000);
    if (step % 3 == 0)
        sleep(1);
}

static void tunables_have_a_range(void)
{
    static const int64_t bad[] = {0, -1, 1001, INT64_MAX, INT64_MIN};
    int64_t value = -5;
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("rr") == 0);
    check(gettunable("slice", &value) == 0 && value >= 1);
    int64_t before = value;
    check(settunable("slice", 7) == 0);
    check(gettunable("slice", &value) == 0 && value == 7);
    check(row_of(getpid()).time_slice == 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_error(settunable("slice", bad[i]), ERANGE);
        check(gettunable("slice", &value) == 0 && value == 7);
    }
    check_error(settunable("no_such", 1), ETUNABLE);
    check_error(gettunable("no_such", &value), ETUNABLE);
    check_error(settunable("", 1), ETUNABLE);
    check_error(settunable("slic", 1), ETUNABLE);
    check(settunable("slice", before) == 0);
    check(setpolicy(original) == 0);
}

static void tunables_change_under_load(void)
{
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("rr") == 0);
    work_under(change_slice);
    check(setpolicy(original) == 0);
}

/* The tunable that selects another kind of queue. */
static void change_queues(int step)
{
    check(settunable("table_scan", step % 2) == 0);
    spin(30000);
    if (step % 2 == 0)
        sleep(1);
}

static void queues_change_under_load(void)
{
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("rr") == 0);
    work_under(change_queues);
    check(setpolicy(original) == 0);
}

static void everyone_gets_a_turn(void)
{
    enum { SPINNERS = 12 };
    static int pids[SPINNERS];
    for (int i = 0; i < SPINNERS; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0) {
            for (;;)
                spin(1000);
        }
    }
    int started = 0;
    for (int try = 0; try < 100 && started < SPINNERS; try++) {
        sleep(30);
        started = 0;
        for (int i = 0; i < SPINNERS; i++)
            started += row_of(pids[i]).run_time > 0;
    }
    check(started == SPINNERS);
    for (int i = 0; i < SPINNERS; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < SPINNERS; i++)
        check(wait(NULL) > 0);
}

/*
 * Spinners are demoted to the lowest level, and bursts of short processes run above them. If the
 * bursts end first on a CPU, its spinner continues until it receives a waiting task of another CPU.
 * (The trace shows that this happens.)
 */
static void work_moves_between_cpus(void)
{
    enum { SPINNERS = 8, BURST = 24, ROUNDS = 10 };
    static int pids[SPINNERS];
    struct random numbers = {7};
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("mlfq") == 0);
    for (int i = 0; i < SPINNERS; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0) {
            for (;;)
                spin(1000);
        }
    }
    sleep(100);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BURST; i++) {
            int64_t work = (int64_t)random_below(&numbers, 500000);
            if (test_fork() == 0) {
                spin(work);
                exit(0);
            }
        }
        for (int i = 0; i < BURST; i++) {
            int status;
            check(wait(&status) > 0 && status == 0);
        }
    }
    for (int i = 0; i < SPINNERS; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < SPINNERS; i++)
        check(wait(NULL) > 0);
    check(setpolicy(original) == 0);
}

/*
 * Study 1 ends a process that has run for 10,000 ticks, but no process that sleeps, and never init.
 */
static void policies_may_end_processes(void)
{
    enum { LIMIT = 20 }; /* on a busy host, ticks also hit others */
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("priority:thesis") == 0);
    check(settunable("kill_after", LIMIT) == 0);
    int sleeper = start_sleeper();
    int before = uptime();
    int pid = test_fork();
    if (pid == 0) {
        for (;;)
            spin(1000);
    }
    check(test_wait(pid) == -1);
    check(uptime() - before >= LIMIT);

    pid = test_fork();
    if (pid == 0) { /* mostly in the kernel */
        for (;;)
            getpid();
    }
    check(test_wait(pid) == -1);
    end_child(sleeper);
    check(setpolicy(original) == 0);
}

/* The policy, which would assign time slices, does not see an urgent process or its children. */
static void urgent_ones_are_above_the_policy(void)
{
    check_error(seturgent(3), EINVAL);
    check_error(seturgent(-1), EINVAL);
    yield();
    check(row_of(getpid()).time_slice > 0);
    check(seturgent(1) == 0 && seturgent(1) == 0);
    check(row_of(getpid()).time_slice == 0);
    int pid = test_fork();
    if (pid == 0) {
        sleep(1);
        check(yield() == 0 && row_of(getpid()).time_slice == 0);
        check(seturgent(0) == 0);
        check(yield() == 0 && row_of(getpid()).time_slice > 0);
        exit(0);
    }
    check(test_wait(pid) == 0);
    check(setpolicy("rr:table-scan") == 0 && setpolicy("rr") == 0);
    check(row_of(getpid()).time_slice == 0);
    check(setpriority(0, 7) == 0 && row_of(getpid()).priority == 7);
    check(seturgent(URGENT_ALONE) == 0);
    pid = test_fork();
    if (pid == 0)
        exit(yield() != 0 || row_of(getpid()).time_slice == 0);
    check(test_wait(pid) == 0);
    check(row_of(getpid()).time_slice == 0);
    check(seturgent(0) == 0 && yield() == 0);
    check(row_of(getpid()).time_slice > 0);
}

static void marks_have_kinds(void)
{
    static const int bad[] = {0, MARK_JOB + 1, -1, INT32_MAX, INT32_MIN};
    check(mark(MARK_NOTE, 7) == 0 && mark(MARK_NAME, 'n') == 0 && mark(MARK_VALUE, 7) == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_error(mark(bad[i], 0), EINVAL);
}

static void boot_arguments_are_read(void)
{
    char value[64];
    check_error(boot_argument("no-such-argument", value, sizeof(value)), ENOENT);
    check(boot_argument("", value, sizeof(value)) == -1);
    value[1] = 'y';
    check(boot_argument("run", value, 1) == -1 || value[1] == 'y');
    check(boot_argument("run", value, 0) == -1);
    check(boot_argument("run", value, -1) == -1);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(priorities_have_a_range),
        TEST(tickets_have_a_range),
        TEST(weights_have_a_range),
        TEST(attributes_of_others_can_be_set),
        TEST(who_has_ended_has_no_attributes),
        TEST(attributes_of_oneself_can_be_set),
        TEST(groups_get_attributes_at_once),
        TEST(attributes_of_running_ones_can_be_set),
        TEST(groups_have_parents_weights_and_limits),
        TEST(children_inherit_attributes),
        TEST(the_own_row_is_right),
        TEST(blocked_rows_say_why),
        TEST(zombies_are_shown),
        TEST(the_table_fits_its_room),
        TEST(figures_of_the_machine_grow),
        TEST(cpus_have_figures_of_their_own),
        TEST(policies_have_names),
        TEST(getpolicy_needs_room),
        TEST(policies_switch_under_load),
        TEST(attributes_change_under_load),
        TEST(tunables_have_a_range),
        TEST(tunables_change_under_load),
        TEST(queues_change_under_load),
        TEST(everyone_gets_a_turn),
        TEST(work_moves_between_cpus),
        TEST(policies_may_end_processes),
        TEST(urgent_ones_are_above_the_policy),
        TEST(marks_have_kinds),
        TEST(boot_arguments_are_read),
    };
    return RUN_TESTS(tests, argc, argv);
}
