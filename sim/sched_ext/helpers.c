/* SPDX-License-Identifier: MIT */

/* Helper functions of BPF, except those of maps and timers. */

#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/state.h"

#define HZ               1000
#define JIFFIES_AT_START 4294667296ull
#define COMMAND_BYTES    16
#define LOOP_COUNT_MAX   (8u << 20)
#define TEXT_BYTES_MAX   4096u

#define HELPER(name)                                                                               \
    host_function helper_##name;                                                                   \
    uint64_t helper_##name(struct guest *guest, const uint64_t *arguments)

/* Defined in maps.c and timers.c. */
host_function helper_map_lookup_elem, helper_map_update_elem, helper_map_delete_elem,
    helper_map_push_elem, helper_map_pop_elem, helper_map_peek_elem, helper_map_lookup_percpu_elem,
    helper_for_each_map_elem, helper_task_storage_get, helper_task_storage_delete,
    helper_cgrp_storage_get, helper_cgrp_storage_delete, helper_ringbuf_reserve,
    helper_ringbuf_output, helper_ringbuf_reserve_dynptr, helper_ringbuf_submit_dynptr,
    helper_dynptr_write, helper_timer_init, helper_timer_set_callback, helper_timer_start,
    helper_timer_cancel;

static uint64_t nothing(struct guest *guest, const uint64_t *arguments)
{
    (void)guest;
    (void)arguments;
    return 0;
}

/* One action happens after the other, so locks are always free. */
#define helper_spin_lock              nothing
#define helper_spin_unlock            nothing
#define helper_ringbuf_submit         nothing
#define helper_ringbuf_discard        nothing
#define helper_ringbuf_query          nothing
#define helper_ringbuf_discard_dynptr helper_ringbuf_submit_dynptr
#define helper_task_pt_regs           nothing
#define helper_trace_printk           nothing /* texts of programs are not shown */
#define helper_trace_vprintk          nothing

/* ---- time and CPUs ---- */

HELPER(ktime_get_ns)
{
    (void)arguments;
    return ext_now(ext_of(guest));
}
#define helper_ktime_get_boot_ns   helper_ktime_get_ns
#define helper_ktime_get_coarse_ns helper_ktime_get_ns
#define helper_ktime_get_tai_ns    helper_ktime_get_ns

HELPER(jiffies64)
{
    (void)arguments;
    return ext_now(ext_of(guest)) / (1000000000 / HZ) + JIFFIES_AT_START;
}

HELPER(get_smp_processor_id)
{
    (void)arguments;
    return ext_of(guest)->this_cpu;
}

HELPER(get_numa_node_id)
{
    const struct sched_ext *ext = ext_of(guest);
    const struct machine_shape *shape = ext->simulator->scheduler.shape;
    (void)arguments;
    return shape ? shape->cpu[ext->this_cpu].node : 0;
}

/* A generator of the run's seed (Marsaglia 2003, xorshift64*). */
HELPER(get_prandom_u32)
{
    uint64_t *state = &ext_of(guest)->random_state;
    (void)arguments;
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1dull >> 32);
}

/* ---- variables of CPUs ---- */

static uint64_t variable_on(uint64_t address, uint32_t cpu)
{
    if (address >> 32 != REGION_VARIABLES)
        return address;
    return address + (uint64_t)cpu * KERNEL_VARIABLE_STRIDE;
}

HELPER(per_cpu_ptr)
{
    uint32_t cpu = (uint32_t)arguments[1];
    return cpu < ext_of(guest)->cpu_count ? variable_on(arguments[0], cpu) : 0;
}

HELPER(this_cpu_ptr)
{
    return variable_on(arguments[0], ext_of(guest)->this_cpu);
}

/* ---- the running task ---- */

HELPER(get_current_task)
{
    const struct sched_ext *ext = ext_of(guest);
    uint32_t slot = running_task(ext, ext->this_cpu);
    (void)arguments;
    return slot != NONE && ext->tasks[slot].exists
               ? task_address(ext, slot)
               : guest_address(REGION_KERNEL, ext->kernel.idle_task);
}
#define helper_get_current_task_btf helper_get_current_task

HELPER(get_current_pid_tgid)
{
    const struct sched_ext *ext = ext_of(guest);
    uint64_t pid = pid_of(ext->simulator->cpus[ext->this_cpu].current);
    (void)arguments;
    return pid << 32 | pid;
}

HELPER(get_current_comm)
{
    uint64_t address = helper_get_current_task(guest, arguments);
    const struct task_struct *task = guest_memory(guest, address, sizeof(*task));
    char *text = guest_writable(guest, arguments[0], arguments[1]);
    if (!text || arguments[1] == 0 || !task)
        return failure(LINUX_EINVAL);
    memset(text, 0, arguments[1]);
    memcpy(text, task->comm, arguments[1] < COMMAND_BYTES ? arguments[1] - 1 : COMMAND_BYTES - 1);
    return 0;
}

/* ---- reads of memory ---- */

HELPER(probe_read)
{
    uint32_t bytes = (uint32_t)arguments[1];
    void *to = guest_writable(guest, arguments[0], bytes);
    const void *from = guest_memory(guest, arguments[2], bytes);
    if (to && from)
        memmove(to, from, bytes);
    else if (to)
        memset(to, 0, bytes);
    return to && from ? 0 : failure(LINUX_EFAULT);
}
#define helper_probe_read_user   helper_probe_read
#define helper_probe_read_kernel helper_probe_read

/* Returns the number of copied bytes, including the final 0. */
HELPER(probe_read_str)
{
    uint32_t bytes = (uint32_t)arguments[1];
    char *to = guest_writable(guest, arguments[0], bytes);
    if (!to || bytes == 0)
        return to ? 0 : failure(LINUX_EFAULT);
    for (uint32_t i = 0; i < bytes; i++) {
        const char *from = guest_memory(guest, arguments[2] + i, 1);
        if (!from) {
            to[0] = '\0';
            return failure(LINUX_EFAULT);
        }
        to[i] = *from;
        if (!*from)
            return i + 1;
    }
    to[bytes - 1] = '\0';
    return bytes;
}
#define helper_probe_read_user_str   helper_probe_read_str
#define helper_probe_read_kernel_str helper_probe_read_str

HELPER(strncmp)
{
    uint32_t bytes = (uint32_t)arguments[1];
    for (uint32_t i = 0; i < bytes; i++) {
        const unsigned char *first = guest_memory(guest, arguments[0] + i, 1);
        const unsigned char *second = guest_memory(guest, arguments[2] + i, 1);
        unsigned char a = first ? *first : 0;
        unsigned char b = second ? *second : 0;
        if (a != b || a == 0)
            return (uint64_t)(int64_t)(a - b);
    }
    return 0;
}

HELPER(snprintf)
{
    uint32_t bytes = (uint32_t)arguments[1];
    char *text = guest_writable(guest, arguments[0], bytes);
    char copy[TEXT_BYTES_MAX];
    if (bytes > 0 && !text)
        return failure(LINUX_EFAULT);
    format_guest_text(ext_of(guest), copy, sizeof(copy), arguments[2], arguments[3],
                      (uint32_t)arguments[4]);
    size_t length = strlen(copy);
    if (bytes > 0) {
        size_t part = length < bytes ? length : bytes - 1;
        memcpy(text, copy, part);
        text[part] = '\0';
    }
    return length + 1;
}

/* ---- performance counters: user space has opened none ---- */

HELPER(perf_event_read)
{
    (void)guest;
    (void)arguments;
    return failure(LINUX_ENOENT);
}
#define helper_perf_event_output helper_perf_event_read

/* As in the kernel, the buffer is cleared after an error. */
HELPER(perf_event_read_value)
{
    void *buffer = guest_writable(guest, arguments[2], (uint32_t)arguments[3]);
    if (buffer)
        memset(buffer, 0, (uint32_t)arguments[3]);
    return failure(LINUX_ENOENT);
}

/* ---- callbacks and pointers ---- */

HELPER(loop)
{
    uint32_t count = (uint32_t)arguments[0];
    uint64_t i = 0;
    if (count > LOOP_COUNT_MAX)
        return failure(LINUX_E2BIG);
    while (i < count && !guest->trapped) {
        const uint64_t given[5] = {i++, arguments[2]};
        if (guest_call(guest, (uint32_t)arguments[1], given))
            break;
    }
    return i;
}

HELPER(kptr_xchg)
{
    uint64_t old;
    void *place = guest_writable(guest, arguments[0], sizeof(old));
    if (!place) {
        guest_trap(guest, "a pointer is exchanged at invalid address %#llx",
                   (unsigned long long)arguments[0]);
        return 0;
    }
    memcpy(&old, place, sizeof(old));
    memcpy(place, &arguments[1], sizeof(old));
    return old;
}

host_function *const ext_helpers[GUEST_HELPERS_MAX] = {
#define TABLE_ENTRY(name, number) [number] = helper_##name,
    HELPER_FUNCTIONS(TABLE_ENTRY)
#undef TABLE_ENTRY
};
