/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SIM_SCHED_EXT_KERNEL_TYPES_H
#define SIM_SCHED_EXT_KERNEL_TYPES_H

/*
 * The kernel's structures, as sched_ext schedulers see them. This file is compiled twice: for BPF
 * with -g, whose BTF is the target of the programs' CO-RE relocations, and into the engine, which
 * fills the structures. A program finds members by name, so layouts are ours. Pointers are the
 * programs' 64-bit addresses (image.h).
 *
 * Enumerators have the values of Linux 7.1. KERNEL_TYPE_HISTORY names what other versions lack.
 */
#include "kernel_functions.h"

#ifdef __bpf__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define POINTER(type) type *
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#define POINTER(type) u64
#endif

/* ---- constants ---- */

enum scx_public_consts {
    SCX_OPS_NAME_LEN = 128ULL,
    SCX_SLICE_DFL = 20000000ULL,
    SCX_SLICE_BYPASS = 5000000ULL,
    SCX_SLICE_INF = 0xffffffffffffffffULL,
};
enum scx_consts {
    SCX_DSP_DFL_MAX_BATCH = 32,
    SCX_DSP_MAX_LOOPS = 32,
    SCX_WATCHDOG_MAX_TIMEOUT = 30000,
    SCX_EXIT_BT_LEN = 64,
    SCX_EXIT_MSG_LEN = 1024,
    SCX_EXIT_DUMP_DFL_LEN = 32768,
    SCX_CPUPERF_ONE = 1024,
    SCX_TASK_ITER_BATCH = 32,
};
enum scx_rq_flags {
    SCX_RQ_ONLINE = 1,
    SCX_RQ_CAN_STOP_TICK = 2,
    SCX_RQ_BAL_PENDING = 4,
    SCX_RQ_BAL_KEEP = 8,
    SCX_RQ_BYPASSING = 16,
    SCX_RQ_CLK_VALID = 32,
    SCX_RQ_IN_WAKEUP = 65536,
    SCX_RQ_IN_BALANCE = 131072,
};
enum scx_dsq_id_flags {
    SCX_DSQ_FLAG_BUILTIN = 1ULL << 63,
    SCX_DSQ_FLAG_LOCAL_ON = 1ULL << 62,
    SCX_DSQ_INVALID = SCX_DSQ_FLAG_BUILTIN | 0,
    SCX_DSQ_GLOBAL = SCX_DSQ_FLAG_BUILTIN | 1,
    SCX_DSQ_LOCAL = SCX_DSQ_FLAG_BUILTIN | 2,
    SCX_DSQ_BYPASS = SCX_DSQ_FLAG_BUILTIN | 3,
    SCX_DSQ_LOCAL_ON = SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON,
    SCX_DSQ_LOCAL_CPU_MASK = 0xffffffffULL,
};
enum scx_ent_flags {
    SCX_TASK_QUEUED = 1,
    SCX_TASK_RESET_RUNNABLE_AT = 4,
    SCX_TASK_DEQD_FOR_SLEEP = 8,
    SCX_TASK_STATE_SHIFT = 8,
    SCX_TASK_STATE_BITS = 2,
    SCX_TASK_STATE_MASK = 3 << 8,
};
enum scx_task_state {
    SCX_TASK_NONE,
    SCX_TASK_INIT,
    SCX_TASK_READY,
    SCX_TASK_ENABLED,
    SCX_TASK_NR_STATES,
};
enum scx_ent_dsq_flags { SCX_TASK_DSQ_ON_PRIQ = 1 };
enum scx_kick_flags { SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT = 2, SCX_KICK_WAIT = 4 };
enum scx_enq_flags {
    SCX_ENQ_WAKEUP = 1ULL,
    SCX_ENQ_HEAD = 1ULL << 16,
    SCX_ENQ_CPU_SELECTED = 1ULL << 20,
    SCX_ENQ_PREEMPT = 1ULL << 32,
    SCX_ENQ_IMMED = 1ULL << 33,
    SCX_ENQ_REENQ = 1ULL << 40,
    SCX_ENQ_LAST = 1ULL << 41,
    SCX_ENQ_CLEAR_OPSS = 1ULL << 56,
    SCX_ENQ_DSQ_PRIQ = 1ULL << 57,
    SCX_ENQ_NESTED = 1ULL << 58,
};
enum scx_deq_flags {
    SCX_DEQ_SLEEP = 1ULL,
    SCX_DEQ_CORE_SCHED_EXEC = 1ULL << 32,
    SCX_DEQ_SCHED_CHANGE = 1ULL << 33,
};
enum scx_wake_flags { SCX_WAKE_FORK = 4, SCX_WAKE_TTWU = 8, SCX_WAKE_SYNC = 16 };
enum scx_ops_flags {
    SCX_OPS_KEEP_BUILTIN_IDLE = 1ULL << 0,
    SCX_OPS_ENQ_LAST = 1ULL << 1,
    SCX_OPS_ENQ_EXITING = 1ULL << 2,
    SCX_OPS_SWITCH_PARTIAL = 1ULL << 3,
    SCX_OPS_ENQ_MIGRATION_DISABLED = 1ULL << 4,
    SCX_OPS_ALLOW_QUEUED_WAKEUP = 1ULL << 5,
    SCX_OPS_BUILTIN_IDLE_PER_NODE = 1ULL << 6,
    SCX_OPS_ALWAYS_ENQ_IMMED = 1ULL << 7,
    SCX_OPS_HAS_CPU_PREEMPT = 1ULL << 56,
};
enum scx_exit_kind {
    SCX_EXIT_NONE = 0,
    SCX_EXIT_DONE = 1,
    SCX_EXIT_UNREG = 64,
    SCX_EXIT_UNREG_BPF = 65,
    SCX_EXIT_UNREG_KERN = 66,
    SCX_EXIT_SYSRQ = 67,
    SCX_EXIT_ERROR = 1024,
    SCX_EXIT_ERROR_BPF = 1025,
    SCX_EXIT_ERROR_STALL = 1026,
};
enum scx_exit_code {
    SCX_ECODE_RSN_HOTPLUG = 1ULL << 32,
    SCX_ECODE_RSN_CGROUP_OFFLINE = 2ULL << 32,
    SCX_ECODE_ACT_RESTART = 1ULL << 48,
};
enum scx_pick_idle_cpu_flags { SCX_PICK_IDLE_CORE = 1, SCX_PICK_IDLE_IN_NODE = 2 };
enum scx_dsq_iter_flags { SCX_DSQ_ITER_REV = 65536 };
enum scx_cpu_preempt_reason {
    SCX_CPU_PREEMPT_RT,
    SCX_CPU_PREEMPT_DL,
    SCX_CPU_PREEMPT_STOP,
    SCX_CPU_PREEMPT_UNKNOWN,
};
enum cgroup_subsys_id { cpuset_cgrp_id, cpu_cgrp_id, cpuacct_cgrp_id, CGROUP_SUBSYS_COUNT };

/* p->flags, p->__state and p->policy; the kernel has macros, which BTF does not hold. */
#define TASK_FLAG_IDLE     0x00000002
#define TASK_FLAG_EXITING  0x00000004
#define TASK_FLAG_KTHREAD  0x00200000
#define TASK_STATE_RUNNING 0
#define TASK_STATE_SLEEPS  1
#define TASK_STATE_DEAD    0x80
#define TASK_POLICY_EXT    7

/* ---- small types ---- */

/* Programs hold the size of a mask, so it is that of a kernel with 8192 CPUs. */
#define CPUMASK_WORDS 128
typedef struct cpumask {
    u64 bits[CPUMASK_WORDS];
} cpumask_t;
typedef struct {
    int counter;
} atomic_t;
typedef struct {
    s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t;
typedef struct refcount_struct {
    atomic_t refs;
} refcount_t;
typedef struct {
    u64 bits[16];
} nodemask_t;
struct list_head {
    POINTER(struct list_head) next;
    POINTER(struct list_head) prev;
};
struct bpf_cpumask {
    cpumask_t cpumask;
    refcount_t usage;
};

/* What programs have in their values, and functions of the kernel change. */
struct bpf_spin_lock {
    u32 val;
};
struct bpf_res_spin_lock {
    u32 val;
};
struct bpf_timer {
    u64 __opaque[2];
};
struct bpf_wq {
    u64 __opaque[2];
};
struct bpf_rb_root {
    u64 __opaque[2];
};
struct bpf_rb_node {
    u64 __opaque[4];
};
struct bpf_list_head {
    u64 __opaque[2];
};
struct bpf_list_node {
    u64 __opaque[3];
};
struct bpf_refcount {
    u32 __opaque[1];
};
struct bpf_iter_num {
    u64 __opaque[1];
};
struct bpf_iter_bits {
    u64 __opaque[2];
};
struct bpf_iter_css {
    u64 __opaque[3];
};
struct bpf_iter_css_task {
    u64 __opaque[1];
};
struct bpf_iter_task {
    u64 __opaque[3];
};
struct bpf_iter_scx_dsq {
    u64 __opaque[6];
};

/* ---- control groups ---- */

struct kernfs_node {
    u64 id;
    POINTER(struct kernfs_node) parent;
    POINTER(struct kernfs_node) __parent;
    POINTER(const char) name;
};
struct cgroup_subsys_state {
    POINTER(struct cgroup) cgroup;
    POINTER(struct cgroup_subsys_state) parent;
    int id;
    unsigned int flags;
    u64 serial_nr;
};
#define CGROUP_LEVELS 16
struct cgroup {
    struct cgroup_subsys_state self;
    u64 flags;
    int level;
    int max_depth;
    POINTER(struct kernfs_node) kn;
    POINTER(struct cgroup_subsys_state) subsys[CGROUP_SUBSYS_COUNT];
    POINTER(struct cgroup) dom_cgrp;
    POINTER(struct cgroup) ancestors[CGROUP_LEVELS];
};
struct css_set {
    POINTER(struct cgroup_subsys_state) subsys[CGROUP_SUBSYS_COUNT];
    POINTER(struct cgroup) dfl_cgrp;
};
struct task_group {
    struct cgroup_subsys_state css;
    POINTER(struct task_group) parent;
    u64 shares;
    int idle;
};

/* ---- tasks ---- */

struct scx_dispatch_q {
    u32 nr;
    u32 seq;
    u64 id;
};
struct scx_dsq_list_node {
    struct list_head node;
    u32 flags;
    u32 priv;
};
struct sched_ext_entity {
    POINTER(struct scx_dispatch_q) dsq;
    struct scx_dsq_list_node dsq_list;
    u32 dsq_seq;
    u32 dsq_flags;
    u32 flags;
    u32 weight;
    s32 sticky_cpu;
    s32 holding_cpu;
    s32 selected_cpu;
    atomic_long_t ops_state;
    u64 ddsp_dsq_id;
    u64 ddsp_enq_flags;
    u64 runnable_at;
    u64 core_sched_at;
    u64 slice;
    u64 dsq_vtime;
    bool disallow;
    POINTER(struct cgroup) cgrp_moving_from;
};
struct load_weight {
    u64 weight;
    u32 inv_weight;
};
struct sched_avg {
    u64 last_update_time;
    u64 load_avg;
    u64 runnable_avg;
    u64 util_avg;
};
struct sched_entity {
    struct load_weight load;
    u64 exec_start;
    u64 sum_exec_runtime;
    u64 prev_sum_exec_runtime;
    u64 vruntime;
    u64 nr_migrations;
    struct sched_avg avg;
};
struct thread_info {
    u64 flags;
    u32 cpu;
};
struct mm_struct {
    u64 unused;
};
struct mempolicy {
    unsigned short mode;
    unsigned short flags;
    nodemask_t nodes;
    int home_node;
};
struct sched_class {
    u64 unused;
};
typedef struct {
    u32 val;
} kuid_t;
typedef struct {
    u32 val;
} kgid_t;
struct cred {
    kuid_t uid;
    kgid_t gid;
    kuid_t euid;
    kgid_t egid;
};
struct rb_node {
    u64 __rb_parent_color;
    POINTER(struct rb_node) rb_right;
    POINTER(struct rb_node) rb_left;
};
struct rb_root {
    POINTER(struct rb_node) rb_node;
};
struct rb_root_cached {
    struct rb_root rb_root;
    POINTER(struct rb_node) rb_leftmost;
};
struct rt_mutex_base {
    struct rb_root_cached waiters;
    POINTER(struct task_struct) owner;
};
struct rt_waiter_node {
    struct rb_node entry;
    int prio;
    u64 deadline;
};
struct rt_mutex_waiter {
    struct rt_waiter_node tree;
    POINTER(struct task_struct) task;
    POINTER(struct rt_mutex_base) lock;
};
struct signal_struct {
    int nr_threads;
    s16 oom_score_adj;
};
struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    int exit_state;
    int exit_code;
    int on_cpu;
    int on_rq;
    unsigned int flags;
    s32 pid;
    s32 tgid;
    int prio;
    int static_prio;
    int normal_prio;
    unsigned int rt_priority;
    unsigned int policy;
    int nr_cpus_allowed;
    unsigned short migration_disabled;
    int wake_cpu;
    int recent_used_cpu;
    unsigned int wakee_flips;
    u64 wakee_flip_decay_ts;
    POINTER(struct task_struct) last_wakee;
    POINTER(const cpumask_t) cpus_ptr;
    POINTER(cpumask_t) user_cpus_ptr;
    cpumask_t cpus_mask;
    struct sched_entity se;
    struct sched_ext_entity scx;
    POINTER(const struct sched_class) sched_class;
    POINTER(struct task_group) sched_task_group;
    POINTER(struct mm_struct) mm;
    POINTER(struct mm_struct) active_mm;
    POINTER(struct mempolicy) mempolicy;
    POINTER(struct task_struct) parent;
    POINTER(struct task_struct) real_parent;
    POINTER(struct task_struct) group_leader;
    POINTER(struct css_set) cgroups;
    POINTER(const struct cred) cred;
    POINTER(const struct cred) real_cred;
    POINTER(struct signal_struct) signal;
    POINTER(struct rt_mutex_waiter) pi_blocked_on;
    u64 utime;
    u64 stime;
    u64 nvcsw;
    u64 nivcsw;
    u64 start_time;
    u64 start_boottime;
    int softirq_disable_cnt;
    int rcu_read_lock_nesting;
    int numa_preferred_nid;
    char comm[16];
};

/* ---- CPUs ---- */

struct scx_rq {
    u32 flags;
    u32 nr_running;
    u32 cpuperf_target;
    bool cpu_released;
    u64 clock;
};
struct rq {
    POINTER(struct task_struct) curr;
    POINTER(struct task_struct) idle;
    int cpu;
    unsigned int nr_running;
    unsigned int nr_uninterruptible;
    u64 nr_switches;
    u64 clock;
    u64 clock_task;
    u64 clock_pelt;
    u64 lost_idle_time;
    u64 cpu_capacity;
    struct scx_rq scx;
};
struct cpufreq_cpuinfo {
    unsigned int max_freq;
    unsigned int min_freq;
};
struct cpufreq_policy {
    unsigned int cpu;
    unsigned int min;
    unsigned int max;
    unsigned int cur;
    struct cpufreq_cpuinfo cpuinfo;
};

/* ---- arguments of callbacks and functions ---- */

struct scx_exit_info {
    enum scx_exit_kind kind;
    s32 exit_cpu;
    s64 exit_code;
    u64 flags;
    POINTER(const char) reason;
    POINTER(u64) bt;
    u32 bt_len;
    POINTER(char) msg;
    POINTER(char) dump;
};
struct scx_init_task_args {
    bool fork;
    POINTER(struct cgroup) cgroup;
};
struct scx_exit_task_args {
    bool cancelled;
};
struct scx_cgroup_init_args {
    u32 weight;
    u64 bw_period_us;
    u64 bw_quota_us;
    u64 bw_burst_us;
};
struct scx_cpu_acquire_args {
    char unused[1];
};
struct scx_cpu_release_args {
    enum scx_cpu_preempt_reason reason;
    POINTER(struct task_struct) task;
};
struct scx_dump_ctx {
    enum scx_exit_kind kind;
    s64 exit_code;
    POINTER(const char) reason;
    u64 at_ns;
    u64 at_jiffies;
};
struct scx_bpf_dsq_insert_vtime_args {
    u64 dsq_id;
    u64 slice;
    u64 vtime;
    u64 enq_flags;
};
struct scx_bpf_select_cpu_and_args {
    s32 prev_cpu;
    u64 wake_flags;
    u64 flags;
};
struct scx_event_stats {
    s64 SCX_EV_SELECT_CPU_FALLBACK;
    s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
    s64 SCX_EV_DISPATCH_KEEP_LAST;
    s64 SCX_EV_ENQ_SKIP_EXITING;
    s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
    s64 SCX_EV_REFILL_SLICE_DFL;
    s64 SCX_EV_BYPASS_DURATION;
    s64 SCX_EV_BYPASS_DISPATCH;
    s64 SCX_EV_BYPASS_ACTIVATE;
    s64 SCX_EV_INSERT_NOT_OWNED;
};

/* The scheduler's description; only its members' names are used. */
struct sched_ext_ops {
#define OPS_MEMBER(name, number, first, last) POINTER(void) name;
    SCHEDULER_OPS(OPS_MEMBER)
#undef OPS_MEMBER
    u32 dispatch_max_batch;
    u64 flags;
    u32 timeout_ms;
    u32 exit_dump_len;
    u64 hotplug_seq;
    char name[128];
    POINTER(void) priv;
};

/*
 * X(type, member or enumerator, first, last): what only some kernel versions have. An empty member
 * means the complete type. The loader hides the rest from programs of other profiles.
 */
#define KERNEL_TYPE_HISTORY(X)                                                                     \
    X(sched_ext_ops, cgroup_set_bandwidth, 617, 9999)                                              \
    X(sched_ext_ops, cgroup_set_idle, 619, 9999)                                                   \
    X(sched_ext_ops, priv, 617, 9999)                                                              \
    X(scx_cgroup_init_args, bw_period_us, 617, 9999)                                               \
    X(scx_cgroup_init_args, bw_quota_us, 617, 9999)                                                \
    X(scx_cgroup_init_args, bw_burst_us, 617, 9999)                                                \
    X(scx_exit_info, exit_cpu, 701, 9999)                                                          \
    X(scx_exit_info, flags, 701, 9999)                                                             \
    X(scx_event_stats, , 615, 9999)                                                                \
    X(scx_event_stats, SCX_EV_REFILL_SLICE_DFL, 616, 9999)                                         \
    X(scx_event_stats, SCX_EV_INSERT_NOT_OWNED, 619, 9999)                                         \
    X(scx_bpf_dsq_insert_vtime_args, , 619, 9999)                                                  \
    X(scx_bpf_select_cpu_and_args, , 619, 9999)                                                    \
    X(scx_enq_flags, SCX_ENQ_IMMED, 701, 9999)                                                     \
    X(scx_deq_flags, SCX_DEQ_SCHED_CHANGE, 701, 9999)                                              \
    X(scx_ops_flags, SCX_OPS_ENQ_MIGRATION_DISABLED, 614, 9999)                                    \
    X(scx_ops_flags, SCX_OPS_ALLOW_QUEUED_WAKEUP, 615, 9999)                                       \
    X(scx_ops_flags, SCX_OPS_BUILTIN_IDLE_PER_NODE, 615, 9999)                                     \
    X(scx_ops_flags, SCX_OPS_ALWAYS_ENQ_IMMED, 701, 9999)                                          \
    X(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE, 615, 9999)                                   \
    X(scx_public_consts, SCX_SLICE_BYPASS, 619, 9999)                                              \
    X(kernfs_node, parent, 612, 614)                                                               \
    X(kernfs_node, __parent, 615, 9999)                                                            \
    X(bpf_res_spin_lock, , 615, 9999)

#ifdef __bpf__
/* BTF holds only types that something uses. */
#define DESCRIBE(number, type)                                                                     \
    extern type described_##number;                                                                \
    type described_##number
DESCRIBE(1, struct task_struct);
DESCRIBE(2, struct rq);
DESCRIBE(3, struct cgroup);
DESCRIBE(4, struct css_set);
DESCRIBE(5, struct kernfs_node);
DESCRIBE(6, struct task_group);
DESCRIBE(7, struct cpufreq_policy);
DESCRIBE(8, struct scx_exit_info);
DESCRIBE(9, struct scx_init_task_args);
DESCRIBE(10, struct scx_exit_task_args);
DESCRIBE(11, struct scx_cgroup_init_args);
DESCRIBE(12, struct scx_cpu_acquire_args);
DESCRIBE(13, struct scx_cpu_release_args);
DESCRIBE(14, struct scx_dump_ctx);
DESCRIBE(15, struct scx_bpf_dsq_insert_vtime_args);
DESCRIBE(16, struct scx_bpf_select_cpu_and_args);
DESCRIBE(17, struct scx_event_stats);
DESCRIBE(18, struct sched_ext_ops);
DESCRIBE(19, struct bpf_cpumask);
DESCRIBE(20, struct bpf_spin_lock);
DESCRIBE(21, struct bpf_res_spin_lock);
DESCRIBE(22, struct bpf_timer);
DESCRIBE(23, struct bpf_wq);
DESCRIBE(24, struct bpf_rb_root);
DESCRIBE(25, struct bpf_rb_node);
DESCRIBE(26, struct bpf_list_head);
DESCRIBE(27, struct bpf_list_node);
DESCRIBE(28, struct bpf_refcount);
DESCRIBE(29, struct bpf_iter_num);
DESCRIBE(30, struct bpf_iter_bits);
DESCRIBE(31, struct bpf_iter_css);
DESCRIBE(32, struct bpf_iter_css_task);
DESCRIBE(33, struct bpf_iter_task);
DESCRIBE(34, struct bpf_iter_scx_dsq);
DESCRIBE(35, struct mm_struct);
DESCRIBE(36, struct mempolicy);
DESCRIBE(37, struct cred);
DESCRIBE(38, struct signal_struct);
DESCRIBE(39, struct sched_class);
DESCRIBE(40, struct scx_dispatch_q);
DESCRIBE(41, atomic_long_t);
DESCRIBE(42, struct rt_mutex_waiter);
DESCRIBE(43, struct rt_mutex_base);
DESCRIBE(60, enum scx_public_consts);
DESCRIBE(61, enum scx_consts);
DESCRIBE(62, enum scx_rq_flags);
DESCRIBE(63, enum scx_dsq_id_flags);
DESCRIBE(64, enum scx_ent_flags);
DESCRIBE(65, enum scx_task_state);
DESCRIBE(66, enum scx_ent_dsq_flags);
DESCRIBE(67, enum scx_kick_flags);
DESCRIBE(68, enum scx_enq_flags);
DESCRIBE(69, enum scx_deq_flags);
DESCRIBE(70, enum scx_wake_flags);
DESCRIBE(71, enum scx_ops_flags);
DESCRIBE(72, enum scx_exit_kind);
DESCRIBE(73, enum scx_exit_code);
DESCRIBE(74, enum scx_pick_idle_cpu_flags);
DESCRIBE(75, enum scx_dsq_iter_flags);
DESCRIBE(76, enum scx_cpu_preempt_reason);
DESCRIBE(77, enum cgroup_subsys_id);
#endif

#endif
