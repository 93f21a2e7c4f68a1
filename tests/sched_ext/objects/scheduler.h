/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef TESTS_SCHED_EXT_SCHEDULER_H
#define TESTS_SCHED_EXT_SCHEDULER_H

/* What the tests' sched_ext schedulers need of the kernel. CO-RE finds the members by name. */

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;
#define true  1
#define false 0
#define NULL  ((void *)0)

#define SECTION(name)        __attribute__((section(name), used))
#define KERNEL               __attribute__((section(".ksyms")))
#define OPTIONAL             __attribute__((weak)) KERNEL
#define RELOCATED            __attribute__((preserve_access_index))
#define NO_INLINE            __attribute__((noinline))
#define TYPE_TAG(name)       __attribute__((btf_type_tag(name)))
#define CONTAINS(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define HIDDEN_DATA(name)    __attribute__((section(".data." #name), aligned(8)))
#define HAS_FUNCTION(name)   (!!(void *)(name))
#define HAS_MEMBER(member)   __builtin_preserve_field_info(member, 2)
#define CONTAINER_OF(address, type, member)                                                        \
    ((type *)((char *)(address) - __builtin_offsetof(type, member)))

/* Members of a map's description, whose types hold the numbers. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value)   value *name

/* A callback: argument n is argument[n]. */
#ifdef LOGGED
#define CALLBACK(result, name)          LOGGED_CALLBACK(result, name, "struct_ops/")
#define SLEEPING_CALLBACK(result, name) LOGGED_CALLBACK(result, name, "struct_ops.s/")
#define LOGGED_CALLBACK(result, name, kind)                                                        \
    static inline result name##_itself(u64 *argument);                                             \
    SECTION(kind #name) result name(u64 *argument)                                                 \
    {                                                                                              \
        log_callback(#name, sizeof(#name), logged_pid(#name, sizeof(#name), argument));            \
        return name##_itself(argument);                                                            \
    }                                                                                              \
    static inline result name##_itself(__attribute__((unused)) u64 *argument)
#else
#define CALLBACK(result, name)                                                                     \
    SECTION("struct_ops/" #name) result name(__attribute__((unused)) u64 *argument)
#define SLEEPING_CALLBACK(result, name)                                                            \
    SECTION("struct_ops.s/" #name) result name(__attribute__((unused)) u64 *argument)
#endif
#define TASK(n) ((struct task_struct *)argument[n])

char _license[] SECTION("license") = "Dual MIT/GPL";

/* ---- types ---- */

struct cpumask;
struct kernfs_node {
    u64 id;
} RELOCATED;
struct cgroup {
    struct kernfs_node *kn;
    s32 level;
} RELOCATED;
struct sched_ext_entity {
    u32 weight;
    u64 slice;
    u64 dsq_vtime;
} RELOCATED;
struct task_struct {
    s32 pid;
    s32 nr_cpus_allowed;
    u32 flags;
    const struct cpumask *cpus_ptr;
    struct sched_ext_entity scx;
    char comm[16];
} RELOCATED;
enum scx_exit_kind { EXIT_NONE };
struct scx_exit_info {
    enum scx_exit_kind kind;
    s64 exit_code;
    const char *msg;
} RELOCATED;
struct scx_init_task_args {
    bool fork;
    struct cgroup *cgroup;
} RELOCATED;
struct scx_cgroup_init_args {
    u32 weight;
    u64 bw_period_us, bw_quota_us;
} RELOCATED;
typedef void callback(void); /* libbpf expects pointers to functions */
struct sched_ext_ops {
    callback *select_cpu, *enqueue, *dequeue, *dispatch, *runnable, *running, *stopping, *quiescent;
    callback *init_task, *exit_task, *enable, *set_weight, *tick;
    callback *cgroup_init, *cgroup_exit, *cgroup_move, *cgroup_set_weight, *cgroup_set_bandwidth;
    callback *cpu_online, *cpu_offline, *init, *exit;
    u64 flags;
    u32 timeout_ms, dispatch_max_batch;
    char name[128];
};
struct bpf_timer {
    u64 hidden[2];
} __attribute__((aligned(8)));
struct bpf_spin_lock {
    u32 value;
};
struct bpf_rb_root {
    u64 hidden[2];
} __attribute__((aligned(8)));
struct bpf_rb_node {
    u64 hidden[4];
} __attribute__((aligned(8)));

/* ---- constants: user space copies them from the kernel's enumerations before it loads ---- */

#define CONSTANT(name) const volatile u64 __##name __attribute__((weak))
CONSTANT(SCX_DSQ_GLOBAL);
CONSTANT(SCX_DSQ_LOCAL);
CONSTANT(SCX_DSQ_LOCAL_ON);
CONSTANT(SCX_SLICE_DFL);
CONSTANT(SCX_SLICE_INF);
CONSTANT(SCX_ENQ_WAKEUP);
CONSTANT(SCX_ENQ_PREEMPT);
CONSTANT(SCX_ENQ_LAST);
CONSTANT(SCX_KICK_IDLE);
CONSTANT(SCX_KICK_PREEMPT);
#define SCX_DSQ_GLOBAL   __SCX_DSQ_GLOBAL
#define SCX_DSQ_LOCAL    __SCX_DSQ_LOCAL
#define SCX_DSQ_LOCAL_ON __SCX_DSQ_LOCAL_ON
#define SCX_SLICE_DFL    __SCX_SLICE_DFL
#define SCX_SLICE_INF    __SCX_SLICE_INF
#define SCX_ENQ_WAKEUP   __SCX_ENQ_WAKEUP
#define SCX_ENQ_PREEMPT  __SCX_ENQ_PREEMPT
#define SCX_ENQ_LAST     __SCX_ENQ_LAST
#define SCX_KICK_IDLE    __SCX_KICK_IDLE
#define SCX_KICK_PREEMPT __SCX_KICK_PREEMPT
enum { OPS_ENQ_LAST = 2, OPS_KEEP_BUILTIN_IDLE = 1 };
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_ARRAY_OF_MAPS = 12, MAP_QUEUE = 22 };
enum { MAP_TASK_STORAGE = 29, MAP_CGRP_STORAGE = 32, NO_PREALLOC = 1, STORAGE_CREATE = 1 };
enum { NO_SUCH_ENTRY = 2, NO_MEMORY = 12, TIMER_PINNED = 2 };

/* ---- helper functions, by number ---- */

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static s64 (*const map_update)(void *map, const void *key, const void *value,
                               u64 flags) = (void *)2;
static u64 (*const time_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static s64 (*const map_push)(void *map, const void *value, u64 flags) = (void *)87;
static s64 (*const map_pop)(void *map, void *value) = (void *)88;
static s64 (*const lock)(struct bpf_spin_lock *lock) = (void *)93;
static s64 (*const unlock)(struct bpf_spin_lock *lock) = (void *)94;
static s64 (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static s64 (*const read_kernel_text)(void *to, u32 size, const void *from) = (void *)115;
static void *(*const task_storage)(void *map, struct task_struct *task, void *value,
                                   u64 flags) = (void *)156;
static s64 (*const timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static s64 (*const timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static s64 (*const timer_start)(struct bpf_timer *timer, u64 ns, u64 flags) = (void *)171;
static void *(*const pointer_exchange)(void *address, void *pointer) = (void *)194;
static void *(*const cgroup_storage)(void *map, struct cgroup *group, void *value,
                                     u64 flags) = (void *)210;

#ifdef LOGGED
#include "../../../linux/guest/callback_log.h"

struct callback_log callback_log HIDDEN_DATA(log) = {.unused = 1};

static inline bool ends_with(const char *name, u32 bytes, const char *end, u32 end_bytes)
{
    return bytes >= end_bytes && __builtin_memcmp(name + bytes - end_bytes, end, end_bytes) == 0;
}

/* Returns the task's PID, of a callback that has one. The compiler knows the result of the
 * comparisons. */
static inline s32 logged_pid(const char *name, u32 bytes, const u64 *argument)
{
#define ENDS(end) ends_with(name, bytes, end, sizeof(end))
    if (ENDS("dispatch")) {
        const struct task_struct *previous = TASK(1);
        return previous ? previous->pid : 0;
    }
    if (ENDS("init") || ENDS("exit") || ENDS("line"))
        return 0;
    return TASK(0)->pid;
#undef ENDS
}

static inline void log_callback(const char *name, u32 bytes, s32 pid)
{
    u32 number = __sync_fetch_and_add(&callback_log.count, 1);
    if (number >= CALLBACK_RECORDS)
        return;
    struct callback_record *record = &callback_log.records[number];
    record->time_ns = time_ns();
    record->cpu = this_cpu();
    record->pid = pid;
    __builtin_memcpy(record->name, name, bytes < sizeof(record->name) ? bytes : 1);
}
#endif

/* ---- kernel functions ---- */

s32 scx_bpf_create_dsq(u64 id, s32 node) KERNEL;
s32 scx_bpf_dsq_nr_queued(u64 id) KERNEL;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *mask, u64 flags) KERNEL;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) KERNEL;
bool scx_bpf_task_running(const struct task_struct *task) KERNEL;
u32 scx_bpf_nr_cpu_ids(void) KERNEL;
u32 scx_bpf_dispatch_nr_slots(void) KERNEL;
s32 scx_bpf_select_cpu_dfl(struct task_struct *task, s32 cpu, u64 wake_flags, bool *is_idle) KERNEL;
struct task_struct *bpf_task_from_pid(s32 pid) KERNEL;
void bpf_task_release(struct task_struct *task) KERNEL;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) KERNEL;
void bpf_rcu_read_lock(void) KERNEL;
void bpf_rcu_read_unlock(void) KERNEL;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *task) KERNEL;
struct cgroup *bpf_cgroup_from_id(u64 id) KERNEL;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *group, s32 level) KERNEL;
void bpf_cgroup_release(struct cgroup *group) KERNEL;
void scx_bpf_error_bstr(char *format, u64 *data, u32 size) KERNEL;
void *bpf_obj_new_impl(u64 type, void *meta) KERNEL;
void bpf_obj_drop_impl(void *object, void *meta) KERNEL;
s32 bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
                        bool (*is_less)(struct bpf_rb_node *, const struct bpf_rb_node *),
                        void *meta, u64 offset) KERNEL;
struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) KERNEL;
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node) KERNEL;

/* Renamed after 6.12; one of each pair exists. */
void scx_bpf_dsq_insert___new(struct task_struct *task, u64 id, u64 slice, u64 flags) OPTIONAL;
void scx_bpf_dispatch___old(struct task_struct *task, u64 id, u64 slice, u64 flags) OPTIONAL;
void scx_bpf_dsq_insert_vtime___new(struct task_struct *task, u64 id, u64 slice, u64 vtime,
                                    u64 flags) OPTIONAL;
void scx_bpf_dispatch_vtime___old(struct task_struct *task, u64 id, u64 slice, u64 vtime,
                                  u64 flags) OPTIONAL;
bool scx_bpf_dsq_move_to_local___new(u64 id) OPTIONAL;
bool scx_bpf_consume___old(u64 id) OPTIONAL;

static inline void insert(struct task_struct *task, u64 id, u64 slice, u64 flags)
{
    if (HAS_FUNCTION(scx_bpf_dsq_insert___new))
        scx_bpf_dsq_insert___new(task, id, slice, flags);
    else
        scx_bpf_dispatch___old(task, id, slice, flags);
}

static inline void insert_ordered(struct task_struct *task, u64 id, u64 slice, u64 vtime, u64 flags)
{
    if (HAS_FUNCTION(scx_bpf_dsq_insert_vtime___new))
        scx_bpf_dsq_insert_vtime___new(task, id, slice, vtime, flags);
    else
        scx_bpf_dispatch_vtime___old(task, id, slice, vtime, flags);
}

static inline bool move_to_local(u64 id)
{
    return HAS_FUNCTION(scx_bpf_dsq_move_to_local___new) ? scx_bpf_dsq_move_to_local___new(id)
                                                         : scx_bpf_consume___old(id);
}

/* Returns the used part of a slice. The kernel gives a task that stays alone a longer slice. */
static inline u64 used_slice(const struct task_struct *task, u64 slice)
{
    u64 left = task->scx.slice;
    return left < slice ? slice - left : 0;
}

static inline bool is_before(u64 a, u64 b)
{
    return (s64)(a - b) < 0;
}

/* ---- what the tests read after a run ---- */

u32 exit_kind;
s64 exit_code;
char exit_message[128];

static inline void record_exit(const struct scx_exit_info *info)
{
    exit_kind = (u32)info->kind;
    exit_code = info->exit_code;
    read_kernel_text(exit_message, sizeof(exit_message), info->msg);
}
#define RECORD_EXIT(name)                                                                          \
    CALLBACK(void, name)                                                                           \
    {                                                                                              \
        record_exit((const struct scx_exit_info *)argument[0]);                                    \
    }

#endif
