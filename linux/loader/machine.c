/* SPDX-License-Identifier: MIT */

#include "machine.h"

#include <bpf/btf.h>
#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernel_types.h"
#include "limits.h"
#include "text.h"
#include "trusted_path.h"

#define LOCK_FILE "/run/schedlab-linux.lock"
#define BTF_FILE  "/sys/kernel/btf/vmlinux"

#define SERVED_ALREADY                                                                             \
    "another schedlab-linux is already serving (PID %d); end it with `schedlab-linux stop`"

/* ---- facts ---- */

uint32_t machine_cpus(void)
{
    char list[4096];
    int64_t last;
    if (!read_small_file("/sys/devices/system/cpu/online", list, sizeof(list)))
        return 0;
    size_t start = strlen(list); /* of the last number in a list such as 0-3,8-11 */
    while (start > 0 && list[start - 1] >= '0' && list[start - 1] <= '9')
        start--;
    return text_to_number(list + start, &last) ? (uint32_t)last + 1 : 0;
}

uint64_t machine_tick_ns(void)
{
    struct timespec tick;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick))
        return 4000000;
    return (uint64_t)tick.tv_sec * 1000000000 + (uint64_t)tick.tv_nsec;
}

/* QEMU reports its name where hypervisors do, in three registers. */
bool machine_cpus_take_turns(void)
{
    uint32_t highest, name[3];
    __cpuid(0x40000000, highest, name[0], name[1], name[2]);
    return machine_cpus() > 1 && memcmp(name, "TCGTCGTCGTCG", sizeof(name)) == 0;
}

bool machine_has_sched_ext(void)
{
    return access(KERNEL_FOLDER "/state", R_OK) == 0;
}

static bool sched_ext_is(const char *requested)
{
    char state[64];
    return read_small_file(KERNEL_FOLDER "/state", state, sizeof(state)) &&
           strcmp(state, requested) == 0;
}

bool machine_is_scheduled_by(char *name, size_t size)
{
    return sched_ext_is("enabled") && read_small_file(KERNEL_FOLDER "/root/ops", name, size);
}

bool machine_has_other_scheduler(char *name, size_t size)
{
    if (sched_ext_is("disabled"))
        return false;
    if (!read_small_file(KERNEL_FOLDER "/root/ops", name, size))
        snprintf(name, size, "one without a name");
    return true;
}

bool machine_wait_for_fair_class(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < 200 && !sched_ext_is("disabled"); i++)
        nanosleep(&pause, NULL);
    return sched_ext_is("disabled");
}

/* ---- the lock ---- */

static int lock_file = -1;

/* A record lock: the kernel releases it however its holder ends, and reports the holder's PID. */
static struct flock file_contents(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

bool machine_take_lock(char *why, size_t size)
{
    struct flock lock = file_contents();
    struct stat status;
    do { /* its last holder may have removed the file that was opened */
        if (lock_file >= 0)
            close(lock_file);
        lock_file = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (lock_file < 0) {
            snprintf(why, size, "%s: %s", LOCK_FILE, strerror(errno));
            return false;
        }
        if (fcntl(lock_file, F_SETLK, &lock)) {
            fcntl(lock_file, F_GETLK, &lock);
            snprintf(why, size, SERVED_ALREADY, lock.l_pid);
            return false;
        }
    } while (fstat(lock_file, &status) || status.st_nlink == 0);
    return true;
}

pid_t machine_server(void)
{
    struct flock lock = file_contents();
    int file = open(LOCK_FILE, O_RDWR | O_CLOEXEC);
    bool is_locked = file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (file >= 0)
        close(file); /* the holder must not do this: it would give up the lock */
    return is_locked ? lock.l_pid : 0;
}

void machine_release_lock(void)
{
    if (lock_file < 0)
        return;
    unlink(LOCK_FILE);
    close(lock_file);
    lock_file = -1;
}

/* ---- checks: each returns true, or a reason ---- */

struct reason {
    char text[2048 + TRUSTED_WHY_BYTES];
};

static bool has_rights(const struct machine_wishes *wishes, struct reason *why)
{
    static const struct {
        unsigned number;
        const char *name;
    } needed[] = {{5, "CAP_KILL"},      {14, "CAP_IPC_LOCK"}, {21, "CAP_SYS_ADMIN"},
                  {23, "CAP_SYS_NICE"}, {38, "CAP_PERFMON"},  {39, "CAP_BPF"}};
    char status[4096];
    uint64_t flags = 0;
    (void)wishes;
    if (read_small_file("/proc/self/status", status, sizeof(status))) {
        const char *line = strstr(status, "CapEff:");
        flags = line ? strtoull(line + 7, NULL, 16) : 0;
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (flags >> needed[i].number & 1)
            continue;
        snprintf(why->text, sizeof(why->text), "only root may do this (%s is missing)",
                 needed[i].name);
        return false;
    }
    return true;
}

static bool has_sched_ext(const struct machine_wishes *wishes, struct reason *why)
{
    (void)wishes;
    if (machine_has_sched_ext())
        return true;
    if (access("/sys/kernel", F_OK))
        snprintf(why->text, sizeof(why->text), "/sys is not mounted");
    else
        snprintf(why->text, sizeof(why->text),
                 "this kernel has no sched_ext; use Linux 6.15 or newer with "
                 "CONFIG_SCHED_CLASS_EXT, such as the kernel of `./schedlab linux boot`");
    return false;
}

static bool has_btf(const struct machine_wishes *wishes, struct reason *why)
{
    (void)wishes;
    if (access(BTF_FILE, R_OK) == 0)
        return true;
    snprintf(why->text, sizeof(why->text), "%s: missing; use a kernel with CONFIG_DEBUG_INFO_BTF",
             BTF_FILE);
    return false;
}

static bool has_fuse(const struct machine_wishes *wishes, struct reason *why)
{
    (void)wishes;
    if (access("/dev/fuse", F_OK) == 0)
        return true;
    snprintf(why->text, sizeof(why->text),
             "/dev/fuse: %s; `modprobe fuse`, or a kernel with CONFIG_FUSE_FS", strerror(errno));
    return false;
}

static bool has_a_fit_number_of_cpus(const struct machine_wishes *wishes, struct reason *why)
{
    uint32_t cpus = machine_cpus();
    (void)wishes;
    if (cpus >= 1 && cpus <= POLICY_CPUS_MAX)
        return true;
    snprintf(why->text, sizeof(why->text), "it has %" PRIu32 "; policies know 1 to %d", cpus,
             POLICY_CPUS_MAX);
    return false;
}

static bool nobody_else_serves(const struct machine_wishes *wishes, struct reason *why)
{
    pid_t server = machine_server();
    (void)wishes;
    if (server)
        snprintf(why->text, sizeof(why->text), SERVED_ALREADY, server);
    return !server;
}

static bool no_other_scheduler(const struct machine_wishes *wishes, struct reason *why)
{
    char name[128];
    (void)wishes;
    if (!machine_has_sched_ext())
        return true; /* reported by another check */
    if (sched_ext_is("disabling"))
        machine_wait_for_fair_class(); /* a server is about to end */
    if (!machine_has_other_scheduler(name, sizeof(name)))
        return true;
    snprintf(why->text, sizeof(why->text),
             "another scheduler is loaded: %s; end the program that loaded it", name);
    return false;
}

static bool object_exists(const char *folder, const char *name, struct reason *why)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.bpf.o", folder, name);
    if (access(path, R_OK) == 0)
        return true;
    snprintf(why->text, sizeof(why->text), "%.300s: %s; name their folder with --objects", path,
             strerror(errno));
    return false;
}

static bool has_objects(const struct machine_wishes *wishes, struct reason *why)
{
    const struct policy *policy = wishes->policy;
    return object_exists(wishes->objects, "observer", why) &&
           object_exists(wishes->objects, "tasks", why) &&
           (!policy || object_exists(wishes->objects, policy_files[policy_source(policy)], why));
}

static bool folder_is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int entries = 0;
    while (folder && entries < 3 && readdir(folder))
        entries++;
    if (folder)
        closedir(folder);
    return folder && entries == 2; /* . and .. */
}

static bool has_trusted_control(const struct machine_wishes *wishes, struct reason *why)
{
    char bent[TRUSTED_WHY_BYTES];
    if (trusted_folder(wishes->control, bent))
        return true;
    snprintf(why->text, sizeof(why->text), "%.300s: %s", wishes->control, bent);
    return false;
}

static bool has_room_for_control(const struct machine_wishes *wishes, struct reason *why)
{
    struct stat status;
    if (stat(wishes->control, &status)) {
        if (errno == ENOENT || errno == ENOTCONN) /* what a killed server leaves behind */
            return true;
        snprintf(why->text, sizeof(why->text), "%.300s: %s", wishes->control, strerror(errno));
        return false;
    }
    if (S_ISDIR(status.st_mode) && folder_is_empty(wishes->control))
        return true;
    snprintf(why->text, sizeof(why->text),
             "%.300s: not an empty folder; name another one with --control", wishes->control);
    return false;
}

unsigned machine_honours(const struct policy *policy)
{
    struct btf *kernel = policy->by_groups == GROUPS_ALWAYS ? btf__load_vmlinux_btf() : NULL;
    unsigned honoured = 0;
    if (kernel && has_callback(kernel, "cgroup_set_weight"))
        honoured |= HONOURS_WEIGHTS;
    if (kernel && has_callback(kernel, "cgroup_set_bandwidth"))
        honoured |= HONOURS_QUOTAS;
    btf__free(kernel);
    return honoured;
}

/* The fair class honours them, and stays active if no policy is wanted. */
static bool has_no_limits(const struct machine_wishes *wishes, struct reason *why)
{
    struct text description = {0};
    bool honoured =
        !wishes->policy || !limits_in_use_on_host(machine_honours(wishes->policy), &description);
    if (!honoured)
        snprintf(why->text, sizeof(why->text), LIMITS_NOT_HONOURED, description.bytes);
    if (!honoured && wishes->ignore_limits) {
        say("ignored: %s", why->text);
        honoured = true;
    }
    text_free(&description);
    return honoured;
}

bool machine_is_fit(const struct machine_wishes *wishes, bool tell_all)
{
    static const struct {
        const char *what;
        bool (*holds)(const struct machine_wishes *wishes, struct reason *why);
    } checks[] = {
        {"rights", has_rights},
        {"sched_ext", has_sched_ext},
        {"types of the kernel (BTF)", has_btf},
        {"control files (FUSE)", has_fuse},
        {"shares of CPU time", has_no_limits},
        {"CPUs", has_a_fit_number_of_cpus},
        {"one server", nobody_else_serves},
        {"the fair class is active", no_other_scheduler},
        {"BPF objects", has_objects},
        {"path of the control folder", has_trusted_control},
        {"control folder", has_room_for_control},
    };
    bool fit = true;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct reason why;
        bool holds = checks[i].holds(wishes, &why);
        if (!holds)
            say("%s: %s", checks[i].what, why.text);
        else if (tell_all)
            printf("ok: %s\n", checks[i].what);
        fit = fit && holds;
    }
    return fit;
}
