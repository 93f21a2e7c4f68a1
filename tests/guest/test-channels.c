/* SPDX-License-Identifier: MIT */

/*
 * Objects shared within a family of processes: channels and memory. Also names, and sleeps in
 * nanoseconds.
 */

#include "tests/guest/check.h"

/* Memory that a test's processes share. */
static struct board {
    int64_t count;
    int64_t order[64]; /* processes in order of arrival */
    int64_t next;
    int64_t noted; /* number of used entries of `order` */
} *board;

static void make_board(void)
{
    board = shared_memory(sizeof(*board));
    check(board != SYSTEM_FAILED && (uintptr_t)board % 4096 == 0);
}

static void note(int64_t number)
{
    board->order[__atomic_fetch_add(&board->next, 1, __ATOMIC_SEQ_CST)] = number;
    __atomic_fetch_add(&board->noted, 1, __ATOMIC_SEQ_CST);
}

/* Starts a child that takes one unit of the channel, and records it. */
static int start_taker(int channel, int64_t number)
{
    int pid = test_fork();
    if (pid == 0) {
        check(channel_take(channel, RELEASE_NONE, TAKE_ANY) == 0);
        note(number);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_PIPE);
    return pid;
}

static void memory_is_shared_with_children(void)
{
    make_board();
    int64_t *private_copy = malloc(sizeof(*private_copy));
    *private_copy = 1;
    for (int i = 0; i < 4; i++) {
        if (test_fork() == 0) {
            if (test_fork() == 0) {
                for (int j = 0; j < 1000; j++)
                    __atomic_fetch_add(&board->count, 1, __ATOMIC_SEQ_CST);
                exit(0);
            }
            *private_copy = 2;
            wait_for_children(1);
            exit(0);
        }
    }
    wait_for_children(4);
    check(board->count == 4000);
    check(*private_copy == 1);
}

static void shared_memory_is_given_back(void)
{
    int64_t before = 0;
    wait_until_others_rest();
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            before = free_pages();
        int pid = test_fork();
        if (pid == 0) {
            char *pages = shared_memory(50 * 4096);
            check(pages != SYSTEM_FAILED);
            if (test_fork() == 0) {
                memset(pages, 1, (size_t)50 * 4096);
                exit(0);
            }
            wait_for_children(1);
            check(pages[0] == 1 && pages[50 * 4096 - 1] == 1);
            exit(0);
        }
        check(test_wait(pid) == 0);
    }
    check(free_pages() == before);
}

static void shared_memory_lies_behind_all_other(void)
{
    char *end = sbrk(100);
    char *shared = shared_memory(1);
    check(end != SYSTEM_FAILED && shared != SYSTEM_FAILED && shared >= end + 100);
    char *more = sbrk(100);
    check(more == shared + 4096);
    more[99] = 1;
    int pid = test_fork();
    if (pid == 0) {
        *shared = more[99] = 2;
        exit(0);
    }
    check(test_wait(pid) == 0);
    check(*shared == 2 && more[99] == 1);
}

static void too_much_shared_memory_is_refused(void)
{
    check(shared_memory(0) == SYSTEM_FAILED && last_error() == EINVAL);
    check(shared_memory(-1) == SYSTEM_FAILED && last_error() == EINVAL);
    check(shared_memory(INT64_MAX) == SYSTEM_FAILED && last_error() == EINVAL);
    check(shared_memory(1ll << 37) == SYSTEM_FAILED && last_error() == ENOMEM);
}

static void takers_are_served_in_their_order(void)
{
    make_board();
    check(channels_make(2) == 0);
    for (int64_t i = 0; i < 5; i++)
        start_taker(1, i);
    for (int64_t i = 0; i < 5; i++) {
        check(channel_give(1, 1, GIVE_KEEP) == 0);
        while (__atomic_load_n(&board->noted, __ATOMIC_SEQ_CST) <= i)
            yield();
        check(board->order[i] == i);
    }
    wait_for_children(5);
}

static void what_nobody_waits_for_lies_there(void)
{
    make_board();
    check(channels_make(1) == 0);
    check(channel_give(0, 3, GIVE_KEEP) == 0);
    check(channel_give(0, 5, GIVE_WAITING) == 0); /* lost: no process waits */
    for (int i = 0; i < 3; i++)
        check(channel_take(0, RELEASE_NONE, TAKE_ANY) == 0);
    int pid = start_taker(0, 7); /* the fourth waits */
    check(board->next == 0);
    check(channel_give(0, INT64_MAX, GIVE_WAITING) == 0);
    check(test_wait(pid) == 0 && board->next == 1);
    start_taker(0, 8); /* nothing remains */
    check(channel_give(0, 1, GIVE_WAITING) == 0);
    wait_for_children(1);
}

/* A waiting process goes before a process that takes without waiting. */
static void nobody_pushes_in(void)
{
    make_board();
    check(channels_make(1) == 0);
    int first = start_taker(0, 1);
    check(channel_give(0, 1, GIVE_KEEP) == 0);
    int second = test_fork();
    if (second == 0) {
        check(channel_take(0, RELEASE_NONE, TAKE_ANY) == 0);
        exit(0);
    }
    check(test_wait(first) == 0);
    wait_until_blocked(second, BLOCK_PIPE);
    end_child(second);
}

/* If release and wait were two steps, a signal between them would be lost. */
static void taking_and_releasing_is_one_act(void)
{
    check(channels_make(2) == 0);
    int pid = test_fork();
    if (pid == 0) {
        for (int i = 0; i < 500; i++) {
            check(channel_take(0, RELEASE_NONE, TAKE_ANY) == 0);
            check(channel_give(1, 1, GIVE_WAITING) == 0);
        }
        exit(0);
    }
    for (int i = 0; i < 500; i++)
        check(channel_take(1, 0, TAKE_ANY) == 0);
    check(test_wait(pid) == 0);
}

static int start_meeting(int processes, int64_t number)
{
    int pid = test_fork();
    if (pid == 0) {
        check(channel_meet(0, processes) == 0);
        note(number);
        exit(0);
    }
    return pid;
}

/* A killed process does not count, and the next processes meet again. */
static void the_last_one_wakes_those_that_meet(void)
{
    make_board();
    check(channels_make(1) == 0);
    for (int round = 0; round < 3; round++) {
        int killed = start_meeting(4, 0);
        wait_until_blocked(killed, BLOCK_PIPE);
        for (int64_t i = 1; i <= 3; i++) {
            wait_until_blocked(start_meeting(4, i), BLOCK_PIPE);
            if (i == 1)
                end_child(killed);
        }
        check(board->next == (int64_t)round * 3);
        check(channel_meet(0, 4) == 0);
        wait_for_children(3);
    }
    check(channel_meet(0, 1) == 0 && board->next == 9);
    check_error(channel_meet(0, 0), EINVAL);
    check_error(channel_meet(1, 2), EINVAL);
}

/* A process that is killed while it waits takes nothing. */
static void a_taker_that_is_killed_leaves_the_line(void)
{
    make_board();
    check(channels_make(1) == 0);
    int first = start_taker(0, 1);
    int second = start_taker(0, 2);
    end_child(first);
    check(channel_give(0, 1, GIVE_KEEP) == 0);
    check(test_wait(second) == 0 && board->order[0] == 2);
}

/*
 * A set lives as long as any process of its family, including orphans; another family has a
 * separate set.
 */
static void sets_belong_to_families(void)
{
    make_board();
    check(channels_make(1) == 0);
    int pid = test_fork();
    if (pid == 0) {
        check(channels_make(3) == 0);
        check(channel_give(2, 1, GIVE_KEEP) == 0);
        if (test_fork() == 0) {
            check(channel_take(0, RELEASE_NONE, TAKE_ANY) == 0);
            note(5);
            exit(0);
        }
        if (test_fork() == 0) {
            sleep(3);
            check(channel_give(0, 1, GIVE_KEEP) == 0);
            exit(0);
        }
        exit(0);
    }
    check(test_wait(pid) == 0);
    check_error(channel_give(2, 1, GIVE_KEEP), EINVAL);
    for (int i = 0; i < 1000 && !board->noted; i++)
        sleep(1);
    check(board->order[0] == 5);
}

static void wrong_channels_are_refused(void)
{
    check_error(channel_take(0, RELEASE_NONE, TAKE_ANY), EINVAL);
    check_error(channel_give(0, 1, GIVE_KEEP), EINVAL);
    check_error(channels_make(0), EINVAL);
    check_error(channels_make(CHANNELS_MAX + 1), EINVAL);
    check(channels_make(CHANNELS_MAX) == 0);
    check(channel_give(CHANNELS_MAX - 1, 1, GIVE_KEEP) == 0);
    check(channel_take(CHANNELS_MAX - 1, RELEASE_NONE, TAKE_ANY) == 0);
    check_error(channel_take(CHANNELS_MAX, RELEASE_NONE, TAKE_ANY), EINVAL);
    check_error(channel_take(0, CHANNELS_MAX, TAKE_ANY), EINVAL);
    check_error(channel_take(0, -2, TAKE_ANY), EINVAL);
    check_error(channel_give(0, -1, GIVE_KEEP), EINVAL);
    check_error(channel_give(0, 1, 2), EINVAL);
}

static void a_process_names_itself(void)
{
    struct process_info row;
    check(setname("worker") == 0);
    check(find_process(getpid(), &row) && strcmp(row.name, "worker") == 0);
    check(setname("fifteen letters") == 0);
    check_error(setname("sixteen letters!"), ENAMETOOLONG);
    check_error(setname(""), EINVAL);
    check_error(setname((const char *)-1), EFAULT);
    check(find_process(getpid(), &row) && strcmp(row.name, "fifteen letters") == 0);
}

static void sleeps_end_between_ticks(void)
{
    int64_t before = clock_ns();
    check(sleep_ns(300000) == 0);
    int64_t slept = clock_ns() - before;
    check(slept >= 300000);
    check(sleep_until_ns(before + slept + 2500000) == 0);
    check(clock_ns() >= before + slept + 2500000);
    check(sleep_until_ns(before) == 1 && sleep_until_ns(0) == 1 && sleep_until_ns(-1) == 1);
    check(sleep_ns(0) == 0 && sleep_ns(-5) == 0);
}

static void a_long_sleep_ends_by_a_kill(void)
{
    int pid = test_fork();
    if (pid == 0) {
        sleep_ns(INT64_MAX);
        exit(0);
    }
    wait_until_blocked(pid, BLOCK_SLEEP);
    end_child(pid);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(memory_is_shared_with_children),
        TEST(shared_memory_is_given_back),
        TEST(shared_memory_lies_behind_all_other),
        TEST(too_much_shared_memory_is_refused),
        TEST(takers_are_served_in_their_order),
        TEST(what_nobody_waits_for_lies_there),
        TEST(nobody_pushes_in),
        TEST(taking_and_releasing_is_one_act),
        TEST(the_last_one_wakes_those_that_meet),
        TEST(a_taker_that_is_killed_leaves_the_line),
        TEST(sets_belong_to_families),
        TEST(wrong_channels_are_refused),
        TEST(a_process_names_itself),
        TEST(sleeps_end_between_ticks),
        TEST(a_long_sleep_ends_by_a_kill),
    };
    return RUN_TESTS(tests, argc, argv);
}
