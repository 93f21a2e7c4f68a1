/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_BLOCK_REASON_H
#define LINUX_BPF_BLOCK_REASON_H

/*
 * Determines why a thread of Linux is about to block, if that is cheap at a switch. It uses the
 * thread's system call, and the file that it reads or writes. All other reasons are BLOCK_OTHER:
 * sockets, poll(), signals, a kernel thread without work.
 *
 * System calls have different numbers on each architecture. Only those of x86-64 are known here:
 * elsewhere the reason is BLOCK_DISK, BLOCK_LOCK or BLOCK_OTHER.
 */

#include "abi/process_info.h"

#define THREAD_OF_KERNEL      0x00200000u /* in task_struct.flags */
#define STATE_UNINTERRUPTIBLE 0x0002u     /* in task_struct.__state */
#define STATE_IDLE            0x0400u     /* added to that if the sleep is not counted as load */
#define STATE_DEAD            0x0080u
#define STATE_NEW             0x0800u
#define STATE_FREEZABLE       0x2000u /* waits outside the kernel's locks */

#ifdef __TARGET_ARCH_x86

#define CODE_SEGMENT_64 0x33 /* of a 64-bit program; a 32-bit one has other system call numbers */

enum call_number {
    CALL_READ = 0,
    CALL_WRITE = 1,
    CALL_READV = 19,
    CALL_WRITEV = 20,
    CALL_NANOSLEEP = 35,
    CALL_CLONE = 56,
    CALL_VFORK = 58,
    CALL_WAIT4 = 61,
    CALL_FUTEX = 202,
    CALL_CLOCK_NANOSLEEP = 230,
    CALL_WAITID = 247,
    CALL_CLONE3 = 435,
    CALL_FUTEX_WAITV = 449,
    CALL_FUTEX_WAIT = 455,
};

#define FILE_KIND_MASK  0170000u
#define FILE_KIND_PIPE  0010000u
#define FILE_KIND_CHARS 0020000u

/* Returns true for a terminal or a console, by the major numbers in the kernel's list of devices.
 */
static bool is_terminal(uint32_t device)
{
    uint32_t major = device >> 20;
    return major == 4 || major == 5 || (major >= 136 && major <= 143) || major == 204 ||
           major == 229;
}

/* Returns why a thread blocks that reads or writes a file. */
static uint32_t file_reason(struct task_struct *task, uint32_t descriptor)
{
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
        return BLOCK_OTHER;
    struct file **slot = BPF_CORE_READ(table, fd) + descriptor;
    struct file *file = 0;
    if (bpf_probe_read_kernel(&file, sizeof(file), slot) || !file)
        return BLOCK_OTHER;
    struct inode *inode = BPF_CORE_READ(file, f_inode);
    uint32_t kind = BPF_CORE_READ(inode, i_mode) & FILE_KIND_MASK;
    if (kind == FILE_KIND_PIPE)
        return BLOCK_PIPE;
    if (kind == FILE_KIND_CHARS && is_terminal(BPF_CORE_READ(inode, i_rdev)))
        return BLOCK_CONSOLE;
    return BLOCK_OTHER;
}

/* Returns the reason according to the thread's system call; BLOCK_NONE if the call gives none,
 * or if the thread is not in a system call. */
static uint32_t call_reason(struct task_struct *task, uint32_t state)
{
    struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
    /* -1 if the thread entered the kernel by a fault or an interrupt. */
    int64_t number = (int64_t)BPF_CORE_READ(registers, orig_ax);
    if (BPF_CORE_READ(registers, cs) != CODE_SEGMENT_64)
        return BLOCK_NONE;
    switch (number) {
    case CALL_NANOSLEEP:
    case CALL_CLOCK_NANOSLEEP:
        return BLOCK_SLEEP;
    case CALL_WAIT4:
    case CALL_WAITID:
        return state & STATE_UNINTERRUPTIBLE ? BLOCK_NONE : BLOCK_CHILD;
    case CALL_VFORK: /* these three block until the child releases the shared memory */
    case CALL_CLONE:
    case CALL_CLONE3:
        return state & STATE_FREEZABLE ? BLOCK_CHILD : BLOCK_NONE;
    case CALL_FUTEX:
    case CALL_FUTEX_WAITV:
    case CALL_FUTEX_WAIT:
        return BLOCK_LOCK;
    case CALL_READ:
    case CALL_WRITE:
    case CALL_READV:
    case CALL_WRITEV:
        return file_reason(task, (uint32_t)BPF_CORE_READ(registers, di));
    default:
        return BLOCK_NONE;
    }
}

#else

static uint32_t call_reason(struct task_struct *task, uint32_t state)
{
    return BLOCK_NONE;
}

#endif

static uint32_t block_reason(struct task_struct *task, uint32_t state)
{
    if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
        return BLOCK_DISK;
    uint32_t reason = BLOCK_NONE;
    if (!(task->flags & THREAD_OF_KERNEL))
        reason = call_reason(task, state);
    if (reason != BLOCK_NONE && reason != BLOCK_OTHER)
        return reason;
    /* A sleep is short if no signal ends it and it is not I/O: it waits for a mutex of the
     * kernel. */

    return (state & STATE_UNINTERRUPTIBLE) && !(state & STATE_IDLE) ? BLOCK_LOCK : BLOCK_OTHER;
}

#endif
