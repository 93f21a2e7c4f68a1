/* SPDX-License-Identifier: MIT */

#include "user/library/text.h"

void *memset(void *destination, int byte, size_t n)
{
    unsigned char *to = destination;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)byte;
    return destination;
}

void *memcpy(void *destination, const void *source, size_t n)
{
    return memmove(destination, source, n);
}

static bool word_aligned(const void *left, const void *right)
{
    return (((uintptr_t)left | (uintptr_t)right) & 7) == 0;
}

void *memmove(void *destination, const void *source, size_t n)
{
    unsigned char *to = destination;
    const unsigned char *from = source;

    if (to > from && to < from + n) {
        while (n-- > 0)
            to[n] = from[n];
        return destination;
    }
    size_t i = 0;
    if (word_aligned(to, from)) {
        for (; i + 8 <= n; i += 8)
            __builtin_memcpy(__builtin_assume_aligned(to + i, 8),
                             __builtin_assume_aligned(from + i, 8), 8);
    }
    for (; i < n; i++)
        to[i] = from[i];
    return destination;
}

int memcmp(const void *left, const void *right, size_t n)
{
    const unsigned char *a = left;
    const unsigned char *b = right;
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i])
            return a[i] - b[i];
    }
    return 0;
}

size_t strlen(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, SIZE_MAX);
}

int strncmp(const char *left, const char *right, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (left[i] != right[i] || !left[i])
            return (unsigned char)left[i] - (unsigned char)right[i];
    }
    return 0;
}

char *strchr(const char *text, int c)
{
    for (;; text++) {
        if (*text == (char)c)
            return (char *)text;
        if (!*text)
            return NULL;
    }
}

bool text_copy(char *destination, const char *source, size_t size)
{
    size_t n = strlen(source);
    bool fits = n < size;
    if (!fits)
        n = size - 1;
    memcpy(destination, source, n);
    destination[n] = 0;
    return fits;
}

/* Returns the value of the digit `c`; 99: not a digit. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

bool text_to_number(const char *text, int64_t *number)
{
    bool negative = *text == '-';
    if (negative)
        text++;
    unsigned base = 10;
    if (text[0] == '0' && text[1] == 'x') {
        base = 16;
        text += 2;
    }
    if (!*text)
        return false;

    uint64_t value = 0;
    for (; *text; text++) {
        unsigned digit = digit_value(*text);
        if (digit >= base || value > ((uint64_t)INT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *number = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Moves one word from `from` to `to`, without its quotes. Returns its end, or null if that is
 * within a quote. */
static char *take_word(char *from, char **to)
{
    char quote = 0;
    for (; *from && (quote || !is_blank(*from)); from++) {
        if (*from == quote)
            quote = 0;
        else if (!quote && (*from == '\'' || *from == '"'))
            quote = *from;
        else
            *(*to)++ = *from;
    }
    return quote ? NULL : from;
}

int text_split(char *text, char *words[], int capacity)
{
    char *to = text;
    int count = 0;

    for (;;) {
        while (is_blank(*text))
            text++;
        if (!*text)
            break;
        if (count == capacity - 1)
            return -1;
        words[count++] = to;
        text = take_word(text, &to);
        if (!text)
            return -1;
        bool last = !*text;
        *to++ = 0; /* at or before the blank that ended the word */
        if (last)
            break;
        text++;
    }
    words[count] = NULL;
    return count;
}
