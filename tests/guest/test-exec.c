/* SPDX-License-Identifier: MIT */

/* exec: arguments, what it keeps, what it refuses, and executables that no compiler would make. */

#include "tests/guest/check.h"

#define SELF "/test-exec"

static char file[16384];
static char letters[4096];

/* Runs a program in a child. If exec fails, the exit status is 1000 plus the error. */
static int exec_status(const char *path, char *const arguments[])
{
    int pid = test_fork();
    if (pid == 0) {
        exec(path, arguments);
        exit(1000 + last_error());
    }
    return test_wait(pid);
}

static void check_refused(const char *path, int reason)
{
    char *const arguments[] = {"program", NULL};
    int status = exec_status(path, arguments);
    if (status == 1000 + reason)
        return;
    printf("# exec of \"%s\": status %d, not 1000 + %d\n", path, status, reason);
    check(!"exec is refused for the right reason");
}

/* Arguments: the test runs this program again with "count" or "show" as its first argument. */

static void arguments_arrive(void)
{
    char *const arguments[] = {"test-exec", "same", "one", "", "two words", NULL};
    check(exec_status(SELF, arguments) == 0);
}

static bool arguments_are_the_same(int argc, char *argv[])
{
    return argc == 5 && strcmp(argv[0], "test-exec") == 0 && strcmp(argv[2], "one") == 0 &&
           strcmp(argv[3], "") == 0 && strcmp(argv[4], "two words") == 0 && !argv[5] &&
           (uintptr_t)&argc % 4 == 0;
}

static void arguments_have_a_number(void)
{
    static char *arguments[ARGUMENTS_MAX + 8];
    arguments[0] = "test-exec";
    arguments[1] = "count";
    for (int i = 2; i < ARGUMENTS_MAX; i++)
        arguments[i] = "x";
    check(exec_status(SELF, arguments) == ARGUMENTS_MAX);
    arguments[ARGUMENTS_MAX] = "x";
    check(exec_status(SELF, arguments) == 1000 + E2BIG);
    for (int i = 0; i < 7; i++)
        arguments[ARGUMENTS_MAX + i] = "x";
    check(exec_status(SELF, arguments) == 1000 + E2BIG);
}

static void arguments_have_a_size(void)
{
    memset(letters, 'a', sizeof(letters) - 1);
    char *const one[] = {"test-exec", "count", letters, NULL};
    check(exec_status(SELF, one) == 1000 + E2BIG);
    char *const four[] = {"test-exec",    "count", letters + 3000, letters + 3000, letters + 3000,
                          letters + 3000, NULL};
    check(exec_status(SELF, four) == 1000 + E2BIG);
    char *const large[] = {"test-exec", "count", letters + 2500, NULL};
    check(exec_status(SELF, large) == 3);
    /* At the limit, exec works or is refused. */
    for (int i = 0; i < 512; i += 5) {
        char *const edge[] = {"test-exec", "count", letters + i, NULL};
        int status = exec_status(SELF, edge);
        /* -1: the remaining stack is too small, and the program hits the guard page. */
        check(status == 3 || status == 1000 + E2BIG || status == -1);
    }
}

static void no_arguments_are_allowed(void)
{
    char *const none[] = {NULL};
    check(exec_status("/true", none) == 0);
}

/* State that exec keeps */

static void exec_keeps_files_and_directory(void)
{
    int ends[2];
    char descriptor[8];
    check(mkdir("/t") == 0 && chdir("/t") == 0);
    check(pipe(ends) == 0);
    snprintf(descriptor, sizeof(descriptor), "%d", ends[1]);
    int pid = test_fork();
    if (pid == 0) {
        char *const arguments[] = {"test-exec", "tell", descriptor, NULL};
        exec(SELF, arguments);
        exit(1);
    }
    int reported;
    check(read(ends[0], &reported, sizeof(reported)) == sizeof(reported));
    check(reported == pid);
    check(test_wait(pid) == 0);
    check(unlink("/t/here") == 0); /* made in the working directory */
    check(chdir("/") == 0 && unlink("/t") == 0);
}

static int report(const char *descriptor_text)
{
    int64_t descriptor;
    int pid = getpid();
    if (!text_to_number(descriptor_text, &descriptor))
        return 1;
    close(open("here", OPEN_BOTH | OPEN_CREATE));
    return write((int)descriptor, &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1;
}

static void exec_names_the_process(void)
{
    struct process_info row = {0};
    int pid = test_fork();
    if (pid == 0) {
        char *const arguments[] = {"other", "100000", NULL};
        exec("/sleep", arguments);
        exit(1);
    }
    wait_until_blocked(pid, BLOCK_SLEEP);
    check(find_process(pid, &row) && strcmp(row.name, "sleep") == 0);
    check(kill(pid) == 0 && test_wait(pid) == -1);
}

static void a_failed_exec_changes_nothing(void)
{
    char *const arguments[] = {"x", NULL};
    int value = 5;
    char *heap = sbrk(4096);
    heap[0] = 'h';
    check_error(exec("/missing", arguments), ENOENT);
    check_error(exec("/", arguments), last_error());
    check(value == 5 && heap[0] == 'h');
    struct process_info row;
    check(find_process(getpid(), &row) && strcmp(row.name, "test-exec") == 0);
}

/* Refused executables */

static void write_program(const char *path, const void *bytes, int n)
{
    int descriptor = open(path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
    check(descriptor >= 0);
    check(write(descriptor, bytes, n) == n);
    close(descriptor);
}

static void what_is_no_program_is_refused(void)
{
    check_refused("/missing", ENOENT);
    check_refused("/missing/missing", ENOENT);
    check_refused("/true/missing", ENOTDIR);
    check_refused("", ENOENT);
    char *const arguments[] = {"x", NULL};
    check(exec_status("/", arguments) > 1000);
    check(exec_status("/console", arguments) > 1000);

    write_program("/t.elf", "", 0);
    check_refused("/t.elf", ENOEXEC);
    write_program("/t.elf", "echo hello\n", 11);
    check_refused("/t.elf", ENOEXEC);
    write_program("/t.elf", "\177ELF", 4);
    check_refused("/t.elf", ENOEXEC);
    memset(file, 0, 4096);
    write_program("/t.elf", file, 4096);
    check_refused("/t.elf", ENOEXEC);
    check(unlink("/t.elf") == 0);
}

static int read_program(const char *path)
{
    int descriptor = open(path, OPEN_READ);
    check(descriptor >= 0);
    int n = 0;
    int got;
    while ((got = read(descriptor, file + n, (int)sizeof(file) - n)) > 0)
        n += got;
    close(descriptor);
    return n;
}

/* A program that is cut at any byte runs, is refused, or dies. */
static void programs_cut_short_do_no_harm(void)
{
    char *const arguments[] = {"x", NULL};
    int n = read_program("/true");
    for (int at = 0; at < n; at += at < 256 ? 13 : 509) {
        write_program("/t.elf", file, at);
        exec_status("/t.elf", arguments);
    }
    check(unlink("/t.elf") == 0);
}

/* A hand-made program that exits with status 42, with one segment. */

struct elf_header {
    uint8_t identification[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, program_headers, section_headers;
    uint32_t flags;
    uint16_t header_bytes, program_header_bytes, program_header_count;
    uint16_t section_header_bytes, section_header_count, section_names;
};

struct program_header {
    uint32_t type, flags;
    uint64_t offset, virtual, physical, file_bytes, memory_bytes, alignment;
};

struct image {
    struct elf_header header;
    struct program_header segment[2];
    uint32_t code[3];
};

static const struct image good_image = {
    .header =
        {
            .identification = {0x7f, 'E', 'L', 'F', 2, 1, 1},
            .type = 2,
            .machine = 243,
            .version = 1,
            .entry = 0,
            .program_headers = sizeof(struct elf_header),
            .header_bytes = sizeof(struct elf_header),
            .program_header_bytes = sizeof(struct program_header),
            .program_header_count = 2,
        },
    .segment =
        {
            {1, 7, offsetof(struct image, code), 0, 0, 12, 12, 4096},
            {1, 6, 0, 4096, 4096, 0, 4096, 4096},
        },
    .code = {0x02a00513, 0x00200893, 0x00000073}, /* li a0, 42; li a7, 2; ecall */
};

static int run_image(const struct image *image, int bytes)
{
    char *const arguments[] = {"image", NULL};
    write_program("/t.elf", image, bytes);
    return exec_status("/t.elf", arguments);
}

static void an_image_made_by_hand_runs(void)
{
    check(run_image(&good_image, sizeof(good_image)) == 42);
    check(unlink("/t.elf") == 0);
}

#define check_image(change)                                                                        \
    do {                                                                                           \
        struct image image = good_image;                                                           \
        change;                                                                                    \
        check(run_image(&image, sizeof(image)) == 1000 + ENOEXEC);                                 \
    } while (0)

static void bad_headers_are_refused(void)
{
    check_image(image.header.identification[0] = 'X');
    check_image(image.header.identification[4] = 1); /* 32 bits */
    check_image(image.header.identification[5] = 2); /* big-endian */
    check_image(image.header.machine = 62);          /* x86-64 */
    check_image(image.header.type = 1);              /* an object file */
    check_image(image.header.program_header_bytes = 1);
    check_image(image.header.program_headers = UINT64_MAX - 10);
    check_image(image.header.program_headers = 100000);
    check_image(image.header.program_header_count = 60000);
    check(unlink("/t.elf") == 0);
}

static void bad_segments_are_refused(void)
{
    check_image(image.segment[0].virtual = 0x8000000000000000ul);
    check_image(image.segment[0].virtual = 0xffffffc080000000ul);
    check_image(image.segment[0].virtual = UINT64_MAX - 4095);
    check_image(image.segment[1].virtual = 1ul << 38);
    check_image(image.segment[0].memory_bytes = 5); /* less than in the file */
    check_image(image.segment[0].file_bytes = 100000; image.segment[0].memory_bytes = 100000);
    check_image(image.segment[0].offset = UINT64_MAX - 3);
    check_image(image.segment[0].offset = 100000);
    check_image(image.segment[0].file_bytes = UINT64_MAX;
                image.segment[0].memory_bytes = UINT64_MAX);
    check(unlink("/t.elf") == 0);
}

static void huge_segments_are_refused(void)
{
    static const uint64_t sizes[] = {1ul << 37, (1ul << 38) - 8192, UINT64_MAX - 4096,
                                     1ul << 62, 1ul << 32,          1ul << 40};
    int64_t before = free_pages();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct image image = good_image;
        image.segment[1].memory_bytes = sizes[i];
        int status = run_image(&image, sizeof(image));
        check(status == 1000 + ENOEXEC || status == 1000 + ENOMEM);
    }
    check(before - free_pages() < 64);
    check(unlink("/t.elf") == 0);
}

/* Values that are likely to cause errors in an image. */
static uint64_t nasty(struct random *random)
{
    static const uint64_t values[] = {0,
                                      1,
                                      7,
                                      4095,
                                      4096,
                                      4097,
                                      1ul << 16,
                                      1ul << 31,
                                      1ul << 32,
                                      1ul << 38,
                                      1ul << 39,
                                      1ul << 63,
                                      UINT64_MAX,
                                      0x80000000,
                                      0xffffffff,
                                      UINT64_MAX - 4095,
                                      0xffffffc080000000ul};
    uint64_t value = values[random_below(random, sizeof(values) / sizeof(values[0]))];
    return random_below(random, 4) ? value : random_next(random);
}

static void mutate(struct image *image, struct random *random)
{
    uint8_t *bytes = (uint8_t *)image;
    for (uint64_t n = 1 + random_below(random, 3); n > 0; n--) {
        size_t at = random_below(random, sizeof(*image));
        uint64_t value = nasty(random);
        switch (random_below(random, 3)) {
        case 0:
            bytes[at] = (uint8_t)value;
            break;
        case 1:
            at = (at & ~(size_t)3) % (sizeof(*image) - 4);
            memcpy(bytes + at, &value, 4);
            break;
        default:
            at = (at & ~(size_t)7) % (sizeof(*image) - 8);
            memcpy(bytes + at, &value, 8);
        }
    }
}

static void random_images_do_no_harm(void)
{
    enum { IMAGES = 400 };
    static struct image image;
    struct random random = {20};
    char *const arguments[] = {"image", NULL};
    int64_t before = free_pages();
    int ran = 0;
    for (int i = 0; i < IMAGES; i++) {
        image = good_image;
        mutate(&image, &random);
        write_program("/t.elf", &image, sizeof(image));
        int pid = test_fork();
        if (pid == 0) {
            close(0);
            exec("/t.elf", arguments);
            exit(1000);
        }
        /* A changed program may run without end, or make another system call. */
        int guard = test_fork();
        if (guard == 0) {
            sleep(30);
            kill(pid);
            exit(2000);
        }
        int status;
        int ended = wait(&status);
        kill(ended == pid ? guard : pid);
        ran += ended == pid && status == 42;
        check(wait(NULL) > 0);
    }
    printf("# random_images_do_no_harm: %d of %d ran as before\n", ran, IMAGES);
    check(ran > 0 && ran < IMAGES);
    check(before - free_pages() < 64);
    check(unlink("/t.elf") == 0);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(arguments_arrive),
        TEST(arguments_have_a_number),
        TEST(arguments_have_a_size),
        TEST(no_arguments_are_allowed),
        TEST(exec_keeps_files_and_directory),
        TEST(exec_names_the_process),
        TEST(a_failed_exec_changes_nothing),
        TEST(what_is_no_program_is_refused),
        TEST(programs_cut_short_do_no_harm),
        TEST(an_image_made_by_hand_runs),
        TEST(bad_headers_are_refused),
        TEST(bad_segments_are_refused),
        TEST(huge_segments_are_refused),
        TEST(random_images_do_no_harm),
    };
    if (argc > 1 && strcmp(argv[1], "same") == 0)
        return arguments_are_the_same(argc, argv) ? 0 : 1;
    if (argc > 1 && strcmp(argv[1], "count") == 0)
        return argv[argc] ? -2 : argc;
    if (argc == 3 && strcmp(argv[1], "tell") == 0)
        return report(argv[2]);
    return RUN_TESTS(tests, argc, argv);
}
