/* SPDX-License-Identifier: MIT */

/*
 * Tests the detection of fair-class features that no policy supports, in file trees like the
 * kernel's.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "check.h"

#include "linux/loader/limits.c"
#include "linux/loader/text.c"

static char root[] = "/tmp/schedlab-limits-XXXXXX";
static struct text description;

/* Writes a file below the test's folder, and creates its folders. */
static void put(const char *name, const char *content)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    check(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

/* The first thread of a process has the number of the process. */
static void put_thread(const char *place, const char *name, unsigned flags, int nice, int policy)
{
    char path[256];
    char stat[512];
    snprintf(path, sizeof(path), "proc/%s/stat", place);
    snprintf(stat, sizeof(stat),
             "9 (%s) S 1 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 %d 1 0 5 0 0 18446744073709551615"
             " 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             name, flags, nice, policy);
    put(path, stat);
}

static unsigned honoured; /* features that the requested policy supports */

static bool look(void)
{
    char cgroups[64];
    char proc[64];
    snprintf(cgroups, sizeof(cgroups), "%s/cgroup", root);
    snprintf(proc, sizeof(proc), "%s/proc", root);
    text_free(&description);
    return limits_in_use(cgroups, proc, honoured, &description);
}

static bool has_message(const char *what)
{
    return look() && strstr(description.bytes, what);
}

static void nothing_is_in_use_by_default(void)
{
    check(!look()); /* the folders do not exist yet */
    put("cgroup/cgroup.controllers", "cpu memory\n");
    put("cgroup/user.slice/cpu.max", "max 100000\n");
    put("cgroup/user.slice/cpu.weight", "100\n");
    put("cgroup/user.slice/cpu.idle", "0\n");
    put("cgroup/cpu,cpuacct/group/cpu.cfs_quota_us", "-1\n");
    put("cgroup/cpu,cpuacct/group/cpu.shares", "1024\n");
    put_thread("1/task/1", "init", 0, 0, SCHED_OTHER);
    put_thread("2/task/2", "kworker", KERNEL_THREAD, -20, SCHED_OTHER);
    put_thread("3/task/3", "real-time", 0, 0, SCHED_FIFO);
    put("proc/self/task/1/stat", "9 (not a number) S");
    put("proc/4/task/4/stat", "9 (cut) S 1 1");
    put("proc/5/task/5/stat", "");
    put("proc/6/task/6/stat", "9 (");
    check(!look());
}

static void groups_are_named_with_what_limits_them(void)
{
    put("cgroup/user.slice/app.service/cpu.max", "10000 100000\n");
    check(has_message("cpu.max 10000 100000 of /user.slice/app.service"));
    check(!has_message("nice"));
    put("cgroup/user.slice/app.service/cpu.max", "max 100000\n");
    check(!look());
    put("cgroup/cpu.max", "maximal\n"); /* of the root group, as in a container */
    check(has_message("cpu.max maximal of /"));
    put("cgroup/cpu.max", "max 100000\n");
    put("cgroup/user.slice/cpu.weight", "1000\n");
    put("cgroup/user.slice/cpu.idle", "1\n");
    check(has_message("cpu.weight 1000 of /user.slice; cpu.idle 1 of /user.slice"));
    honoured = HONOURS_WEIGHTS | HONOURS_QUOTAS;
    put("cgroup/user.slice/cpu.max", "10000 100000\n");
    check(look() && strcmp(description.bytes, "cpu.idle 1 of /user.slice") == 0);
    put("cgroup/user.slice/cpu.idle", "0\n");
    check(!look());
    honoured = HONOURS_WEIGHTS; /* on an older kernel */
    check(look() && strcmp(description.bytes, "cpu.max 10000 100000 of /user.slice") == 0);
    honoured = 0;
    put("cgroup/user.slice/cpu.max", "max 100000\n");
    put("cgroup/user.slice/cpu.weight", "100\n");
    put("cgroup/user.slice/cpu.idle", "0\n");
    put("cgroup/cpu,cpuacct/group/cpu.cfs_quota_us", "5000\n");
    check(has_message("cpu.cfs_quota_us 5000 of /cpu,cpuacct/group"));
    put("cgroup/cpu,cpuacct/group/cpu.cfs_quota_us", "-1\n");
    put("cgroup/cpu,cpuacct/group/cpu.shares", "2\n");
    check(has_message("cpu.shares 2 of /cpu,cpuacct/group"));
    put("cgroup/cpu,cpuacct/group/cpu.shares", "1024\n");
    check(!look());
}

static void tasks_are_named_with_their_nice_values(void)
{
    put_thread("7/task/7", "cron", 0, 10, SCHED_OTHER);
    check(has_message("nice 10 of cron (7)"));
    put_thread("7/task/7", "cron", 0, 0, SCHED_OTHER);
    put_thread("7/task/8", ") 1 (a\033[2Jb", 0, -5,
               SCHED_BATCH); /* a thread of the process, with an odd name */
    check(has_message("nice -5 of ) 1 (a?[2Jb (8)"));
    put_thread("7/task/8", "thread", 0, 0, SCHED_BATCH);
    check(!look());
    put_thread("7/task/8", "thread", 0, 0, SCHED_IDLE);
    check(has_message("the class SCHED_IDLE of thread (8)"));
    put_thread("7/task/8", "thread", 0, 5, SCHED_FIFO); /* no nice value applies */
    check(!look());
}

static void of_many_some_are_named_and_the_rest_is_counted(void)
{
    char name[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "cgroup/many/g%d/cpu.max", i);
        put(name, "1 2\n");
        snprintf(name, sizeof(name), "%d/task/%d", 100 + i, 100 + i);
        put_thread(name, "many", 0, 1, SCHED_OTHER);
    }
    check(has_message("; the like of 7 more"));
    check(has_message("; nice values of 7 more"));
}

int main(void)
{
    char command[128];
    check(mkdtemp(root));
    nothing_is_in_use_by_default();
    groups_are_named_with_what_limits_them();
    tasks_are_named_with_their_nice_values();
    of_many_some_are_named_and_the_rest_is_counted();
    text_free(&description);
    snprintf(command, sizeof(command), "rm -r %s", root);
    check(system(command) == 0);
    return 0;
}
