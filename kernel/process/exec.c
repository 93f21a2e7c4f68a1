/* SPDX-License-Identifier: MIT */
#include "process/exec.h"

#include "abi/errors.h"
#include "abi/files.h"
#include "fs/file.h"
#include "lib/string.h"
#include "memory/executable.h"
#include "memory/page.h"
#include "memory/user_copy.h"
#include "process/lifecycle.h"
#include "trace/trace.h"

static int64_t read_program(void *context, void *destination, uint64_t offset, uint64_t n)
{
    return inode_read(context, destination, offset, n);
}

static int load_program(const char *path, char *const arguments[], struct address_space *space,
                        struct start_state *start)
{
    struct inode *inode;
    int error = inode_open(path, &inode);
    if (error)
        return error;
    struct executable file = {
        .size = inode_size(inode),
        .read = read_program,
        .context = inode,
    };
    error = executable_load(space, &file, arguments, start);
    inode_close(inode);
    return error;
}

static const char *last_part(const char *path)
{
    const char *part = path;
    for (; *path; path++) {
        if (path[0] == '/' && path[1])
            part = path + 1;
    }
    return part;
}

int process_execute(const char *path, char *const arguments[])
{
    struct process *process = current_process();
    struct address_space space;
    struct start_state start;
    int error = load_program(path, arguments, &space, &start);
    if (error)
        return error;
    struct address_space old = process->space;
    process->space = space;
    address_space_activate(&process->space);
    address_space_destroy(&old);
    text_copy(process->name, last_part(path), sizeof(process->name));
    process->trap_frame->x[REGISTER_PC] = start.entry;
    process->trap_frame->x[REGISTER_SP] = start.stack;
    process->trap_frame->x[REGISTER_A0 + 1] = start.stack;
    trace_text(TRACE_EXEC, (uint32_t)process->pid, process->name);
    return (int)start.arguments;
}

/* Copies the arguments' texts into a page, one after the other, and sets pointers to them. */
static int copy_arguments(uint64_t from, char *page, char *arguments[])
{
    size_t used = 0;
    for (int i = 0; i <= ARGUMENTS_MAX; i++) {
        uint64_t text;
        int error = copy_from_user(&text, from + 8 * (uint64_t)i, sizeof(text));
        if (error)
            return error;
        arguments[i] = NULL;
        if (!text)
            return 0;
        if (i == ARGUMENTS_MAX || used == PAGE_BYTES)
            return -E2BIG;
        arguments[i] = page + used;
        int length = copy_text_from_user(arguments[i], text, PAGE_BYTES - used);
        if (length < 0)
            return length == -ENAMETOOLONG ? -E2BIG : length;
        used += (size_t)length + 1;
    }
    return -E2BIG;
}

int64_t process_exec(uint64_t path_address, uint64_t arguments_address)
{
    char path[PATH_BYTES];
    char *arguments[ARGUMENTS_MAX + 1];
    int error = copy_text_from_user(path, path_address, sizeof(path));
    if (error < 0)
        return error;
    char *page = page_allocate();
    if (!page)
        return -ENOMEM;
    error = copy_arguments(arguments_address, page, arguments);
    if (!error)
        error = process_execute(path, arguments);
    page_release(page);
    return error;
}
