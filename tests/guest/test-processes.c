/* SPDX-License-Identifier: MIT */

/* fork, exit, wait, kill. */

#include "tests/guest/check.h"

static void exit_status_reaches_the_parent(void)
{
    static const int statuses[] = {0, 1, 42, 255, 256, -1, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        int pid = test_fork();
        if (pid == 0)
            exit(statuses[i]);
        check(test_wait(pid) == statuses[i]);
    }
}

static void wait_without_children_fails(void)
{
    int status = 77;
    check_error(wait(&status), ECHILD);
    check(status == 77);
}

static void wait_takes_a_null_status(void)
{
    int pid = test_fork();
    if (pid == 0)
        exit(5);
    check(wait(NULL) == pid);
}

static void fork_gives_the_childs_pid(void)
{
    int ends[2];
    int child_value;
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        int self_pid = getpid();
        write(ends[1], &self_pid, sizeof(self_pid));
        exit(0);
    }
    check(read(ends[0], &child_value, sizeof(child_value)) == sizeof(child_value));
    check(child_value == pid && pid != getpid());
    check(test_wait(pid) == 0);
}

static void wait_finds_every_child_once(void)
{
    enum { CHILDREN = 50 };
    static int pids[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0)
            exit(i);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        int pid = wait(&status);
        check(pid > 0 && status >= 0 && status < CHILDREN && pids[status] == pid);
        pids[status] = 0;
    }
    check_error(wait(NULL), ECHILD);
}

static void init_takes_orphans_over(void)
{
    int ends[2];
    int orphan;
    struct process_info row;
    int hold[2];
    check(pipe(ends) == 0 && pipe(hold) == 0);
    int pid = test_fork();
    if (pid == 0) {
        orphan = test_fork();
        if (orphan == 0) {
            char nothing;
            close(hold[1]);
            read(hold[0], &nothing, 1);
            exit(9);
        }
        write(ends[1], &orphan, sizeof(orphan));
        exit(0);
    }
    check(read(ends[0], &orphan, sizeof(orphan)) == sizeof(orphan));
    check(test_wait(pid) == 0);
    check(find_process(orphan, &row) && row.parent == 1);
    check_error(wait(NULL), ECHILD);

    close(hold[1]);
    for (int i = 0; i < 1000 && find_process(orphan, &row); i++)
        sleep(1);
    check(!find_process(orphan, &row)); /* init has reaped it */
}

static void orphaned_zombies_are_reaped(void)
{
    int pid = test_fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            if (fork() == 0)
                exit(0);
        }
        sleep(2); /* most are zombies now */
        exit(0);
    }
    check(test_wait(pid) == 0);
    int count = 1;
    bool has_match = true;
    for (int i = 0; i < 1000 && has_match; i++) {
        struct process_info *table = process_table(&count);
        check(table);
        has_match = false;
        for (int j = 0; j < count; j++)
            has_match |= table[j].parent == 1 && table[j].state == PROCESS_ZOMBIE;
        free(table);
        sleep(1);
    }
    check(!has_match);
}

/* Kill, in every process state */

static void must_die(int pid)
{
    check(kill(pid) == 0);
    check(test_wait(pid) == -1);
}

/*
 * Each child leaves a child to init. The boot argument `processes` sets how many may exist at once.
 */
static void orphans_never_fill_the_table(void)
{
    enum { CHILDREN = 200 };
    uint32_t most = 0;
    for (int i = 0; i < CHILDREN; i++) {
        int pid = test_fork();
        if (pid == 0)
            exit(fork() < 0);
        struct system_stats stats;
        check(getstats(&stats) == 0);
        if (stats.processes > most)
            most = stats.processes;
        check(test_wait(pid) == 0);
    }
    printf("%u processes at once\n", most);
}

static void kill_ends_a_sleeper(void)
{
    int pid = test_fork();
    if (pid == 0) {
        sleep(1000000000);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_SLEEP);
    must_die(pid);
}

static void kill_ends_one_that_runs(void)
{
    int pid = test_fork();
    if (pid == 0) {
        for (;;)
            spin(1000);
    }
    sleep(2);
    must_die(pid);
}

static void kill_ends_one_that_never_ran(void)
{
    for (int i = 0; i < 20; i++) {
        int pid = test_fork();
        if (pid == 0) {
            for (;;)
                spin(1000);
        }
        must_die(pid);
    }
}

static void kill_ends_a_blocked_reader(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        char c;
        read(ends[0], &c, 1);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_PIPE);
    must_die(pid);
    /* The pipe still works. */
    char c = 'a';
    check(write(ends[1], &c, 1) == 1 && read(ends[0], &c, 1) == 1);
}

static void kill_ends_a_blocked_writer(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        static char block[1024];
        for (;;)
            write(ends[1], block, sizeof(block));
    }
    wait_until_blocked(pid, BLOCK_PIPE);
    must_die(pid);
}

static void kill_ends_one_that_waits_for_a_child(void)
{
    int pid = test_fork();
    if (pid == 0) {
        if (fork() == 0) {
            sleep(50);
            exit(0);
        }
        wait(NULL);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_CHILD);
    must_die(pid);
}

static void kill_ends_one_at_the_console(void)
{
    struct file_status status;
    if (fstat(0, &status) < 0 || status.type != FILE_DEVICE)
        return;
    int pid = test_fork();
    if (pid == 0) {
        char c;
        read(0, &c, 1);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_CONSOLE);
    must_die(pid);
}

static void kill_of_oneself_does_not_return(void)
{
    int pid = test_fork();
    if (pid == 0) {
        kill(getpid());
        exit(3);
    }
    check(test_wait(pid) == -1);
}

static void kill_of_nobody_fails(void)
{
    check_error(kill(0), ESRCH);
    check_error(kill(-1), ESRCH);
    check_error(kill(INT32_MIN), ESRCH);
    check_error(kill(INT32_MAX), ESRCH);
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    check(test_wait(pid) == 0);
    check_error(kill(pid), ESRCH);
    check_error(kill(1), EPERM);
}

static void kill_of_a_zombie_changes_nothing(void)
{
    struct process_info row = {0};
    int pid = test_fork();
    if (pid == 0)
        exit(4);
    while (row.state != PROCESS_ZOMBIE) {
        check(find_process(pid, &row));
        sleep(1);
    }
    kill(pid);
    check(test_wait(pid) == 4);
}

static void kill_hits_a_family_at_work(void)
{
    static int pids[8];
    for (int i = 0; i < 8; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0) {
            for (;;) {
                if (fork() == 0)
                    exit(0);
                wait(NULL);
            }
        }
    }
    sleep(5);
    for (int i = 0; i < 8; i++)
        check(kill(pids[i]) == 0);
    for (int i = 0; i < 8; i++) {
        int status;
        check(wait(&status) > 0 && status == -1);
    }
}

/* Registers */

/*
 * Fills registers, spins until time slices end, and compares. Returns true if all values survive.
 */
static bool registers_stay(uint64_t seed, uint64_t iterations)
{
    uint64_t differences;
    __asm__ volatile("mv   s2, %[seed]\n"
                     "addi s3, s2, 1\n addi s4, s2, 2\n addi s5, s2, 3\n addi s6, s2, 4\n"
                     "addi s7, s2, 5\n addi s8, s2, 6\n addi s9, s2, 7\n addi s10, s2, 8\n"
                     "addi t3, s2, 9\n addi t4, s2, 10\n addi t5, s2, 11\n addi t6, s2, 12\n"
                     "addi a6, s2, 13\n addi a7, s2, 14\n addi ra, s2, 15\n"
                     "1: addi %[left], %[left], -1\n bnez %[left], 1b\n"
                     "sub s3, s3, s2\n addi s3, s3, -1\n"
                     "sub s4, s4, s2\n addi s4, s4, -2\n or s3, s3, s4\n"
                     "sub s5, s5, s2\n addi s5, s5, -3\n or s3, s3, s5\n"
                     "sub s6, s6, s2\n addi s6, s6, -4\n or s3, s3, s6\n"
                     "sub s7, s7, s2\n addi s7, s7, -5\n or s3, s3, s7\n"
                     "sub s8, s8, s2\n addi s8, s8, -6\n or s3, s3, s8\n"
                     "sub s9, s9, s2\n addi s9, s9, -7\n or s3, s3, s9\n"
                     "sub s10, s10, s2\n addi s10, s10, -8\n or s3, s3, s10\n"
                     "sub t3, t3, s2\n addi t3, t3, -9\n or s3, s3, t3\n"
                     "sub t4, t4, s2\n addi t4, t4, -10\n or s3, s3, t4\n"
                     "sub t5, t5, s2\n addi t5, t5, -11\n or s3, s3, t5\n"
                     "sub t6, t6, s2\n addi t6, t6, -12\n or s3, s3, t6\n"
                     "sub a6, a6, s2\n addi a6, a6, -13\n or s3, s3, a6\n"
                     "sub a7, a7, s2\n addi a7, a7, -14\n or s3, s3, a7\n"
                     "sub ra, ra, s2\n addi ra, ra, -15\n or %[differences], s3, ra\n"
                     : [differences] "=r"(differences), [left] "+r"(iterations)
                     : [seed] "r"(seed)
                     : "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "t3", "t4", "t5",
                       "t6", "a6", "a7", "ra");
    return differences == 0;
}

static void registers_survive_preemption(void)
{
    for (int i = 0; i < 12; i++) {
        if (test_fork() == 0)
            exit(registers_stay((uint64_t)i << 32 | 0x5eed, 5000000) ? 0 : 1);
    }
    for (int i = 0; i < 12; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

/* Many processes */

/* Ends when no process can write to the pipe. */
_Noreturn static void wait_for_end(const int ends[2])
{
    char nothing;
    close(ends[1]);
    read(ends[0], &nothing, 1);
    exit(0);
}

/* Lets all children end, and counts them. */
static int end_all(int ends[2])
{
    int ended = 0;
    close(ends[1]);
    close(ends[0]);
    int status;
    while (wait(&status) > 0)
        ended += status == 0;
    return ended;
}

static void four_thousand_processes_at_once(void)
{
    enum { PROCESSES = 4096 };
    int ends[2];
    if (free_pages() < 300l * 256) {
        printf("# less than 300 MiB free: four_thousand_processes_at_once is left out\n");
        return;
    }
    check(pipe(ends) == 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (test_fork() == 0)
            wait_for_end(ends);
    }
    check(getpinfo(NULL, 0) >= PROCESSES);
    check(end_all(ends) == PROCESSES);
}

/* Forks until the kernel refuses, then ends all children. */
_Noreturn static void fork_all(void)
{
    int ends[2];
    int count = 0;
    check(pipe(ends) == 0);
    for (;; count++) {
        int pid = fork();
        if (pid == 0)
            wait_for_end(ends);
        if (pid < 0)
            break;
    }
    check(last_error() == ENOMEM || last_error() == EAGAIN);
    check(end_all(ends) == count);
    printf("# fork_is_refused_and_recovers: %d processes\n", count);
    exit(0);
}

/* New processes are refused and existing ones survive; afterwards, as many fit as before. */
static void fork_is_refused_and_recovers(void)
{
    int64_t pages = 0;
    int processes = getpinfo(NULL, 0);
    for (int round = 0; round < 3; round++) {
        if (round == 1)
            pages = free_pages(); /* the kernel keeps stacks for reuse */
        int pid = test_fork();
        if (pid == 0)
            fork_all();
        check(test_wait(pid) == 0);
        for (int i = 0; i < 1000 && getpinfo(NULL, 0) > processes; i++)
            sleep(1);
        check(getpinfo(NULL, 0) <= processes);
    }
    check(pages - free_pages() < 128);
}

static void families_fork_side_by_side(void)
{
    for (int i = 0; i < 16; i++) {
        if (test_fork() != 0)
            continue;
        for (int j = 0; j < 40; j++) {
            int pid = fork();
            if (pid == 0)
                exit(j);
            int status;
            if (pid < 0 || wait(&status) != pid || status != j)
                exit(1);
        }
        exit(0);
    }
    for (int i = 0; i < 16; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

/* The first process adopts all orphans and waits for none, as if it had no CPU. */
static void be_first(void)
{
    mknod("/console", DEVICE_CONSOLE, 0);
    open("/console", OPEN_BOTH);
    dup(0);
    dup(0);
    int done[2];
    check(pipe(done) == 0);
    if (test_fork() == 0) {
        orphans_never_fill_the_table();
        check(write(done[1], "d", 1) == 1);
        exit(0);
    }
    close(done[1]);
    char byte;
    check(read(done[0], &byte, 1) == 1);
    printf("ok orphans_that_nobody_waits_for\n");
    poweroff(0);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(exit_status_reaches_the_parent),
        TEST(wait_without_children_fails),
        TEST(wait_takes_a_null_status),
        TEST(fork_gives_the_childs_pid),
        TEST(wait_finds_every_child_once),
        TEST(init_takes_orphans_over),
        TEST(orphaned_zombies_are_reaped),
        TEST(orphans_never_fill_the_table),
        TEST(kill_ends_a_sleeper),
        TEST(kill_ends_one_that_runs),
        TEST(kill_ends_one_that_never_ran),
        TEST(kill_ends_a_blocked_reader),
        TEST(kill_ends_a_blocked_writer),
        TEST(kill_ends_one_that_waits_for_a_child),
        TEST(kill_ends_one_at_the_console),
        TEST(kill_of_oneself_does_not_return),
        TEST(kill_of_nobody_fails),
        TEST(kill_of_a_zombie_changes_nothing),
        TEST(kill_hits_a_family_at_work),
        TEST(registers_survive_preemption),
        TEST(families_fork_side_by_side),
        TEST(four_thousand_processes_at_once),
        TEST(fork_is_refused_and_recovers),
    };
    if (getpid() == 1)
        be_first();
    return RUN_TESTS(tests, argc, argv);
}
