/* SPDX-License-Identifier: MIT */

/* Pipes: order, ends, blocking, many processes at once. */

#include "tests/guest/check.h"

static char block[4096];

static void test_pipe(int ends[2])
{
    check(pipe(ends) == 0);
}

/* Returns the next byte of a stream that both ends can compute. */
static char stream_byte(int64_t offset)
{
    return (char)(offset * 31 + offset / 251);
}

static void write_stream(int descriptor, int64_t bytes, int piece)
{
    for (int64_t at = 0; at < bytes;) {
        int n = bytes - at < piece ? (int)(bytes - at) : piece;
        for (int i = 0; i < n; i++)
            block[i] = stream_byte(at + i);
        check(write(descriptor, block, n) == n);
        at += n;
    }
}

static void read_stream(int descriptor, int64_t bytes, int piece)
{
    int64_t at = 0;
    for (;;) {
        int n = read(descriptor, block, piece);
        check(n >= 0 && n <= piece);
        if (n == 0)
            break;
        for (int i = 0; i < n; i++)
            check(block[i] == stream_byte(at + i));
        at += n;
    }
    check(at == bytes);
}

static void bytes_come_out_as_they_went_in(void)
{
    static const int pieces[][2] = {{1, 4096}, {4096, 1}, {4096, 4096}, {13, 512}, {4000, 333}};
    for (int i = 0; i < 5; i++) {
        int64_t bytes = pieces[i][0] == 1 || pieces[i][1] == 1 ? 5000 : 100000;
        int ends[2];
        test_pipe(ends);
        int pid = test_fork();
        if (pid == 0) {
            close(ends[0]);
            write_stream(ends[1], bytes, pieces[i][0]);
            exit(0);
        }
        close(ends[1]);
        read_stream(ends[0], bytes, pieces[i][1]);
        close(ends[0]);
        check(test_wait(pid) == 0);
    }
}

static void a_pipe_without_writers_ends(void)
{
    int ends[2];
    char c;
    test_pipe(ends);
    check(write(ends[1], "ab", 2) == 2);
    close(ends[1]);
    check(read(ends[0], &c, 1) == 1 && c == 'a');
    check(read(ends[0], block, 10) == 1 && block[0] == 'b');
    check(read(ends[0], &c, 1) == 0);
    check(read(ends[0], &c, 1) == 0);
}

static void a_pipe_without_readers_refuses(void)
{
    int ends[2];
    test_pipe(ends);
    close(ends[0]);
    check_error(write(ends[1], "a", 1), EPIPE);
    check_error(write(ends[1], block, 4096), EPIPE);
}

static void a_blocked_writer_learns_that_readers_are_gone(void)
{
    int ends[2];
    test_pipe(ends);
    int pid = test_fork();
    if (pid == 0) {
        close(ends[0]);
        while (write(ends[1], block, 4096) == 4096)
            ;
        exit(last_error() == EPIPE ? 0 : 1);
    }
    wait_until_blocked(pid, BLOCK_PIPE);
    close(ends[0]);
    check(test_wait(pid) == 0);
}

static void each_end_has_one_direction(void)
{
    int ends[2];
    char c;
    test_pipe(ends);
    check_error(write(ends[0], "a", 1), EBADF);
    check_error(read(ends[1], &c, 1), EBADF);
    check(read(ends[0], &c, -1) == -1);
    check(write(ends[1], &c, -1) == -1);
    check(write(ends[1], &c, 0) == 0);
}

static void copies_of_an_end_keep_it_open(void)
{
    int ends[2];
    char c;
    test_pipe(ends);
    int copy = dup(ends[1]);
    check(copy >= 0);
    close(ends[1]);
    check(write(copy, "a", 1) == 1);
    close(copy);
    check(read(ends[0], &c, 1) == 1);
    check(read(ends[0], &c, 1) == 0);
}

/* Each byte goes to exactly one reader. */
static void many_writers_and_readers_lose_nothing(void)
{
    enum { WRITERS = 5, READERS = 4, BYTES = 6000 };
    int data[2];
    int sums[2];
    test_pipe(data);
    test_pipe(sums);
    for (int i = 0; i < WRITERS; i++) {
        if (test_fork() != 0)
            continue;
        memset(block, i + 1, 100);
        for (int at = 0; at < BYTES; at += 100)
            check(write(data[1], block, 100) == 100);
        exit(0);
    }
    for (int i = 0; i < READERS; i++) {
        if (test_fork() != 0)
            continue;
        close(data[1]);
        int64_t sum = 0;
        int n;
        while ((n = read(data[0], block, 77)) > 0) {
            for (int j = 0; j < n; j++)
                sum += block[j];
        }
        check(n == 0);
        check(write(sums[1], &sum, sizeof(sum)) == sizeof(sum));
        exit(0);
    }
    close(data[0]);
    close(data[1]);
    wait_for_children(WRITERS + READERS);
    int64_t total = 0;
    for (int i = 0; i < READERS; i++) {
        int64_t sum;
        check(read(sums[0], &sum, sizeof(sum)) == sizeof(sum));
        total += sum;
    }
    check(total == (int64_t)BYTES * (1 + 2 + 3 + 4 + 5));
}

static void small_writes_stay_whole(void)
{
    enum { WRITERS = 6, WRITES = 100, BYTES = 64 };
    int ends[2];
    test_pipe(ends);
    for (int i = 0; i < WRITERS; i++) {
        if (test_fork() != 0)
            continue;
        memset(block, 'a' + i, BYTES);
        for (int j = 0; j < WRITES; j++)
            check(write(ends[1], block, BYTES) == BYTES);
        exit(0);
    }
    close(ends[1]);
    /* Writes of 64 bytes are atomic: each aligned piece of 64 bytes comes from one writer. */
    for (int i = 0; i < WRITERS * WRITES; i++) {
        int got = 0;
        while (got < BYTES) {
            int n = read(ends[0], block + got, BYTES - got);
            check(n > 0);
            got += n;
        }
        for (int j = 1; j < BYTES; j++)
            check(block[j] == block[0]);
    }
    wait_for_children(WRITERS);
}

static void the_last_writer_wakes_all_readers(void)
{
    int ends[2];
    test_pipe(ends);
    for (int i = 0; i < 30; i++) {
        if (test_fork() != 0)
            continue;
        char c;
        close(ends[1]);
        exit(read(ends[0], &c, 1) == 0 ? 0 : 1);
    }
    sleep(3);
    close(ends[1]);
    wait_for_children(30);
}

/* One process writes and the other answers, `rounds` times. */
static void ping_pong(int rounds)
{
    int outward[2];
    int back[2];
    char c = 0;
    test_pipe(outward);
    test_pipe(back);
    int pid = test_fork();
    if (pid == 0) {
        for (int i = 0; i < rounds; i++) {
            check(read(outward[0], &c, 1) == 1);
            c++;
            check(write(back[1], &c, 1) == 1);
        }
        exit(0);
    }
    for (int i = 0; i < rounds; i++) {
        check(write(outward[1], &c, 1) == 1);
        check(read(back[0], &c, 1) == 1);
        check(c == (char)(i + 1));
    }
    /* Children that still wait elsewhere must not end here. */
    check(test_wait(pid) == 0);
}

static void ping_pong_works(void)
{
    ping_pong(2000);
}

static void thousands_blocked_disturb_nobody(void)
{
    enum { BLOCKED = 4000 };
    int ends[2];
    if (free_pages() < 300l * 256) {
        printf("# less than 300 MiB free: thousands_blocked_disturb_nobody is left out\n");
        return;
    }
    test_pipe(ends);
    for (int i = 0; i < BLOCKED; i++) {
        if (test_fork() != 0)
            continue;
        char c;
        close(ends[1]);
        exit(read(ends[0], &c, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    ping_pong(300);
    /* One byte wakes exactly one of them. */
    check(getpinfo(NULL, 0) >= BLOCKED);
    close(ends[1]);
    wait_for_children(BLOCKED);
}

static void a_killed_reader_leaves_the_rest(void)
{
    int ends[2];
    int pids[10];
    test_pipe(ends);
    for (int i = 0; i < 10; i++) {
        pids[i] = test_fork();
        if (pids[i] == 0) {
            char c;
            exit(read(ends[0], &c, 1) == 1 ? 7 : 1);
        }
    }
    wait_until_blocked(pids[9], BLOCK_PIPE);
    for (int i = 0; i < 10; i += 2) {
        int status;
        check(kill(pids[i]) == 0);
        check(wait(&status) == pids[i] && status == -1);
    }
    check(write(ends[1], "12345", 5) == 5);
    for (int i = 0; i < 5; i++) {
        int status;
        check(wait(&status) > 0 && status == 7);
    }
}

static void exit_closes_the_ends(void)
{
    int ends[2];
    char c;
    test_pipe(ends);
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    int killed = test_fork();
    if (killed == 0) {
        for (;;)
            spin(1000);
    }
    kill(killed);
    close(ends[1]);
    check(read(ends[0], &c, 1) == 0);
    check(wait(NULL) > 0 && wait(NULL) > 0);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(bytes_come_out_as_they_went_in),
        TEST(a_pipe_without_writers_ends),
        TEST(a_pipe_without_readers_refuses),
        TEST(a_blocked_writer_learns_that_readers_are_gone),
        TEST(each_end_has_one_direction),
        TEST(copies_of_an_end_keep_it_open),
        TEST(many_writers_and_readers_lose_nothing),
        TEST(small_writes_stay_whole),
        TEST(the_last_writer_wakes_all_readers),
        TEST(ping_pong_works),
        TEST(a_killed_reader_leaves_the_rest),
        TEST(exit_closes_the_ends),
        TEST(thousands_blocked_disturb_nobody),
    };
    return RUN_TESTS(tests, argc, argv);
}
