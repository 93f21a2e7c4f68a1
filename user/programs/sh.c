/* SPDX-License-Identifier: MIT */

/*
 * The shell.
 *
 *   list     = and-or { (";" | "&") and-or }
 *   and-or   = pipeline { ("&&" | "||") pipeline }
 *   pipeline = command { "|" command }
 *   command  = { word } | "(" list ")", with "< file", "> file", ">> file"
 *
 * A word may have parts in '…' or "…", and \ before any character. A # begins a
 * comment. Built in: cd, exit, wait. A line is parsed into a tree, in one arena
 * that the next line reuses, and the tree is run.
 */

#include "user/library/user.h"

enum { LINE_BYTES = 1024, ARENA_BYTES = 12288, DEPTH_MAX = 6 };
enum { STATUS_WRONG_USAGE = 2 };

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
static const char *input;  /* what is still to be parsed */
static const char *broken; /* why it cannot be; null: all is well so far */
static int depth;
static int script = -1; /* where lines come from, if not from descriptor 0 */

static void *arena_take(size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (arena_used + bytes > ARENA_BYTES) {
        /* The line is given up: what is read of it meanwhile may overwrite its beginning. */
        broken = "the line is too long";
        arena_used = 0;
    }
    void *memory = arena + arena_used;
    arena_used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

/* Parsing */

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

/* Takes `token` if it comes next. */
static bool accept(const char *token)
{
    skip_blanks();
    size_t n = strlen(token);
    if (strncmp(input, token, n) != 0)
        return false;
    input += n;
    return true;
}

/* Does this one-character operator come next, and not its double? */
static bool accept_single(char letter)
{
    skip_blanks();
    if (input[0] != letter || input[1] == letter)
        return false;
    input++;
    return true;
}

/* The length of the word at `input`, as written. */
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

/* Returns the word that comes next, without its quotes, or null if none does. */
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

/* Adds a redirection to the end of the command's, if one comes next. */
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

/* Up to the end of the input, or to a ) that ends the group. */
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

/* Running */

static int run_list(struct job *job);

/* Moves an open file to another descriptor. */
static void move_descriptor(int from, int to)
{
    if (from == to)
        return;
    close(to);
    dup(from);
    close(from);
}

/* There is no seeking: to append is to read up to the end first. */
static int open_to_append(const char *path)
{
    static char skipped[512];
    int descriptor = open(path, OPEN_BOTH | OPEN_CREATE);
    while (descriptor >= 0 && read(descriptor, skipped, sizeof(skipped)) > 0)
        ;
    return descriptor;
}

static void redirect(const struct redirection *redirection)
{
    for (; redirection; redirection = redirection->next) {
        int descriptor;
        if (redirection->kind == '<')
            descriptor = open(redirection->path, OPEN_READ);
        else if (redirection->kind == '>')
            descriptor = open(redirection->path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
        else
            descriptor = open_to_append(redirection->path);
        if (descriptor < 0)
            exit(complain("sh", redirection->path));
        move_descriptor(descriptor, redirection->kind == '<' ? 0 : 1);
    }
}

static int count_words(char *const words[])
{
    int count = 0;
    while (words[count])
        count++;
    return count;
}

static int run_cd(char *const words[])
{
    if (count_words(words) > 2) {
        fprintf(2, "usage: cd [DIRECTORY]\n");
        return STATUS_WRONG_USAGE;
    }
    const char *path = words[1] ? words[1] : "/";
    return chdir(path) < 0 ? complain("cd", path) : 0;
}

static int run_exit(char *const words[])
{
    int64_t status = 0;
    if (count_words(words) > 2 || (words[1] && !text_to_number(words[1], &status))) {
        fprintf(2, "usage: exit [STATUS]\n");
        return STATUS_WRONG_USAGE;
    }
    exit((int)status);
}

static int run_wait(char *const words[])
{
    if (words[1]) {
        fprintf(2, "usage: wait\n");
        return STATUS_WRONG_USAGE;
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

typedef int built_in(char *const words[]);

/* Returns what the shell does itself, since a child could not do it for it, or null for a program.
 * */
static built_in *find_built_in(const struct command *command)
{
    if (!command->words || !command->words[0])
        return NULL;
    if (strcmp(command->words[0], "cd") == 0)
        return run_cd;
    if (strcmp(command->words[0], "exit") == 0)
        return run_exit;
    if (strcmp(command->words[0], "wait") == 0)
        return run_wait;
    return NULL;
}

/* In a child: becomes the command. */
_Noreturn static void become(const struct command *command)
{
    if (script >= 0)
        close(script);
    script = -1;
    redirect(command->redirections);
    if (command->group)
        exit(run_list(command->group));
    built_in *run = find_built_in(command);
    if (run)
        exit(run(command->words));
    if (!command->words[0])
        exit(0); /* files have been made */
    become_program("sh", command->words);
}

/* Starts one command of a pipeline between descriptors, which it closes. Returns false if there can
 * be no more processes. */
static bool start(struct command *command, int from, int to, int unused)
{
    command->pid = fork();
    if (command->pid == 0) {
        if (unused >= 0)
            close(unused);
        if (from >= 0)
            move_descriptor(from, 0);
        if (to >= 0)
            move_descriptor(to, 1);
        become(command);
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    if (command->pid < 0)
        complain("sh", "fork");
    return command->pid > 0;
}

static bool start_all(struct command *first)
{
    int from = -1;
    for (struct command *command = first; command; command = command->next) {
        int ends[2] = {-1, -1};
        if (command->next && pipe(ends) < 0) {
            complain("sh", "pipe");
            close(from);
            return false;
        }
        if (!start(command, from, ends[1], ends[0])) {
            close(ends[0]);
            return false;
        }
        from = ends[0];
    }
    return true;
}

/* Waits for all commands of the pipeline that were started; the status of its last. */
static int wait_for_all(struct command *first)
{
    int status = 0;
    int left = 0;
    for (struct command *command = first; command; command = command->next)
        left += command->pid > 0;

    while (left > 0) {
        int ended_status;
        int ended = wait(&ended_status);
        if (ended < 0)
            return 1;
        for (struct command *command = first; command; command = command->next) {
            if (command->pid != ended)
                continue;
            left--;
            if (!command->next)
                status = ended_status;
        }
    }
    return status;
}

static int run_pipeline(struct command *first)
{
    built_in *run = find_built_in(first);
    if (run && !first->next && !first->redirections)
        return run(first->words);
    bool started = start_all(first);
    int status = wait_for_all(first);
    return started ? status : 1;
}

static int run_and_or(const struct pipeline *pipeline)
{
    int status = 0;
    for (; pipeline; pipeline = pipeline->next) {
        if (pipeline->condition == AFTER_SUCCESS && status != 0)
            continue;
        if (pipeline->condition == AFTER_FAILURE && status == 0)
            continue;
        status = run_pipeline(pipeline->first);
    }
    return status;
}

/* In the background, as a child that the shell does not wait for. */
static int start_background(const struct job *job)
{
    int pid = fork();
    if (pid == 0)
        exit(run_and_or(job->first));
    return pid < 0 ? complain("sh", "fork") : 0;
}

static int run_list(struct job *job)
{
    int status = 0;
    for (; job; job = job->next)
        status = job->background ? start_background(job) : run_and_or(job->first);
    return status;
}

/* Reading */

static int run_line(const char *line)
{
    struct job *list = parse(line);
    if (!broken)
        return run_list(list);
    fprintf(2, "sh: %s\n", broken);
    return STATUS_WRONG_USAGE;
}

/* Reads a line byte by byte: what follows it is for the programs that it starts. Its length, -1 at
 * the end of the input; one that does not fit is LINE_BYTES long, and cut. */
static int read_line(int descriptor, char line[LINE_BYTES])
{
    int n = 0;
    char c;
    for (;;) {
        int got = read(descriptor, &c, 1);
        if (got <= 0 && n == 0)
            return -1;
        if (got <= 0 || c == '\n')
            break;
        if (n < LINE_BYTES)
            line[n++] = c;
    }
    line[n < LINE_BYTES ? n : LINE_BYTES - 1] = 0;
    return n;
}

static int run_lines(int descriptor)
{
    static char line[LINE_BYTES];
    struct file_status file;
    bool prompt = fstat(descriptor, &file) == 0 && file.type == FILE_DEVICE;
    int status = 0;
    for (;;) {
        if (prompt)
            fprintf(2, "$ ");
        int length = read_line(descriptor, line);
        if (length < 0)
            return status;
        if (length < LINE_BYTES) {
            status = run_line(line);
        } else {
            fprintf(2, "sh: the line is too long\n");
            status = STATUS_WRONG_USAGE;
        }
    }
}

int main(int argc, char *argv[])
{
    if (argc == 1)
        return run_lines(0);
    if (argc == 3 && strcmp(argv[1], "-c") == 0)
        return run_line(argv[2]);
    if (argc != 2 || argv[1][0] == '-')
        usage("sh [SCRIPT | -c LINE]");
    script = open(argv[1], OPEN_READ);
    if (script < 0)
        exit(complain("sh", argv[1]) + 126);
    return run_lines(script);
}
