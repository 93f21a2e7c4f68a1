/* SPDX-License-Identifier: MIT */

/* Merge sort: equal elements stay in their order, and input that is already sorted is only read. */

#include "model/inside.h"

#define MERGE_SORT(NAME, TYPE, KEY)                                                                \
    static void NAME##_merge(TYPE *rows, TYPE *spare, uint32_t middle, uint32_t count)             \
    {                                                                                              \
        uint32_t left = 0, right = middle, next = 0;                                               \
        for (uint32_t i = 0; i < middle; i++)                                                      \
            spare[i] = rows[i];                                                                    \
        while (left < middle && right < count)                                                     \
            rows[next++] = rows[right] KEY < spare[left] KEY ? rows[right++] : spare[left++];      \
        while (left < middle)                                                                      \
            rows[next++] = spare[left++];                                                          \
    }                                                                                              \
                                                                                                   \
    static void NAME##_all(TYPE *rows, TYPE *spare, uint32_t count)                                \
    {                                                                                              \
        for (uint32_t width = 1; width < count; width *= 2) {                                      \
            for (uint32_t begin = 0; begin + width < count; begin += 2 * width) {                  \
                uint32_t length = count - begin < 2 * width ? count - begin : 2 * width;           \
                if (rows[begin + width] KEY < rows[begin + width - 1] KEY)                         \
                    NAME##_merge(rows + begin, spare, width, length);                              \
            }                                                                                      \
        }                                                                                          \
    }

MERGE_SORT(sortables, struct sortable, .key)
MERGE_SORT(numbers, int64_t, )
MERGE_SORT(reals, double, )

void sort(struct sortable *rows, struct sortable *spare, uint32_t count)
{
    sortables_all(rows, spare, count);
}

void sort_numbers(int64_t *values, int64_t *spare, uint32_t count)
{
    numbers_all(values, spare, count);
}

double sum_up(double *values, double *spare, uint32_t count)
{
    double sum = 0;
    reals_all(values, spare, count);
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* ---- selection without sorting all ---- */

#define DIGIT_BITS 10
#define DIGITS     (1u << DIGIT_BITS)

static uint32_t bits_of(int64_t value)
{
    uint32_t bits = 0;
    while (bits < 63 && value >> bits != 0)
        bits++;
    return bits;
}

static uint32_t digit_of(int64_t value, uint32_t shift)
{
    return (uint32_t)(value >> shift) & (DIGITS - 1);
}

/* Returns the digit of the value with this rank. Sets `rank` to the value's rank among those
 * with the same digit. */
static uint32_t find_digit(const int64_t *values, uint32_t count, uint32_t shift, uint32_t *rank)
{
    uint32_t counts[DIGITS] = {0}, digit = 0;
    for (uint32_t i = 0; i < count; i++)
        counts[digit_of(values[i], shift)]++;
    for (; *rank >= counts[digit]; digit++)
        *rank -= counts[digit];
    return digit;
}

int64_t value_of_rank(const int64_t *values, int64_t *spare, uint32_t count, uint32_t rank)
{
    int64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = later(largest, values[i]);
    uint32_t bits = bits_of(largest);
    for (const int64_t *from = values; bits > 0; from = spare) {
        uint32_t shift = bits > DIGIT_BITS ? bits - DIGIT_BITS : 0, left = 0;
        uint32_t digit = find_digit(from, count, shift, &rank);
        for (uint32_t i = 0; i < count; i++) {
            if (digit_of(from[i], shift) == digit)
                spare[left++] = from[i];
        }
        count = left;
        bits = shift;
        values = spare;
    }
    return values[0];
}
