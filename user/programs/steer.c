/* SPDX-License-Identifier: MIT */

/*
 * Runs commands from the console: a monitor of this machine types them there. It reads the kernel's
 * scheduler files, sets attributes, and starts programs. docs/monitor.md lists the commands and
 * answers.
 *
 * Up to 512 bytes of one write stay together on the console. So each write has whole lines, and no
 * other output can split them.
 */

#include "abi/attribute_names.h"
#include "user/library/user.h"
#include "user/programs/answer_text.h"
#include "user/programs/record_cost.h"

enum { LINE_BYTES = 4000 }; /* of a command; the console keeps 4,096 unread ones */

static int *started; /* shared with its children: a PID, or the negative of an error */

/* ---- answers ---- */

static void done(void)
{
    printf("@@ %ld ok\n", id);
}

static void refuse(int error, const char *what)
{
    printf("@@ %ld error %d %.*s\n", id, error, ANSWER_BYTES, what);
}

/* Reports that the last call has failed. */
static void fail(const char *what)
{
    int error = last_error();
    printf("@@ %ld error %d %.*s: %s\n", id, error, ANSWER_BYTES / 2, what, error_text(error));
}

/* ---- commands: each takes the rest of its line; false: wrong syntax ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the next word of a line; "": none. */
static char *take_word(char **line)
{
    while (is_blank(**line))
        (*line)++;
    char *word = *line;
    while (**line && !is_blank(**line))
        (*line)++;
    if (**line)
        *(*line)++ = 0;
    while (is_blank(**line))
        (*line)++;
    return word;
}

/* Reads the next word, which must be a number. Returns false if it is not. */
static bool take_number(char **line, int64_t minimum, int64_t *number)
{
    return text_to_number(take_word(line), number) && *number >= minimum && *number <= INT32_MAX;
}

/* Opens the file of /proc whose name is the next word. Returns -1 on failure. */
static int open_text(const char *name, int flags)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/proc/%s", name);
    return open(path, flags);
}

static bool is_name(const char *word)
{
    return *word && !strchr(word, '/') && strlen(word) < PATH_BYTES - sizeof("/proc/");
}

static bool obey_read(char *rest)
{
    const char *name = take_word(&rest);
    if (!is_name(name) || *rest)
        return false;
    int descriptor = open_text(name, OPEN_READ);
    if (descriptor >= 0 && report_file(descriptor))
        done();
    else
        fail(name);
    close(descriptor);
    return true;
}

static bool obey_write(char *rest)
{
    const char *name = take_word(&rest);
    if (!is_name(name) || !*rest)
        return false;
    int descriptor = open_text(name, OPEN_WRITE);
    int length = (int)strlen(rest);
    if (descriptor >= 0 && write(descriptor, rest, length) == length)
        done();
    else
        fail(descriptor < 0 ? name : rest);
    close(descriptor);
    return true;
}

static bool obey_set(char *rest)
{
    int64_t pid;
    int64_t value;
    if (!take_number(&rest, 1, &pid))
        return false;
    const char *name = take_word(&rest);
    uint32_t kind = attribute_named(name);
    if (!kind || !take_number(&rest, INT32_MIN, &value) || *rest)
        return false;
    if (setattribute((int)pid, (int)kind, value) < 0)
        fail(name);
    else
        done();
    return true;
}

static bool obey_kill(char *rest)
{
    int64_t pid;
    if (!take_number(&rest, 1, &pid) || *rest)
        return false;
    if (pid == getpid())
        refuse(EPERM, "steer itself: end ends the machine");
    else if (kill((int)pid) < 0)
        fail("kill");
    else
        done();
    return true;
}

/* It does not leave that to init, which is not urgent and would wait for its turn. */
static bool obey_end(char *rest)
{
    if (*rest)
        return false;
    done();
    sync();
    exit(poweroff(MACHINE_SUCCESS));
}

/* ---- starting programs ---- */

/* Opens the program like exec_program(). Returns -1 if it does not exist. */
static int open_program(const char *name)
{
    char path[PATH_BYTES] = "/";
    if (!strchr(name, '/') && text_copy(path + 1, name, sizeof(path) - 1)) {
        int descriptor = open(path, OPEN_READ);
        if (descriptor >= 0)
            return descriptor;
    }
    return open(name, OPEN_READ);
}

/* A reason not to start a program can be reported only before the start. Returns 0 if there is
 * none. */
static int program_flaw(const char *name)
{
    static const char magic[4] = {0x7f, 'E', 'L', 'F'};
    char begin[sizeof(magic)];
    int descriptor = open_program(name);
    if (descriptor < 0)
        return last_error();
    int n = read(descriptor, begin, sizeof(begin));
    int error = n < 0 ? last_error() : 0;
    close(descriptor);
    if (error)
        return error;
    bool executable = n == (int)sizeof(begin) && memcmp(begin, magic, sizeof(begin)) == 0;
    return executable ? 0 : ENOEXEC;
}

/* Console input is only for this program: others get the end of the input. */
static void close_input(void)
{
    int ends[2];
    close(0);
    if (pipe(ends) == 0) /* the end to read from is 0, the lowest free descriptor */
        close(ends[1]);
}

/* Runs in a child. The program is a child of this one, which ends at once, so init adopts it. */
_Noreturn static void start_orphan(char *words[])
{
    int pid = fork();
    if (pid == 0) {
        seturgent(0);
        close_input();
        become_program("steer", words);
    }
    *started = pid > 0 ? pid : -last_error();
    exit(0);
}

static bool obey_start(char *rest)
{
    static char *words[ARGUMENTS_MAX + 1];
    if (text_split(rest, words, ARGUMENTS_MAX + 1) < 1)
        return false;
    int flaw = program_flaw(words[0]);
    if (flaw) {
        printf("@@ %ld error %d %.*s: %s\n", id, flaw, ANSWER_BYTES / 2, words[0],
               error_text(flaw));
        return true;
    }
    *started = -EINTR;
    int between = fork();
    if (between == 0)
        start_orphan(words);
    if (between > 0)
        wait(NULL);
    else
        *started = -last_error();
    if (*started > 0)
        printf("@@ %ld ok %d\n", id, *started);
    else
        refuse(-*started, error_text(-*started));
    return true;
}

/* ---- lines ---- */

static const struct {
    const char *name;
    bool (*obey)(char *rest);
    const char *usage;
} commands[] = {
    {"read", obey_read, "usage: read NAME, of a file in /proc"},
    {"write", obey_write, "usage: write NAME TEXT, of a file in /proc"},
    {"set", obey_set, "usage: set PID ATTRIBUTE VALUE"},
    {"start", obey_start, "usage: start PROGRAM [ARGUMENT]..., quotes closed, up to 31 arguments"},
    {"kill", obey_kill, "usage: kill PID"},
    {"end", obey_end, "usage: end"},
};

static void obey(char *line)
{
    id = 0;
    const char *sign = take_word(&line);
    if (!*sign)
        return;
    if (strcmp(sign, "@@") != 0 || !take_number(&line, 1, &id)) {
        id = 0;
        refuse(EINVAL, "a command begins with @@ and a number from 1 on");
        return;
    }
    const char *name = take_word(&line);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        if (!commands[i].obey(line))
            refuse(EINVAL, commands[i].usage);
        return;
    }
    refuse(EINVAL, "no such command: there are read, write, set, start, kill and end");
}

/* Reads the next line, without its end. A longer line is truncated to a length that reveals it. */
static char *read_line(void)
{
    static char line[LINE_BYTES + 2];
    static char typed[512];
    static int taken, length;
    int n = 0;
    for (;;) {
        for (; taken < length && typed[taken] != '\n'; taken++) {
            if (n <= LINE_BYTES)
                line[n++] = typed[taken];
        }
        if (taken < length)
            break;
        taken = 0;
        length = read(0, typed, sizeof(typed));
        if (length <= 0)
            exit(length < 0 ? complain("steer", "input") : 0);
    }
    taken++;
    line[n] = 0;
    return line;
}

static void obey_next(void)
{
    char *line = read_line();
    if (strlen(line) <= LINE_BYTES) {
        obey(line);
        return;
    }
    /* Its number, if it has one, is among its first characters. */
    char *rest = line;
    id = 0;
    take_word(&rest);
    if (!take_number(&rest, 1, &id))
        id = 0;
    refuse(ENAMETOOLONG, "a command has up to 4,000 characters");
}

int main(int argc, char *argv[])
{
    (void)argv;
    if (argc != 1)
        usage("steer, and then commands: see docs/monitor.md");
    started = shared_memory(sizeof(*started));
    if (started == SYSTEM_FAILED)
        return complain("steer", "memory");
    seturgent(1);
    printf("@@ 0 ready %d %ld\n", getpid(), record_cost());
    for (;;)
        obey_next();
}
