/* SPDX-License-Identifier: MIT */

/* Lists files: type, inode, links, bytes, name. */

#include "user/library/user.h"

static struct directory_entry entries[64];

static char type_letter(const struct file_status *status)
{
    switch (status->type) {
    case FILE_DIRECTORY:
        return 'd';
    case FILE_REGULAR:
        return '-';
    case FILE_DEVICE:
        return 'c';
    default:
        return '?';
    }
}

static int show(const char *path, const char *name)
{
    struct file_status status;
    if (file_status_of(path, &status) < 0)
        return complain("ls", path);
    printf("%c %5u %3d %9lu %s\n", type_letter(&status), status.inode, status.links, status.size,
           name);
    return 0;
}

static int show_entry(const char *directory, const struct directory_entry *entry)
{
    char path[PATH_BYTES + DIRECTORY_NAME_BYTES + 1];
    char name[DIRECTORY_NAME_BYTES + 1] = {0};
    memcpy(name, entry->name, DIRECTORY_NAME_BYTES);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return show(path, name);
}

static int list(int descriptor, const char *path)
{
    int status = 0;
    for (;;) {
        int n = read(descriptor, entries, sizeof(entries));
        if (n < 0)
            return complain("ls", path);
        if (n == 0)
            return status;
        for (int i = 0; i < n / (int)sizeof(entries[0]); i++) {
            if (entries[i].inode != 0)
                status |= show_entry(path, &entries[i]);
        }
    }
}

static int list_path(const char *path)
{
    struct file_status file;
    int descriptor = open(path, OPEN_READ);
    if (descriptor < 0 || fstat(descriptor, &file) < 0)
        return complain("ls", path);
    int status = file.type == FILE_DIRECTORY ? list(descriptor, path) : show(path, path);
    close(descriptor);
    return status;
}

int main(int argc, char *argv[])
{
    if (argc > 1 && argv[1][0] == '-')
        usage("ls [FILE|DIRECTORY]...");
    if (argc == 1)
        return list_path(".");
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= list_path(argv[i]);
    return status;
}
