/* SPDX-License-Identifier: MIT */

#include "limits.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX  5 /* of each kind; only the number of the others is shown */
#define DEPTH_MAX  64
#define PATH_BYTES 4096
/* Fields of a task's stat behind its name, from its state on: proc_pid_stat(5). */
#define FLAGS         6
#define NICE          16
#define POLICY        38
#define FIELDS        39
#define KERNEL_THREAD 0x00200000

struct findings {
    struct text *text;
    unsigned honoured;
    size_t count;
};

/* Names come from other users: no control character in them may reach a terminal. */
static void add(struct findings *findings, const char *what, const char *value, const char *whose)
{
    char line[512];
    if (findings->count++ >= SHOWN_MAX)
        return;
    snprintf(line, sizeof(line), "%s %s of %s", what, value, whose);
    for (char *c = line; *c; c++) {
        if (!isprint((unsigned char)*c))
            *c = '?';
    }
    text_add(findings->text, "%s%s", findings->text->length ? "; " : "", line);
}

static void add_the_rest(const struct findings *findings, const char *what)
{
    if (findings->count > SHOWN_MAX)
        text_add(findings->text, "; %s of %zu more", what, findings->count - SHOWN_MAX);
}

/* ---- control groups ---- */

/* Files of a control group, and their contents where nothing is limited. */
static const struct group_file {
    const char *name;
    const char *harmless; /* its first word */
    unsigned honoured;    /* a policy that honours this handles it */
} group_files[] = {
    {"cpu.max", "max", HONOURS_QUOTAS},
    {"cpu.weight", "100", HONOURS_WEIGHTS},
    {"cpu.cfs_quota_us", "-1", HONOURS_QUOTAS},
    {"cpu.shares", "1024", HONOURS_WEIGHTS},
    {"cpu.idle", "0", 0},
};

static bool is_harmless(const struct group_file *file, const char *content)
{
    size_t length = strcspn(content, " \n");
    return length == strlen(file->harmless) && strncmp(content, file->harmless, length) == 0;
}

static void look_at_group(const char *folder, size_t root_length, struct findings *findings)
{
    char path[PATH_BYTES + 32];
    char content[256];
    const char *name = folder[root_length] ? folder + root_length : "/";
    for (size_t i = 0; i < sizeof(group_files) / sizeof(group_files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, group_files[i].name);
        if (!(group_files[i].honoured & findings->honoured) &&
            read_small_file(path, content, sizeof(content)) &&
            !is_harmless(&group_files[i], content))
            add(findings, group_files[i].name, content, name);
    }
}

/* `path` must have space for PATH_BYTES bytes; it is unchanged afterwards. */
static void look_below(char *path, size_t root_length, int depth, struct findings *findings)
{
    size_t length = strlen(path);
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    struct dirent *entry;
    look_at_group(path, root_length, findings);
    while (folder && (entry = readdir(folder))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            length + 1 + strlen(entry->d_name) >= PATH_BYTES)
            continue;
        snprintf(path + length, PATH_BYTES - length, "/%s", entry->d_name);
        look_below(path, root_length, depth + 1, findings);
        path[length] = '\0';
    }
    if (folder)
        closedir(folder);
}

static void find_groups(const char *cgroups, unsigned honoured, struct text *text)
{
    struct findings findings = {.text = text, .honoured = honoured};
    char *path = malloc(PATH_BYTES);
    if (!path)
        return;
    snprintf(path, PATH_BYTES, "%s", cgroups);
    look_below(path, strlen(path), 0, &findings);
    free(path);
    add_the_rest(&findings, "the like");
}

/* ---- nice values ---- */

/* Reads the fields of a stat after the name, which may contain anything. Returns false if it is
 * truncated. */
static bool read_fields(const char *stat, int64_t fields[FIELDS])
{
    const char *place = strrchr(stat, ')');
    if (!place || strlen(place) < 4)
        return false;
    place += 3; /* the state, which is a letter, is field 0 */
    for (int i = 1; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoll(place, &end, 10);
        if (end == place)
            return false;
        place = end;
    }
    return true;
}

static void take_name(const char *stat, char *name, size_t size)
{
    const char *begin = strchr(stat, '(');
    const char *end = strrchr(stat, ')');
    size_t length = begin && end > begin ? (size_t)(end - begin) - 1 : 0;
    length = length < size ? length : size - 1;
    memcpy(name, length ? begin + 1 : "", length);
    name[length] = '\0';
}

static void look_at_thread(const char *task, const char *thread, struct findings *findings)
{
    char path[512];
    char stat[1024];
    char name[64];
    char whose[128];
    char value[16];
    int64_t fields[FIELDS];
    snprintf(path, sizeof(path), "%.256s/%.64s/stat", task, thread);
    if (!read_small_file(path, stat, sizeof(stat)) || !read_fields(stat, fields))
        return;
    bool is_fair = fields[POLICY] == SCHED_OTHER || fields[POLICY] == SCHED_BATCH;
    if (fields[FLAGS] & KERNEL_THREAD || (!is_fair && fields[POLICY] != SCHED_IDLE))
        return;
    take_name(stat, name, sizeof(name));
    snprintf(whose, sizeof(whose), "%s (%.32s)", name, thread);
    if (fields[POLICY] == SCHED_IDLE)
        add(findings, "the class", "SCHED_IDLE", whose);
    else if (fields[NICE]) {
        snprintf(value, sizeof(value), "%" PRId64, fields[NICE]);
        add(findings, "nice", value, whose);
    }
}

static bool is_number(const char *name)
{
    return name[0] && strspn(name, "0123456789") == strlen(name);
}

static void look_at_process(const char *proc, const char *process, struct findings *findings)
{
    char task[256];
    struct dirent *entry;
    snprintf(task, sizeof(task), "%.128s/%.64s/task", proc, process);
    DIR *folder = opendir(task);
    while (folder && (entry = readdir(folder))) {
        if (is_number(entry->d_name))
            look_at_thread(task, entry->d_name, findings);
    }
    if (folder)
        closedir(folder);
}

static void find_nice(const char *proc, struct text *text)
{
    struct findings findings = {.text = text};
    struct dirent *entry;
    DIR *folder = opendir(proc);
    while (folder && (entry = readdir(folder))) {
        if (is_number(entry->d_name))
            look_at_process(proc, entry->d_name, &findings);
    }
    if (folder)
        closedir(folder);
    add_the_rest(&findings, "nice values");
}

bool limits_in_use(const char *cgroups, const char *proc, unsigned honoured,
                   struct text *description)
{
    size_t before = description->length;
    find_groups(cgroups, honoured, description);
    find_nice(proc, description);
    return description->length > before;
}

bool limits_in_use_on_host(unsigned honoured, struct text *description)
{
    return limits_in_use("/sys/fs/cgroup", "/proc", honoured, description);
}
