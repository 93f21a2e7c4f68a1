/* SPDX-License-Identifier: MIT */

/*
 * Controls a guest for a monitor outside, by lines over a port:
 *
 *     steer PORT       runs commands until it receives "end"
 *     steer --cost     prints the time for a record of the trace, in picoseconds
 *
 * A line is "@@ NUMBER COMMAND". Each line of the answer begins with "@@ NUMBER", and the last one
 * continues with "ok" or "error ERRNO TEXT". A slow command answers "|wait" every five seconds.
 * Commands:
 *
 *     read FILE                the lines of a control file, each after a "|"
 *     write FILE TEXT
 *     set PID KIND VALUE       an attribute: priority, tickets or weight
 *     start PROGRAM WORD...    "ok PID"
 *     kill PID
 *     end                      the last command
 *
 * When ready, it prints "@@ 0 ready PID PICOSECONDS", with its PID and the result of --cost.
 *
 * It is started with real-time priority, and keeps it, so that no policy can stop it. Programs that
 * it starts get none.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"

#define CONTROL_FOLDER "/run/schedlab"
#define LINE_MAX       4096
#define WORDS_MAX      64
#define WRONG_USAGE    2
#define RECONNECT_US   50000
#define LIFE_SIGN_S    5

/* ---- answers: written as a whole, since a slow command answers while others run ---- */

static FILE *port;
static pthread_mutex_t port_lock = PTHREAD_MUTEX_INITIALIZER; /* of `port`, for one answer */

static void answer(const char *number, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(const char *number, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&port_lock);
    fprintf(port, "@@ %s ", number);
    vfprintf(port, format, arguments);
    fputc('\n', port);
    fflush(port);
    pthread_mutex_unlock(&port_lock);
    va_end(arguments);
}

static void answer_status(const char *number, int error)
{
    if (error)
        answer(number, "error %d %s", error, strerror(error));
    else
        answer(number, "ok");
}

/* ---- the control files ---- */

static bool control_path(const char *file, char *path, size_t size)
{
    const char *folder = getenv("WORKLOAD_CONTROL");
    if (!*file || strchr(file, '/'))
        return false;
    snprintf(path, size, "%s/%s", folder ? folder : CONTROL_FOLDER, file);
    return true;
}

static void read_file(const char *number, const char *name)
{
    char path[LINE_MAX];
    char line[LINE_MAX];
    FILE *file = control_path(name, path, sizeof(path)) ? fopen(path, "re") : NULL;
    if (!file) {
        answer_status(number, errno ? errno : EINVAL);
        return;
    }
    pthread_mutex_lock(&port_lock);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        fprintf(port, "@@ %s |%s\n", number, line);
    }
    int error = ferror(file) ? errno : 0;
    pthread_mutex_unlock(&port_lock);
    fclose(file);
    answer_status(number, error);
}

/* One write is one command. Returns 0, or an errno. */
static int write_file(const char *name, const char *text)
{
    char path[LINE_MAX];
    if (!control_path(name, path, sizeof(path)))
        return EINVAL;
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return errno;
    size_t bytes = strlen(text);
    int error = write(descriptor, text, bytes) == (ssize_t)bytes ? 0 : errno;
    close(descriptor);
    return error;
}

/* Answers with the server's error message, or the error's own text if there is none. */
static void answer_problem(const char *number, int error)
{
    char path[LINE_MAX];
    char why[LINE_MAX] = "";
    FILE *file = control_path("sched_problem", path, sizeof(path)) ? fopen(path, "re") : NULL;
    if (file && fgets(why, sizeof(why), file))
        why[strcspn(why, "\n")] = '\0';
    if (file)
        fclose(file);
    answer(number, "error %d %s", error, *why ? why : strerror(error));
}

struct write_request {
    int error; /* the result */
    char number[24];
    char file[32];
    char text[LINE_MAX];
};

static void *grant(void *argument)
{
    struct write_request *write_request = argument;
    write_request->error = write_file(write_request->file, write_request->text);
    return NULL;
}

/* Waits for a thread; a line every few seconds shows that it is still working. */
static void await(pthread_t thread, const char *number)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIFE_SIGN_S;
    while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT) {
        answer(number, "|wait");
        until.tv_sec += LIFE_SIGN_S;
    }
}

static void *see_through(void *argument)
{
    struct write_request *write_request = argument;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, grant, write_request);
    if (!error) {
        await(thread, write_request->number);
        error = write_request->error;
    }
    if (error)
        answer_problem(write_request->number, error);
    else
        answer_status(write_request->number, 0);
    free(write_request);
    return NULL;
}

/* Uses a separate thread: a policy may have to be loaded first, which takes seconds. */
static void write_later(const char *number, const char *file, const char *text)
{
    pthread_t thread;
    struct write_request *write_request = malloc(sizeof(*write_request));
    if (!write_request) {
        answer_status(number, ENOMEM);
        return;
    }
    snprintf(write_request->number, sizeof(write_request->number), "%s", number);
    snprintf(write_request->file, sizeof(write_request->file), "%s", file);
    snprintf(write_request->text, sizeof(write_request->text), "%s", text);
    int error = pthread_create(&thread, NULL, see_through, write_request);
    if (error) {
        free(write_request);
        answer_status(number, error);
        return;
    }
    pthread_detach(thread);
}

/* ---- processes ---- */

static _Noreturn void become(char **words)
{
    const struct sched_param ordinary = {.sched_priority = 0};
    signal(SIGCHLD, SIG_DFL);
    sched_setscheduler(0, SCHED_OTHER, &ordinary);
    execvp(words[0], words);
    fprintf(stderr, "steer: %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Does not wait for exec(): the policy may run the child late. */
static void start(const char *number, char *command)
{
    char *words[WORDS_MAX + 1] = {NULL};
    char *rest;
    size_t count = 0;
    for (char *word = strtok_r(command, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    if (count == 0) {
        answer_status(number, EINVAL);
        return;
    }
    pid_t child = fork();
    if (child == 0)
        become(words);
    if (child < 0)
        answer_status(number, errno);
    else
        answer(number, "ok %d", child);
}

static void end_process(const char *number, const char *text)
{
    char *end;
    long pid = strtol(text, &end, 10);
    if (pid <= 1 || *end || pid == getpid())
        answer_status(number, EINVAL);
    else
        answer_status(number, kill((pid_t)pid, SIGKILL) ? errno : 0);
}

/* ---- lines ---- */

/* Returns the next word; *rest is set to the text after it. */
static char *take_word(char **rest)
{
    char *word = *rest + strspn(*rest, " ");
    *rest = word + strcspn(word, " ");
    if (**rest)
        *(*rest)++ = '\0';
    return word;
}

/* Returns false after the last command. */
static bool obey(const char *number, const char *command, char *rest)
{
    if (strcmp(command, "read") == 0)
        read_file(number, rest);
    else if (strcmp(command, "write") == 0) {
        const char *file = take_word(&rest);
        write_later(number, file, rest);
    } else if (strcmp(command, "set") == 0)
        write_later(number, "sched_status", rest);
    else if (strcmp(command, "start") == 0)
        start(number, rest);
    else if (strcmp(command, "kill") == 0)
        end_process(number, rest);
    else if (strcmp(command, "end") == 0) {
        answer_status(number, 0);
        return false;
    } else
        answer_status(number, EINVAL);
    return true;
}

static bool take_line(char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    if (strcmp(take_word(&line), "@@") != 0)
        return true;
    const char *number = take_word(&line);
    const char *command = take_word(&line);
    errno = 0;
    return obey(number, command, line);
}

/* ---- the cost of a record ---- */

#define COST_BATCHES 8
#define COST_CALLS   64

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the shortest time of a batch, because no interrupt came into that one. */
static uint64_t shortest(int operation, unsigned long kind)
{
    uint64_t least = UINT64_MAX;
    for (int batch = 0; batch < COST_BATCHES; batch++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < COST_CALLS; i++)
            prctl(operation, kind, 0ul, 0ul, 0ul);
        uint64_t took = now_ns() - begin;
        least = took < least ? took : least;
    }
    return least;
}

/* Returns the picoseconds of a call that leaves a record (here an empty name), minus those of a
 * call that leaves none. A mark costs as much as other records, except for the kernel's part. */
static uint64_t record_cost(void)
{
    uint64_t with = shortest(TRACE_MARK_PRCTL, MARK_NAME);
    uint64_t without = shortest(PR_GET_DUMPABLE, 0);
    return with > without ? (with - without) * 1000 / COST_CALLS : 0;
}

/* ---- the main program ---- */

static void serve(FILE *lines)
{
    char line[LINE_MAX];
    for (;;) {
        if (fgets(line, sizeof(line), lines)) {
            if (!take_line(line))
                return;
            continue;
        }
        clearerr(lines); /* the other end of the port is closed now */
        usleep(RECONNECT_US);
    }
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--cost") == 0) {
        printf("%" PRIu64 "\n", record_cost());
        return 0;
    }
    /* only once: a port cannot be opened twice */
    int descriptor = count == 2 ? open(words[1], O_RDWR | O_CLOEXEC) : -1;
    FILE *lines = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    port = lines ? fdopen(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "w") : NULL;
    if (!port) {
        fprintf(stderr, "usage: steer PORT: a port for lines; %s\n",
                count == 2 ? strerror(errno) : "one is wanted");
        return WRONG_USAGE;
    }
    signal(SIGCHLD, SIG_IGN); /* programs that it started leave no zombies */
    signal(SIGPIPE, SIG_IGN);
    answer("0", "ready %d %" PRIu64, getpid(), record_cost());
    serve(lines);
    return 0;
}
