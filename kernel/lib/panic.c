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

/* Prints with no lock: all other CPUs are parked, wherever they were. */
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(format, arguments);
    va_end(arguments);
}

/* Frames as clang lays them out for riscv64: the return address below s0, then the caller's s0. */
static void print_backtrace(uint64_t frame)
{
    for (int depth = 0; depth < 32 && frame >= KERNEL_BASE && frame % 8 == 0; depth++) {
        const uint64_t *words = (const uint64_t *)frame;
        uint64_t address = words[-1];
        uint64_t caller = words[-2];
        uint64_t offset;
        const char *name = symbol_find(address, &offset);
        if (!name)
            return;
        say("  0x%lx %s+0x%lx\n", address, name, offset);
        if (caller <= frame || caller - frame > KERNEL_STACK_BYTES)
            return;
        frame = caller;
    }
}

_Noreturn void panic(const char *format, ...)
{
    static bool panicked;
    uint64_t frame = (uint64_t)__builtin_frame_address(0);
    if (__atomic_exchange_n(&panicked, true, __ATOMIC_ACQ_REL))
        machine_power_off(MACHINE_PANIC);
    cpu_halt_others();
    spinlocks_ignore();

    struct cpu *cpu = this_cpu();
    va_list arguments;
    va_start(arguments, format);
    say("\npanic: CPU %u", cpu->id);
    if (cpu->current)
        say(", pid %d (%s)", cpu->current->pid, cpu->current->name);
    say(": ");
    print_list(format, arguments);
    say("\n");
    va_end(arguments);
    print_backtrace(frame);
    trace_abandon();
    machine_power_off(MACHINE_PANIC);
}
