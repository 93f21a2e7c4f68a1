/* SPDX-License-Identifier: MIT */

/* The files of /proc: what they show, accept and refuse. */

#include "policies/policy.h"
#include "tests/guest/policies.h"
#include "tests/guest/shell.h"

#define STATUS "/proc/sched_status"

static char original[64];

static void keep_policy(void)
{
    check(getpolicy(original, sizeof(original)) >= 0);
    check(setpolicy("rr") == 0);
}

static void restore_policy(void)
{
    check(setpolicy(original) == 0);
}

/* A row of the table. */
struct status_row {
    char name[PROCESS_NAME_BYTES];
    int64_t pid;
    char state[16];
    int64_t priority;
    char slice[24];
    int64_t tickets;
};

static struct status_row parse_row(char *line)
{
    char *words[7];
    struct status_row row;
    check(cut_words(line, words, 7) == 6);
    check(text_copy(row.name, words[0], sizeof(row.name)) && text_to_number(words[1], &row.pid));
    check(text_copy(row.state, words[2], sizeof(row.state)));
    check(text_to_number(words[3], &row.priority));
    check(text_copy(row.slice, words[4], sizeof(row.slice)));
    check(text_to_number(words[5], &row.tickets));
    return row;
}

/* Checks the headings, and returns the text of the rows. */
static char *table_of(char *text)
{
    char *line = next_line(&text);
    check(strcmp(line, "Scheduler status") == 0);
    while ((line = next_line(&text)) && line[0])
        check(strchr(line, ':'));
    char *words[7];
    check(cut_words(next_line(&text), words, 7) == 6);
    static const char *const headings[] = {"NAME",     "PID",       "STATE",
                                           "PRIORITY", "TIMESLICE", "TICKETS"};
    for (int i = 0; i < 6; i++)
        check(strcmp(words[i], headings[i]) == 0);
    return text;
}

/* Returns the table's row of a process. */
static struct status_row status_of(int pid)
{
    char *text = table_of(read_text(STATUS));
    char *line;
    while ((line = next_line(&text))) {
        struct status_row row = parse_row(line);
        if (row.pid == pid)
            return row;
    }
    check(!"the process is in the table");
    exit(1);
}

static bool status_has_line(const char *requested)
{
    char *text = read_text(STATUS);
    char *line;
    while ((line = next_line(&text)) && line[0]) {
        if (strcmp(line, requested) == 0)
            return true;
    }
    return false;
}

/* Writes once. Returns 0, or the error. */
static int say(const char *path, const char *command)
{
    int descriptor = open(path, OPEN_WRITE);
    check(descriptor >= 0);
    int n = write(descriptor, command, (int)strlen(command));
    int error = n < 0 ? last_error() : 0;
    check(n < 0 || n == (int)strlen(command));
    check(close(descriptor) == 0);
    return error;
}

/* Reading */

static void the_status_is_that_of_the_table(void)
{
    keep_policy();
    int pid = start_sleeper();
    check(setpriority(pid, 9) == 0 && settickets_pid(pid, 12345) == 0);
    wait_until_blocked(pid, BLOCK_SLEEP);
    struct status_row row = status_of(pid);
    check(strcmp(row.name, "test-proc") == 0 && strcmp(row.state, "blocked") == 0);
    check(row.priority == 9 && row.tickets == 12345);
    check(strcmp(status_of(getpid()).state, "running") == 0);
    check(strcmp(status_of(1).name, "init") == 0);
    check(status_has_line("Policy: rr") && status_has_line("PRIORITY: 0, the highest, to 10"));
    end_child(pid);
    restore_policy();
}

/* As many milliseconds as the ticks of the policy's slice. */
static void the_time_slice_is_in_milliseconds(void)
{
    struct system_stats stats;
    int64_t ms;
    keep_policy();
    check(getstats(&stats) == 0 && settunable("slice", 1000) == 0);
    yield();
    check(text_to_number(status_of(getpid()).slice, &ms));
    check(ms == (int64_t)(1000 * stats.tick_ns / 1000000));
    check(status_has_line("Changed: slice=1000"));
    check(settunable("slice", 1) == 0 && !status_has_line("Changed: slice=1"));
    restore_policy();
}

static void names_are_one_word(void)
{
    char *const arguments[] = {"/a b\tc", "100000", NULL};
    check(link("/sleep", "/a b\tc") == 0);
    int pid = test_fork();
    if (pid == 0) {
        exec("/a b\tc", arguments);
        exit(1);
    }
    wait_until_blocked(pid, BLOCK_SLEEP);
    check(strcmp(status_of(pid).name, "a_b_c") == 0);
    check(unlink("/a b\tc") == 0);
    end_child(pid);
}

static void one_open_is_one_view(void)
{
    char begin[24] = {0};
    char *rest = malloc(PROC_BYTES);
    keep_policy();
    int descriptor = open(STATUS, OPEN_BOTH);
    check(rest && read(descriptor, begin, 20) == 20);
    check(write(descriptor, "rr:table-scan\n", 14) == 14);
    int n = read(descriptor, rest, PROC_BYTES - 1);
    check(n > 0);
    rest[n] = 0;
    check(strncmp(begin, "Scheduler status\nPol", 20) == 0 && strncmp(rest, "icy: rr\n", 8) == 0);
    check(read(descriptor, rest, 1) == 0 && read(descriptor, rest, 1) == 0);
    check(close(descriptor) == 0);
    check(status_has_line("Policy: rr:table-scan"));
    free(rest);
    restore_policy();
}

/* Two processes read through one descriptor: together they get the text once. */
static void readers_share_a_view(void)
{
    static char piece[16];
    int ends[2];
    int total = 0;
    int counted = 0;
    int part;
    int n;
    check(pipe(ends) == 0);
    int descriptor = open("/proc/sched_policies", OPEN_READ);
    int pid = test_fork();
    while ((n = read(descriptor, piece, sizeof(piece))) > 0)
        counted += n;
    if (pid == 0) {
        write(ends[1], &counted, sizeof(counted));
        exit(0);
    }
    check(read(ends[0], &part, sizeof(part)) == sizeof(part));
    check(test_wait(pid) == 0);
    total = counted + part;
    check(total == (int)strlen(read_text("/proc/sched_policies")));
}

static void thousands_are_shown(void)
{
    enum { CHILDREN = 4096 };
    int ends[2];
    check(pipe(ends) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        if (test_fork() == 0) {
            char c;
            close(ends[1]);
            read(ends[0], &c, 1);
            exit(0);
        }
    }
    char *text = table_of(read_text(STATUS));
    char *line;
    int64_t last = 0;
    int count = 0;
    while ((line = next_line(&text))) {
        struct status_row row = parse_row(line);
        check(row.pid > last);
        last = row.pid;
        count++;
    }
    check(count >= CHILDREN);
    int64_t pages = free_pages();
    for (int i = 0; i < 3; i++)
        read_text(STATUS);
    check(free_pages() > pages - 20); /* one view needs 70 pages */
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < CHILDREN; i++)
        check(wait(NULL) > 0);
}

/* Policies and tunables */

static void policies_are_listed(void)
{
    char now[64];
    keep_policy();
    list_policies();
    for (int i = 0; i < policy_count; i++) {
        check(say(STATUS, policy_names[i]) == 0);
        check(getpolicy(now, sizeof(now)) >= 0 && strcmp(now, policy_names[i]) == 0);
    }
    check(say("/proc/sched_policies", "rr") == EPERM);
    restore_policy();
}

/*
 * A policy can be selected by its number, and is shown by its name. A number may also select a
 * preset, which is then shown.
 */
static void policies_have_numbers(void)
{
    char now[64];
    char *words[3];
    char *line;
    keep_policy();
    char *copy = malloc(PROC_BYTES);
    char *text = copy;
    check(copy && text_copy(copy, read_text("/proc/sched_policies"), PROC_BYTES));
    next_line(&text);
    while ((line = next_line(&text))) {
        check(cut_words(line, words, 3) == 3);
        if (strchr(words[1], ':'))
            continue;
        check(setpolicy("rr") == 0); /* study 5's presets have other numbers */
        check(say(STATUS, words[0]) == 0);
        check(getpolicy(now, sizeof(now)) >= 0);
        size_t length = strlen(words[1]);
        check(strncmp(now, words[1], length) == 0 && (now[length] == '\0' || now[length] == ':'));
    }
    free(copy);
    restore_policy();
}

/* If a policy shares by weight, PRIORITY is the weight. */
static void priority_is_what_shares_go_by(void)
{
    struct process_info row;
    bool met[2] = {false, false};
    keep_policy();
    list_policies();
    int pid = start_sleeper();
    check(setpriority(pid, 0) == 0 && setweight(pid, 8) == 0);
    for (int i = 0; i < policy_count; i++) {
        check(setpolicy(policy_names[i]) == 0);
        bool by_weight = status_has_line("PRIORITY: the weight, 1 to 10; shares go by it");
        check(by_weight || status_has_line("PRIORITY: 0, the highest, to 10"));
        check(status_of(pid).priority == (by_weight ? 8 : 0));
        char command[24];
        snprintf(command, sizeof(command), "%d 3", pid);
        check(say(STATUS, command) == 0 && status_of(pid).priority == 3);
        check(find_process(pid, &row));
        check(row.priority == (by_weight ? 0 : 3) && row.weight == (by_weight ? 3 : 8));
        snprintf(command, sizeof(command), "%d 0", pid);
        const char *preset = strchr(policy_names[i], ':');
        if (preset && strcmp(preset, ":linux") == 0)
            check(say(STATUS, command) == 0 && status_of(pid).priority == 5);
        else
            check(say(STATUS, command) == (by_weight ? ERANGE : 0));
        check(setpriority(pid, 0) == 0 && setweight(pid, 8) == 0);
        met[by_weight] = true;
    }
    check(met[false]);
    end_child(pid);
    restore_policy();
}

static void tunables_are_listed(void)
{
    static const char *const headings[] = {"NAME",    "VALUE",   "MINIMUM",
                                           "MAXIMUM", "DEFAULT", "MEANING"};
    keep_policy();
    list_policies();
    for (int i = 0; i < policy_count; i++) {
        char *words[6];
        char *line;
        check(setpolicy(policy_names[i]) == 0);
        char *text = read_text("/proc/sched_tunables");
        check(cut_words(next_line(&text), words, 6) == 6);
        for (int j = 0; j < 6; j++)
            check(strcmp(words[j], headings[j]) == 0);
        while ((line = next_line(&text))) {
            int64_t number[4];
            int64_t value;
            check(cut_words(line, words, 6) == 6);
            for (int j = 0; j < 4; j++)
                check(text_to_number(words[j + 1], &number[j]));
            check(gettunable(words[0], &value) == 0 && value == number[0]);
            check(number[1] <= value && value <= number[2]);
            check(number[1] <= number[3] && number[3] <= number[2]);
            check(settunable(words[0], number[1] - 1) == -1 || number[1] == INT64_MIN);
            check(settunable(words[0], number[2] + 1) == -1 || number[2] == INT64_MAX);
        }
    }
    restore_policy();
}

static void setting_a_tunable_keeps_the_others(void)
{
    int64_t value;
    keep_policy();
    check(setpolicy("rr:table-scan") == 0);
    check(say("/proc/sched_tunables", "slice=7") == 0);
    check(gettunable("table_scan", &value) == 0 && value == 1);
    check(say("/proc/sched_tunables", "table_scan 0\n") == 0);
    check(gettunable("slice", &value) == 0 && value == 7);
    check(status_has_line("Changed: slice=7 table_scan=0"));
    check(setpolicy("rr:table-scan") == 0);
    check(gettunable("slice", &value) == 0 && value == 1);
    restore_policy();
}

/* The old state is discarded with the old value: the policy knows only tasks queued since then. */
static void a_tunable_begins_the_policy_anew(void)
{
    keep_policy();
    int pid = start_sleeper();
    wait_until_blocked(pid, BLOCK_SLEEP);
    check(strcmp(status_of(pid).slice, "?") != 0);
    check(settunable("slice", 1001) == -1);
    check(strcmp(status_of(pid).slice, "?") != 0);
    check(settunable("slice", 3) == 0);
    check(strcmp(status_of(pid).slice, "?") == 0);
    yield();
    check(strcmp(status_of(getpid()).slice, "?") != 0);
    end_child(pid);
    restore_policy();
}

/* Refused writes */

static void bad_commands_change_nothing(void)
{
    static const struct {
        const char *command;
        int error;
    } bad[] = {
        {"", EINVAL},
        {" \n", EINVAL},
        {"no-such", EPOLICY},
        {"rr:", EPOLICY},
        {"rr:no-such", EPOLICY},
        {":table-scan", EPOLICY},
        {"RR", EPOLICY},
        {"1000000", EPOLICY},
        {"-1", EPOLICY},
        {"99999999999999999999", EPOLICY},
        {"rr\nrr:table-scan", EINVAL},
        {"1 5\n1 6\n", EINVAL},
        {"1 5 6", EINVAL},
        {"rr table-scan", EINVAL},
        {"1 x", EINVAL},
        {"x 1", EINVAL},
        {"1 5x", EINVAL},
        {"1 0x5", EINVAL},
        {"1 +5", EINVAL},
        {"1 -", EINVAL},
        {"1 -1", ERANGE},
        {"1 11", ERANGE},
        {"1 4294967297", ERANGE},
        {"1 9223372036854775807", ERANGE},
        {"1 9223372036854775808", EINVAL},
        {"0 5", ESRCH},
        {"-1 5", ESRCH},
        {"2147483647 5", ESRCH},
        {"4294967297 5", ESRCH},
    };
    static char longest[300];
    struct process_info init;
    char now[64];
    keep_policy();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int error = say(STATUS, bad[i].command);
        if (error != bad[i].error)
            printf("# '%s': %s\n", bad[i].command, error_text(error));
        check(error == bad[i].error);
        check(getpolicy(now, sizeof(now)) >= 0 && strcmp(now, "rr") == 0);
        check(find_process(1, &init) && init.priority == PRIORITY_DEFAULT);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    check(say(STATUS, longest) == ENAMETOOLONG);
    memset(longest, ' ', sizeof(longest) - 1);
    check(say(STATUS, longest) == ENAMETOOLONG);
    restore_policy();
}

static void bad_tunables_change_nothing(void)
{
    static const struct {
        const char *command;
        int error;
    } bad[] = {
        {"slice", EINVAL},
        {"slice=", EINVAL},
        {"=4", EINVAL},
        {"slice=x", EINVAL},
        {"slice 4 5", EINVAL},
        {"slice=4,table_scan=1", EINVAL},
        {"slice=4\ntable_scan=1", EINVAL},
        {"no_such=1", ETUNABLE},
        {"slice=0", ERANGE},
        {"slice=1001", ERANGE},
        {"slice=-1", ERANGE},
        {"slice=99999999999999999999", EINVAL},
    };
    int64_t value;
    keep_policy();
    check(settunable("slice", 3) == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check(say("/proc/sched_tunables", bad[i].command) == bad[i].error);
        check(gettunable("slice", &value) == 0 && value == 3);
        check(gettunable("table_scan", &value) == 0 && value == 0);
    }
    restore_policy();
}

/* Through the shell, as in study 5 */

static void the_shell_reads_and_writes(void)
{
    static const struct run runs[] = {
        {"ls /proc | grep sched_status | wc", 0, NULL},
        {"echo rr:table-scan > /proc/sched_status; policy", 0, "rr:table-scan\n"},
        {"echo 0 > /proc/sched_status; policy", 0, "rr\n"},
        {"echo 0:table-scan >> /proc/sched_status; policy", 0, "rr:table-scan\n"},
        {"(echo rr; echo 1 7) > /proc/sched_status; policy", 0, "rr\n"},
        {"cat /proc/sched_status | grep ^Policy", 0, "Policy: rr\n"},
        {"cat /proc/sched_status | grep '^init  *1 .* 7  '", 0, NULL},
        {"echo '1   5' > /proc/sched_status", 0, ""},
        {"echo 1 tickets 9 > /proc/sched_status; cat /proc/sched_status | grep '^init .* 5 .* 9$'",
         0, NULL},
        {"echo 1 priority 6 > /proc/sched_status; cat /proc/sched_status | grep '^init  *1 .* 6  '",
         0, NULL},
        {"echo 1 priority 5 > /proc/sched_status; echo 1 tickets 1 > /proc/sched_status", 0, ""},
        {"echo 1 weight 0 > /proc/sched_status", 1, "echo: output: out of range\n"},
        {"echo 1 colour 5 > /proc/sched_status", 1, "echo: output: invalid argument\n"},
        {"echo 1 weight 5 5 > /proc/sched_status", 1, "echo: output: invalid argument\n"},
        {"echo seed 7 > /proc/sched_status; policy", 0, "rr\n"},
        {"echo seed -1 > /proc/sched_status", 1, "echo: output: out of range\n"},
        {"echo seed x > /proc/sched_status", 1, "echo: output: invalid argument\n"},
        {"echo nobody > /proc/sched_status", 1, "echo: output: no such policy or preset\n"},
        {"echo 2147483647 3 > /proc/sched_status", 1, "echo: output: no such process\n"},
        {"echo 1 11 > /proc/sched_status", 1, "echo: output: out of range\n"},
        {"echo > /proc/sched_status", 1, "echo: output: invalid argument\n"},
        {"> /proc/sched_status; policy", 0, "rr\n"},
        {"echo slice 3 > /proc/sched_tunables; tunable slice", 0, "3\n"},
        {"echo slice = 4 > /proc/sched_tunables; tunable slice", 0, "4\n"},
        {"cat /proc/sched_tunables | grep ^slice", 0,
         "slice                         4       1    1000       1 ticks of a task's time slice\n"},
        {"echo size=3 > /proc/sched_tunables", 1, "echo: output: the policy has no such tunable\n"},
        {"echo rr > /proc/sched_policies", 1, "echo: output: not permitted\n"},
        {"cat /proc/sched_policies | grep ' rr  '", 0, NULL},
        {"echo x > /proc/sched_none && rm /proc/sched_none", 0, ""},
    };
    keep_policy();
    CHECK_RUNS(runs);
    restore_policy();
}

/*
 * Under concurrent use, readers get complete tables and writes take effect, regardless of the
 * policy.
 */
static void all_at_once(void)
{
    enum { PROCESSES = 6, ROUNDS = 25 };
    keep_policy();
    list_policies();
    for (int i = 0; i < PROCESSES; i++) {
        if (test_fork() != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            char command[32];
            snprintf(command, sizeof(command), "%d %d", getpid(), 1 + round % 10);
            check(say(STATUS, policy_names[(i * 7 + round) % policy_count]) == 0);
            check(say(STATUS, command) == 0);
            check(status_of(getpid()).pid == getpid());
        }
        exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
    restore_policy();
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(the_status_is_that_of_the_table),
        TEST(the_time_slice_is_in_milliseconds),
        TEST(names_are_one_word),
        TEST(one_open_is_one_view),
        TEST(readers_share_a_view),
        TEST(thousands_are_shown),
        TEST(policies_are_listed),
        TEST(policies_have_numbers),
        TEST(priority_is_what_shares_go_by),
        TEST(tunables_are_listed),
        TEST(setting_a_tunable_keeps_the_others),
        TEST(a_tunable_begins_the_policy_anew),
        TEST(bad_commands_change_nothing),
        TEST(bad_tunables_change_nothing),
        TEST(the_shell_reads_and_writes),
        TEST(all_at_once),
    };
    return RUN_TESTS(tests, argc, argv);
}
