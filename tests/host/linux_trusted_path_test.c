/* SPDX-License-Identifier: MIT */

/*
 * Tests what another user of a machine could prepare for root's server: links, folders, files, and
 * a second name of a file. The test acts as that user: it creates these objects, and then claims
 * another user ID.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define STRANGER                                                                                   \
    4711 /* user ID for tests started by root, because root's files are always trusted */

static uid_t we;

#define geteuid() we
#include "linux/loader/text.c"
#include "linux/loader/trusted_path.c"
#undef geteuid

static char folder[] = "/tmp/schedlab-trusted-path-XXXXXX";
static char why[TRUSTED_WHY_BYTES];

/* Returns a path in the folder, valid until the fourth call after it. */
static const char *at(const char *name)
{
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    check(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static size_t length_of(const char *path)
{
    struct stat status;
    check(stat(path, &status) == 0);
    return (size_t)status.st_size;
}

static int opened(const char *path)
{
    int file = trusted_create(path, O_WRONLY | O_NONBLOCK, 0644, why);
    if (file >= 0)
        close(file);
    return file >= 0 ? 0 : file;
}

static void begin(void)
{
    if (geteuid() == 0 && (setgid(STRANGER) || setuid(STRANGER)))
        exit(0); /* a container without other users */
    umask(022);
    we = geteuid();
    check(mkdtemp(folder));
    check(mkdir(at("inner"), 0755) == 0);
}

static void test_own_ways_are_open(void)
{
    write_text(at("inner/file"), "what was there");
    check(symlink("inner", at("link")) == 0);
    check(symlink(at("inner/../inner/file"), at("to-file")) == 0);
    check(opened(at("inner/new")) == 0 && access(at("inner/new"), F_OK) == 0);
    check(opened(at("link//other")) == 0 && access(at("inner/other"), F_OK) == 0);
    check(opened(at("to-file")) == 0 && length_of(at("inner/file")) == 0);
    check(opened("/dev/null") == 0);
    check(opened(at("inner")) == -EISDIR && opened("/") == -EISDIR);
    check(opened("") == -ENOENT && opened(at("no/file")) == -ENOENT);
    check(opened(at("inner/file/x")) == -ENOTDIR);
    check(symlink("round", at("round")) == 0 && opened(at("round")) == -ELOOP);
    check(trusted_folder(at("link"), why) && trusted_folder(at("made-later"), why));
    check(!trusted_folder(at("no/such"), why) && why[0]);
}

static void test_a_pipe_that_was_inherited(void)
{
    int ends[2];
    char path[64];
    check(pipe(ends) == 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    we++;                          /* started in a shell of another user than sudo's */
    check(opened(path) == -EPERM); /* the test owns the folder of descriptors */
    we--;
    check(opened(path) == 0);
    close(ends[0]);
    close(ends[1]);
}

static void test_folders_that_others_write_to(void)
{
    check(chmod(at("inner"), 0777) == 0);
    check(opened(at("inner/x")) == -EPERM && strstr(why, "other users can write"));
    check(chmod(at("inner"), 01777) == 0 && opened(at("inner/x")) == 0);
    check(chmod(at("inner"), 0755) == 0);
}

static void test_a_file_with_two_names(void)
{
    write_text(at("first"), "kept");
    check(link(at("first"), at("second")) == 0);
    check(opened(at("second")) == -EPERM && strstr(why, "several names"));
    check(length_of(at("first")) == 4);
}

/* The paths are in a folder such as /tmp, which is root's and sticky. */
static void test_a_strangers_things(void)
{
    char file[] = "/tmp/schedlab-trusted-file-XXXXXX";
    char link[64];
    int made = mkstemp(file);
    check(made >= 0 && write(made, "kept", 4) == 4);
    close(made);
    snprintf(link, sizeof(link), "%s.link", file);
    check(symlink("/dev/null", link) == 0);
    we++;
    check(opened(file) == -EPERM && strstr(why, "another user"));
    check(opened(link) == -EPERM && strstr(why, "another user's link"));
    check(opened(at("new")) == -EPERM && strstr(why, "another user's folder"));
    check(!trusted_folder(folder, why) && strstr(why, "another user's folder"));
    we--;
    check(length_of(file) == 4 && access(at("new"), F_OK));
    check(unlink(file) == 0 && unlink(link) == 0);
}

/* Root trusts the folders and files of the user who called sudo, but not that user's links. */
static void test_who_called_sudo(void)
{
    char caller[16];
    snprintf(caller, sizeof(caller), "%u", (unsigned)we);
    check(symlink("inner", at("callers")) == 0);
    we = 0;
    check(opened(at("inner/y")) == -EPERM);
    check(setenv("SUDO_UID", caller, 1) == 0);
    check(opened(at("inner/y")) == 0);
    check(opened(at("callers/y")) == -EPERM && strstr(why, "another user's link"));
    check(setenv("SUDO_UID", "0x1", 1) == 0 && opened(at("inner/y")) == -EPERM);
    check(unsetenv("SUDO_UID") == 0);
}

static void end(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    check(system(command) == 0);
}

int main(void)
{
    begin();
    run_test(test_own_ways_are_open);
    run_test(test_a_pipe_that_was_inherited);
    run_test(test_folders_that_others_write_to);
    run_test(test_a_file_with_two_names);
    run_test(test_a_strangers_things);
    run_test(test_who_called_sudo);
    end();
    return 0;
}
