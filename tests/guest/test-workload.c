/* SPDX-License-Identifier: MIT */

/* The workload API on the schedlab kernel. */

#include "tests/guest/check.h"
#include "tests/workload_checks.h"

static void end_with(int64_t status)
{
    exit((int)status);
}

static void files_hold_what_was_written(void)
{
    char path[PATH_BYTES];
    write_and_read_files();
    snprintf(path, sizeof(path), "/work.%d", getpid());
    check_error(open(path, OPEN_READ), ENOENT);
}

static void attributes_reach_the_kernel(void)
{
    struct process_info row;
    workload_priority(2);
    workload_tickets(33);
    workload_weight(4);
    check(find_process(getpid(), &row));
    check(row.priority == 2 && row.tickets == 33 && row.weight == 4);
}

static void sleeping_takes_time(void)
{
    int64_t before = workload_ticks();
    workload_sleep(3);
    check(workload_ticks() - before >= 3);
    workload_yield();
}

static void the_workloads_run(void)
{
    static char *const lines[][8] = {
        {"cpu-bound", "-n", "3", "-i", "1000", NULL},
        {"io-bound", "-n", "2", "-r", "2", "-b", "5000", NULL},
        {"mixed", "-n", "2", "-g", "5", "-i", "3000", NULL},
        {"lotterytest", "mixed", "-t", "5", NULL},
        {"lotterytest", "4", "-o", "1", "-t", "5", NULL},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        int pid = test_fork();
        if (pid == 0) {
            exec_program(lines[i]);
            exit(100);
        }
        check(test_wait(pid) == 0);
    }
}

static void wrong_usage_ends_with_status_2(void)
{
    static char *const lines[][4] = {
        {"timingtests", "nonesuch", NULL},
        {"prioritytest", "8", NULL},
        {"timingtests", "-v", "3", NULL},
        {"lotterytest", NULL},
        {"lotterytest", "7", NULL},
        {"study3", NULL},
        {"study4", "5", NULL},
        {"cpubench", "-n", "0", NULL},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        int pid = test_fork();
        if (pid == 0) {
            close(2);
            exec_program(lines[i]);
            exit(100);
        }
        check(test_wait(pid) == 2);
    }
}

static void switches_and_time_go_on(void)
{
    int64_t switches = workload_switches();
    int64_t nanoseconds = workload_nanoseconds();
    for (int i = 0; i < 5; i++) {
        workload_start(end_with, 0);
        check(workload_wait_all() == 0);
    }
    check(workload_switches() - switches >= 5);
    check(workload_nanoseconds() > nanoseconds);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(burning_takes_time),
        TEST(files_hold_what_was_written),
        TEST(failed_children_are_counted),
        TEST(attributes_reach_the_kernel),
        TEST(sleeping_takes_time),
        TEST(switches_and_time_go_on),
        TEST(the_workloads_run),
        TEST(wrong_usage_ends_with_status_2),
        TEST(a_gate_lets_go_those_who_wait),
        TEST(stopped_children_have_not_failed),
    };
    return RUN_TESTS(tests, argc, argv);
}
