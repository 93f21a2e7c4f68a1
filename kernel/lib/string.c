/* SPDX-License-Identifier: MIT */
#include "string.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Copies and fills use words of eight bytes, eight words a step, where both sides are aligned
 * alike: RISC-V need not support unaligned access. The file must be compiled freestanding, or the
 * compiler may implement memcpy() by a call of memcpy().
 */
typedef uint64_t __attribute__((may_alias)) word_t;

enum { WORD = sizeof(word_t), STEP = 8 * WORD };

static bool aligned_alike(const void *a, const void *b)
{
    return (((uintptr_t)a ^ (uintptr_t)b) % WORD) == 0;
}

static bool aligned(const void *pointer)
{
    return (uintptr_t)pointer % WORD == 0;
}

static void copy_step(word_t *to, const word_t *from)
{
    word_t a = from[0], b = from[1], c = from[2], d = from[3];
    word_t e = from[4], f = from[5], g = from[6], h = from[7];

    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    to[4] = e, to[5] = f, to[6] = g, to[7] = h;
}

/*
 * For sides with different alignment: whole words are read from the source and combined from
 * neighbours. The first bytes are copied one by one, so that no word reaches beyond the source.
 * Returns the number of bytes copied; fewer than 16 remain.
 */
static size_t copy_shifted(char *to, const char *from, size_t n)
{
    size_t done = WORD + -(uintptr_t)to % WORD;
    unsigned shift = (uintptr_t)(from + done) % WORD * 8;
    const word_t *words = (const word_t *)(from + done - shift / 8);
    word_t word = *words;

    for (size_t i = 0; i < done; i++)
        to[i] = from[i];
    for (; n - done >= 2 * WORD; done += WORD) {
        word_t next = *++words;

        *(word_t *)(to + done) = word >> shift | next << (64 - shift);
        word = next;
    }
    return done;
}

void *memcpy(void *destination, const void *source, size_t n)
{
    char *to = destination;
    const char *from = source;

    if (n >= WORD && aligned_alike(to, from)) {
        for (; !aligned(to); n--)
            *to++ = *from++;
        for (; n >= STEP; n -= STEP, to += STEP, from += STEP)
            copy_step((word_t *)to, (const word_t *)from);
        for (; n >= WORD; n -= WORD, to += WORD, from += WORD)
            *(word_t *)to = *(const word_t *)from;
    } else if (n >= 4 * WORD) {
        size_t done = copy_shifted(to, from, n);

        to += done, from += done, n -= done;
    }
    for (; n > 0; n--)
        *to++ = *from++;
    return destination;
}

/* Copies from the end to the front: for a destination that overlaps the source's end. */
static void copy_backward(char *to, const char *from, size_t n)
{
    if (n >= WORD && aligned_alike(to, from)) {
        for (; !aligned(to + n); n--)
            to[n - 1] = from[n - 1];
        for (; n >= STEP; n -= STEP)
            copy_step((word_t *)(to + n - STEP), (const word_t *)(from + n - STEP));
        for (; n >= WORD; n -= WORD)
            *(word_t *)(to + n - WORD) = *(const word_t *)(from + n - WORD);
    }
    for (; n > 0; n--)
        to[n - 1] = from[n - 1];
}

/* memcpy() would do for a destination below its source, if copy_step() did not read ahead. */
static void copy_forward(char *to, const char *from, size_t n)
{
    if (n >= WORD && aligned_alike(to, from)) {
        for (; !aligned(to); n--)
            *to++ = *from++;
        for (; n >= WORD; n -= WORD, to += WORD, from += WORD)
            *(word_t *)to = *(const word_t *)from;
    }
    for (; n > 0; n--)
        *to++ = *from++;
}

void *memmove(void *destination, const void *source, size_t n)
{
    uintptr_t to = (uintptr_t)destination;
    uintptr_t from = (uintptr_t)source;

    if (to - from >= n && from - to >= n)
        return memcpy(destination, source, n);
    if (to < from)
        copy_forward(destination, source, n);
    else if (to > from)
        copy_backward(destination, source, n);
    return destination;
}

void *memset(void *destination, int byte, size_t n)
{
    char *to = destination;

    if (n >= 2 * WORD) {
        word_t word = (uint8_t)byte * 0x0101010101010101ul;

        for (; !aligned(to); n--)
            *to++ = (char)byte;
        for (; n >= 2 * STEP; n -= 2 * STEP, to += 2 * STEP) {
            word_t *words = (word_t *)to;

            words[0] = word, words[1] = word, words[2] = word, words[3] = word;
            words[4] = word, words[5] = word, words[6] = word, words[7] = word;
            words[8] = word, words[9] = word, words[10] = word, words[11] = word;
            words[12] = word, words[13] = word, words[14] = word, words[15] = word;
        }
        for (; n >= WORD; n -= WORD, to += WORD)
            *(word_t *)to = word;
    }
    for (; n > 0; n--)
        *to++ = (char)byte;
    return destination;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *left = a;
    const uint8_t *right = b;

    if (aligned_alike(left, right) && aligned(left)) {
        for (; n >= WORD && *(const word_t *)left == *(const word_t *)right; n -= WORD)
            left += WORD, right += WORD;
    }
    for (; n > 0; n--, left++, right++) {
        if (*left != *right)
            return *left - *right;
    }
    return 0;
}

size_t strlen(const char *text)
{
    const char *end = text;

    while (*end != '\0')
        end++;
    return (size_t)(end - text);
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b || *a == '\0')
            return (uint8_t)*a - (uint8_t)*b;
    }
    return 0;
}

void text_copy(char *destination, const char *source, size_t size)
{
    if (size == 0)
        return;
    for (; size > 1 && *source != '\0'; size--)
        *destination++ = *source++;
    *destination = '\0';
}

bool text_has(const char *text, char character)
{
    while (*text && *text != character)
        text++;
    return *text;
}

bool text_to_number(const char *text, int64_t *number)
{
    bool negative = *text == '-';
    int64_t value = 0; /* kept negative: INT64_MIN has no positive counterpart */
    text += negative;
    if (!*text)
        return false;
    for (; *text; text++) {
        int digit = *text - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    if (!negative && __builtin_mul_overflow(value, -1, &value))
        return false;
    *number = value;
    return true;
}
