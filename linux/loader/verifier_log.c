/* SPDX-License-Identifier: MIT */

/*
 * Extracts the useful lines of a verifier's log, which may have a million
 * lines. Newer kernels end it with a report that starts with "Verification
 * failed: …". Others end it with the reason. For those, the useful lines are
 * the reason, the line of source before it, and the instructions that lead
 * there.
 */

#include "verifier_log.h"

#include <errno.h>
#include <string.h>

#include "text.h"

#define LINES_SHOWN    12
#define REPORT_LINES   24
#define REPORT         "Verification failed: "
#define CAUSES         "Causal path:" /* part of the report; it may be long */
#define MESSAGES_SHOWN 6

/* Returns the beginning of the line before `line`, or null if there is none. */
static const char *line_before(const char *log, const char *line)
{
    if (line == log)
        return NULL;
    line--; /* the newline */
    while (line > log && line[-1] != '\n')
        line--;
    return line;
}

static int line_length(const char *line)
{
    return (int)strcspn(line, "\n");
}

/* Returns true for a counter of the verifier's work; they end each log. */
static bool is_statistics(const char *line)
{
    static const char *const beginnings[] = {"processed ", "verification time ", "stack depth ",
                                             "subprog#"};
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return *line == '\n' || *line == '\0';
}

/* Returns the line with the reason, or null if the log has none. */
static const char *find_reason(const char *log)
{
    const char *line = line_before(log, log + strlen(log));
    while (line && is_statistics(line))
        line = line_before(log, line);
    return line;
}

/* Returns the line of source that the verifier was at ("; code @ file.c:12"), or null. */
static const char *find_source(const char *log, const char *line)
{
    while (line && *line != ';')
        line = line_before(log, line);
    return line;
}

static void add_last_lines(struct text *text, const char *log, const char *last)
{
    const char *first = last;
    for (int i = 1; i < LINES_SHOWN && line_before(log, first); i++)
        first = line_before(log, first);
    while (first < last) {
        text_add(text, "\n    | %.*s", line_length(first), first);
        first += line_length(first) + 1;
    }
}

/* Adds "Verification failed: WHAT", and the non-empty lines that follow it. */
static void add_report(struct text *text, const char *report)
{
    const char *line = report;
    text_add(text, ": %.*s", line_length(report + strlen(REPORT)), report + strlen(REPORT));
    for (int shown = 0; shown < REPORT_LINES; shown++) {
        line += line_length(line);
        line += strspn(line, "\n");
        if (is_statistics(line) || strncmp(line, CAUSES, strlen(CAUSES)) == 0)
            break;
        text_add(text, "\n    | %.*s", line_length(line), line);
    }
}

/* Adds the reason, and what comes before it. */
static void add_reason(struct text *text, const char *log)
{
    const char *reason = find_reason(log);
    const char *source = find_source(log, reason);
    text_add(text, ": %.*s", line_length(reason), reason);
    if (source)
        text_add(text, "\n    at %.*s", line_length(source + 1), source + 1);
    add_last_lines(text, log, reason);
}

/* Adds the program that libbpf complains about: "prog 'NAME': …". */
static void add_program(struct text *text, const char *messages)
{
    const char *match = messages ? strstr(messages, "prog '") : NULL;
    if (match)
        text_add(text, " its program %.*s", (int)strcspn(match + 6, "'"), match + 6);
    else
        text_add(text, " it");
}

static void add_messages(struct text *text, const char *messages)
{
    for (int i = 0; messages && *messages && i < MESSAGES_SHOWN; i++) {
        text_add(text, "\n    | %.*s", line_length(messages), messages);
        messages += line_length(messages);
        messages += *messages == '\n';
    }
}

void explain_failed_load(struct text *text, const char *name, int error, const char *messages,
                         const char *log)
{
    text_add(text, "%s: ", name);
    if (error == -EINTR) {
        text_add(text, "loading was cancelled");
    } else if (log && find_reason(log)) {
        const char *report = strstr(log, REPORT);
        text_add(text, "rejected by the kernel's verifier");
        add_program(text, messages);
        if (report)
            add_report(text, report);
        else
            add_reason(text, log);
    } else {
        text_add(text, "cannot be loaded: %s", strerror(-error));
        add_messages(text, messages);
    }
}
