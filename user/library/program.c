/* SPDX-License-Identifier: MIT */

#include "user/library/program.h"

#include "user/library/heap.h"
#include "user/library/print.h"
#include "user/library/text.h"

int exec_program(char *const arguments[])
{
    char path[PATH_BYTES] = "/";
    if (!strchr(arguments[0], '/') && text_copy(path + 1, arguments[0], sizeof(path) - 1)) {
        exec(path, arguments);
        if (last_error() != ENOENT)
            return -1;
    }
    return exec(arguments[0], arguments);
}

void become_program(const char *caller, char *const arguments[])
{
    exec_program(arguments);
    int error = last_error();
    complain(caller, arguments[0]);
    exit(error == ENOENT ? 127 : 126);
}

int file_status_of(const char *path, struct file_status *status)
{
    int descriptor = open(path, OPEN_READ);
    if (descriptor < 0)
        return -1;
    int result = fstat(descriptor, status);
    close(descriptor);
    return result;
}

int64_t number_argument(const char *program, const char *text, int64_t minimum, int64_t maximum)
{
    int64_t number;
    if (text_to_number(text, &number) && number >= minimum && number <= maximum)
        return number;
    fprintf(2, "%s: %s: must be a number from %ld to %ld\n", program, text, minimum, maximum);
    exit(2);
}

int run_attribute_command(const struct attribute_command *command, int argc, char *argv[])
{
    bool of_process = argc > 1 && strcmp(argv[1], "-p") == 0;
    if (of_process ? argc != 4 : argc < 3)
        usage(command->usage);
    const char *text = argv[of_process ? 3 : 1];
    int value = (int)number_argument(command->name, text, INT32_MIN, INT32_MAX);
    int pid = of_process ? (int)number_argument(command->name, argv[2], 1, INT32_MAX) : getpid();
    if (command->set(pid, value) < 0)
        return complain(command->name, last_error() == ESRCH ? argv[2] : text);
    if (!of_process)
        become_program(command->name, argv + 2);
    return 0;
}

struct process_info *process_table(int *count)
{
    int now = getpinfo(NULL, 0);
    if (now < 0)
        return NULL;
    int capacity = now + 16; /* some may be forked in between */
    struct process_info *rows = calloc((size_t)capacity, sizeof(*rows));
    if (!rows)
        return NULL;
    *count = getpinfo(rows, capacity);
    if (*count >= 0)
        return rows;
    free(rows);
    return NULL;
}
