/* SPDX-License-Identifier: MIT */

/* Tests the C library's printing, strings and heap on the host. */

#include "check.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Renames the library's functions, so that the host's functions stay available. */
#define printf   user_printf
#define fprintf  user_fprintf
#define vfprintf user_vfprintf
#define snprintf user_snprintf
#define memset   user_memset
#define memcpy   user_memcpy
#define memmove  user_memmove
#define memcmp   user_memcmp
#define strlen   user_strlen
#define strcmp   user_strcmp
#define strncmp  user_strncmp
#define strchr   user_strchr
#define malloc   user_malloc
#define calloc   user_calloc
#define free     user_free

#include "user/library/heap.c"
#include "user/library/print.c"
#include "user/library/text.c"

#include "user/library/random.h"

#undef printf
#undef fprintf
#undef snprintf
#undef memset
#undef memcmp
#undef strlen
#undef strcmp
#undef strchr

/* System calls */

static char written[4096];
static size_t written_bytes;
static int writes;
static int write_limit = 1 << 30;

int write(int descriptor, const void *source, int bytes)
{
    (void)descriptor;
    int n = bytes < write_limit ? bytes : write_limit;
    check(written_bytes + (size_t)n < sizeof(written));
    user_memmove(written + written_bytes, source, (size_t)n);
    written_bytes += (size_t)n;
    writes++;
    return n;
}

int last_error(void)
{
    return ENOENT;
}

static _Alignas(16) char memory[1 << 20];
static int64_t memory_end = 8; /* not aligned to 16 */

void *sbrk(int64_t change)
{
    if (memory_end + change > (int64_t)sizeof(memory))
        return SYSTEM_FAILED;
    char *before = memory + memory_end;
    memory_end += change;
    return before;
}

/* Tests */

#define check_format(...)                                                                          \
    do {                                                                                           \
        char ours[200], host[200];                                                                 \
        int our_length = user_snprintf(ours, sizeof(ours), __VA_ARGS__);                           \
        int host_length = snprintf(host, sizeof(host), __VA_ARGS__);                               \
        check(our_length == host_length);                                                          \
        check(strcmp(ours, host) == 0);                                                            \
    } while (0)

static void formats_agree_with_the_host(void)
{
    check_format("plain %%");
    check_format("%d %d %d", 0, INT32_MAX, INT32_MIN);
    check_format("%ld %ld", INT64_MAX, INT64_MIN);
    check_format("%lu %zu %u", UINT64_MAX, SIZE_MAX, 4000000000u);
    check_format("%x %X %lx", 0xdeadbeefu, 0xdeadbeefu, UINT64_MAX);
    check_format("[%5d] [%-5d] [%05d] [%1d]", 42, 42, 42, 12345);
    check_format("[%5d] [%-5d] [%05d]", -42, -42, -42);
    check_format("[%s] [%10s] [%-10s] [%.2s] [%5.2s]", "text", "text", "text", "text", "text");
    check_format("[%*d] [%*d] [%.*s]", 7, 1, -7, 1, 3, "abcdef");
    check_format("%c%c", 'a', 'z');
    check_format("%p", (void *)0x1234);
    check_format("%lld", 1234567890123ll);
}

static void what_does_not_fit_is_cut(void)
{
    char text[5] = "????";
    check(user_snprintf(text, sizeof(text), "%s", "abcdefgh") == 8);
    check(strcmp(text, "abcd") == 0);
    check(user_snprintf(text, 1, "x") == 1 && text[0] == 0);
    check(user_snprintf(NULL, 0, "%d", 12) == 2);
}

static void one_print_is_one_write(void)
{
    writes = 0;
    written_bytes = 0;
    check(user_printf("%s %d\n", "hello", 1) == 8);
    check(writes == 1 && written_bytes == 8);

    written_bytes = 0;
    writes = 0;
    check(user_printf("%600d", 1) == 600);
    check(writes == 2 && written_bytes == 600);

    written_bytes = 0;
    write_limit = 3; /* a device that accepts a few bytes at a time */
    check(user_printf("abcdefgh") == 8);
    check(written_bytes == 8 && memcmp(written, "abcdefgh", 8) == 0);
    write_limit = 0; /* a device that accepts nothing: an error, not an endless loop */
    check(user_printf("abc") == -1);
    write_limit = 1 << 30;
}

static void errors_have_texts(void)
{
    check(strcmp(error_text(ENOENT), "no such file or directory") == 0);
    check(strcmp(error_text(-1), "unknown error") == 0);
    check(strcmp(error_text(6), "unknown error") == 0);
    check(strcmp(error_text(1000), "unknown error") == 0);
    written_bytes = 0;
    check(complain("cat", "x") == 1);
    check(memcmp(written, "cat: x: no such file or directory\n", written_bytes) == 0);
}

static void memory_functions_agree_with_the_host(void)
{
    struct random random = {7};
    static unsigned char ours[256], host[256];
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < 256; i++)
            ours[i] = host[i] = (unsigned char)random_next(&random);
        size_t to = random_below(&random, 128), from = random_below(&random, 128);
        size_t n = random_below(&random, 128);
        user_memmove(ours + to, ours + from, n);
        memmove(host + to, host + from, n);
        check(memcmp(ours, host, 256) == 0);
        user_memset(ours + to, round, n);
        memset(host + to, round, n);
        check(user_memcmp(ours, host, 256) == 0);
    }
}

static void texts_compare(void)
{
    check(user_strcmp("a", "b") < 0 && user_strcmp("b", "a") > 0 && user_strcmp("a", "a") == 0);
    check(user_strcmp("a", "ab") < 0 && user_strcmp("\xff", "a") > 0);
    check(user_strncmp("abc", "abd", 2) == 0);
    check(user_strlen("") == 0 && user_strlen("abc") == 3);
    const char *text = "hello";
    check(user_strchr(text, 'l') == text + 2 && user_strchr(text, 0) == text + 5);
    check(!user_strchr(text, 'x'));
    char small[4];
    check(text_copy(small, "abc", 4) && strcmp(small, "abc") == 0);
    check(!text_copy(small, "abcd", 4) && strcmp(small, "abc") == 0);
}

static void numbers_are_read(void)
{
    int64_t n;
    check(text_to_number("0", &n) && n == 0);
    check(text_to_number("-17", &n) && n == -17);
    check(text_to_number("0x1F", &n) && n == 31);
    check(text_to_number("9223372036854775807", &n) && n == INT64_MAX);
    check(!text_to_number("9223372036854775808", &n));
    check(!text_to_number("", &n) && !text_to_number("-", &n) && !text_to_number("0x", &n));
    check(!text_to_number("12a", &n) && !text_to_number("a", &n) && !text_to_number(" 1", &n));
}

static void check_split(const char *line, int expected, const char *joined)
{
    char text[100], result[100] = "";
    char *words[5];
    snprintf(text, sizeof(text), "%s", line);
    check(text_split(text, words, 5) == expected);
    for (int i = 0; i < expected; i++) {
        strcat(result, words[i]);
        strcat(result, "|");
    }
    check(strcmp(result, joined) == 0);
}

static void lines_are_split(void)
{
    check_split("", 0, "");
    check_split("   ", 0, "");
    check_split("a", 1, "a|");
    check_split("  a  bc d ", 3, "a|bc|d|");
    check_split("sh -c 'a b; c'", 3, "sh|-c|a b; c|");
    check_split("a\"b c\"d '' e", 3, "ab cd||e|");
}

static void bad_lines_are_refused(void)
{
    char *words[5];
    char open_quote[] = "a 'b";
    char many[] = "a b c d e";
    char most[] = "a b c d";
    check(text_split(open_quote, words, 5) == -1);
    check(text_split(many, words, 5) == -1);
    check(text_split(most, words, 5) == 4 && !words[4]);
}

static void the_heap_gives_memory_once(void)
{
    enum { PIECES = 100 };
    static unsigned char *piece[PIECES];
    static size_t bytes[PIECES];
    struct random random = {3};
    for (int round = 0; round < 20000; round++) {
        size_t i = random_below(&random, PIECES);
        if (piece[i]) {
            for (size_t j = 0; j < bytes[i]; j++)
                check(piece[i][j] == (unsigned char)i);
            user_free(piece[i]);
        }
        bytes[i] = random_below(&random, 3000);
        piece[i] = user_malloc(bytes[i]);
        check(piece[i] && (uintptr_t)piece[i] % 16 == 0);
        memset(piece[i], (int)i, bytes[i]);
    }
    for (int i = 0; i < PIECES; i++)
        user_free(piece[i]);
    /* All pieces have merged again. */
    check(first_free && !first_free->next);
    check(memory_end < 500000);
}

static void the_heap_refuses_what_it_has_not(void)
{
    check(!user_malloc(sizeof(memory)));
    check(!user_malloc(SIZE_MAX) && !user_malloc(SIZE_MAX - 20));
    check(!user_calloc(SIZE_MAX / 2, 4));
    char *cleared = user_calloc(10, 10);
    for (int i = 0; i < 100; i++)
        check(cleared[i] == 0);
    user_free(cleared);
    user_free(NULL);
}

int main(void)
{
    run_test(formats_agree_with_the_host);
    run_test(what_does_not_fit_is_cut);
    run_test(one_print_is_one_write);
    run_test(errors_have_texts);
    run_test(memory_functions_agree_with_the_host);
    run_test(texts_compare);
    run_test(numbers_are_read);
    run_test(lines_are_split);
    run_test(bad_lines_are_refused);
    run_test(the_heap_gives_memory_once);
    run_test(the_heap_refuses_what_it_has_not);
    return 0;
}
