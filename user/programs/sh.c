/* SPDX-License-Identifier: MIT */

/*
 * The shell. It parses a line into a tree (shell_parser.h), and runs the tree. Built in: cd, exit,
 * wait.
 */

#include "shell_parser.h"

enum { STATUS_WRONG_USAGE = 2 };

static int script = -1; /* source of lines, if not descriptor 0 */

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

/* There is no seeking: appending first reads up to the end. */
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

/* Returns the built-in command, which a child could not run for the shell, or null for a
 * program. */
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

/* Turns a child into the command. */
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
        exit(0); /* files have been created */
    become_program("sh", command->words);
}

/* Starts one command of a pipeline between descriptors, which it closes. Returns false if no
 * more processes can be created. */
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

/* Waits for all started commands of the pipeline. Returns the status of the last. */
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

/* Starts a background job, as a child that the shell does not wait for. */
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

/* Reads a line byte by byte: later input is for the programs that it starts. Returns its length,
 * -1 at the end of the input; a line that does not fit is truncated to LINE_BYTES. */
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
