/* SPDX-License-Identifier: MIT */

/* Files, links, directories, full disks. Each test works in a separate directory. */

#include "tests/guest/check.h"

#define CREATE (OPEN_BOTH | OPEN_CREATE)

static char block[4096];
static char other[4096];

static int test_open(const char *path, int flags)
{
    int descriptor = open(path, flags);
    check(descriptor >= 0);
    return descriptor;
}

static void write_file(const char *path, const char *text)
{
    int descriptor = test_open(path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
    check(write(descriptor, text, (int)strlen(text)) == (int)strlen(text));
    check(close(descriptor) == 0);
}

static bool file_holds(const char *path, const char *text)
{
    int descriptor = open(path, OPEN_READ);
    if (descriptor < 0)
        return false;
    int n = read(descriptor, other, sizeof(other));
    close(descriptor);
    return n == (int)strlen(text) && memcmp(other, text, (size_t)n) == 0;
}

static char home[16]; /* the test's directory */

static void enter_home(void)
{
    snprintf(home, sizeof(home), "/t%d", getpid());
    check(mkdir(home) == 0);
    check(chdir(home) == 0);
}

/* The directory must be empty now. */
static void leave_home(void)
{
    check(chdir("/") == 0);
    check(unlink(home) == 0);
}

/* Descriptors */

static void what_is_written_is_read(void)
{
    enter_home();
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i * 7);
    int descriptor = test_open("file", CREATE);
    check(write(descriptor, block, 4096) == 4096);
    check(write(descriptor, block, 3) == 3);
    check(write(descriptor, block, 0) == 0);
    check(read(descriptor, other, 10) == 0); /* at the end */
    check(close(descriptor) == 0);

    descriptor = test_open("file", OPEN_READ);
    check(read(descriptor, other, 100) == 100 && memcmp(other, block, 100) == 0);
    check(close(descriptor) == 0);
    struct file_status status;
    check(file_status_of("file", &status) == 0);
    check(status.size == 4099 && status.type == FILE_REGULAR && status.links == 1);
    check(unlink("file") == 0);
    leave_home();
}

static void every_size_and_edge_is_right(void)
{
    static const int sizes[] = {1, 7, 511, 512, 513, 1000, 4095, 4096};
    enter_home();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int descriptor = test_open("file", CREATE | OPEN_TRUNCATE);
        int total = 0;
        for (int n = 0; n < 20; n++, total += sizes[i]) {
            memset(block, 'a' + n, (size_t)sizes[i]);
            check(write(descriptor, block, sizes[i]) == sizes[i]);
        }
        close(descriptor);
        descriptor = test_open("file", OPEN_READ);
        for (int at = 0; at < total;) {
            int n = read(descriptor, other, 999);
            check(n > 0);
            for (int j = 0; j < n; j++, at++)
                check(other[j] == 'a' + at / sizes[i]);
        }
        check(read(descriptor, other, 1) == 0);
        close(descriptor);
    }
    check(unlink("file") == 0);
    leave_home();
}

static void open_files_share_or_have_an_offset(void)
{
    enter_home();
    write_file("file", "abcdefgh");
    char c[2];
    int one = test_open("file", OPEN_READ);
    int two = test_open("file", OPEN_READ);
    int same = dup(one);
    check(same >= 0);
    check(read(one, c, 1) == 1 && c[0] == 'a');
    check(read(same, c, 1) == 1 && c[0] == 'b');
    check(read(two, c, 1) == 1 && c[0] == 'a');
    int pid = test_fork();
    if (pid == 0) {
        check(read(one, c, 1) == 1 && c[0] == 'c');
        exit(0);
    }
    check(test_wait(pid) == 0);
    check(read(one, c, 1) == 1 && c[0] == 'd');
    check(close(one) == 0 && close(same) == 0 && close(two) == 0);
    check(unlink("file") == 0);
    leave_home();
}

static void open_flags_are_kept(void)
{
    enter_home();
    check_error(open("file", OPEN_READ), ENOENT);
    check_error(open("file", OPEN_WRITE), ENOENT);
    write_file("file", "abcdef");
    int descriptor = test_open("file", OPEN_READ);
    check_error(write(descriptor, "x", 1), EBADF);
    close(descriptor);
    descriptor = test_open("file", OPEN_WRITE);
    check_error(read(descriptor, other, 1), EBADF);
    check(write(descriptor, "XY", 2) == 2);
    close(descriptor);
    check(file_holds("file", "XYcdef"));
    descriptor = test_open("file", CREATE); /* exists: unchanged */
    check(read(descriptor, other, 6) == 6);
    close(descriptor);
    descriptor = test_open("file", OPEN_WRITE | OPEN_TRUNCATE);
    close(descriptor);
    check(file_holds("file", ""));
    check_error(open(home, OPEN_WRITE), EISDIR);
    check_error(open(home, OPEN_BOTH), EISDIR);
    check(open(home, OPEN_READ) >= 0);
    check(unlink("file") == 0);
    leave_home();
}

static void bad_descriptors_and_counts_fail(void)
{
    static const int bad[] = {-1, 15, 16, 17, 1000, INT32_MAX, INT32_MIN};
    struct file_status status;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_error(read(bad[i], other, 1), EBADF);
        check_error(write(bad[i], other, 1), EBADF);
        check_error(close(bad[i]), EBADF);
        check_error(dup(bad[i]), EBADF);
        check_error(fstat(bad[i], &status), EBADF);
    }
    int descriptor = test_open("/true", OPEN_READ);
    check(read(descriptor, other, -1) == -1);
    check(read(descriptor, other, INT32_MIN) == -1);
    check(read(descriptor, other, 0) == 0);
    close(descriptor);
    check_error(read(descriptor, other, 1), EBADF);
}

static void descriptors_run_out_and_come_back(void)
{
    static int open_files[FILES_PER_PROCESS];
    int count = 0;
    for (; count < FILES_PER_PROCESS; count++) {
        open_files[count] = open("/true", OPEN_READ);
        if (open_files[count] < 0)
            break;
    }
    check(count == FILES_PER_PROCESS - 3);
    check_error(open("/true", OPEN_READ), EMFILE);
    check_error(dup(0), EMFILE);
    int ends[2];
    check_error(pipe(ends), EMFILE);
    check(close(open_files[2]) == 0);
    check_error(pipe(ends), EMFILE);                  /* one too few */
    check(open("/true", OPEN_READ) == open_files[2]); /* the lowest free descriptor */
}

/* Names */

static void links_count(void)
{
    struct file_status status;
    enter_home();
    write_file("a", "text");
    check(link("a", "b") == 0);
    check(file_status_of("a", &status) == 0 && status.links == 2);
    uint32_t inode = status.inode;
    check(file_status_of("b", &status) == 0 && status.inode == inode);
    check(unlink("a") == 0);
    check(file_holds("b", "text"));
    check(file_status_of("b", &status) == 0 && status.links == 1);

    check_error(link("missing", "c"), ENOENT);
    check_error(link("b", "b"), EEXIST);
    check_error(link("b", "no/such"), ENOENT);
    check(link(".", "directory") == -1);
    check(link("b", "") == -1);
    check(unlink("b") == 0);
    check_error(unlink("b"), ENOENT);
    leave_home();
}

static void an_unlinked_file_lives_while_open(void)
{
    enter_home();
    int descriptor = test_open("file", CREATE);
    check(write(descriptor, "before", 6) == 6);
    check(unlink("file") == 0);
    check_error(open("file", OPEN_READ), ENOENT);
    check(write(descriptor, "after", 5) == 5);
    struct file_status status;
    check(fstat(descriptor, &status) == 0 && status.links == 0 && status.size == 11);
    write_file("file", "another"); /* the same name, another file */
    check(close(descriptor) == 0);
    check(file_holds("file", "another"));
    check(unlink("file") == 0);
    leave_home();
}

static void directories_nest(void)
{
    struct file_status status;
    enter_home();
    check(mkdir("a") == 0 && mkdir("a/b") == 0 && mkdir("a/b/c") == 0);
    check_error(mkdir("a"), EEXIST);
    check_error(mkdir("x/y"), ENOENT);
    write_file("a/b/c/file", "deep");
    check(file_holds("a/./b/../b/c/file", "deep"));
    snprintf(other, sizeof(other), "/%s//a///b/c/file", home);
    check(file_holds(other, "deep"));
    check(chdir("a/b") == 0);
    check(file_holds("c/file", "deep") && file_holds("../../a/b/c/file", "deep"));
    snprintf(other, sizeof(other), "../../../../../%s/a/b/c/file", home);
    check(file_holds(other, "deep")); /* .. of the root is the root */
    check(file_status_of(".", &status) == 0 && status.type == FILE_DIRECTORY);
    check_error(unlink("c"), ENOTEMPTY);
    check_error(chdir("c/file"), ENOTDIR);
    check_error(open("c/file/x", OPEN_READ), ENOTDIR);
    check_error(open("c/file/x", CREATE), ENOTDIR);
    check(unlink("c/file") == 0 && unlink("c") == 0);
    check(chdir(home) == 0);
    check(unlink("a/b") == 0 && unlink("a") == 0);
    leave_home();
}

static void dots_stay(void)
{
    enter_home();
    check(mkdir("d") == 0);
    check(unlink("d/.") == -1);
    check(unlink("d/..") == -1);
    check(unlink(".") == -1);
    check(unlink("..") == -1);
    check(unlink("/") == -1);
    check(unlink("") == -1);
    check(mkdir("") == -1);
    check(mkdir("/") == -1);
    check(mkdir(".") == -1);
    check(open("", OPEN_READ) == -1);
    check(open(".", CREATE) == -1);
    check(chdir("") == -1);
    check(unlink("d") == 0);
    leave_home();
}

static void a_removed_directory_is_dead(void)
{
    enter_home();
    check(mkdir("d") == 0);
    check(chdir("d") == 0);
    if (unlink("../d") == 0) { /* in use otherwise, so it stays */
        check(open("file", CREATE) == -1);
        check(mkdir("x") == -1);
        check(open("missing", OPEN_READ) == -1);
        check(chdir(home) == 0);
    } else {
        check(chdir(home) == 0);
        check(unlink("d") == 0);
    }
    check(mkdir("d") == 0 && unlink("d") == 0);
    leave_home();
}

static void names_have_a_length(void)
{
    enter_home();
    write_file("fourteen-chars", "14");
    check(file_holds("fourteen-chars", "14"));
    check(unlink("fourteen-chars") == 0);
    /* A longer name is an error, or is cut as in xv6. */
    int descriptor = open("fifteen-letters", CREATE);
    if (descriptor >= 0)
        check(unlink("fifteen-letters") == 0);
    else
        check(last_error() == ENAMETOOLONG);

    memset(block, 'a', PATH_BYTES);
    block[PATH_BYTES] = 0;
    check_error(open(block, CREATE), ENAMETOOLONG);
    check_error(mkdir(block), ENAMETOOLONG);
    check_error(chdir(block), ENAMETOOLONG);
    check_error(link("/true", block), ENAMETOOLONG);
    leave_home();
}

/* Makes the name with number i: x000 and so on. */
static const char *numbered(int i)
{
    static char name[DIRECTORY_NAME_BYTES + 1];
    snprintf(name, sizeof(name), "x%03d", i);
    return name;
}

static int count_entries(const char *path)
{
    struct directory_entry entry;
    int count = 0;
    int directory = test_open(path, OPEN_READ);
    while (read(directory, &entry, sizeof(entry)) == sizeof(entry))
        count += entry.inode != 0;
    close(directory);
    return count;
}

static void a_directory_holds_many_files(void)
{
    enum { FILES = 300 };
    enter_home();
    for (int i = 0; i < FILES; i++)
        write_file(numbered(i), numbered(i));
    check(count_entries(".") == FILES + 2);
    for (int i = 0; i < FILES; i += 3)
        check(unlink(numbered(i)) == 0);
    check(count_entries(".") == FILES - 100 + 2);
    for (int i = 0; i < FILES; i++)
        check(i % 3 == 0 ? open(numbered(i), OPEN_READ) == -1
                         : file_holds(numbered(i), numbered(i)));
    check_error(unlink(home), ENOTEMPTY);
    for (int i = 0; i < FILES; i++)
        check(i % 3 == 0 || unlink(numbered(i)) == 0);
    leave_home();
}

static void directories_nest_deeply(void)
{
    enum { DEPTH = 40 };
    enter_home();
    for (int i = 0; i < DEPTH; i++)
        check(mkdir("d") == 0 && chdir("d") == 0);
    write_file("file", "bottom");
    check(file_holds("file", "bottom"));
    check(unlink("file") == 0);
    for (int i = 0; i < DEPTH; i++)
        check(chdir("..") == 0 && unlink("d") == 0);
    leave_home();
}

static void devices_have_numbers(void)
{
    struct file_status status;
    enter_home();
    check(mknod("console", DEVICE_CONSOLE, 0) == 0);
    check(file_status_of("console", &status) == 0 && status.type == FILE_DEVICE);
    check(mknod("console", DEVICE_CONSOLE, 0) == -1);
    static const int bad[] = {0, 3, 99, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (mknod("device", bad[i], 0) < 0)
            continue;
        int descriptor = open("device", OPEN_BOTH);
        check(descriptor < 0 || read(descriptor, other, 1) == -1);
        check(descriptor < 0 || write(descriptor, other, 1) == -1);
        close(descriptor);
        check(unlink("device") == 0);
    }
    check(unlink("console") == 0);
    leave_home();
}

/* Space */

/* Writes numbered blocks until a write fails or `limit` is reached. Returns their number. */
static int write_blocks(const char *path, int limit)
{
    int descriptor = open(path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
    if (descriptor < 0)
        return 0;
    int written = 0;
    for (; written < limit; written++) {
        memset(block, written, sizeof(block));
        *(int *)(void *)block = written;
        if (write(descriptor, block, sizeof(block)) != sizeof(block))
            break;
    }
    close(descriptor);
    return written;
}

static void check_blocks(const char *path, int count)
{
    int descriptor = test_open(path, OPEN_READ);
    for (int i = 0; i < count; i++) {
        check(read(descriptor, other, sizeof(other)) == sizeof(other));
        check(*(int *)(void *)other == i && other[4095] == (char)i && other[100] == (char)i);
    }
    close(descriptor);
}

static void a_file_grows_large(void)
{
    enter_home();
    int requested = 13 * 256;
    int written = write_blocks("large", requested);
    check(written == requested || last_error() == ENOSPC || last_error() == EFBIG);
    check(written > 256);
    check_blocks("large", written);
    printf("# a_file_grows_large: %d KiB\n", written * 4);
    check(write_blocks("large", 1) == 1); /* truncated */
    check_blocks("large", 1);
    check(unlink("large") == 0);
    leave_home();
}

static void a_full_disk_refuses_and_recovers(void)
{
    static int written[2];
    enter_home();
    write_file("small", "still here");
    for (int round = 0; round < 2; round++) {
        int files = 0;
        int blocks = 0;
        do {
            blocks = write_blocks(numbered(files), 2048);
            written[round] += blocks;
            files++;
        } while (blocks == 2048 && files < 500);
        check(blocks < 2048);
        check(last_error() == ENOSPC);
        /* Only calls that need space fail. */
        for (int i = 0; i < 40; i++) {
            int descriptor = open(numbered(600), CREATE);
            if (descriptor >= 0) {
                while (write(descriptor, block, 4096) == 4096)
                    ;
                close(descriptor);
            }
            mkdir(numbered(601 + i));
            link("small", numbered(700 + i));
        }
        check(file_holds("small", "still here"));
        check_blocks(numbered(0), files > 1 ? 2048 : blocks);
        for (int i = 0; i < files; i++)
            check(unlink(numbered(i)) == 0);
        for (int i = 600; i < 740; i++)
            unlink(numbered(i));
        sync();
    }
    check(written[1] >= written[0] - 64); /* no space was lost */
    printf("# a_full_disk_refuses_and_recovers: %d KiB\n", written[0] * 4);
    check(unlink("small") == 0);
    leave_home();
}

/* Concurrent use */

static void writers_of_own_files_do_not_mix(void)
{
    enter_home();
    for (int i = 0; i < 6; i++) {
        if (test_fork() != 0)
            continue;
        for (int round = 0; round < 4; round++) {
            check(write_blocks(numbered(i), 12 + i) == 12 + i);
            check_blocks(numbered(i), 12 + i);
            check(unlink(numbered(i)) == 0);
        }
        exit(0);
    }
    wait_for_children(6);
    leave_home();
}

static void writers_of_one_file_take_turns(void)
{
    enum { WRITERS = 4, LINES = 60, LINE = 50 };
    enter_home();
    int descriptor = test_open("file", CREATE);
    for (int i = 0; i < WRITERS; i++) {
        if (test_fork() != 0)
            continue;
        memset(block, 'a' + i, LINE);
        for (int line = 0; line < LINES; line++)
            check(write(descriptor, block, LINE) == LINE);
        exit(0);
    }
    wait_for_children(WRITERS);
    close(descriptor);

    static int lines[WRITERS];
    descriptor = test_open("file", OPEN_READ);
    for (int i = 0; i < WRITERS * LINES; i++) {
        check(read(descriptor, other, LINE) == LINE);
        for (int j = 1; j < LINE; j++)
            check(other[j] == other[0]);
        check(other[0] >= 'a' && other[0] < 'a' + WRITERS);
        lines[other[0] - 'a']++;
    }
    check(read(descriptor, other, 1) == 0);
    for (int i = 0; i < WRITERS; i++)
        check(lines[i] == LINES);
    close(descriptor);
    check(unlink("file") == 0);
    leave_home();
}

/* Eight processes make, link and remove the same few names. */
static void one_name_has_many_masters(void)
{
    enter_home();
    for (int i = 0; i < 8; i++) {
        if (test_fork() != 0)
            continue;
        struct random random = {(uint64_t)i};
        for (int step = 0; step < 60; step++) {
            int name = (int)random_below(&random, 3);
            switch (random_below(&random, 5)) {
            case 0:
                close(open(numbered(name), CREATE));
                break;
            case 1:
                unlink(numbered(name));
                break;
            case 2:
                mkdir(numbered(name));
                break;
            case 3: {
                char old_name[8];
                text_copy(old_name, numbered(name), sizeof(old_name));
                link(old_name, numbered((name + 1) % 3));
                break;
            }
            default: {
                int descriptor = open(numbered(name), OPEN_WRITE);
                write(descriptor, block, 100);
                close(descriptor);
            }
            }
        }
        exit(0);
    }
    wait_for_children(8);
    for (int i = 0; i < 3; i++)
        unlink(numbered(i));
    leave_home(); /* so the directory is empty */
}

/* Moves and removes directories concurrently; no process may wait without end. */
static void crossing_paths_do_not_lock_up(void)
{
    enter_home();
    check(mkdir("a") == 0 && mkdir("b") == 0);
    for (int i = 0; i < 6; i++) {
        if (test_fork() != 0)
            continue;
        for (int round = 0; round < 30; round++) {
            const char *one = i % 2 ? "a/x" : "b/y";
            const char *two = i % 2 ? "b/x" : "a/y";
            close(open(one, CREATE));
            link(one, two);
            unlink(one);
            unlink(two);
            mkdir(i % 2 ? "a/../b/z" : "b/../a/z");
            unlink(i % 2 ? "a/z" : "b/z");
        }
        exit(0);
    }
    wait_for_children(6);
    static const char *const names[] = {"a/x", "a/y", "a/z", "b/x", "b/y", "b/z"};
    for (size_t i = 0; i < 6; i++)
        unlink(names[i]);
    check(unlink("a") == 0 && unlink("b") == 0);
    leave_home();
}

static void killed_writers_leave_order(void)
{
    enter_home();
    for (int round = 0; round < 10; round++) {
        int pid = test_fork();
        if (pid == 0) {
            for (;;) {
                write_blocks("file", 20);
                mkdir("d");
                unlink("d");
                unlink("file");
            }
        }
        sleep(1 + round % 3);
        check(kill(pid) == 0);
        check(test_wait(pid) == -1);
        unlink("file");
        unlink("d");
        write_file("file", "well");
        check(file_holds("file", "well"));
        check(unlink("file") == 0);
    }
    leave_home();
}

static void sync_returns(void)
{
    enter_home();
    write_file("file", "kept");
    check(sync() == 0);
    check(file_holds("file", "kept"));
    check(unlink("file") == 0);
    check(sync() == 0);
    leave_home();
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(what_is_written_is_read),
        TEST(every_size_and_edge_is_right),
        TEST(open_files_share_or_have_an_offset),
        TEST(open_flags_are_kept),
        TEST(bad_descriptors_and_counts_fail),
        TEST(descriptors_run_out_and_come_back),
        TEST(links_count),
        TEST(an_unlinked_file_lives_while_open),
        TEST(directories_nest),
        TEST(dots_stay),
        TEST(a_removed_directory_is_dead),
        TEST(names_have_a_length),
        TEST(a_directory_holds_many_files),
        TEST(directories_nest_deeply),
        TEST(devices_have_numbers),
        TEST(a_file_grows_large),
        TEST(writers_of_own_files_do_not_mix),
        TEST(writers_of_one_file_take_turns),
        TEST(one_name_has_many_masters),
        TEST(crossing_paths_do_not_lock_up),
        TEST(killed_writers_leave_order),
        TEST(sync_returns),
        TEST(a_full_disk_refuses_and_recovers),
    };
    return RUN_TESTS(tests, argc, argv);
}
