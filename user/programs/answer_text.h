/* SPDX-License-Identifier: MIT */
#ifndef USER_PROGRAMS_TOLD_TEXT_H
#define USER_PROGRAMS_TOLD_TEXT_H

/* Output of steer: each line begins with the number of the command that it answers. */

#include "user/library/user.h"

enum {
    ANSWER_BYTES = 480, /* of a line of text; the rest is truncated */
    TOGETHER_BYTES = PRINT_BYTES,
};

static int64_t id; /* of the present command; 0: none */

/*
 * An urgent process must not occupy a CPU for long: during a text of thousands of lines, it lets
 * others run after each piece of work.
 */
static void give_way(int64_t *since)
{
    static const int64_t work_ns = 2000000, rest_ns = 20000000;
    if (clock_ns() - *since < work_ns)
        return;
    sleep_ns(rest_ns);
    *since = clock_ns();
}

/* Lines that wait to be written together, and the incomplete one. */
static struct {
    char text[TOGETHER_BYTES + 1];
    int line_bytes; /* bytes of whole lines */
    int length;     /* and of the last one so far, which begins with its number */
} told;

static void flush(void)
{
    if (told.line_bytes > 0)
        write(1, told.text, told.line_bytes);
    told.length -= told.line_bytes;
    memmove(told.text, told.text + told.line_bytes, (size_t)told.length);
    told.line_bytes = 0;
}

static bool line_started(void)
{
    return told.length > told.line_bytes;
}

static void put(char c)
{
    if (told.length == TOGETHER_BYTES)
        flush();
    told.text[told.length++] = c;
}

static void begin_line(void)
{
    char head[32];
    snprintf(head, sizeof(head), "@@ %ld |", id);
    for (const char *c = head; *c; c++)
        put(*c);
}

/* Merges consecutive blanks into one. */
static void put_char(char c)
{
    if (!line_started())
        begin_line();
    bool again = c == ' ' && told.text[told.length - 1] == ' ';
    if (!again && told.length - told.line_bytes < ANSWER_BYTES)
        put(c);
}

static void report_line(void)
{
    if (!line_started())
        begin_line();
    put('\n');
    told.line_bytes = told.length;
}

/* Returns false if it cannot be read. */
static bool report_file(int descriptor)
{
    static char piece[4096];
    int64_t since = clock_ns();
    int n;
    while ((n = read(descriptor, piece, sizeof(piece))) > 0) {
        for (int i = 0; i < n; i++) {
            if (piece[i] == '\n')
                report_line();
            else
                put_char(piece[i]);
        }
        give_way(&since);
    }
    if (line_started())
        report_line();
    flush();
    return n == 0;
}

#endif
