/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_INTRODUCTIONS_H
#define LINUX_BPF_INTRODUCTIONS_H

/* Records that name threads: FOUND for a thread older than the trace, EXEC for a new name. */

#include "policies/support/attributes.h"

#include "allowed_cpus.h"
#include "block_reason.h"

#define TEXT_BYTES 12 /* of a record: eight in `second`, then four in `first` */

static __always_inline void fill_text(struct trace_record *record, uint64_t time, uint32_t sequence,
                                      uint32_t kind, uint32_t process, const uint8_t *text)
{
    uint64_t second;
    uint32_t first;
    __builtin_memcpy(&second, text, 8);
    __builtin_memcpy(&first, text + 8, 4);
    trace_fill(record, time, sequence, kind, process, first, second);
}

/* A thread's name as it is usually written: a kernel thread's is in brackets. */
#define NAME_BYTES (2 * TEXT_BYTES)
struct name {
    uint8_t text[NAME_BYTES];
};

static __attribute__((noinline)) int read_name(struct name *name, const char *from, uint32_t flags)
{
    __builtin_memset(name, 0, sizeof(*name));
    if (!(flags & THREAD_OF_KERNEL)) {
        bpf_probe_read_kernel_str(name->text, HOST_NAME, from);
        return 0;
    }
    long length = bpf_probe_read_kernel_str(name->text + 1, HOST_NAME, from);
    if (length < 1 || length > HOST_NAME)
        return 0;
    name->text[0] = '[';
    name->text[length] = ']';
    return 0;
}

/* `from` has room for HOST_NAME bytes. */
static void remember_name(struct observed *thread, const char *from)
{
    uint64_t name[HOST_NAME / 8] = {0, 0};
    bpf_probe_read_kernel_str(name, sizeof(name), from);
    thread->name[0] = name[0];
    thread->name[1] = name[1];
}

static uint32_t thread_of(struct task_struct *task)
{
    return task->tgid == task->pid ? 0 : (uint32_t)task->tgid;
}

static void emit_attribute(uint32_t pid, enum attribute_kind kind, uint64_t value)
{
    trace_emit(TRACE_ATTRIBUTE, pid, kind, value);
}

/* Writes the attributes that were set before the trace began. */
static void emit_attributes(struct task_struct *task, uint32_t pid)
{
    struct task_attributes *set = bpf_task_storage_get(&attributes, task, 0, 0);
    if (!set || !set->set)
        return;
#define EMIT(kind, field, type, lowest, first, highest, inherited)                                 \
    if (set->field != (type)(first))                                                               \
        emit_attribute(pid, ATTRIBUTE_##kind, (uint64_t)(int64_t)set->field);
    ATTRIBUTES(EMIT)
#undef EMIT
}

#define INTRODUCTION_RECORDS 3

/*
 * Introduces a thread that is older than the trace, by FOUND and its name. Two CPUs may find it at
 * the same time: one of them wins, and returns true. The records' sequence numbers and time are
 * taken before the winner is decided. So every other record of the thread comes after them. The
 * losing CPU fills its reserved space with a LOST of no records.
 */
static __attribute__((noinline)) bool introduce(struct trace_state *state, struct task_struct *task,
                                                struct observed *thread, uint32_t now)
{
    struct name name;
    read_name(&name, task->comm, task->flags);
    struct trace_record *records = trace_reserve(state, INTRODUCTION_RECORDS);
    uint32_t sequence = records ? trace_numbers(state, INTRODUCTION_RECORDS) : 0;
    uint64_t time = bpf_ktime_get_boot_ns();
    thread->pid = (uint32_t)task->pid;
    remember_name(thread, task->comm);
    bool won = __sync_val_compare_and_swap(&thread->state, PROCESS_NEW, now) == PROCESS_NEW;
    if (records && won) {
        trace_fill(&records[0], time, sequence, TRACE_FOUND, thread->pid, now, thread_of(task));
        fill_text(&records[1], time, sequence + 1, TRACE_TEXT, thread->pid, name.text);
        fill_text(&records[2], time, sequence + 2, TRACE_TEXT, thread->pid, name.text + TEXT_BYTES);
    } else if (records) {
        for (uint32_t i = 0; i < INTRODUCTION_RECORDS; i++)
            trace_fill(&records[i], time, sequence + i, TRACE_LOST, 0, 0, 0);
    }
    if (records)
        bpf_ringbuf_submit(records, BPF_RB_NO_WAKEUP);
    if (won)
        emit_attributes(task, thread->pid);
    if (won && !same_allowed(task, 0))
        emit_allowed(state, task, thread->pid);
    return won;
}

#define EXEC_RECORDS 2

static void emit_name(struct trace_state *state, uint32_t pid, const char *from, uint32_t flags)
{
    struct name name;
    read_name(&name, from, flags);
    struct trace_record *records = trace_reserve(state, EXEC_RECORDS);
    if (!records)
        return;
    uint32_t sequence = trace_numbers(state, EXEC_RECORDS);
    uint64_t time = bpf_ktime_get_boot_ns();
    fill_text(&records[0], time, sequence, TRACE_EXEC, pid, name.text);
    fill_text(&records[1], time, sequence + 1, TRACE_TEXT, pid, name.text + TEXT_BYTES);
    bpf_ringbuf_submit(records, BPF_RB_NO_WAKEUP);
}

static void report_name(struct trace_state *state, struct observed *thread, const char *from,
                        uint32_t flags)
{
    remember_name(thread, from);
    emit_name(state, thread->pid, from, flags);
}

/* Returns true if the thread's name differs from the last recorded name. */
static bool is_renamed(const struct observed *thread, const struct task_struct *task)
{
    uint64_t name[HOST_NAME / 8];
    __builtin_memcpy(name, task->comm, sizeof(name));
    return name[0] != thread->name[0] || name[1] != thread->name[1];
}

/* Returns the trace's data about a thread, or null if memory is short. */
static struct observed *observed_of(struct trace_state *state, struct task_struct *task)
{
    struct observed *thread =
        bpf_task_storage_get(&observed, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread)
        __sync_fetch_and_add(&state->lost, 1);
    return thread;
}

#endif
