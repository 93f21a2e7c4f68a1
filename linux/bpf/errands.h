/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_ERRANDS_H
#define LINUX_BPF_ERRANDS_H

/* The adapter's actions while no queue is locked: errands, the end of a policy, requests. */

#include "numbers.h"
#include "run_queue.h"
#include "shared_maps.h"
#include "trace_emit.h"

/*
 * Marks a function that the verifier checks once for each program, for all arguments. It checks all
 * other functions again at each call. Such a function must not be called with a lock held, and may
 * return only numbers. (It is weak because the compiler would otherwise drop arguments that some
 * policy does not use.)
 */
#define PROVED __weak __noinline
#define ARENA  __attribute__((btf_decl_tag("arg:arena"))) /* marks a pointer into the arena */

static __always_inline uint64_t clock_ns(void)
{
    return bpf_ktime_get_boot_ns();
}

static __always_inline struct lock *lock_of(uint32_t cpu)
{
    uint32_t key = queue_number(cpu);
    return bpf_map_lookup_elem(&queue_locks, &key);
}

/* Writes an annotation. */
static __attribute__((noinline, unused)) void trace_annotation(const struct said *annotation)
{
    unsigned long flags;
    bpf_local_irq_save(&flags);
    if (trace_emit(TRACE_SAID, (uint32_t)annotation->pid, (uint32_t)annotation->other,
                   (uint64_t)annotation->value)) {
        const uint64_t *text = annotation->text;
        trace_emit(TRACE_TEXT, 0, (uint32_t)text[1], text[0]);
        trace_emit(TRACE_TEXT, 0, (uint32_t)(text[2] >> 32), text[1] >> 32 | text[2] << 32);
        trace_emit(TRACE_TEXT, 0, (uint32_t)text[4], text[3]);
        trace_emit(TRACE_TEXT, 0, (uint32_t)(text[5] >> 32), text[4] >> 32 | text[5] << 32);
    }
    bpf_local_irq_restore(&flags);
}

/* Ends the policy, with a message that names it. */
static __noinline void give_up(const char *what)
{
    static char format[] = "policy %s %s"; /* not const: the kernel requires writable memory */
    static const char name[] = POLICY_NAME;
    unsigned long long arguments[] = {(unsigned long)name, (unsigned long)what};
    scx_bpf_error_bstr(format, arguments, sizeof(arguments));
}

static __noinline void report_flaw(void)
{
    if (flaw == FLAW_LOST)
        give_up(FLAW_LOST_TEXT);
    else if (flaw == FLAW_HELD)
        give_up(FLAW_HELD_TEXT);
    else if (flaw == FLAW_GIVEN)
        give_up(FLAW_GIVEN_TEXT);
    else if (flaw == FLAW_COUNT)
        give_up(FLAW_COUNT_TEXT);
    else if (flaw == FLAW_VERDICT)
        give_up(FLAW_VERDICT_TEXT);
    else if (flaw == FLAW_CPU)
        give_up(FLAW_CPU_TEXT);
}

static __always_inline void check(void)
{
    if (flaw)
        report_flaw();
}

static __always_inline void preempt(uint32_t cpu, enum preempt_reason reason)
{
    trace_preempt_reason(cpu, reason);
    scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
}

static __always_inline void run_errand(uint64_t errand)
{
    if (ERRAND_KIND(errand) == ERRAND_CHANGE)
        preempt(ERRAND_CPU(errand), PREEMPT_POLICY);
    else if (ERRAND_KIND(errand) == ERRAND_WAKE)
        scx_bpf_kick_cpu((s32)ERRAND_CPU(errand), SCX_KICK_IDLE);
    else if (ERRAND_KIND(errand) == ERRAND_PREEMPT)
        preempt(ERRAND_CPU(errand), PREEMPT_WAKEUP);
}

/* Sends a request to the loader if the ring has space. A lost request is harmless: a kill is
 * requested again at each tick. */
static __noinline void ask_loader(enum host_request_kind kind, int32_t pid)
{
    struct host_request *request = bpf_ringbuf_reserve(&requests, sizeof(*request), 0);
    if (!request)
        return;
    request->kind = kind;
    request->pid = pid;
    bpf_ringbuf_submit(request, 0);
}

#endif
