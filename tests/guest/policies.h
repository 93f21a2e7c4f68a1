/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GUEST_POLICIES_H
#define TESTS_GUEST_POLICIES_H

#include "tests/guest/check.h"

/* Reads the files of /proc, and all policies and presets of this kernel from them. */

#define PROC_BYTES (1024 * 1024)

/* Returns a file's complete text, in a buffer that the next call overwrites. */
static inline char *read_text(const char *path)
{
    static char *text;
    int length = 0;
    int n;
    if (!text)
        text = malloc(PROC_BYTES);
    int descriptor = open(path, OPEN_READ);
    check(text && descriptor >= 0);
    while ((n = read(descriptor, text + length, PROC_BYTES - 1 - length)) > 0)
        length += n;
    check(n == 0 && close(descriptor) == 0);
    text[length] = 0;
    return text;
}

/*
 * Returns the next line of a text without its newline, or null after the last line. Advances the
 * text.
 */
static inline char *next_line(char **text)
{
    char *line = *text;
    if (!*line)
        return NULL;
    while (**text && **text != '\n')
        (*text)++;
    if (**text)
        *(*text)++ = 0;
    return line;
}

/*
 * Splits a line at blanks into at most `capacity` words, and returns their number. The last word
 * may contain the rest of the line.
 */
static inline int cut_words(char *line, char *words[], int capacity)
{
    int count = 0;
    while (count < capacity) {
        while (*line == ' ')
            line++;
        if (!*line)
            break;
        words[count++] = line;
        while (*line && *line != ' ' && count < capacity)
            line++;
        if (*line == ' ' && count < capacity)
            *line++ = 0;
    }
    return count;
}

#define POLICIES_MAX 64
static char policy_names[POLICIES_MAX][64]; /* presets are listed as name:preset */
static int policy_count;

static inline void list_policies(void)
{
    char *text = read_text("/proc/sched_policies");
    char *line = next_line(&text);
    char *words[3];
    check(line && strncmp(line, "NUMBER ", 7) == 0);
    policy_count = 0;
    while ((line = next_line(&text))) {
        check(cut_words(line, words, 3) == 3 && policy_count < POLICIES_MAX);
        check(text_copy(policy_names[policy_count++], words[1], sizeof(policy_names[0])));
    }
    check(policy_count >= 2);
}

#endif
