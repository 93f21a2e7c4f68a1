/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GUEST_RAW_XV6_H
#define TESTS_GUEST_RAW_XV6_H

/* System calls by number, and a verdict, for programs without schedlab's library. */

enum {
    FORK = 1,
    EXIT,
    WAIT,
    PIPE,
    READ,
    KILL,
    EXEC,
    FSTAT,
    CHDIR,
    DUP,
    GETPID,
    SBRK,
    SLEEP,
    UPTIME,
    OPEN,
    WRITE,
    MKNOD,
    UNLINK,
    LINK,
    MKDIR,
    CLOSE,
};

static int failures;

/* Makes a system call as the stubs of such programs do: only a0 changes. */
static inline long call(long number, long first, long second, long third)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = first;
    register long a1 __asm__("a1") = second;
    register long a2 __asm__("a2") = third;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}

static inline void print(const char *text)
{
    long n = 0;
    while (text[n])
        n++;
    call(WRITE, 1, (long)text, n);
}

static inline void expect(int condition, const char *what)
{
    if (condition)
        return;
    failures++;
    print("FAILED ");
    print(what);
    print("\n");
}

static inline int same(const char *left, const char *right, int n)
{
    for (int i = 0; i < n; i++) {
        if (left[i] != right[i])
            return 0;
    }
    return 1;
}

#endif
