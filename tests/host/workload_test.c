/* SPDX-License-Identifier: MIT */

/* Tests the workload API on Linux. */

#include "check.h"

#include <string.h>
#include <sys/wait.h>

#include "workloads/api/common.c"
#include "workloads/api/linux_host.c"

#include "tests/workload_checks.h"

static void end_with(int64_t status)
{
    host_exit((int)status);
}

static int64_t number = 5;
static const struct workload_option options[] = {{'n', "a number", &number, 1, 9}};

/* Returns the exit status of workload_init() with these arguments; -1: it returned. */
static int init_status(char *first, char *second)
{
    int pid = fork();
    if (pid == 0) {
        char *arguments[] = {"test", first, second, NULL};
        close(1);
        close(2);
        workload_init(first ? second ? 3 : 2 : 1, arguments, "A test.", options, 1);
        _exit(number == 5 ? 100 : (int)number);
    }
    int status;
    check(host_wait(&status) == pid);
    return status;
}

static void options_are_read_and_checked(void)
{
    check(init_status(NULL, NULL) == 100);
    check(init_status("-n", "7") == 7);
    check(init_status("-s", "7") == 100);
    check(init_status("--help", NULL) == 0);
    check(init_status("-n", NULL) == 2);
    check(init_status("-n", "0") == 2);
    check(init_status("-n", "10") == 2);
    check(init_status("-n", "x") == 2);
    check(init_status("-n", "7x") == 2);
    check(init_status("-n", "-7") == 2);
    check(init_status("-n", "99999999999999999999") == 2);
    check(init_status("-x", "1") == 2);
    check(init_status("n", "1") == 2);
    check(init_status("-", "1") == 2);
}

/* Returns the test that the word names, and checks that the word is removed; -2: status 2. */
static int chosen(char *word)
{
    static const char *const names[] = {"low", "1a", "high"};
    char *arguments[] = {"test", word, "-n", "7", NULL};
    int pid = fork();
    if (pid == 0) {
        close(2);
        int count = 4;
        int match = workload_choose(&count, arguments, names, 3);
        bool taken = count == 3 && strcmp(arguments[1], "-n") == 0 && !arguments[3];
        _exit(match < 0 ? 100 : taken ? match : 101);
    }
    int status;
    check(host_wait(&status) == pid);
    return status == 2 && strcmp(word, "high") != 0 && strcmp(word, "3") != 0 ? -2 : status;
}

static void a_test_is_chosen_by_name_or_number(void)
{
    check(chosen("low") == 0 && chosen("1") == 0);
    check(chosen("1a") == 1 && chosen("2") == 1);
    check(chosen("high") == 2 && chosen("3") == 2);
    check(chosen("0") == -2 && chosen("4") == -2);
    check(chosen("lo") == -2 && chosen("lower") == -2 && chosen("") == -2);
    check(chosen("--help") == 100 && chosen("-n") == 100);
}

static void random_numbers_depend_on_the_seed(void)
{
    numbers.state = 1;
    uint64_t first = workload_random(1000000);
    uint64_t second = workload_random(1000000);
    numbers.state = 1;
    check(workload_random(1000000) == first && workload_random(1000000) == second);
    numbers.state = 2;
    check(workload_random(1000000) != first);
    for (int i = 0; i < 1000; i++)
        check(workload_random(7) < 7);
}

static void files_hold_what_was_written(void)
{
    write_and_read_files();
    check(open(file_of(getpid()), O_RDONLY) < 0);
}

static void read_a_damaged_file(int64_t unused)
{
    (void)unused;
    close(2);
    workload_write_file(10000);
    int file = open(file_of(getpid()), O_WRONLY);
    lseek(file, 5000, SEEK_SET);
    check(write(file, "\1\2\3\4", 4) == 4);
    close(file);
    workload_read_file(10000);
}

static void damage_is_noticed(void)
{
    int pid = workload_start(read_a_damaged_file, 0);
    check(workload_wait_all() == 1);
    char path[64];
    snprintf(path, sizeof(path), "%s/workload.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             pid);
    unlink(path);
}

static void report_number(int64_t descriptor)
{
    uint64_t value = workload_random(1u << 30);
    check(write((int)descriptor, &value, sizeof(value)) == sizeof(value));
}

/* Each child has different numbers, which do not depend on the other children. */
static void children_have_their_own_numbers(void)
{
    uint64_t values[2][3];
    for (int round = 0; round < 2; round++) {
        int ends[2];
        check(pipe(ends) == 0);
        numbers.state = 9;
        started = 0;
        for (int i = 0; i < 3; i++) {
            workload_start(report_number, ends[1]);
            check(read(ends[0], &values[round][i], 8) == 8);
        }
        check(workload_wait_all() == 0);
        close(ends[0]);
        close(ends[1]);
    }
    check(memcmp(values[0], values[1], sizeof(values[0])) == 0);
    check(values[0][0] != values[0][1] && values[0][1] != values[0][2]);
}

static void sleeping_takes_time(void)
{
    int64_t before = workload_ticks();
    int64_t nanoseconds = workload_nanoseconds();
    workload_sleep(3);
    check(workload_ticks() - before >= 3);
    check(workload_nanoseconds() - nanoseconds >= 3000000);
}

static void switches_are_counted(void)
{
    int64_t before = workload_switches();
    check(before > 0);
    for (int i = 0; i < 10; i++)
        workload_sleep(1);
    check(workload_switches() - before >= 10);
}

static void send_the_numbers_from(int64_t number)
{
    struct workload_channel channel = {{(int)(number & 0xff), (int)(number >> 8 & 0xff)}};
    for (int64_t i = 0; i < 100; i++)
        workload_send(&channel, (number >> 16) * 100 + i);
}

/* Messages of several senders arrive complete and once. */
static void numbers_go_through_channels(void)
{
    struct workload_channel channel;
    bool seen[300] = {false};
    workload_channel_make(&channel);
    for (int64_t i = 0; i < 3; i++)
        workload_start(send_the_numbers_from, i << 16 | channel.ends[1] << 8 | channel.ends[0]);
    for (int i = 0; i < 300; i++) {
        int64_t number = workload_receive(&channel);
        check(number >= 0 && number < 300 && !seen[number]);
        seen[number] = true;
    }
    check(workload_wait_all() == 0);
    close(channel.ends[0]);
    close(channel.ends[1]);
}

static void become(int64_t which)
{
    char *const arguments[] = {which == 0 ? "true" : which == 1 ? "false" : "nonesuch/x", NULL};
    close(2);
    workload_become(arguments);
}

static void children_become_programs(void)
{
    workload_start(become, 0);
    check(workload_wait_all() == 0);
    workload_start(become, 1);
    workload_start(become, 2);
    check(workload_wait_all() == 2);
}

static void leave_a_file(int64_t lines)
{
    int file = workload_create_file();
    for (int64_t i = 0; i < lines; i++)
        workload_write_line(file);
}

/* Each line ends once, and appears once. */
static void a_childs_file_is_read_and_removed(void)
{
    char text[1000];
    int pid = workload_start(leave_a_file, 3);
    check(workload_wait_all() == 0);
    int file = open(file_of(pid), O_RDONLY);
    ssize_t length = read(file, text, sizeof(text));
    close(file);
    check(length > 0 && length % 3 == 0 && text[length - 1] == '\n');
    check(memcmp(text, text + length / 3, (size_t)length / 3) == 0);
    check(memchr(text, '\n', (size_t)length) == text + length / 3 - 1);
    workload_remove_file_of(pid);
    check(open(file_of(pid), O_RDONLY) < 0);
}

/* Returns the process state letter from /proc. */
static char state_of(int pid)
{
    char path[64];
    char text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY);
    check(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
    close(file);
    return strrchr(text, ')')[2];
}

/* Simulates a process that the scheduler delays. */
static void wait_at_the_gate(int64_t number)
{
    struct sched_param none = {0};
    check(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
    check(workload_gate_wait() == number);
}

/* No process's wake-up depends on when another process gets a CPU. */
static void a_gate_wakes_all_before_any_runs(void)
{
    enum { CHILDREN = 3 };
    int pids[CHILDREN];
    cpu_set_t before;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    check(sched_getaffinity(0, sizeof(before), &before) == 0);
    check(sched_setaffinity(0, sizeof(one), &one) == 0);
    workload_gate_make();
    for (int i = 0; i < CHILDREN; i++)
        pids[i] = workload_start(wait_at_the_gate, 42);
    workload_gate_gather(CHILDREN);
    for (int i = 0; i < CHILDREN; i++) {
        while (state_of(pids[i]) != 'S')
            usleep(1000);
    }
    workload_gate_open(CHILDREN, 42);
    for (int i = 0; i < CHILDREN; i++)
        check(state_of(pids[i]) != 'S');
    check(workload_wait_all() == 0);
    check(sched_setaffinity(0, sizeof(before), &before) == 0);
}

int main(void)
{
    run_test(options_are_read_and_checked);
    run_test(a_test_is_chosen_by_name_or_number);
    run_test(burning_takes_time);
    run_test(random_numbers_depend_on_the_seed);
    run_test(files_hold_what_was_written);
    run_test(damage_is_noticed);
    run_test(failed_children_are_counted);
    run_test(children_have_their_own_numbers);
    run_test(sleeping_takes_time);
    run_test(switches_are_counted);
    run_test(numbers_go_through_channels);
    run_test(children_become_programs);
    run_test(a_childs_file_is_read_and_removed);
    run_test(a_gate_lets_go_those_who_wait);
    run_test(a_gate_wakes_all_before_any_runs);
    run_test(stopped_children_have_not_failed);
    return 0;
}
