/* SPDX-License-Identifier: MIT */

/*
 * A program as a course's tool chain makes it for xv6. It has no schedlab library, one
 * segment with read, write and execute permission, an entry that is not at address 0, and system
 * calls 1 to 21 by number. Such a program must run here without changes. Linked with -N -Ttext 0 -e
 * begin.
 */

#include "tests/guest/raw/xv6.h"

typedef unsigned long uint64;
typedef unsigned int uint32;
typedef unsigned short uint16;

/* The results of fstat(), and the content of a directory. */
struct status {
    int device;
    uint32 inode;
    short type;
    short links;
    uint64 size;
};

struct entry {
    uint16 inode;
    char name[14];
};

_Static_assert(sizeof(struct status) == 24, "size of a file's status");
_Static_assert(__builtin_offsetof(struct status, inode) == 4, "its inode");
_Static_assert(__builtin_offsetof(struct status, type) == 8, "its type");
_Static_assert(__builtin_offsetof(struct status, links) == 10, "its links");
_Static_assert(__builtin_offsetof(struct status, size) == 16, "its size");
_Static_assert(sizeof(struct entry) == 16, "size of a directory's entry");
_Static_assert(__builtin_offsetof(struct entry, name) == 2, "its name");

enum { READ_ONLY = 0, WRITE_ONLY = 1, READ_WRITE = 2, CREATE = 0x200, TRUNCATE = 0x400 };
enum { DIRECTORY = 1, REGULAR = 2, DEVICE = 3 };

/* Occupies address 0, so that the entry is elsewhere. */
__asm__(".text\n .word 0, 0");

static char initialised[] = "data";
static char cleared[5000];

static void try_processes(void)
{
    int status = 0;
    long pid = call(FORK, 0, 0, 0);
    if (pid == 0)
        call(EXIT, 33, 0, 0);
    expect(pid > 0, "fork");
    expect(call(WAIT, (long)&status, 0, 0) == pid && status == 33, "exit and wait");
    expect(call(WAIT, (long)&status, 0, 0) == -1, "wait without a child");
    expect(call(GETPID, 0, 0, 0) > 1, "getpid");

    pid = call(FORK, 0, 0, 0);
    if (pid == 0) {
        for (;;)
            call(SLEEP, 1000, 0, 0);
    }
    expect(call(KILL, pid, 0, 0) == 0, "kill");
    expect(call(WAIT, (long)&status, 0, 0) == pid && status == -1, "a killed process's status");

    pid = call(FORK, 0, 0, 0);
    if (pid == 0) {
        const char *arguments[] = {"xv6-abi", "again", 0};
        call(EXEC, (long)"xv6-abi", (long)arguments, 0);
        call(EXIT, 1, 0, 0);
    }
    expect(call(WAIT, (long)&status, 0, 0) == pid && status == 7, "exec");
    expect(call(EXEC, (long)"missing", 0, 0) == -1, "exec of nothing");
}

static void try_memory_and_time(void)
{
    char *end = (char *)call(SBRK, 0, 0, 0);
    expect(call(SBRK, 8192, 0, 0) == (long)end, "sbrk");
    for (int i = 0; i < 8192; i++) {
        expect(end[i] == 0, "new memory is zero");
        end[i] = 1;
    }
    expect(call(SBRK, -8192, 0, 0) == (long)end + 8192, "sbrk back");
    expect(call(SBRK, 0, 0, 0) == (long)end, "the end is back");

    /* There is one segment: code and data are writable, and memory beyond the file is zero. */
    initialised[0] = 'D';
    expect(same(initialised, "Data", 4), "initialised data");
    for (unsigned i = 0; i < sizeof(cleared); i++)
        expect(cleared[i] == 0, "cleared data");

    long before = call(UPTIME, 0, 0, 0);
    expect(call(SLEEP, 2, 0, 0) == 0, "sleep");
    expect(call(UPTIME, 0, 0, 0) >= before + 2, "uptime");
}

static void try_files(void)
{
    struct status status;
    char text[8];
    long file = call(OPEN, (long)"xv6-file", CREATE | READ_WRITE, 0);
    expect(file >= 3, "open to create");
    expect(call(WRITE, file, (long)"hello", 5) == 5, "write");
    expect(call(FSTAT, file, (long)&status, 0) == 0, "fstat");
    expect(status.type == REGULAR && status.links == 1 && status.size == 5, "a file's status");
    uint32 inode = status.inode;
    expect(call(CLOSE, file, 0, 0) == 0, "close");
    expect(call(CLOSE, file, 0, 0) == -1, "close again");
    expect(call(LINK, (long)"xv6-file", (long)"xv6-link", 0) == 0, "link");
    file = call(OPEN, (long)"xv6-link", READ_ONLY, 0);
    expect(call(FSTAT, file, (long)&status, 0) == 0, "fstat of the link");
    expect(status.inode == inode && status.links == 2, "a link's status");
    expect(call(READ, file, (long)text, 8) == 5 && same(text, "hello", 5), "read");
    long copy = call(DUP, file, 0, 0);
    expect(copy > file, "dup");
    call(CLOSE, file, 0, 0);
    call(CLOSE, copy, 0, 0);
    call(CLOSE, call(OPEN, (long)"xv6-link", WRITE_ONLY | TRUNCATE, 0), 0, 0);
    file = call(OPEN, (long)"xv6-file", READ_ONLY, 0);
    expect(call(READ, file, (long)text, 8) == 0, "truncation");
    call(CLOSE, file, 0, 0);
    expect(call(UNLINK, (long)"xv6-file", 0, 0) == 0, "unlink");
    expect(call(UNLINK, (long)"xv6-link", 0, 0) == 0, "unlink of the link");
    expect(call(OPEN, (long)"xv6-file", READ_ONLY, 0) == -1, "open of nothing");
}

static void try_directories(void)
{
    struct status status;
    struct entry entries[3] = {{0}};
    expect(call(MKDIR, (long)"xv6-dir", 0, 0) == 0, "mkdir");
    expect(call(CHDIR, (long)"xv6-dir", 0, 0) == 0, "chdir");
    call(CLOSE, call(OPEN, (long)"fourteen-chars", CREATE | WRITE_ONLY, 0), 0, 0);
    long directory = call(OPEN, (long)".", READ_ONLY, 0);
    expect(call(FSTAT, directory, (long)&status, 0) == 0 && status.type == DIRECTORY,
           "a directory's status");
    expect(call(READ, directory, (long)entries, sizeof(entries)) == sizeof(entries),
           "read of a directory");
    expect(entries[0].inode == status.inode && same(entries[0].name, ".", 2), "the entry .");
    expect(entries[1].inode != 0 && same(entries[1].name, "..", 3), "the entry ..");
    expect(entries[2].inode != 0 && same(entries[2].name, "fourteen-chars", 14), "a full name");
    call(CLOSE, directory, 0, 0);
    expect(call(UNLINK, (long)"fourteen-chars", 0, 0) == 0, "unlink in a directory");
    expect(call(CHDIR, (long)"..", 0, 0) == 0, "chdir back");
    expect(call(UNLINK, (long)"xv6-dir", 0, 0) == 0, "unlink of a directory");

    expect(call(MKNOD, (long)"xv6-node", 1, 0) == 0, "mknod");
    long node = call(OPEN, (long)"xv6-node", READ_WRITE, 0);
    expect(call(FSTAT, node, (long)&status, 0) == 0 && status.type == DEVICE, "a device's status");
    call(CLOSE, node, 0, 0);
    call(UNLINK, (long)"xv6-node", 0, 0);
}

static void try_pipes(void)
{
    int ends[2];
    char c = 0;
    expect(call(PIPE, (long)ends, 0, 0) == 0, "pipe");
    long pid = call(FORK, 0, 0, 0);
    if (pid == 0) {
        call(WRITE, ends[1], (long)"p", 1);
        call(EXIT, 0, 0, 0);
    }
    expect(call(READ, ends[0], (long)&c, 1) == 1 && c == 'p', "a byte through a pipe");
    call(WAIT, 0, 0, 0);
    call(CLOSE, ends[1], 0, 0);
    expect(call(READ, ends[0], (long)&c, 1) == 0, "the end of a pipe");
    call(CLOSE, ends[0], 0, 0);
}

static int run(int argc, char *argv[])
{
    if (argc == 2 && same(argv[1], "again", 6))
        return 7;
    try_processes();
    try_memory_and_time();
    try_files();
    try_directories();
    try_pipes();
    if (!failures)
        print("ok xv6-abi\n");
    return failures != 0;
}

void begin(int argc, char *argv[]);

void begin(int argc, char *argv[])
{
    call(EXIT, run(argc, argv), 0, 0);
}
