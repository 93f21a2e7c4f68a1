/* SPDX-License-Identifier: MIT */

#define FUSE_USE_VERSION 35

#include <fuse3/fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_files.h"
#include "scheduler.h"
#include "text.h"

#include "policies/support/command_text.h"

#define COMMAND_BYTES 128 /* with a final 0 */
#define LENGTH_ROOM   65536

struct control_file {
    const char *name;
    void (*make)(struct text *text);
    int (*obey)(char *line); /* null: the file cannot be written */
};

static const struct control_file files[] = {
    {CONTROL_STATUS, scheduler_add_status, scheduler_obey},
    {CONTROL_TUNABLES, scheduler_add_tunables, scheduler_obey_tunables},
    {CONTROL_POLICIES, scheduler_add_policies, NULL},
    {CONTROL_PROBLEM, scheduler_add_problem, NULL},
};
#define FILES (sizeof(files) / sizeof(files[0]))

/* Inodes: 1 is the directory; then the files. */
static const struct control_file *file_of(fuse_ino_t inode)
{
    size_t index = inode - FUSE_ROOT_ID - 1;
    return inode > FUSE_ROOT_ID && index < FILES ? &files[index] : NULL;
}

static fuse_ino_t inode_of(const struct control_file *file)
{
    return FUSE_ROOT_ID + 1 + (fuse_ino_t)(file - files);
}

/* The contents that one open() shows: made by its first read. */
struct view {
    struct text text;
    bool made;
};

/* A write that waits for a load. */
struct waiting {
    struct waiting *next;
    fuse_req_t request;
    const struct control_file *file;
    size_t size;
    char line[COMMAND_BYTES];
};

static struct fuse_session *session;
static struct waiting *first_waiting;
static char *mounted_on;
static bool folder_was_made;

/* ---- names and attributes ---- */

/* Returns a length that the text does not exceed: sendfile(), which some copy programs use, reads
 * no further. A text about all threads takes milliseconds, and each open() asks: the length is made
 * at most once a second, with room for new threads. */
static off_t enough_length(const struct control_file *file)
{
    static struct {
        time_t made;
        off_t length;
    } kept[FILES];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    size_t index = (size_t)(file - files);
    if (kept[index].length == 0 || kept[index].made != now.tv_sec) {
        struct text text = {0};
        file->make(&text);
        kept[index].made = now.tv_sec;
        kept[index].length = (off_t)text.length + LENGTH_ROOM;
        text_free(&text);
    }
    return kept[index].length;
}

static void describe(fuse_ino_t inode, struct stat *status)
{
    const struct control_file *file = file_of(inode);
    *status = (struct stat){.st_ino = inode, .st_nlink = file ? 1 : 2, .st_mode = S_IFDIR | 0500};
    if (file) {
        status->st_mode = S_IFREG | (file->obey ? 0600 : 0400);
        status->st_size = enough_length(file);
    }
}

static void look_up(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0}; /* the kernel must keep none of it */
    for (size_t i = 0; parent == FUSE_ROOT_ID && i < FILES; i++) {
        if (strcmp(files[i].name, name) == 0)
            entry.ino = inode_of(&files[i]);
    }
    if (!entry.ino) {
        fuse_reply_err(request, ENOENT);
        return;
    }
    describe(entry.ino, &entry.attr);
    fuse_reply_entry(request, &entry);
}

static void get_attributes(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *open_file)
{
    struct stat status;
    (void)open_file;
    describe(inode, &status);
    fuse_reply_attr(request, &status, 0);
}

/* Opening a file for writing may request changes such as truncation; they have no effect. */
static void set_attributes(fuse_req_t request, fuse_ino_t inode, struct stat *requested, int what,
                           struct fuse_file_info *open_file)
{
    (void)requested;
    if (what &
        ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME | FUSE_SET_ATTR_MTIME_NOW))
        fuse_reply_err(request, EPERM);
    else
        get_attributes(request, inode, open_file);
}

static void list_folder(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                        struct fuse_file_info *open_file)
{
    char entries[1024];
    size_t used = 0;
    (void)inode;
    (void)open_file;
    if (size > sizeof(entries))
        size = sizeof(entries);
    for (size_t i = (size_t)offset; i < FILES + 2; i++) {
        const char *name = i == 0 ? "." : i == 1 ? ".." : files[i - 2].name;
        struct stat status;
        describe(i < 2 ? FUSE_ROOT_ID : inode_of(&files[i - 2]), &status);
        size_t length =
            fuse_add_direntry(request, entries + used, size - used, name, &status, (off_t)i + 1);
        if (length > size - used)
            break;
        used += length;
    }
    fuse_reply_buf(request, entries, used);
}

/* ---- reading ---- */

static void open_view(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *open_file)
{
    struct view *view = file_of(inode) ? calloc(1, sizeof(*view)) : NULL;
    if (!view) {
        fuse_reply_err(request, file_of(inode) ? ENOMEM : EISDIR);
        return;
    }
    open_file->fh = (uint64_t)(uintptr_t)view;
    open_file->direct_io = 1; /* each read() and write() comes here unchanged */
    if (fuse_reply_open(request, open_file))
        free(view);
}

static void read_view(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                      struct fuse_file_info *open_file)
{
    struct view *view = (struct view *)(uintptr_t)open_file->fh;
    if (!view->made)
        file_of(inode)->make(&view->text);
    view->made = true;
    if (view->text.cut) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    size_t start = (size_t)offset < view->text.length ? (size_t)offset : view->text.length;
    size_t left = view->text.length - start;
    fuse_reply_buf(request, left ? view->text.bytes + start : NULL, left < size ? left : size);
}

static void close_view(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *open_file)
{
    struct view *view = (struct view *)(uintptr_t)open_file->fh;
    (void)inode;
    text_free(&view->text);
    free(view);
    fuse_reply_err(request, 0);
}

/* ---- writing ---- */

/* Runs the file's command handler on the written text. */
static int obey(const struct control_file *file, const char *written, size_t size)
{
    char copy[COMMAND_BYTES];
    memcpy(copy, written, size);
    char *line = text_one_line(copy, size);
    return line ? file->obey(line) : -EINVAL;
}

static void answer(fuse_req_t request, int error, size_t size)
{
    if (error)
        fuse_reply_err(request, -error);
    else
        fuse_reply_write(request, size);
}

static void wait_for_load(fuse_req_t request, const struct control_file *file, const char *written,
                          size_t size)
{
    struct waiting *waiting = malloc(sizeof(*waiting));
    if (!waiting) {
        answer(request, -ENOMEM, 0);
        return;
    }
    *waiting = (struct waiting){.request = request, .file = file, .size = size};
    memcpy(waiting->line, written, size);
    waiting->next = first_waiting;
    first_waiting = waiting;
}

/* Answers all waiting writes with an error. */
static void refuse_waiting(void)
{
    while (first_waiting) {
        struct waiting *waiting = first_waiting;
        first_waiting = waiting->next;
        answer(waiting->request, -EINTR, 0);
        free(waiting);
    }
}

/* A user's request for the fair class takes effect at once: a policy that is still loading is
 * dropped. */
static bool asks_for_fair_class(const char *written, size_t size)
{
    char copy[COMMAND_BYTES];
    memcpy(copy, written, size);
    const char *line = text_one_line(copy, size);
    return line && strcmp(line, FAIR_CLASS) == 0;
}

static void prefer_fair_class(void)
{
    if (!first_waiting)
        return;
    refuse_waiting();
    scheduler_abandon_load();
}

static void write_command(fuse_req_t request, fuse_ino_t inode, const char *written, size_t size,
                          off_t offset, struct fuse_file_info *open_file)
{
    const struct control_file *file = file_of(inode);
    (void)offset;
    (void)open_file;
    if (!file->obey || size >= COMMAND_BYTES) {
        answer(request, file->obey ? -ENAMETOOLONG : -EPERM, 0);
        return;
    }
    int error = obey(file, written, size);
    if (error == SCHEDULER_IS_LOADING) {
        wait_for_load(request, file, written, size);
        return;
    }
    if (!error && asks_for_fair_class(written, size))
        prefer_fair_class();
    answer(request, error, size);
}

void control_files_resume(void)
{
    struct waiting *waiting = first_waiting;
    first_waiting = NULL;
    while (waiting) {
        struct waiting *next = waiting->next;
        int error = obey(waiting->file, waiting->line, waiting->size);
        if (error == SCHEDULER_IS_LOADING) {
            waiting->next = first_waiting;
            first_waiting = waiting;
        } else {
            answer(waiting->request, error, waiting->size);
            free(waiting);
        }
        waiting = next;
    }
}

/* ---- mounting ---- */

static const struct fuse_lowlevel_ops operations = {
    .lookup = look_up,
    .getattr = get_attributes,
    .setattr = set_attributes,
    .readdir = list_folder,
    .open = open_view,
    .read = read_view,
    .release = close_view,
    .write = write_command,
};

bool control_files_clear(const char *folder)
{
    struct stat status;
    return stat(folder, &status) && errno == ENOTCONN && umount2(folder, MNT_DETACH) == 0;
}

static bool make_folder(const char *folder)
{
    folder_was_made = control_files_clear(folder) || mkdir(folder, 0700) == 0;
    mounted_on = realpath(folder, NULL);
    if (!mounted_on)
        say("%s: cannot be created: %s; name another folder with --control", folder,
            strerror(errno));
    return mounted_on;
}

static bool mount_files(void)
{
    char *words[] = {"schedlab-linux", "-o", "fsname=schedlab,subtype=schedlab,default_permissions",
                     NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    session = fuse_session_new(&arguments, &operations, sizeof(operations), NULL);
    fuse_opt_free_args(&arguments);
    if (!session || fuse_session_mount(session, mounted_on)) {
        say("%s: the control files cannot be mounted; run `modprobe fuse`, or name another folder "
            "with --control",
            mounted_on);
        return false;
    }
    return true;
}

static void remove_folder(void)
{
    if (folder_was_made && mounted_on)
        rmdir(mounted_on);
    free(mounted_on);
    mounted_on = NULL;
    folder_was_made = false;
}

int control_files_begin(const char *folder)
{
    if (make_folder(folder) && mount_files())
        return 0;
    if (session)
        fuse_session_destroy(session);
    session = NULL;
    remove_folder();
    return -EIO;
}

void control_files_end(void)
{
    if (!session)
        return;
    refuse_waiting();
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    session = NULL;
    remove_folder();
}

int control_files_descriptor(void)
{
    return fuse_session_fd(session);
}

bool control_files_handle(void)
{
    static struct fuse_buf buffer; /* libfuse allocates its memory at first use */
    int length = fuse_session_receive_buf(session, &buffer);
    if (length == -EINTR || length == -EAGAIN)
        return true;
    if (length > 0)
        fuse_session_process_buf(session, &buffer);
    return length > 0 && !fuse_session_exited(session);
}
