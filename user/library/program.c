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

struct process_info *process_table(int *count)
{
    int now = getpinfo(NULL, 0);
    if (now < 0)
        return NULL;
    int capacity = now + 16; /* some may be forked meanwhile */
    struct process_info *rows = calloc((size_t)capacity, sizeof(*rows));
    if (!rows)
        return NULL;
    *count = getpinfo(rows, capacity);
    if (*count >= 0)
        return rows;
    free(rows);
    return NULL;
}
