/* SPDX-License-Identifier: MIT */

/* Compares the kernel's string functions and formatted text with those of the C library. */

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernel/lib/format.c"

/* The kernel's functions have the library's names, so they are renamed here. */
#define memcpy  kernel_memcpy
#define memmove kernel_memmove
#define memset  kernel_memset
#define memcmp  kernel_memcmp
#define strlen  kernel_strlen
#define strcmp  kernel_strcmp
#define strncmp kernel_strncmp
int strncmp(const char *a, const char *b, size_t n);
#include "kernel/lib/string.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen
#undef strcmp
#undef strncmp

#include "check.h"

enum { AREA = 700 };

static unsigned random_state = 12345;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

static void fill_randomly(uint8_t *bytes, size_t n)
{
    for (size_t index = 0; index < n; index++)
        bytes[index] = (uint8_t)random_below(256);
}

/* Tests every alignment of both operands, and every length near the sizes of words and steps. */
static void test_memory_functions(void)
{
    static uint8_t source[AREA] __attribute__((aligned(8))), ours[AREA], theirs[AREA];

    for (unsigned round = 0; round < 40000; round++) {
        size_t to = random_below(24), from = random_below(24);
        size_t n = random_below(random_below(4) == 0 ? AREA - 24 : 90);
        int byte = (int)random_below(1000) - 500;

        fill_randomly(source, sizeof(source));
        fill_randomly(ours, sizeof(ours));
        memcpy(theirs, ours, sizeof(ours));
        check(kernel_memcpy(ours + to, source + from, n) == ours + to);
        memcpy(theirs + to, source + from, n);
        check(memcmp(ours, theirs, sizeof(ours)) == 0);

        check(kernel_memset(ours + from, byte, n) == ours + from);
        memset(theirs + from, byte, n);
        check(memcmp(ours, theirs, sizeof(ours)) == 0);
    }
}

static void test_memmove(void)
{
    static uint8_t ours[AREA] __attribute__((aligned(8))), theirs[AREA];

    for (unsigned round = 0; round < 40000; round++) {
        size_t n = random_below(random_below(2) ? 300 : 40);
        size_t to = random_below(AREA - 300), from = random_below(AREA - 300);

        if (random_below(2))
            from = to + random_below(70) < AREA - 300 ? to + random_below(70) : to;
        if (from > AREA - 300)
            from = AREA - 300;
        fill_randomly(ours, sizeof(ours));
        memcpy(theirs, ours, sizeof(ours));
        check(kernel_memmove(ours + to, ours + from, n) == ours + to);
        memmove(theirs + to, theirs + from, n);
        check(memcmp(ours, theirs, sizeof(ours)) == 0);
    }
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void test_comparisons(void)
{
    static uint8_t a[64] __attribute__((aligned(8))), b[64] __attribute__((aligned(8)));

    for (unsigned round = 0; round < 40000; round++) {
        size_t at_a = random_below(9), at_b = random_below(9), n = random_below(50);
        unsigned values = random_below(2) ? 256 : 2;

        for (size_t index = 0; index < sizeof(a); index++)
            a[index] = b[index] = 0;
        for (size_t index = 0; index < n; index++) {
            a[at_a + index] = (uint8_t)random_below(values);
            b[at_b + index] = random_below(20) ? a[at_a + index] : (uint8_t)random_below(256);
        }
        const char *left = (char *)a + at_a, *right = (char *)b + at_b;
        check(sign(kernel_memcmp(left, right, n)) == sign(memcmp(left, right, n)));
        check(sign(kernel_strcmp(left, right)) == sign(strcmp(left, right)));
        size_t limit = random_below(60);
        check(sign(kernel_strncmp(left, right, limit)) == sign(strncmp(left, right, limit)));
        check(kernel_strlen(left) == strlen(left));
    }
}

static void test_text_copy(void)
{
    char text[8];

    memset(text, 'z', sizeof(text));
    text_copy(text, "abc", 8);
    check(strcmp(text, "abc") == 0 && text[4] == 'z');
    text_copy(text, "abcdefghij", 8);
    check(strcmp(text, "abcdefg") == 0);
    text_copy(text, "abc", 1);
    check(text[0] == '\0' && text[1] == 'b');
    text[0] = 'q';
    text_copy(text, "abc", 0);
    check(text[0] == 'q');
}

/* Text and length equal the library's, for every buffer size. */
#define same(...)                                                                                  \
    do {                                                                                           \
        char ours[200], theirs[200];                                                               \
        int length = snprintf(theirs, sizeof(theirs), __VA_ARGS__);                                \
                                                                                                   \
        for (size_t size = 0; size < sizeof(ours); size++) {                                       \
            memset(ours, '#', sizeof(ours));                                                       \
            check(format_text(ours, size, __VA_ARGS__) == length);                                 \
            check(size == 0 || strncmp(ours, theirs, size - 1) == 0);                              \
            check(size == 0 || strlen(ours) < size);                                               \
            check(ours[size] == '#');                                                              \
        }                                                                                          \
    } while (0)

static void test_conversions(void)
{
    static char text[] = "text";

    same("%s", "");
    same("plain");
    same("%d %i %u %x", 1, -2, 3u, 0xabcu);
    same("%d %d %d", 0, INT_MAX, INT_MIN);
    same("%u %x", UINT_MAX, UINT_MAX);
    same("%ld %ld %ld", 0l, LONG_MAX, LONG_MIN);
    same("%lu %lx %lli %llu %llx", ULONG_MAX, ULONG_MAX, LLONG_MIN, ULLONG_MAX, 1ull << 40);
    same("%zu %zx %zd", SIZE_MAX, (size_t)10, (ssize_t)-10);
    same("[%5d] [%-5d] [%05d] [%5d] [%-5d] [%05d]", 42, 42, 42, -42, -42, -42);
    same("[%1d] [%01d] [%012lx] [%-12lx] [%12u]", 12345, -12345, 0xfeedul, 0xfeedul, 7u);
    same("[%s] [%8s] [%-8s] [%2s]", text, text, text, text);
    same("[%c] [%4c] [%-4c]", 'x', 'y', 'z');
    same("100%% of %s%c", text, '!');
    same("%p %20p [%-20p]", (void *)text, (void *)text, (void *)text);
}

static void test_random_numbers(void)
{
    for (int round = 0; round < 300; round++) {
        uint64_t value =
            ((uint64_t)random_below(1u << 24) << 40 | random_below(1u << 24)) >> random_below(64);

        same("%ld|%lu|%lx|%d|%x", (long)value, (unsigned long)value, (unsigned long)-value,
             (int)value, (unsigned)value);
    }
}

/* For formats that the compiler would reject. */
static int format_anything(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = format_text_list(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

static void test_what_is_not_known(void)
{
    char text[100];
    check(format_anything(text, sizeof(text), "%q %") == 4 && strcmp(text, "%q %") == 0);
    check(format_anything(text, sizeof(text), "%-") == 1 && strcmp(text, "%") == 0);
    check(format_anything(text, sizeof(text), "%99999999999999999999d|", 1) == 4097);
    check(format_anything(text, sizeof(text), "%s", (char *)NULL) == 6);
    check(strcmp(text, "(null)") == 0);
    check(format_text(NULL, 0, "%d", 12345) == 5);
}

int main(void)
{
    run_test(test_memory_functions);
    run_test(test_memmove);
    run_test(test_comparisons);
    run_test(test_text_copy);
    run_test(test_conversions);
    run_test(test_random_numbers);
    run_test(test_what_is_not_known);
    return 0;
}
