/* SPDX-License-Identifier: MIT */

#include "trap/trap.h"

#include <stddef.h>

#include "abi/errors.h"
#include "abi/machine_overdue.h"
#include "device/interrupt_controller.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "lib/symbols.h"
#include "memory/address_space.h"
#include "process/lifecycle.h"
#include "process/process.h"
#include "process/spare_memory.h"
#include "scheduler/cpu.h"
#include "scheduler/policy_times.h"
#include "scheduler/scheduler.h"
#include "system_call/system_call.h"
#include "time/tick.h"
#include "trap/csr.h"

_Static_assert(offsetof(struct trap_frame, cpu) == 264, "trap/entry.S: FRAME_CPU");
_Static_assert(offsetof(struct cpu, id) == 0, "trap/entry.S finds a CPU's number there");
_Static_assert(CPUS_MAX == 256, "trap/entry.S has an emergency stack for each CPU");

#define OVERDUE_PATIENCE 10000000ul /* spins */

void trap_entry(void);
void user_trap(struct trap_frame *frame);
_Noreturn void kernel_fault(uint64_t stack);

void trap_init_cpu(void)
{
    csr_write(stvec, trap_entry);
    csr_write(sscratch, 0);
    csr_write(sie, INTERRUPT_SOFTWARE | INTERRUPT_TIMER | INTERRUPT_EXTERNAL);
}

void interrupts_serve(void)
{
    uint64_t pending = csr_read(sip) & csr_read(sie);
    this_cpu()->serving = true;
    if (pending & INTERRUPT_SOFTWARE) {
        csr_clear(sip, INTERRUPT_SOFTWARE);
        cpu_stop_if_requested();
        policy_times_hear(this_cpu());
    }
    if (pending & INTERRUPT_TIMER)
        tick_interrupt();
    if (pending & INTERRUPT_EXTERNAL)
        interrupt_controller_handle();
    this_cpu()->serving = false;
}

void preemption_point(void)
{
    kernel_assert(!this_cpu()->held);
    if (csr_read(sip) & csr_read(sie))
        interrupts_serve();
    if (this_cpu()->reschedule)
        scheduler_preempt();
}

static const char *exception_name(uint64_t cause)
{
    static const char *const names[16] = {
        "misaligned fetch", "fetch access fault",   "illegal instruction", "breakpoint",
        "misaligned load",  "load access fault",    "misaligned store",    "store access fault",
        "system call",      "call from the kernel", "exception 10",        "call from machine mode",
        "fetch page fault", "load page fault",      "exception 14",        "store page fault",
    };
    return cause < 16 ? names[cause] : "unknown exception";
}

/* An endless loop, or the wait for a CPU that is in one: that other CPU detects it at the same
 * time and reports it. */
static void check_overdue(void)
{
    const struct spinlock *lock = this_cpu()->waits_for;
    if (!lock)
        return;
    for (uint64_t spins = 0; spins < OVERDUE_PATIENCE; spins++)
        __asm__ volatile("");
    panic("deadlock: lock %s is not given back", lock->name);
}

/*
 * Gives the program the page that it accessed. Returns 0; -EFAULT: the page is not the program's;
 * -ENOMEM: there is none, even after emptying caches. The first process waits until others have
 * freed one.
 */
static int mend_page_fault(uint64_t cause, uint64_t address)
{
    struct process *process = current_process();
    enum page_right access = PAGE_READ;
    if (cause == CAUSE_FETCH_PAGE_FAULT)
        access = PAGE_EXECUTE;
    else if (cause == CAUSE_STORE_PAGE_FAULT)
        access = PAGE_WRITE;
    else if (cause != CAUSE_LOAD_PAGE_FAULT)
        return -EFAULT;
    for (bool again = false;; again = true) {
        int error = address_space_fault(&process->space, address, access);
        if (error != -ENOMEM)
            return error;
        if (spare_memory_give(again))
            continue;
        if (!process_is_first(process))
            return error;
        process_sleep(1);
    }
}

static void user_exception(uint64_t cause, uint64_t address, struct trap_frame *frame)
{
    struct process *process = current_process();
    int error = mend_page_fault(cause, address);
    if (error == 0)
        return;
    print("pid %d (%s) killed: %s at pc 0x%lx, address 0x%lx\n", process->pid, process->name,
          error == -ENOMEM ? "no memory is left" : exception_name(cause), frame->x[REGISTER_PC],
          address);
    process_mark_killed(process);
}

/* Handles events before a program resumes: its end, or another's turn. */
static void before_user_mode(void)
{
    for (;;) {
        if (current_killed())
            process_exit(-1);
        if (!this_cpu()->reschedule)
            return;
        scheduler_preempt();
    }
}

void user_trap(struct trap_frame *frame)
{
    uint64_t cause = csr_read(scause);
    kernel_assert(!this_cpu()->held);
    if (cause & CAUSE_INTERRUPT) {
        interrupts_serve();
    } else if (cause == CAUSE_USER_CALL) {
        frame->x[REGISTER_PC] += 4;
        system_call(frame);
    } else {
        user_exception(cause, csr_read(stval), frame);
    }
    kernel_assert(!this_cpu()->held);
    before_user_mode();
}

_Noreturn void kernel_fault(uint64_t stack)
{
    uint64_t pc = csr_read(sepc);
    uint64_t offset = 0;
    const char *function = symbol_find(pc, &offset);
    if (csr_read(scause) == MACHINE_OVERDUE_CAUSE) {
        check_overdue();
        panic("endless loop in the kernel at pc 0x%lx (%s+0x%lx): the CPU's timer waits", pc,
              function ? function : "no function", offset);
    }
    panic("%s in the kernel at pc 0x%lx (%s+0x%lx), address 0x%lx, stack 0x%lx",
          exception_name(csr_read(scause)), pc, function ? function : "no function", offset,
          csr_read(stval), stack);
}
