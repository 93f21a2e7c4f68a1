/* SPDX-License-Identifier: MIT */

/*
 * Address spaces: copy-on-write, the heap, fatal accesses, and pointers that system calls refuse.
 */

#include "tests/guest/check.h"

#define PAGE        4096
#define KERNEL_HALF 0xffffffc000000000ul
#define USER_END    (1ul << 38)

static char pages[16 * PAGE];
static const int in_text = 42;

/* Runs `act` in a child. Returns its exit status, or -1 if it was killed. */
static int status_of(void (*act)(uint64_t), uint64_t argument)
{
    int pid = test_fork();
    if (pid == 0) {
        act(argument);
        exit(0);
    }
    return test_wait(pid);
}

static void write_byte(uint64_t address)
{
    *(volatile char *)address = 1;
}

static void read_byte(uint64_t address)
{
    (void)*(volatile char *)address;
}

static void jump(uint64_t address)
{
    ((void (*)(void))address)();
}

/* Copy-on-write */

static void fork_copies(void)
{
    char *heap = sbrk(4 * PAGE);
    memset(pages, 'p', sizeof(pages));
    memset(heap, 'p', 4 * PAGE);
    int pid = test_fork();
    if (pid == 0) {
        for (size_t i = 0; i < sizeof(pages); i += 512)
            check(pages[i] == 'p');
        memset(pages, 'c', sizeof(pages));
        memset(heap, 'c', 4 * PAGE);
        exit(0);
    }
    check(test_wait(pid) == 0);
    for (size_t i = 0; i < sizeof(pages); i++)
        check(pages[i] == 'p');
    for (int i = 0; i < 4 * PAGE; i++)
        check(heap[i] == 'p');
}

static void the_parents_writes_stay_its_own(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    memset(pages, 'a', sizeof(pages));
    int pid = test_fork();
    if (pid == 0) {
        char go;
        check(read(ends[0], &go, 1) == 1);
        for (size_t i = 0; i < sizeof(pages); i += 64)
            check(pages[i] == 'a');
        exit(0);
    }
    memset(pages, 'b', sizeof(pages));
    check(write(ends[1], "x", 1) == 1);
    check(test_wait(pid) == 0);
}

static void generations_share_and_part(void)
{
    pages[0] = 0;
    for (int generation = 0; generation < 20; generation++) {
        int pid = test_fork();
        if (pid != 0) {
            int status = test_wait(pid);
            check(pages[0] == generation);
            if (generation == 0) {
                check(status == 0);
                return;
            }
            exit(status);
        }
        check(pages[0] == generation);
        pages[0]++;
    }
    exit(0);
}

/* The kernel's writes to user memory also separate shared pages. */
static void the_kernel_parts_shared_pages(void)
{
    int ends[2];
    check(pipe(ends) == 0);
    memset(pages, 'a', sizeof(pages));
    int pid = test_fork();
    if (pid == 0) {
        check(write(ends[1], "zz", 2) == 2);
        check(read(ends[0], pages + PAGE - 1, 2) == 2);
        check(pages[PAGE - 1] == 'z' && pages[PAGE] == 'z');
        exit(0);
    }
    check(test_wait(pid) == 0);
    check(pages[PAGE - 1] == 'a' && pages[PAGE] == 'a');
}

/* sbrk */

static void the_heap_grows_zeroed(void)
{
    char *start = sbrk(0);
    check(sbrk(3 * PAGE + 5) == start);
    check(sbrk(0) == start + 3 * PAGE + 5);
    for (int i = 0; i < 3 * PAGE + 5; i++)
        check(start[i] == 0);
    memset(start, 1, 3 * PAGE + 5);
    check(sbrk(-(3 * PAGE + 5)) == start + 3 * PAGE + 5);
    check(sbrk(0) == start);
    check(sbrk(3 * PAGE) == start);
    /*
     * Whole pages that were returned are zero again; a page that the heap still uses in part may
     * keep its content.
     */
    char *first_page = (char *)(((uintptr_t)start + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    for (int i = 0; i < PAGE; i++)
        check(first_page[i] == 0);
}

static void the_heap_gives_pages_back(void)
{
    int64_t before = free_pages();
    check(sbrk(1000 * PAGE) != SYSTEM_FAILED);
    check(before - free_pages() >= 1000);
    check(sbrk(-1000 * PAGE) != SYSTEM_FAILED);
    check(before - free_pages() < 32);
}

static void bad_heap_sizes_change_nothing(void)
{
    static const int64_t changes[] = {INT64_MAX, USER_END, 1ll << 40, 1ll << 62};
    char *end = sbrk(0);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        check(sbrk(changes[i]) == SYSTEM_FAILED);
        check(last_error() == ENOMEM || last_error() == EINVAL);
        check(sbrk(0) == end);
        check(sbrk_lazy(changes[i]) == SYSTEM_FAILED);
        check(sbrk(0) == end);
    }
    pages[0] = 1; /* memory still exists */
}

/* The heap ends two pages below the end of a process's half, as in xv6. */
static void a_heap_ends_where_xv6s_does(void)
{
    const uint64_t heap_end = USER_END - 2 * PAGE;
    uint64_t end = (uint64_t)sbrk(0);
    check(sbrk_lazy((int64_t)(heap_end - end) + 1) == SYSTEM_FAILED);
    check(sbrk_lazy((int64_t)(heap_end - end)) == (void *)end);
    check(sbrk(1) == SYSTEM_FAILED);
    check_error((int64_t)sbrk_lazy(1), EINVAL);
    check((uint64_t)sbrk(0) == heap_end);
}

/* As in xv6, the call returns the old end and changes nothing. */
static void a_heap_shrinks_by_no_more_than_it_has(void)
{
    char *start = sbrk(0);
    check(sbrk(3 * PAGE) == start);
    char *end = start + 3 * PAGE;
    memset(start, 'h', 3 * PAGE);
    const int64_t changes[] = {INT64_MIN,         -(1ll << 62),  -(int64_t)USER_END, -1000000,
                               -(int64_t)end - 1, -(int64_t)end, -3 * PAGE - 1};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        check(sbrk(changes[i]) == end && sbrk_lazy(changes[i]) == end);
        check(sbrk(0) == end && start[0] == 'h' && end[-1] == 'h');
    }
    check(sbrk(-3 * PAGE) == end && sbrk(0) == start);
    check(sbrk(-1) == start && sbrk(0) == start);
}

static void memory_given_back_is_gone(void)
{
    uint64_t start = (uint64_t)sbrk(4 * PAGE);
    uint64_t page = (start + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    check(status_of(write_byte, page + PAGE) == 0);
    sbrk(-4 * PAGE);
    check(status_of(write_byte, page + PAGE) == -1);
    check(status_of(read_byte, page + PAGE) == -1);
}

static void a_lazy_heap_takes_what_is_touched(void)
{
    int64_t before = free_pages();
    int64_t size = 1ll << 30; /* more than the machine has */
    char *start = sbrk_lazy(size);
    check(start != SYSTEM_FAILED);
    check(sbrk(0) == start + size);
    check(before - free_pages() < 16);
    for (int64_t at = 0; at < size; at += size / 8) {
        check(start[at] == 0);
        start[at] = 1;
    }
    check(before - free_pages() < 64);
    for (int64_t at = 0; at < size; at += size / 8)
        check(start[at] == 1);
    check(sbrk(-size) == start + size);
    check(before - free_pages() < 32);
}

static void the_kernel_touches_a_lazy_heap(void)
{
    int ends[2];
    char *start = sbrk_lazy(64 * PAGE);
    check(pipe(ends) == 0);
    check(write(ends[1], start + PAGE, 8) == 8); /* zeros from an unused page */
    check(read(ends[0], start + 9 * PAGE, 8) == 8);
    check(write(ends[1], "hello", 5) == 5);
    check(read(ends[0], start + 20 * PAGE - 2, 5) == 5); /* across a page boundary */
    check(memcmp(start + 20 * PAGE - 2, "hello", 5) == 0);
    check(memcmp(start + 9 * PAGE, "\0\0\0\0\0\0\0", 8) == 0);
}

static void a_lazy_heap_forks(void)
{
    char *start = sbrk_lazy(64 * PAGE);
    start[PAGE] = 'a';
    int pid = test_fork();
    if (pid == 0) {
        check(start[PAGE] == 'a' && start[30 * PAGE] == 0);
        start[30 * PAGE] = 'b';
        start[PAGE] = 'b';
        exit(0);
    }
    check(test_wait(pid) == 0);
    check(start[PAGE] == 'a' && start[30 * PAGE] == 0);
}

static void touch_all(uint64_t address)
{
    for (uint64_t at = 0; at < 1ul << 30; at += PAGE)
        *(volatile char *)(address + at) = 1;
}

static void more_than_there_is_kills_only_who_wants_it(void)
{
    int64_t before = free_pages();
    struct system_stats stats;
    check(getstats(&stats) == 0);
    if (stats.memory_pages > 1ul << 18)
        return; /* a gigabyte is available */
    uint64_t start = (uint64_t)sbrk_lazy(1ll << 30);
    check(status_of(touch_all, start) == -1);
    sbrk(-(1ll << 30));
    check(before - free_pages() < 64);
}

/* Fatal accesses */

static void bad_addresses_kill(void)
{
    uint64_t stack = (uint64_t)&stack & ~(uint64_t)(PAGE - 1);
    uint64_t end = ((uint64_t)sbrk(0) + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    const uint64_t addresses[] = {
        stack - 1,
        stack - PAGE,
        end,
        end + PAGE,
        USER_END - 1,
        USER_END,
        KERNEL_HALF,
        0x80000000ul,
        0x10000000ul,
        UINT64_MAX,
        1ul << 39,
        1ul << 63,
        KERNEL_HALF - PAGE,
        KERNEL_HALF + 0x80000000ul,
        0xffffffe000000000ul,
    };
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        check(status_of(read_byte, addresses[i]) == -1);
        check(status_of(write_byte, addresses[i]) == -1);
        check(status_of(jump, addresses[i]) == -1);
    }
}

static void code_is_not_writable(void)
{
    check(status_of(write_byte, 0) == -1);
    check(status_of(write_byte, (uint64_t)&status_of) == -1);
    check(status_of(write_byte, (uint64_t)&in_text) == -1);
    check(status_of(read_byte, 0) == 0);
}

static void data_is_not_executable(void)
{
    uint32_t *heap = sbrk(PAGE);
    uint32_t *data = (uint32_t *)(void *)pages;
    heap[0] = data[0] = 0x00008067; /* ret */
    check(status_of(jump, (uint64_t)data) == -1);
    check(status_of(jump, (uint64_t)heap) == -1);
}

static void bad_instructions_kill(void)
{
    int pid = test_fork();
    if (pid == 0)
        __asm__ volatile(".word 0xffffffff");
    check(test_wait(pid) == -1);
    pid = test_fork();
    if (pid == 0)
        __asm__ volatile("ebreak");
    check(test_wait(pid) == -1);
    pid = test_fork();
    if (pid == 0)
        __asm__ volatile(".word 0x10200073"); /* sret */
    check(test_wait(pid) == -1);
    pid = test_fork();
    if (pid == 0)
        __asm__ volatile(".word 0x18005073"); /* write to satp */
    check(test_wait(pid) == -1);
}

#pragma clang diagnostic ignored "-Winfinite-recursion"

/* Uses stack without end. */
__attribute__((noinline, noreturn)) static void recurse(uint64_t depth)
{
    volatile char frame[256];
    frame[depth % 256] = 1;
    for (;;)
        recurse(depth + frame[depth % 256]);
}

static void too_deep_a_stack_kills(void)
{
    int pid = test_fork();
    if (pid == 0)
        recurse(0);
    check(test_wait(pid) == -1);
}
static void a_bad_stack_pointer_kills(void)
{
    static const uint64_t pointers[] = {0, 8, USER_END, KERNEL_HALF, UINT64_MAX - 7, 1};
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
        int pid = test_fork();
        if (pid == 0) {
            /* Begins with a system call; the kernel must not use the pointer. */
            __asm__ volatile("mv sp, %0\n li a7, %1\n ecall\n sd zero, -16(sp)\n li a0, 0\n"
                             "li a7, %2\n ecall" ::"r"(pointers[i]),
                             "i"(SYSTEM_CALL_GETPID), "i"(SYSTEM_CALL_EXIT)
                             : "a0", "a7", "memory");
        }
        check(test_wait(pid) == -1);
    }
}

/* Pointers in system calls */

static int pipe_ends[2];
static int some_file;

/* The byte may be lost; the pipe is empty afterwards. */
static int call_read(void *bad)
{
    char rest[2];
    check(write(pipe_ends[1], "x", 1) == 1);
    int result = read(pipe_ends[0], bad, 1);
    check(write(pipe_ends[1], "y", 1) == 1);
    check(read(pipe_ends[0], rest, 2) >= 1);
    return result;
}

static int call_write(void *bad)
{
    return write(pipe_ends[1], bad, 1);
}

static int call_pipe(void *bad)
{
    return pipe(bad);
}

static int call_fstat(void *bad)
{
    return fstat(some_file, bad);
}

static int call_open(void *bad)
{
    return open(bad, OPEN_READ);
}

static int call_exec(void *bad)
{
    static char *const arguments[] = {"true", NULL};
    return exec(bad, arguments);
}

static int call_exec_arguments(void *bad)
{
    return exec("/true", bad);
}

static int call_exec_argument(void *bad)
{
    char *arguments[] = {"true", bad, NULL};
    return bad ? exec("/true", arguments) : -3;
}

static int call_unlink(void *bad)
{
    return unlink(bad);
}

static int call_link_old(void *bad)
{
    return link(bad, "/never");
}

static int call_link_new(void *bad)
{
    return link("/true", bad);
}

static int call_mkdir(void *bad)
{
    return mkdir(bad);
}

static int call_mknod(void *bad)
{
    return mknod(bad, DEVICE_CONSOLE, 0);
}

static int call_chdir(void *bad)
{
    return chdir(bad);
}

static int call_wait(void *bad)
{
    if (!bad)
        return -3;
    int pid = test_fork();
    if (pid == 0)
        exit(0);
    return wait(bad);
}

static int call_getpinfo(void *bad)
{
    return getpinfo(bad, 4);
}

static int call_getstats(void *bad)
{
    return getstats(bad);
}

static int call_setpolicy(void *bad)
{
    return setpolicy(bad);
}

static int call_getpolicy(void *bad)
{
    return getpolicy(bad, 64);
}

static int call_settunable(void *bad)
{
    return settunable(bad, 1);
}

static int call_gettunable(void *bad)
{
    int64_t value;
    return gettunable(bad, &value);
}

static int call_gettunable_value(void *bad)
{
    return gettunable("slice", bad);
}

static int call_boot_argument(void *bad)
{
    char value[8];
    return boot_argument(bad, value, sizeof(value));
}

/* A call gives -1 and EFAULT; -3 means that the case does not apply. */
struct pointer_call {
    const char *name;
    int (*call)(void *bad);
    bool writes; /* read-only memory is also refused */
};

static const struct pointer_call pointer_calls[] = {
    {"read", call_read, true},
    {"write", call_write, false},
    {"pipe", call_pipe, true},
    {"fstat", call_fstat, true},
    {"open", call_open, false},
    {"exec", call_exec, false},
    {"exec arguments", call_exec_arguments, false},
    {"exec argument", call_exec_argument, false},
    {"unlink", call_unlink, false},
    {"link old", call_link_old, false},
    {"link new", call_link_new, false},
    {"mkdir", call_mkdir, false},
    {"mknod", call_mknod, false},
    {"chdir", call_chdir, false},
    {"wait", call_wait, true},
    {"getpinfo", call_getpinfo, true},
    {"getstats", call_getstats, true},
    {"setpolicy", call_setpolicy, false},
    {"getpolicy", call_getpolicy, true},
    {"settunable", call_settunable, false},
    {"gettunable", call_gettunable, false},
    {"gettunable value", call_gettunable_value, true},
    {"boot_argument", call_boot_argument, false},
};

static void check_pointer(const struct pointer_call *call, uint64_t address)
{
    int result = call->call((void *)address);
    int error = last_error();
    if (result == -3 || (result == -1 && error == EFAULT))
        return;
    printf("# %s with address %lx: %d, %s\n", call->name, address, result, error_text(error));
    check(!"a bad pointer gives EFAULT");
}

static void bad_pointers_are_refused(void)
{
    uint64_t stack = (uint64_t)&stack & ~(uint64_t)(PAGE - 1);
    const uint64_t bad[] = {USER_END,     KERNEL_HALF,  KERNEL_HALF + 0x80000000ul,
                            1ul << 63,    UINT64_MAX,   UINT64_MAX - 63,
                            stack - PAGE, USER_END - 1, 1ul << 36};
    const uint64_t read_only[] = {0, (uint64_t)&in_text, (uint64_t)&check_pointer};
    check(pipe(pipe_ends) == 0);
    some_file = open("/true", OPEN_READ);
    check(some_file >= 0);
    for (size_t i = 0; i < sizeof(pointer_calls) / sizeof(pointer_calls[0]); i++) {
        for (size_t j = 0; j < sizeof(bad) / sizeof(bad[0]); j++)
            check_pointer(&pointer_calls[i], bad[j]);
        for (size_t j = 0; pointer_calls[i].writes && j < 3; j++)
            check_pointer(&pointer_calls[i], read_only[j]);
    }
}

static void unterminated_texts_are_refused(void)
{
    /* The heap's last bytes, without a 0 before the end of memory. */
    char *end = sbrk(0);
    size_t gap = -(uintptr_t)end & (PAGE - 1);
    sbrk((int64_t)gap + PAGE);
    char *text = end + gap + PAGE - 16;
    memset(text, 'a', 16);
    check_error(open(text, OPEN_READ), EFAULT);
    check_error(mkdir(text), EFAULT);
    check_error(setpolicy(text), EFAULT);
    char *long_text = end + gap;
    memset(long_text, 'a', PAGE);
    check_error(open(long_text, OPEN_READ), ENAMETOOLONG);
    check(setpolicy(long_text) == -1);
    check(settunable(long_text, 1) == -1);
}

static void buffers_that_end_too_early_are_refused(void)
{
    char *end = sbrk(0);
    size_t gap = -(uintptr_t)end & (PAGE - 1);
    sbrk((int64_t)gap + PAGE);
    char *last = end + gap + PAGE - 100;
    int ends[2];
    int file = open("/true", OPEN_READ);
    check(file >= 0 && pipe(ends) == 0);
    check(write(ends[1], last, 200) < 200);
    check_error(pipe((int *)(void *)(last + 96)), EFAULT);
    check_error(fstat(file, (struct file_status *)(void *)(last + 96)), EFAULT);
    check_error(getstats((struct system_stats *)(void *)(last + 56)), EFAULT);
    /* A failed pipe() leaves no descriptors open. */
    for (int i = 0; i < 40; i++)
        check_error(pipe((int *)(void *)(last + 96)), EFAULT);
    check(pipe(ends) == 0);
}

static void unknown_system_calls_fail(void)
{
    static const int64_t numbers[] = {0, 22, 63, 1000, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        register int64_t number __asm__("a7") = numbers[i];
        register int64_t result __asm__("a0") = 0;
        __asm__ volatile("ecall" : "+r"(result) : "r"(number) : "memory");
        check(result == -1);
        check(last_error() == ENOSYS);
    }
}

/* Out of memory */

/* Makes calls that need memory; each may fail, but must cause no other harm. */
_Noreturn static void use_everything(void)
{
    static char *const arguments[] = {"true", NULL};
    int ends[2];
    for (int i = 0; i < 4; i++) {
        pipe(ends);
        int descriptor = open("/memory.test", OPEN_BOTH | OPEN_CREATE);
        write(descriptor, pages, PAGE);
        int pid = fork();
        if (pid == 0) {
            exec("/true", arguments);
            exit(0);
        }
        if (pid > 0)
            wait(NULL);
        sbrk(2 * PAGE);
        chdir("/");
        mkdir("/memory.dir");
        unlink("/memory.dir");
        exec("/missing", arguments);
        struct system_stats stats;
        getstats(&stats);
        close(descriptor);
        unlink("/memory.test");
    }
    exit(0);
}

/*
 * Runs in a child. Takes all memory but `pages_left` pages, and lets a waiting child use the
 * remaining pages.
 */
_Noreturn static void use_last_pages(int pages_left)
{
    int go[2];
    if (pipe(go) < 0)
        exit(0);
    int pid = fork();
    if (pid == 0) {
        char c;
        close(go[1]);
        read(go[0], &c, 1);
        use_everything();
    }
    while (sbrk(256 * PAGE) != SYSTEM_FAILED)
        ;
    while (sbrk(PAGE) != SYSTEM_FAILED)
        ;
    if (pages_left > 0)
        sbrk(-pages_left * PAGE);
    write(go[1], "g", 1);
    wait(NULL);
    exit(0);
}

static void the_last_pages_may_run_out_anywhere(void)
{
    int64_t before = free_pages();
    for (int left = 0; left < 48; left++) {
        int pid = test_fork();
        if (pid == 0)
            use_last_pages(left);
        test_wait(pid);
    }
    unlink("/memory.test");
    unlink("/memory.dir");
    check(before - free_pages() < 128);
}

static void nothing_leaks(void)
{
    static char *const arguments[] = {"true", NULL};
    int64_t before = 0;
    for (int round = 0; round < 300; round++) {
        if (round == 100)
            before = free_pages(); /* caches are warm */
        int ends[2];
        check(pipe(ends) == 0);
        int pid = test_fork();
        if (pid == 0) {
            sbrk(10 * PAGE);
            sbrk_lazy(10 * PAGE);
            int grandchild = fork();
            if (grandchild == 0) {
                exec("/true", arguments);
                exit(1);
            }
            wait(NULL);
            exec(round % 2 ? "/true" : "/missing", arguments);
            exit(0);
        }
        check(test_wait(pid) == 0);
        close(ends[0]);
        close(ends[1]);
    }
    check(before - free_pages() < 32);
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(fork_copies),
        TEST(the_parents_writes_stay_its_own),
        TEST(generations_share_and_part),
        TEST(the_kernel_parts_shared_pages),
        TEST(the_heap_grows_zeroed),
        TEST(the_heap_gives_pages_back),
        TEST(bad_heap_sizes_change_nothing),
        TEST(a_heap_ends_where_xv6s_does),
        TEST(a_heap_shrinks_by_no_more_than_it_has),
        TEST(memory_given_back_is_gone),
        TEST(a_lazy_heap_takes_what_is_touched),
        TEST(the_kernel_touches_a_lazy_heap),
        TEST(a_lazy_heap_forks),
        TEST(more_than_there_is_kills_only_who_wants_it),
        TEST(bad_addresses_kill),
        TEST(code_is_not_writable),
        TEST(data_is_not_executable),
        TEST(bad_instructions_kill),
        TEST(too_deep_a_stack_kills),
        TEST(a_bad_stack_pointer_kills),
        TEST(bad_pointers_are_refused),
        TEST(unterminated_texts_are_refused),
        TEST(buffers_that_end_too_early_are_refused),
        TEST(unknown_system_calls_fail),
        TEST(nothing_leaks),
        TEST(the_last_pages_may_run_out_anywhere),
    };
    return RUN_TESTS(tests, argc, argv);
}
