/* SPDX-License-Identifier: MIT */

/*
 * Prints the lines that match a pattern. A pattern is characters, with . for any, * for none or
 * more of the previous one, ^ and $ for the line's ends, and \ before a literal character.
 *
 * The matcher is a machine that is in several states at once (Thompson 1968), one bit a state. So
 * the time is proportional to the line's length, for any line.
 */

#include "user/library/user.h"

enum { ELEMENTS_MAX = 63 };

struct element {
    char c;
    bool any;
    bool repeated;
};

static struct element elements[ELEMENTS_MAX];
static int element_count;
static bool from_start;
static bool to_end;
static char line[4096];
static char input[4096];

/* Returns false if the pattern is too long. */
static bool compile(const char *pattern)
{
    from_start = *pattern == '^';
    if (from_start)
        pattern++;
    for (; *pattern; pattern++) {
        if (pattern[0] == '$' && !pattern[1]) {
            to_end = true;
            break;
        }
        if (element_count == ELEMENTS_MAX)
            return false;
        struct element *element = &elements[element_count++];
        element->any = *pattern == '.';
        if (*pattern == '\\' && pattern[1])
            pattern++;
        element->c = *pattern;
        element->repeated = pattern[1] == '*';
        if (element->repeated)
            pattern++;
    }
    return true;
}

/* State i: elements before i are matched. Adds the states after optional repeated elements. */
static uint64_t pass_over(uint64_t states)
{
    for (int i = 0; i < element_count; i++) {
        if ((states >> i & 1) && elements[i].repeated)
            states |= 1ul << (i + 1);
    }
    return states;
}

static uint64_t step(uint64_t states, char c)
{
    uint64_t next = 0;
    for (int i = 0; i < element_count; i++) {
        if ((states >> i & 1) && (elements[i].any || elements[i].c == c))
            next |= 1ul << (elements[i].repeated ? i : i + 1);
    }
    return next;
}

static bool matches(const char *text)
{
    uint64_t accepted = 1ul << element_count;
    uint64_t states = pass_over(1);
    for (; *text; text++) {
        if (!to_end && (states & accepted))
            return true;
        states = pass_over(step(states, *text) | (from_start ? 0 : 1));
    }
    return (states & accepted) != 0;
}

/* Returns true if the line was printed. */
static bool serve_line(size_t length, const char *prefix)
{
    line[length] = 0;
    if (!matches(line))
        return false;
    printf("%s%s%s\n", prefix ? prefix : "", prefix ? ":" : "", line);
    return true;
}

/* Processes a line that is longer than the buffer in pieces. Returns true if something matched. */
static bool serve(int descriptor, const char *prefix)
{
    size_t length = 0;
    bool has_match = false;
    int n;
    while ((n = read(descriptor, input, sizeof(input))) > 0) {
        for (int i = 0; i < n; i++) {
            if (input[i] != '\n')
                line[length++] = input[i];
            if (input[i] == '\n' || length == sizeof(line) - 1) {
                has_match |= serve_line(length, prefix);
                length = 0;
            }
        }
    }
    if (length > 0)
        has_match |= serve_line(length, prefix);
    return has_match;
}

int main(int argc, char *argv[])
{
    if (argc < 2)
        usage("grep PATTERN [FILE]...");
    if (!compile(argv[1])) {
        fprintf(2, "grep: the pattern is longer than %d characters\n", ELEMENTS_MAX);
        return 2;
    }
    if (argc == 2)
        return serve(0, NULL) ? 0 : 1;

    bool has_match = false;
    bool failed = false;
    for (int i = 2; i < argc; i++) {
        int descriptor = open(argv[i], OPEN_READ);
        if (descriptor < 0) {
            complain("grep", argv[i]);
            failed = true;
            continue;
        }
        has_match |= serve(descriptor, argc > 3 ? argv[i] : NULL);
        close(descriptor);
    }
    return failed ? 2 : has_match ? 0 : 1;
}
