/* SPDX-License-Identifier: MIT */

#include "lib/panic.h"

#include <stdarg.h>
#include <stdint.h>

#include "abi/machine_status.h"
#include "device/host.h"
#include "lib/print.h"
#include "lib/symbols.h"
#include "memory/layout.h"
#include "process/process.h"
#include "scheduler/cpu.h"
#include "sync/spinlock.h"
#include "trace/trace.h"
#include "trap/csr.h"

/* Prints without a lock: all other CPUs are parked, wherever they were. */
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(format, arguments);
    va_end(arguments);
}

static void print_address(uint64_t address)
{
    uint64_t offset;
    const char *name = symbol_find(address, &offset);
    if (name)
        say("  0x%lx %s+0x%lx\n", address, name, offset);
}

/* Returns true if there is a frame above this one. After a fault, the chain leads from the
 * emergency stack to a kernel stack. */
static bool is_caller(uint64_t caller, uint64_t frame)
{
    if (caller % 8 != 0 || caller <= frame)
        return false;
    return caller - frame < KERNEL_STACK_BYTES ||
           (caller >= KERNEL_STACKS && frame < KERNEL_STACKS);
}

/* Frames as clang lays them out for riscv64: the return address below s0, then the caller's s0. */
static void print_backtrace(uint64_t frame)
{
    for (int depth = 0; depth < 32; depth++) {
        const uint64_t *words = (const uint64_t *)frame;
        uint64_t caller = words[-2];
        print_address(words[-1] - 1);
        if (!is_caller(caller, frame))
            return;
        frame = caller;
    }
}

/* The first CPU to panic prints; others wait to be parked. A panic within a panic ends the machine.
 */
static void be_the_only_one(struct cpu *cpu)
{
    static struct cpu *panicked;
    struct cpu *none = NULL;
    if (__atomic_compare_exchange_n(&panicked, &none, cpu, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return;
    if (panicked == cpu)
        machine_power_off(MACHINE_PANIC);
    for (;;)
        wait_for_interrupt();
}

_Noreturn void panic(const char *format, ...)
{
    uint64_t frame = (uint64_t)__builtin_frame_address(0);
    struct cpu *cpu = this_cpu();
    be_the_only_one(cpu);
    cpu_halt_others();
    spinlocks_ignore();
    va_list arguments;
    va_start(arguments, format);
    say("\npanic: CPU %u", cpu->id);
    if (cpu->current)
        say(", pid %d (%s)", cpu->current->pid, cpu->current->name);
    say(": ");
    print_list(format, arguments);
    say("\n");
    va_end(arguments);
    trace_abandon();
    print_backtrace(frame);
    machine_power_off(MACHINE_PANIC);
}
