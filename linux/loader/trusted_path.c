/* SPDX-License-Identifier: MIT */

#include "trusted_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "text.h"

#define LINKS_MAX 40

struct walk {
    int folder;              /* a descriptor of the directory reached so far */
    char rest[PATH_MAX + 1]; /* the rest of the path from there */
    char name[NAME_MAX + 1]; /* the next step */
    int links;               /* that were followed */
    char *why;
};

/* ---- trust ---- */

/* Returns the user who called sudo; else the current user. */
static uid_t calling_user(void)
{
    const char *text = getenv("SUDO_UID");
    int64_t number;
    if (geteuid() == 0 && text && text_to_number(text, &number) && number > 0 && number < UINT_MAX)
        return (uid_t)number;
    return geteuid();
}

static bool is_of_root_or_us(const struct stat *status)
{
    return status->st_uid == 0 || status->st_uid == geteuid();
}

static bool has_trusted_owner(const struct stat *status)
{
    return is_of_root_or_us(status) || status->st_uid == calling_user();
}

/* Returns true if another user can replace its entries. A group with the owner's number belongs
 * only to the owner. */
static bool others_write(const struct stat *status)
{
    bool group =
        status->st_mode & S_IWGRP && status->st_gid != status->st_uid && status->st_gid != 0;
    return (status->st_mode & S_IWOTH || group) && !(status->st_mode & S_ISVTX);
}

static int distrust(struct walk *walk, const struct stat *status, const char *what)
{
    snprintf(walk->why, TRUSTED_WHY_BYTES,
             "'%.255s' %s (its owner is user %" PRIu32
             "), who could redirect the path; name a path below a folder that only root or the "
             "caller can write to",
             walk->name, what, (uint32_t)status->st_uid);
    return -EPERM;
}

static int check_folder(struct walk *walk)
{
    struct stat status;
    if (fstat(walk->folder, &status))
        return -errno;
    if (!has_trusted_owner(&status))
        return distrust(walk, &status, "is another user's folder");
    if (others_write(&status))
        return distrust(walk, &status, "is a folder that other users can write to");
    return 0;
}

static int check_file(struct walk *walk, const struct stat *status)
{
    if (!has_trusted_owner(status))
        return distrust(walk, status, "exists and belongs to another user");
    if (S_ISREG(status->st_mode) && status->st_nlink != 1)
        return distrust(walk, status, "exists and has several names");
    return 0;
}

/* ---- walking the path ---- */

static int enter(struct walk *walk, int folder)
{
    if (folder < 0)
        return -errno;
    if (walk->folder >= 0)
        close(walk->folder);
    walk->folder = folder;
    return check_folder(walk);
}

static int enter_first(struct walk *walk)
{
    const char *first = walk->rest[0] == '/' ? "/" : ".";
    snprintf(walk->name, sizeof(walk->name), "%s", first);
    return enter(walk, open(first, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Takes the next name out of `rest`. Returns 1, 0 if there is none, or a negative errno. */
static int next_name(struct walk *walk)
{
    const char *begin = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(begin, "/");
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(walk->name, begin, length);
    walk->name[length] = '\0';
    begin += length + strspn(begin + length, "/");
    memmove(walk->rest, begin, strlen(begin) + 1);
    return length > 0;
}

/* Links there lead to files that this process has open: their names mean nothing. */
static bool is_in_proc(int descriptor)
{
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* Puts the link's target before the rest of the path. */
static int follow_link(struct walk *walk, int link, const struct stat *status)
{
    char text[2 * sizeof(walk->rest)];
    if (!is_of_root_or_us(status))
        return distrust(walk, status, "is another user's link");
    if (++walk->links > LINKS_MAX)
        return -ELOOP;
    ssize_t length = readlinkat(link, "", text, PATH_MAX);
    if (length < 0)
        return -errno;
    snprintf(text + length, sizeof(text) - (size_t)length, "/%s", walk->rest);
    if (strlen(text) >= sizeof(walk->rest))
        return -ENAMETOOLONG;
    memcpy(walk->rest, text, strlen(text) + 1);
    return walk->rest[0] == '/' ? enter_first(walk) : 0;
}

/* Takes one step: into a directory, or along a link. Returns 1 if `name` is the last one, and
 * neither of them. */
static int step(struct walk *walk)
{
    struct stat status;
    int error = next_name(walk);
    if (error <= 0)
        return error < 0 ? error : -EISDIR;
    int next = openat(walk->folder, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return errno == ENOENT && !walk->rest[0] ? 1 : -errno;
    error = fstat(next, &status) ? -errno : 0;
    if (!error && S_ISDIR(status.st_mode))
        return enter(walk, next);
    if (!error && S_ISLNK(status.st_mode) && !(is_in_proc(next) && !walk->rest[0]))
        error = follow_link(walk, next, &status);
    else if (!error)
        error = walk->rest[0] ? -ENOTDIR : 1;
    close(next);
    return error;
}

/* Walks to the directory of the last name. Returns 1 on arrival, or a negative errno. */
static int walk_to_last(struct walk *walk, const char *path, char *why)
{
    *walk = (struct walk){.folder = -1, .why = why};
    why[0] = '\0';
    if (!path[0])
        return -ENOENT;
    if (strlen(path) >= sizeof(walk->rest))
        return -ENAMETOOLONG;
    memcpy(walk->rest, path, strlen(path) + 1);
    int error = enter_first(walk);
    while (!error)
        error = step(walk);
    return error;
}

static int open_last(struct walk *walk, int flags, mode_t mode)
{
    struct stat status;
    bool inherited = is_in_proc(walk->folder);
    int file = openat(walk->folder, walk->name,
                      flags | O_CREAT | O_CLOEXEC | (inherited ? 0 : O_NOFOLLOW), mode);
    if (file < 0)
        return -errno;
    int error = fstat(file, &status) ? -errno : inherited ? 0 : check_file(walk, &status);
    if (!error && S_ISREG(status.st_mode) && ftruncate(file, 0))
        error = -errno;
    if (error)
        close(file);
    return error ? error : file;
}

int trusted_create(const char *path, int flags, mode_t mode, char *why)
{
    struct walk walk;
    int result = walk_to_last(&walk, path, why);
    if (result == 1)
        result = open_last(&walk, flags, mode);
    if (walk.folder >= 0)
        close(walk.folder);
    return result;
}

bool trusted_folder(const char *path, char *why)
{
    struct walk walk;
    int result = walk_to_last(&walk, path, why);
    if (walk.folder >= 0)
        close(walk.folder);
    if (result == 1 || result == -EISDIR || result == -ENOTCONN)
        return true;
    if (!why[0])
        snprintf(why, TRUSTED_WHY_BYTES, "%s", strerror(-result));
    return false;
}
