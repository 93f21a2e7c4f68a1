/* SPDX-License-Identifier: MIT */
#ifndef USER_PROGRAMS_SHELL_PARSER_H
#define USER_PROGRAMS_SHELL_PARSER_H

/*
 * Parses a line into a tree of commands.
 *
 *   list     = and-or { (";" | "&") and-or }
 *   and-or   = pipeline { ("&&" | "||") pipeline }
 *   pipeline = command { "|" command }
 *   command  = { word } | "(" list ")", with "< file", "> file", ">> file"
 *
 * A word may have parts in '…' or "…", and \ before any character. A # begins a
 * comment. The tree lies in one arena, which the next line reuses.
 */

#include "user/library/user.h"

enum { LINE_BYTES = 1024, ARENA_BYTES = 12288, DEPTH_MAX = 6 };

struct redirection {
    char kind; /* '<', '>' or 'a', which appends */
    char *path;
    struct redirection *next;
};

struct job;

struct command {
    char **words; /* ends with null; null if it is a group */
    struct job *group;
    struct redirection *redirections;
    int pid; /* once it runs */
    struct command *next;
};

enum condition { ALWAYS, AFTER_SUCCESS, AFTER_FAILURE };

struct pipeline {
    enum condition condition;
    struct command *first;
    struct pipeline *next;
};

struct job {
    struct pipeline *first;
    bool background;
    struct job *next;
};

static _Alignas(16) char arena[ARENA_BYTES];
static size_t arena_used;
static const char *input;  /* the input still to be parsed */
static const char *broken; /* the syntax error; null: none so far */
static int depth;

static void *arena_take(size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (arena_used + bytes > ARENA_BYTES) {
        /* The line is abandoned: reading it may overwrite its beginning. */
        broken = "the line is too long";
        arena_used = 0;
    }
    void *memory = arena + arena_used;
    arena_used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool ends_word(char c)
{
    return !c || is_blank(c) || strchr(";&|<>()", c);
}

static void skip_blanks(void)
{
    while (is_blank(*input))
        input++;
    if (*input == '#')
        input += strlen(input);
}

/* Consumes `token` if it comes next. */
static bool accept(const char *token)
{
    skip_blanks();
    size_t n = strlen(token);
    if (strncmp(input, token, n) != 0)
        return false;
    input += n;
    return true;
}

/* Consumes this one-character operator if it comes next, and not its double. */
static bool accept_single(char letter)
{
    skip_blanks();
    if (input[0] != letter || input[1] == letter)
        return false;
    input++;
    return true;
}

/* Returns the length of the word at `input`, as written. */
static size_t word_length(void)
{
    char quote = 0;
    size_t n = 0;
    for (; input[n] && (quote || !ends_word(input[n])); n++) {
        if (quote && input[n] == quote)
            quote = 0;
        else if (!quote && (input[n] == '\'' || input[n] == '"'))
            quote = input[n];
        else if (!quote && input[n] == '\\' && input[n + 1])
            n++;
    }
    if (quote)
        broken = "a quote is not closed";
    return n;
}

/* Returns the next word, without its quotes, or null if none comes next. */
static char *parse_word(void)
{
    skip_blanks();
    if (ends_word(*input))
        return NULL;
    size_t length = word_length();
    char *word = arena_take(length + 1);
    char *to = word;
    char quote = 0;
    for (const char *end = input + length; input < end; input++) {
        if (quote && *input == quote)
            quote = 0;
        else if (!quote && (*input == '\'' || *input == '"'))
            quote = *input;
        else if (!quote && *input == '\\' && input + 1 < end)
            *to++ = *++input;
        else
            *to++ = *input;
    }
    return word;
}

/* Adds a redirection to the command's, if one comes next. */
static bool parse_redirection(struct command *command)
{
    char kind;
    if (accept("<"))
        kind = '<';
    else if (accept(">>"))
        kind = 'a';
    else if (accept(">"))
        kind = '>';
    else
        return false;

    struct redirection **link = &command->redirections;
    while (*link)
        link = &(*link)->next;
    *link = arena_take(sizeof(**link));
    (*link)->kind = kind;
    (*link)->path = parse_word();
    if (!(*link)->path)
        broken = "a file name is missing";
    return true;
}

static void parse_words(struct command *command)
{
    command->words = arena_take((ARGUMENTS_MAX + 1) * sizeof(char *));
    int count = 0;
    while (!broken) {
        if (parse_redirection(command))
            continue;
        char *word = parse_word();
        if (!word)
            break;
        if (count == ARGUMENTS_MAX)
            broken = "too many words";
        else
            command->words[count++] = word;
    }
    if (count == 0 && !command->redirections && !broken)
        broken = "a command is missing";
}

static struct job *parse_list(void);

static struct command *parse_command(void)
{
    struct command *command = arena_take(sizeof(*command));
    if (!accept("(")) {
        parse_words(command);
        return command;
    }
    if (++depth > DEPTH_MAX)
        broken = "too many parentheses";
    else
        command->group = parse_list();
    depth--;
    if (!broken && !command->group)
        broken = "a command is missing";
    if (!broken && !accept(")"))
        broken = "a ) is missing";
    while (!broken && parse_redirection(command))
        ;
    return command;
}

static struct pipeline *parse_pipeline(enum condition condition)
{
    struct pipeline *pipeline = arena_take(sizeof(*pipeline));
    struct command **link = &pipeline->first;
    pipeline->condition = condition;
    do {
        *link = parse_command();
        link = &(*link)->next;
    } while (!broken && accept_single('|'));
    return pipeline;
}

static struct job *parse_job(void)
{
    struct job *job = arena_take(sizeof(*job));
    struct pipeline **link = &job->first;
    enum condition condition = ALWAYS;
    do {
        *link = parse_pipeline(condition);
        link = &(*link)->next;
        condition = accept("&&") ? AFTER_SUCCESS : accept("||") ? AFTER_FAILURE : ALWAYS;
    } while (!broken && condition != ALWAYS);
    return job;
}

/* Parses to the end of the input, or to a ) that ends the group. */
static struct job *parse_list(void)
{
    struct job *first = NULL;
    struct job **link = &first;
    for (;;) {
        skip_blanks();
        if (broken || !*input || *input == ')')
            return first;
        *link = parse_job();
        (*link)->background = accept_single('&');
        bool ended = (*link)->background || accept(";") || !*input || *input == ')';
        if (!ended && !broken)
            broken = "; or & or | is missing";
        link = &(*link)->next;
    }
}

static struct job *parse(const char *line)
{
    arena_used = 0;
    broken = NULL;
    depth = 0;
    input = line;
    struct job *list = parse_list();
    if (!broken && *input == ')')
        broken = "a ) too many";
    return list;
}

#endif
