/* SPDX-License-Identifier: MIT */

/* Tests each file system call with one process at a time. */
#include "file_system_machine.h"

#define BIG (300 * 1024)

static uint8_t pattern[BIG];
static uint8_t bytes[BIG];

static void boot_empty_disk(void)
{
    disk_make(2048, 256, 64);
    check(machine_boot() == 0);
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251);
}

static void finish(void)
{
    check_nothing_leaks();
    check_disk();
    check_settled_disk();
    check(machine_boot() == 0); /* the journal's content is also valid */
    check_disk();
}

static void write_and_read(void *unused)
{
    (void)unused;
    int64_t file = do_open("/a", OPEN_CREATE | OPEN_BOTH);
    check(file == 0);
    check(do_write(file, "hello", 5) == 5);
    check(do_write(file, " world", 6) == 6);
    check(do_read(file, bytes, 10) == 0); /* the offset is at the end */
    int64_t other = do_open("a", OPEN_READ);
    check(other == 1);
    check(do_read(other, bytes, 100) == 11);
    check(memcmp(bytes, "hello world", 11) == 0);
    check(do_write(other, "x", 1) == -EBADF);
    check(do_close(file) == 0);
    check(do_close(file) == -EBADF);
    file = do_open("a", OPEN_WRITE);
    check(file == 0);
    check(do_read(file, bytes, 1) == -EBADF);
    check(do_write(file, "J", 1) == 1);
    check(system_read((int)other, user(bytes), -1) == -EINVAL);
    check(system_write((int)file, user(bytes), -1) == -EINVAL);
    check(do_read(77, bytes, 1) == -EBADF && do_read(-1, bytes, 1) == -EBADF);
    do_close(other);
    other = do_open("a", OPEN_READ);
    check(do_read(other, bytes, 3) == 3 && memcmp(bytes, "Jel", 3) == 0);
    check(do_read(other, bytes, 3) == 3 && memcmp(bytes, "lo ", 3) == 0);
    int64_t truncated = do_open("a", OPEN_BOTH | OPEN_TRUNCATE);
    check(do_read(truncated, bytes, 3) == 0);
    check(do_read(other, bytes, 3) == 0); /* its offset is now beyond the end */
    check(do_close(other) == 0);
    other = do_open("a", OPEN_BOTH);
    check(do_write(other, "12", 2) == 2);
    check(do_write(file, "b", 1) == 1); /* at offset 1 */
    check(do_read(truncated, bytes, 3) == 2 && memcmp(bytes, "1b", 2) == 0);
}

static void test_write_and_read(void)
{
    boot_empty_disk();
    run_session(write_and_read, NULL);
    finish();
}

static void read_made_file(void *unused)
{
    (void)unused;
    check(do_open("made", OPEN_READ) == 0);
    check(do_read(0, bytes, BIG) == BIG && memcmp(bytes, pattern, BIG) == 0);
}

static void test_made_image(void)
{
    disk_make_with(2048, 256, 64, "made", pattern, BIG);
    check_disk();
    check(machine_boot() == 0);
    run_session(read_made_file, NULL);
    finish();
}

static void large_files(void *unused)
{
    (void)unused;
    int64_t file = do_open("big", OPEN_CREATE | OPEN_BOTH);
    for (int i = 0; i < 18; i++) /* more than one table can address */
        check(do_write(file, pattern, BIG) == BIG);
    do_close(file);
    check(system_sync() == 0);
    check_disk();
    file = do_open("big", OPEN_READ);
    struct file_status status;
    check(system_fstat((int)file, user(&status)) == 0);
    check(status.size == 18ull * BIG && status.type == FILE_REGULAR && status.links == 1);
    for (int i = 0; i < 18; i++) {
        check(do_read(file, bytes, BIG) == BIG);
        check(memcmp(bytes, pattern, BIG) == 0);
    }
    check(do_read(file, bytes, BIG) == 0);
    check(do_unlink("big") == 0); /* while it is open */
    check(do_open("big", OPEN_READ) == -ENOENT);
    system_sync();
    check_disk();
    do_close(file);
    file = do_open("big", OPEN_CREATE | OPEN_BOTH);
    for (int i = 0; i < 18; i++) /* the space was returned */
        check(do_write(file, pattern, BIG) == BIG);
    check(do_open("big", OPEN_BOTH | OPEN_TRUNCATE) == 1);
    check(system_fstat((int)file, user(&status)) == 0);
    check(status.size == 0);
    check(do_write(file, "x", 1) == -EINVAL); /* no holes: the offset is beyond the end */
}

static void test_large_files(void)
{
    boot_empty_disk();
    run_session(large_files, NULL);
    finish();
}

static void directories(void *unused)
{
    (void)unused;
    struct directory_entry entry;
    struct file_status status;
    char name[16];

    check(do_mkdir("d") == 0 && do_mkdir("d") == -EEXIST);
    check(do_mkdir("d/e") == 0 && do_mkdir("x/e") == -ENOENT);
    check(do_mkdir("/") == -ENOENT && do_mkdir("") == -ENOENT);
    check(do_mkdir("d/.") == -EEXIST && do_mkdir("d/..") == -EEXIST);
    int64_t file = do_open("d/e/f", OPEN_CREATE | OPEN_WRITE);
    check(file == 0);
    check(do_mkdir("d/e/f/g") == -ENOTDIR);
    check(do_open("d/e/f/g", OPEN_READ) == -ENOTDIR);
    check(do_open("d", OPEN_WRITE) == -EISDIR && do_open("d", OPEN_CREATE) == -EISDIR);
    check(do_open("d", OPEN_TRUNCATE) == -EISDIR);
    check(do_unlink("d/e") == -ENOTEMPTY && do_unlink("d/e/.") == -EINVAL);
    check(do_unlink("d/e/..") == -EINVAL && do_unlink("/") == -ENOENT);
    check(do_unlink("d/nothing") == -ENOENT);
    check(do_close(file) == 0);

    int64_t directory = do_open("d", OPEN_READ);
    check(do_read(directory, &entry, sizeof(entry)) == sizeof(entry));
    check(strcmp(entry.name, ".") == 0);
    check(do_read(directory, &entry, sizeof(entry)) == sizeof(entry));
    check(strcmp(entry.name, "..") == 0 && entry.inode == ROOT_INODE);
    check(do_read(directory, &entry, sizeof(entry)) == sizeof(entry));
    check(strcmp(entry.name, "e") == 0);
    check(do_read(directory, &entry, sizeof(entry)) == 0);
    check(system_fstat((int)directory, user(&status)) == 0);
    check(status.type == FILE_DIRECTORY && status.links == 2 && status.size == 48);
    do_close(directory);

    check(do_chdir("d/e") == 0 && do_chdir("f") == -ENOTDIR && do_chdir("g") == -ENOENT);
    check(do_open("f", OPEN_READ) == 0 && do_close(0) == 0);
    check(do_open("../../d//e///f", OPEN_READ) == 0 && do_close(0) == 0);
    check(do_open("/../d/./e/f/", OPEN_READ) == 0 && do_close(0) == 0);
    check(do_open(".", OPEN_READ) == 0 && do_close(0) == 0);
    check(do_open(".", OPEN_CREATE | OPEN_READ) == -EISDIR);
    check(do_unlink("") == -ENOENT && do_open("", OPEN_CREATE | OPEN_READ) == -ENOENT);
    check(do_open("", OPEN_READ) == -ENOENT && do_chdir("") == -ENOENT);
    check(do_unlink("f") == 0);
    check(do_unlink("../e") == 0); /* the working directory */
    check(do_open("f", OPEN_CREATE) == -ENOENT && do_mkdir("f") == -ENOENT);
    check(do_open("..", OPEN_READ) == -ENOENT);
    check(do_link("/d", "/link") == -EISDIR);
    check(do_chdir("/") == 0);

    for (int i = 0; i < 600; i++) { /* more than two blocks of entries; all but a few inodes */
        snprintf(name, sizeof(name), "d/n%d", i);
        if (i < 200)
            check(do_open(name, OPEN_CREATE) == 0 && do_close(0) == 0);
        else
            check(do_link("d/n0", name) == 0);
    }
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "d/n%d", i);
        check(do_open(name, OPEN_READ) == 0 && do_close(0) == 0);
    }
    system_sync();
    check_disk();
    for (int i = 599; i >= 0; i--) {
        snprintf(name, sizeof(name), "d/n%d", i);
        check(do_unlink(name) == 0);
    }
    check(do_unlink("d") == 0);
}

static void test_directories(void)
{
    boot_empty_disk();
    run_session(directories, NULL);
    finish();
}

static void names_and_links(void *unused)
{
    (void)unused;
    struct file_status status;
    char long_path[PATH_BYTES + 10];

    /* Longer names are cut, as in xv6. */
    check(do_mkdir("12345678901234") == 0);
    check(do_mkdir("12345678901234/123456789012345") == 0);
    int64_t file = do_open("123456789012345/12345678901234/123456789012345xyz", OPEN_CREATE);
    check(file == 0);
    check(do_open("12345678901234/12345678901234/12345678901234", OPEN_READ) == 1);
    check(do_mkdir("123456789012345/12345678901234") == -EEXIST);

    memset(long_path, '/', sizeof(long_path));
    long_path[PATH_BYTES - 1] = 0;
    check(do_open(long_path, OPEN_READ) == 2);
    long_path[PATH_BYTES - 1] = '/';
    long_path[PATH_BYTES] = 0;
    check(do_open(long_path, OPEN_READ) == -ENAMETOOLONG);
    check(do_mkdir(long_path) == -ENAMETOOLONG && do_link("a", long_path) == -ENAMETOOLONG);
    check(system_open(8, OPEN_READ) == -EFAULT && system_unlink(8) == -EFAULT);

    file = do_open("a", OPEN_CREATE | OPEN_BOTH);
    check(do_write(file, "text", 4) == 4);
    check(do_link("a", "b") == 0 && do_link("a", "b") == -EEXIST);
    check(do_link("nothing", "c") == -ENOENT && do_link("a", "no/c") == -ENOENT);
    check(do_link("a", "b/c") == -ENOTDIR);
    check(system_fstat((int)file, user(&status)) == 0 && status.links == 2);
    check(do_unlink("a") == 0);
    int64_t other = do_open("b", OPEN_READ);
    check(do_read(other, bytes, 10) == 4 && memcmp(bytes, "text", 4) == 0);
    check(do_unlink("b") == 0);
    check(do_link("b", "c") == -ENOENT);
    check(system_fstat((int)file, user(&status)) == 0 && status.links == 0);
    check(system_fstat((int)file, 8) == -EFAULT);
}

static void test_names_and_links(void)
{
    boot_empty_disk();
    run_session(names_and_links, NULL);
    finish();
}

static void descriptors(void *unused)
{
    (void)unused;
    check(do_open("a", OPEN_CREATE | OPEN_BOTH) == 0);
    check(system_dup(0) == 1 && system_dup(5) == -EBADF && system_dup(16) == -EBADF);
    check(do_write(0, "ab", 2) == 2 && do_write(1, "cd", 2) == 2); /* one shared offset */
    struct file_table *copy = file_table_copy(current_process()->files);
    check(do_close(0) == 0);
    check(do_open("a", OPEN_READ) == 0);
    check(do_read(0, bytes, 10) == 4 && memcmp(bytes, "abcd", 4) == 0);
    for (int i = 2; i < FILES_PER_PROCESS; i++)
        check(system_dup(0) == i);
    check(system_dup(0) == -EMFILE && do_open("new", OPEN_CREATE) == -EMFILE);
    int32_t ends[2];
    check(system_pipe(user(ends)) == -EMFILE);
    do_close(7);
    check(system_pipe(user(ends)) == -EMFILE);
    do_close(9);
    check(system_pipe(8) == -EFAULT);
    check(system_pipe(user(ends)) == 0 && ends[0] == 7 && ends[1] == 9);
    check(do_read(ends[1], bytes, 1) == -EBADF && do_write(ends[0], bytes, 1) == -EBADF);
    check(system_fstat(ends[0], user(bytes)) == -EBADF);
    file_table_destroy(copy);
}

static void test_descriptors(void)
{
    boot_empty_disk();
    run_session(descriptors, NULL);
    finish();
}

static uint64_t device_wrote;

static int64_t device_read(struct buffer *destination, uint64_t n)
{
    int error = buffer_put(destination, "device", n < 6 ? n : 6);
    return error ? error : n < 6 ? (int64_t)n : 6;
}

static int64_t device_write(struct buffer *source, uint64_t n)
{
    (void)source;
    device_wrote += n;
    return (int64_t)n;
}

static const struct device_operations device = {device_read, device_write};

static void devices_and_exec(void *unused)
{
    (void)unused;
    struct inode *inode;
    struct file_status status;

    device_register(DEVICE_CONSOLE, &device);
    check(system_mknod(user("console"), DEVICE_CONSOLE, 0) == 0);
    check(system_mknod(user("console"), DEVICE_CONSOLE, 0) == -EEXIST);
    check(system_mknod(user("other"), 3, 0) == 0 && do_open("other", OPEN_READ) == -ENODEV);
    check(system_mknod(user("bad"), -1, 0) == -EINVAL);
    check(do_open("console", OPEN_BOTH) == 0);
    check(do_read(0, bytes, 10) == 6 && memcmp(bytes, "device", 6) == 0);
    check(do_write(0, bytes, 10) == 10 && device_wrote == 10);
    check(system_fstat(0, user(&status)) == 0 && status.type == FILE_DEVICE);
    check(do_open("console", OPEN_CREATE | OPEN_BOTH | OPEN_TRUNCATE) == 1);

    check(inode_open("/", &inode) == -EISDIR && inode_open("console", &inode) == -ENOEXEC);
    check(inode_open("nothing", &inode) == -ENOENT);
    check(do_open("program", OPEN_CREATE | OPEN_WRITE) == 2 && do_write(2, pattern, 9999) == 9999);
    check(inode_open("program", &inode) == 0);
    check(do_unlink("program") == 0 && do_close(2) == 0);
    check(inode_size(inode) == 9999);
    check(inode_read(inode, bytes, 5000, 6000) == 4999);
    check(memcmp(bytes, pattern + 5000, 4999) == 0);
    check(inode_read(inode, bytes, 10000, 1) == 0);
    inode_close(inode);
}

static void test_devices_and_exec(void)
{
    boot_empty_disk();
    run_session(devices_and_exec, NULL);
    finish();
}

/* ---- files of /proc ---- */

static uint32_t lines_made = 1000;
static uint32_t texts_made;
static char obeyed[TEXT_COMMAND_BYTES];

static void make_lines(struct text *text)
{
    texts_made++;
    for (uint32_t i = 0; i < lines_made; i++)
        text_add(text, "line %07u\n", i);
}

static void make_nothing(struct text *text)
{
    (void)text;
}

static int obey(char *line)
{
    snprintf(obeyed, sizeof(obeyed), "%s", line);
    return strcmp(line, "no") == 0 ? -ERANGE : 0;
}

static const struct text_file texts[] = {
    {"lines", make_lines, obey},
    {"empty", make_nothing, NULL},
};
enum { LINE_BYTES = 13 };

/* The size of the reads is irrelevant: each open() makes one text. */
static void read_lines(int64_t piece)
{
    uint64_t length = 0;
    int64_t n;
    int64_t file = do_open("/proc/lines", OPEN_READ);
    texts_made = 0;
    while ((n = do_read(file, bytes + length, piece)) > 0)
        length += (uint64_t)n;
    check(n == 0 && texts_made == 1 && length == lines_made * LINE_BYTES);
    for (uint32_t i = 0; i < lines_made; i++) {
        char line[LINE_BYTES + 1];
        snprintf(line, sizeof(line), "line %07u\n", i);
        check(memcmp(bytes + i * LINE_BYTES, line, LINE_BYTES) == 0);
    }
    check(do_close(file) == 0);
}

static int64_t say(const char *text, size_t n)
{
    int64_t file = do_open("/proc/lines", OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
    obeyed[0] = 0;
    int64_t result = do_write(file, text, (int64_t)n);
    check(do_close(file) == 0);
    return result;
}

static void writes_are_commands(void)
{
    static char longest[TEXT_COMMAND_BYTES + 1];
    memset(longest, 'x', sizeof(longest) - 1);
    check(say("yes\n", 4) == 4 && strcmp(obeyed, "yes") == 0);
    check(say(" \t a  b \r\n\n", 11) == 11 && strcmp(obeyed, "a  b") == 0);
    check(say("no", 2) == -ERANGE);
    check(say("", 0) == -EINVAL && say(" \n", 2) == -EINVAL);
    check(say("a\nb", 3) == -EINVAL && say("a\0b", 3) == -EINVAL && !obeyed[0]);
    check(say(longest, TEXT_COMMAND_BYTES) == -ENAMETOOLONG && !obeyed[0]);
    check(say(longest, TEXT_COMMAND_BYTES - 1) == TEXT_COMMAND_BYTES - 1);
    check(strlen(obeyed) == TEXT_COMMAND_BYTES - 1);
    check(say((const char *)8, 5) == -EFAULT && !obeyed[0]);
}

static void proc_files(void *unused)
{
    static const int64_t pieces[] = {1, 7, 4087, 4088, 4096, BIG};
    (void)unused;
    text_files_init(texts, 2);
    text_files_init(texts, 2); /* present after the next boot */
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        read_lines(pieces[i]);
    for (lines_made = 0; lines_made < 700; lines_made += 314) /* 314 lines end near a page's end */
        read_lines(4096);
    lines_made = 511 * 8; /* 13 pages to the byte */
    read_lines(BIG);
    writes_are_commands();

    check(do_open("/proc/empty", OPEN_BOTH) == 0);
    check(do_read(0, bytes, 10) == 0 && do_read(0, bytes, 10) == 0);
    check(do_write(0, "x", 1) == -EPERM);
    check(do_open("/proc/lines", OPEN_READ) == 1 && do_write(1, "x", 1) == -EBADF);
    check(do_read(1, (void *)8, 10) == -EFAULT && do_read(1, bytes, 4) == 4);
    check(system_mknod(user("none"), DEVICE_TEXT, 2) == 0);
    check(do_open("none", OPEN_READ) == -ENODEV);

    conduct.no_memory = 1;
    check(do_read(1, bytes, 4) == 4); /* the text already exists */
    check(do_close(1) == 0);
    conduct.no_memory = 0;
    check(do_open("/proc/lines", OPEN_READ) == 1);
    conduct.no_memory = 1;
    check(do_read(1, bytes, 10) == -ENOMEM);
    conduct.no_memory = 0;
    check(do_read(1, bytes, 10) == 10 && memcmp(bytes, "line 00000", 10) == 0);
}

static void test_proc_files(void)
{
    boot_empty_disk();
    run_session(proc_files, NULL);
    finish();
}

static void full_disk(void *unused)
{
    (void)unused;
    struct file_status status;
    char name[16];
    int files = 0;

    int64_t file = do_open("all", OPEN_CREATE | OPEN_BOTH);
    while (do_write(file, pattern, 70000) == 70000)
        ;
    check(do_write(file, pattern, 70000) == -ENOSPC);
    check(do_mkdir("d") == -ENOSPC);
    check(system_fstat((int)file, user(&status)) == 0);
    system_sync();
    check_disk();
    while (do_open(snprintf(name, sizeof(name), "f%d", files) ? name : "", OPEN_CREATE) == 1) {
        do_close(1);
        files++;
    }
    check(files > 100 && do_open("f", OPEN_CREATE) == -ENOSPC);
    check(do_unlink("all") == 0 && do_open("f", OPEN_CREATE) == -ENOSPC); /* no inode */
    check(do_close(file) == 0);
    check(do_mkdir("d") == 0);
    check(do_open("f", OPEN_CREATE) == -ENOSPC);
    system_sync();
    check_disk();
}

static void test_full_disk(void)
{
    boot_empty_disk();
    run_session(full_disk, NULL);
    finish();
}

static void bad_user_memory(void *unused)
{
    (void)unused;
    bad_memory.start = user(bytes) + 10000;
    bad_memory.end = user(bytes) + BIG;
    int64_t file = do_open("a", OPEN_CREATE | OPEN_BOTH);
    memset(bytes, 'x', 10000);
    check(do_write(file, bytes, 20000) == -EFAULT); /* two of its blocks are written */
    struct file_status status;
    check(system_fstat((int)file, user(&status)) == 0 && status.size == 8192);
    check(do_write(file, bytes + 11000, 100) == -EFAULT);
    check(do_write(file, bytes, 100) == 100);
    do_close(file);
    file = do_open("a", OPEN_READ);
    check(do_read(file, bytes, 20000) == 8292);
    do_close(file);
    file = do_open("a", OPEN_READ);
    check(do_read(file, bytes + 9000, 8000) == -EFAULT);
    check(do_read(file, bytes, 5) == 5); /* the offset has not moved */
    file = do_open("empty", OPEN_CREATE | OPEN_WRITE);
    check(do_write(file, bytes + 9999, 100) == -EFAULT); /* no block is lost */
    check(do_open("b", OPEN_CREATE | OPEN_WRITE) > file);
    bad_memory.start = 0;
    bad_memory.end = PAGE_BYTES;
}

static void test_bad_user_memory(void)
{
    boot_empty_disk();
    run_session(bad_user_memory, NULL);
    finish();
}

/* ---- pipes ---- */

static void pipe_alone(void *unused)
{
    (void)unused;
    int32_t ends[2];
    check(system_pipe(user(ends)) == 0);
    for (int round = 0; round < 10000; round++) {
        check(do_write(ends[1], &pattern[round % 1000], 1) == 1);
        check(do_read(ends[0], bytes, 1) == 1 && bytes[0] == pattern[round % 1000]);
    }
    check(do_write(ends[1], pattern, 4096) == 4096);
    check(do_read(ends[0], bytes, 100) == 100);
    check(do_write(ends[1], pattern, 100) == 100);
    check(do_read(ends[0], bytes, 10000) == 4096);
    check(memcmp(bytes, pattern + 100, 3996) == 0 && memcmp(bytes + 3996, pattern, 100) == 0);
    check(do_read(ends[0], bytes, 0) == 0 && do_write(ends[1], bytes, 0) == 0);
    check(do_write(ends[1], pattern, 5) == 5);
    check(do_write(ends[1], (void *)8, 5) == -EFAULT);
    check(do_read(ends[0], (void *)8, 5) == -EFAULT);
    check(do_close(ends[1]) == 0);
    check(do_read(ends[0], bytes, 10) == 5 && do_read(ends[0], bytes, 10) == 0);
    check(do_close(ends[0]) == 0);
    check(system_pipe(user(ends)) == 0 && do_close(ends[0]) == 0);
    check(do_write(ends[1], pattern, 1) == -EPIPE);
}

static void test_pipe_alone(void)
{
    boot_empty_disk();
    run_session(pipe_alone, NULL);
    finish();
}

static struct open_file *pipe_ends[2];
static uint64_t bytes_piped;
static uint64_t sum_piped;

/* The end becomes descriptor 0; the spawning code has counted it as a user. */
static void adopt(int end)
{
    current_process()->files->files[0] = pipe_ends[end];
}

static void pipe_writer(void *argument)
{
    int piece = *(int *)argument;
    for (int left = 100000; left > 0; left -= piece)
        check(do_write(0, pattern, piece < left ? piece : left) == (piece < left ? piece : left));
}

static void pipe_reader(void *argument)
{
    static uint8_t mine[PROCESSES_MAX][8192];
    uint8_t *buffer = mine[current_process()->pid - 1];
    int64_t n;
    while ((n = do_read(0, buffer, *(int *)argument)) > 0) {
        bytes_piped += (uint64_t)n;
        for (int64_t i = 0; i < n; i++)
            sum_piped += buffer[i];
    }
    check(n == 0);
}

struct piper {
    int end;
    int piece;
};

static void piper_body(void *argument)
{
    struct piper *piper = argument;
    adopt(piper->end);
    (piper->end == 0 ? pipe_reader : pipe_writer)(&piper->piece);
}

static void spawn_piper(struct piper *piper)
{
    open_file_share(pipe_ends[piper->end]);
    spawn_session(piper_body, piper);
}

static void pipe_makers(void *unused)
{
    (void)unused;
    int32_t ends[2];
    check(system_pipe(user(ends)) == 0);
    for (int i = 0; i < 2; i++)
        pipe_ends[i] = open_file_share(current_process()->files->files[ends[i]]);
}

static void let_go(void *unused)
{
    (void)unused;
    open_file_put(pipe_ends[0]);
    open_file_put(pipe_ends[1]);
}

static void test_pipes_between_processes(void)
{
    static struct piper pipers[] = {{1, 1000}, {1, 1}, {1, 5000}, {0, 3}, {0, 8000}, {0, 500}};
    boot_empty_disk();
    uint64_t expected = 0;
    for (int i = 0; i < 3; i++) {
        for (int done = 0; done < 100000; done++)
            expected += pattern[done % pipers[i].piece];
    }
    for (uint64_t seed = 1; seed <= 20; seed++) {
        random_seed(seed);
        conduct.shuffle = true;
        conduct.spurious = seed % 2 ? 50 : 0;
        bytes_piped = sum_piped = 0;
        run_session(pipe_makers, NULL);
        for (size_t i = 0; i < sizeof(pipers) / sizeof(*pipers); i++)
            spawn_piper(&pipers[i]);
        spawn_session(let_go, NULL);
        machine_run();
        check(bytes_piped == 300000 && sum_piped == expected);
        check_nothing_leaks();
    }
    conduct.shuffle = false;
    conduct.spurious = 0;
}

static void kill_process(struct coroutine *coroutine)
{
    coroutine->process.killed = true;
    if (coroutine->blocked && coroutine->killable)
        coroutine->blocked = false;
}

static int readers_served;

static void read_one_byte(void *unused)
{
    (void)unused;
    uint8_t byte;
    adopt(0);
    check(do_read(0, &byte, 1) == 1);
    readers_served++;
}

static void write_two_bytes(void *unused)
{
    (void)unused;
    adopt(1);
    check(do_write(0, "ab", 2) == 2);
}

/* A write wakes one reader, which wakes the next reader if it leaves bytes. */
static void test_readers_wake_each_other(void)
{
    boot_empty_disk();
    run_session(pipe_makers, NULL);
    for (int i = 0; i < 2; i++) {
        open_file_share(pipe_ends[0]);
        spawn_session(read_one_byte, NULL);
    }
    check(!machine_try_run()); /* both wait */
    open_file_share(pipe_ends[1]);
    run_session(write_two_bytes, NULL);
    check(readers_served == 2);
    run_session(let_go, NULL);
    finish();
}

static int64_t blocked_result;

static void read_until_killed(void *unused)
{
    (void)unused;
    adopt(0);
    blocked_result = do_read(0, bytes, 1);
}

static void write_until_killed(void *unused)
{
    (void)unused;
    adopt(1);
    blocked_result = do_write(0, pattern, 5000);
}

static void test_kill_ends_a_wait(void)
{
    void (*bodies[])(void *) = {read_until_killed, write_until_killed};
    boot_empty_disk();
    for (int i = 0; i < 2; i++) {
        run_session(pipe_makers, NULL);
        open_file_share(pipe_ends[i]);
        struct coroutine *victim = spawn_session(bodies[i], NULL);
        check(!machine_try_run()); /* waits without end */
        check(victim->process.reason == BLOCK_PIPE);
        kill_process(victim);
        machine_run();
        check(blocked_result == -EINTR);
        run_session(let_go, NULL);
    }
    finish();
}

/* A wake-up costs a switch, so only processes that can continue are woken. */
static void test_wakes_only_when_useful(void)
{
    static struct piper large[] = {{1, 100000}, {0, 512}};
    boot_empty_disk();
    run_session(pipe_makers, NULL);
    for (int i = 0; i < 2; i++)
        spawn_piper(&large[i]);
    spawn_session(let_go, NULL);
    bytes_piped = 0;
    wakes = 0;
    machine_run();
    check(bytes_piped == 100000);
    check(wakes < 3 * 100000 / 2048); /* half a ring at a time, not 512 bytes */
}

/* Unfinished log entries of an earlier mount must not look like a transaction of this mount. */
static void test_mounts_number_anew(void)
{
    boot_empty_disk();
    uint64_t first = journal.sequence >> 32;
    check(machine_boot() == 0 && journal.sequence >> 32 == first + 1);
    run_session(write_and_read, NULL);
    check(machine_boot() == 0 && journal.sequence >> 32 == first + 2);
}

/* ---- disk failures and lack of memory ---- */

static void use_everything(void *unused)
{
    (void)unused;
    do_mkdir("d");
    for (int i = 0; i < 5; i++) {
        int64_t file = do_open("d/a", OPEN_CREATE | OPEN_BOTH | (i == 3 ? OPEN_TRUNCATE : 0));
        if (file >= 0) {
            do_write(file, pattern, 150000);
            do_link("d/a", "b");
            do_unlink(i % 2 ? "d/a" : "b");
            do_read(file, bytes, 1000);
            do_close(file);
        }
    }
    do_unlink("d/a");
    do_unlink("b");
    do_unlink("d");
    system_sync();
}

/* For each point of a disk failure: calls return errors, and the disk stays valid. */
static void test_disk_failure(void)
{
    for (uint64_t from = 1; from < 900; from += from < 60 ? 1 : 13) {
        random_seed(from);
        disk_make(512, 64, 64);
        conduct.fail_from = from;
        conduct.shuffle = true;
        if (machine_boot() == 0) {
            run_session(use_everything, NULL);
            check(open_files.used == 0 && file_tables.used == 0);
        }
        conduct.fail_from = 0;
        disk.transfers = 0;
        check(machine_boot() == 0);
        check_disk();
    }
    conduct.shuffle = false;
}

static void test_failing_reads(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        random_seed(seed);
        disk_make(512, 64, 64);
        conduct.total_pages = 0; /* the smallest cache */
        check(machine_boot() == 0);
        conduct.fail_reads = 1 + random_below(20);
        run_session(use_everything, NULL);
        conduct.fail_reads = 0;
        check(machine_boot() == 0);
        check_disk();
    }
    conduct.total_pages = 1024;
}

static void test_out_of_memory(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        random_seed(seed);
        disk_make(512, 64, 64);
        check(machine_boot() == 0);
        conduct.no_memory = 1 + random_below(60);
        conduct.free_pages = seed % 2 ? 0 : 512;
        run_session(use_everything, NULL);
        conduct.no_memory = 0;
        conduct.free_pages = 512;
        check(journal.error == 0);
        run_session(use_everything, NULL);
        check(open_files.used == 0 && file_tables.used == 0);
        check(machine_boot() == 0);
        check_disk();
    }
}

static void test_cache_shrinks(void)
{
    boot_empty_disk();
    conduct.total_pages = 8192;
    check(machine_boot() == 0);
    run_session(large_files, NULL);
    size_t before = cache.count;
    check(before > 500 && before <= block_cache_bound());
    conduct.free_pages = 0;
    run_session(large_files, NULL);
    check(cache.count < before / 2);
    conduct.free_pages = 512;
    conduct.total_pages = 1024;
    finish();
}

static uint64_t pages_before;

/* Once the journal is empty, all memory is returned, except for the cache's minimum. */
static void give_back(void *unused)
{
    (void)unused;
    check(block_cache_give(10) == 10);
    while (block_cache_give(64) > 0)
        ;
    check(journal_holds_blocks() && pages_in_use > pages_before);
    check(journal_sync() == 0 && !journal_holds_blocks());
    while (block_cache_give(64) > 0)
        ;
    check(block_cache_spare_pages() == 0 && pages_in_use == pages_before);
    check(cache.objects.used == LASTING_BLOCKS);
}

static void test_cache_gives_memory_back(void)
{
    boot_empty_disk();
    conduct.total_pages = 8192;
    check(machine_boot() == 0);
    pages_before = pages_in_use;
    for (int round = 0; round < 3; round++) {
        run_session(large_files, NULL);
        check(block_cache_spare_pages() >= cache.objects.used - LASTING_BLOCKS);
        run_session(give_back, NULL);
    }
    conduct.total_pages = 1024;
    finish();
}

int main(void)
{
    run_test(test_write_and_read);
    run_test(test_made_image);
    run_test(test_large_files);
    run_test(test_directories);
    run_test(test_names_and_links);
    run_test(test_descriptors);
    run_test(test_devices_and_exec);
    run_test(test_proc_files);
    run_test(test_full_disk);
    run_test(test_bad_user_memory);
    run_test(test_pipe_alone);
    run_test(test_pipes_between_processes);
    run_test(test_kill_ends_a_wait);
    run_test(test_wakes_only_when_useful);
    run_test(test_readers_wake_each_other);
    run_test(test_mounts_number_anew);
    run_test(test_disk_failure);
    run_test(test_failing_reads);
    run_test(test_out_of_memory);
    run_test(test_cache_shrinks);
    run_test(test_cache_gives_memory_back);
    return 0;
}
