/* SPDX-License-Identifier: MIT */

#include "clients.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control_files.h"
#include "machine.h"
#include "scheduler.h"
#include "text.h"

#define FAILED      1
#define WRONG_USAGE 2

/* ---- files ---- */

static int open_control_file(const struct client *client, const char *name, int flags)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", client->control, name);
    int file = open(path, flags | O_CLOEXEC);
    if (file >= 0)
        return file;
    if (errno == ENOENT || errno == ENOTDIR || errno == ENOTCONN)
        say("%s: no server; start one with `schedlab-linux serve`, or name another folder with "
            "--control",
            client->control);
    else
        say("%s: cannot be opened: %s; %s", path, strerror(errno),
            errno == EACCES ? "begin the command with sudo" : "name another folder with --control");
    return -1;
}

/* Prints the whole file. Returns the exit status. */
static int read_control_file(const struct client *client, const char *name, struct text *text)
{
    char piece[4096];
    int file = open_control_file(client, name, O_RDONLY);
    if (file < 0)
        return WRONG_USAGE;
    ssize_t length;
    while ((length = read(file, piece, sizeof(piece))) > 0)
        text_add_bytes(text, piece, (size_t)length);
    int error = errno;
    close(file);
    if (length < 0) {
        say("%s/%s: cannot be read: %s; repeat the command", client->control, name,
            strerror(error));
        return FAILED;
    }
    return 0;
}

/* ---- commands ---- */

/* Returns true if the command was wrong, and not the machine. */
static bool is_usage_error(int error)
{
    return error == EINVAL || error == ESRCH || error == ERANGE || error == ENAMETOOLONG;
}

static int explain_failure(const struct client *client, const char *command, int error)
{
    struct text reason = {0};
    if (error == EINTR)
        say("%s: cancelled, because the fair class was requested or the server ended; repeat it",
            command);
    else if (error == ENAMETOOLONG || read_control_file(client, CONTROL_PROBLEM, &reason) ||
             !reason.length)
        say("%s: %s; see `schedlab-linux status`", command, strerror(error));
    else
        say("%.*s", (int)reason.length - 1, reason.bytes);
    text_free(&reason);
    return is_usage_error(error) ? WRONG_USAGE : FAILED;
}

int client_command(const struct client *client, const char *name, char *const *words, size_t count)
{
    struct text line = {0};
    int file = open_control_file(client, name, O_WRONLY);
    if (file < 0)
        return WRONG_USAGE;
    for (size_t i = 0; i < count; i++)
        text_add(&line, "%s%s", i ? " " : "", words[i]);
    ssize_t written = write(file, line.bytes, line.length);
    int error = errno;
    close(file);
    int status = written < 0 ? explain_failure(client, line.bytes, error) : 0;
    text_free(&line);
    return status;
}

#define STOP_LIMIT_MS 30000

int client_stop(void)
{
    pid_t server = machine_server();
    int process = server ? (int)syscall(SYS_pidfd_open, server, 0) : -1;
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (process < 0) {
        say("no server runs on this machine; there is nothing to stop");
        return WRONG_USAGE;
    }
    int status = 0;
    if (kill(server, SIGTERM) || poll(&end, 1, STOP_LIMIT_MS) != 1) {
        say("the server (PID %d) does not end; end it with `kill -9 %d`", server, server);
        status = FAILED;
    }
    close(process);
    return status;
}

int client_restore(const struct client *client)
{
    static char fair[] = FAIR_CLASS;
    char *words[] = {fair};
    char name[128];
    if (machine_server())
        return client_command(client, CONTROL_STATUS, words, 1);
    control_files_clear(client->control);
    if (machine_has_sched_ext() && !machine_wait_for_fair_class() &&
        machine_has_other_scheduler(name, sizeof(name))) {
        say("%s is loaded, but not by schedlab; end the program that loaded it", name);
        return WRONG_USAGE;
    }
    return 0;
}

/* ---- JSON ---- */

static void print_string(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < ' ')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* Prints the text as a number, if it is one. */
static void print_value(const char *text, size_t length)
{
    bool number = length > 0 && (isdigit((unsigned char)text[0]) || text[0] == '-');
    for (size_t i = 1; i < length; i++)
        number = number && (isdigit((unsigned char)text[i]) || text[i] == '.');
    if (number && isdigit((unsigned char)text[length - 1]))
        printf("%.*s", (int)length, text);
    else if (length == 1 && *text == '?')
        printf("null");
    else
        print_string(text, length);
}

/* Returns the next word of the line, and its length, or 0 if there is none. Advances the line. */
static size_t next_word(const char **line, const char **word)
{
    *line += strspn(*line, " ");
    *word = *line;
    size_t length = strcspn(*line, " \n");
    *line += length;
    return length;
}

/* A column of a table. */
struct column {
    const char *name;
    bool is_text;       /* never a number */
    bool is_all_others; /* the rest of the line, as one text */
};

static void print_row(const char *line, const struct column *columns, size_t count)
{
    printf("{");
    for (size_t i = 0; i < count; i++) {
        const char *word;
        size_t length = next_word(&line, &word);
        if (columns[i].is_all_others)
            length = strcspn(word, "\n");
        printf("%s\"%s\": ", i ? ", " : "", columns[i].name);
        if (columns[i].is_text || columns[i].is_all_others)
            print_string(word, length);
        else
            print_value(word, length);
    }
    printf("}");
}

/* Prints the lines from `line`, which follow the headings. */
static void print_rows(const char *line, const struct column *columns, size_t count)
{
    printf("[");
    for (const char *separator = "\n  "; *line; separator = ",\n  ") {
        printf("%s", separator);
        print_row(line, columns, count);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    printf("\n]");
}

/* Returns what follows `heading` at the beginning of a line, or null if no line begins so. */
static const char *find_line(const char *text, const char *heading)
{
    size_t length = strlen(heading);
    while (text && strncmp(text, heading, length)) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? text + length : NULL;
}

/* "Changed: NAME=VALUE NAME=VALUE" */
static void print_changes(const char *line)
{
    printf("\"changed\": {");
    for (const char *separator = ""; line && *line != '\n'; separator = ", ") {
        const char *word;
        size_t length = next_word(&line, &word);
        size_t name = strcspn(word, "=");
        if (length == 0 || name >= length)
            break;
        printf("%s", separator);
        print_string(word, name);
        printf(": %.*s", (int)(length - name - 1), word + name + 1);
    }
    printf("}");
}

static void print_status_json(const char *text)
{
    static const struct column columns[] = {
        {.name = "name", .is_text = true},
        {.name = "pid"},
        {.name = "state"},
        {.name = "priority"},
        {.name = "timeslice_ms"},
        {.name = "tickets"},
    };
    const char *policy = find_line(text, "Policy: ");
    const char *fair_since = find_line(text, "Fair class since: ");
    const char *table = strstr(text, "\n\n");
    printf("{\"policy\": ");
    print_string(policy ? policy : "", policy ? strcspn(policy, "\n") : 0);
    printf(", ");
    print_changes(find_line(text, "Changed: "));
    printf(", \"fair_since\": ");
    if (fair_since)
        print_string(fair_since, strcspn(fair_since, "\n"));
    else
        printf("null");
    printf(", \"priority_is\": \"%s\", \"tasks\": ",
           find_line(text, "PRIORITY: the weight") ? "weight" : "priority");
    table = table ? strchr(table + 2, '\n') : NULL;
    print_rows(table ? table + 1 : "", columns, sizeof(columns) / sizeof(columns[0]));
    printf("}\n");
}

/* Prints a table whose headings are the first line. */
static void print_table_json(const char *text, const struct column *columns, size_t count)
{
    const char *first = text ? strchr(text, '\n') : NULL;
    print_rows(first ? first + 1 : "", columns, count);
    printf("\n");
}

/* ---- tables ---- */

int client_status(const struct client *client)
{
    struct text text = {0};
    int status = read_control_file(client, CONTROL_STATUS, &text);
    if (status == 0 && client->as_json)
        print_status_json(text.bytes ? text.bytes : "");
    else if (status == 0)
        fwrite(text.bytes, 1, text.length, stdout);
    text_free(&text);
    return status;
}

static int print_table(const struct client *client, const char *name, const struct column *columns,
                       size_t count)
{
    struct text text = {0};
    int status = read_control_file(client, name, &text);
    if (status == 0 && client->as_json)
        print_table_json(text.bytes, columns, count);
    else if (status == 0)
        fwrite(text.bytes, 1, text.length, stdout);
    text_free(&text);
    return status;
}

int client_policies(const struct client *client)
{
    static const struct column columns[] = {{.name = "number"},
                                            {.name = "name", .is_text = true},
                                            {.name = "meaning", .is_all_others = true}};
    return print_table(client, CONTROL_POLICIES, columns, 3);
}

int client_tunables(const struct client *client)
{
    static const struct column columns[] = {
        {.name = "name", .is_text = true},
        {.name = "value"},
        {.name = "minimum"},
        {.name = "maximum"},
        {.name = "default"},
        {.name = "meaning", .is_all_others = true},
    };
    return print_table(client, CONTROL_TUNABLES, columns, 6);
}
