/* SPDX-License-Identifier: MIT */

/*
 * From power-on to the first process. boot/entry.S brings one hart to
 * boot_start() and, once released, the others to boot_start_other().
 */

#include "boot/start.h"

#include <stddef.h>

#include "abi/machine_status.h"
#include "boot/machine_mode.h"
#include "device/block.h"
#include "device/console.h"
#include "device/device_tree.h"
#include "device/host.h"
#include "device/interrupt_controller.h"
#include "lib/panic.h"
#include "lib/print.h"
#include "memory/kernel_stack.h"
#include "memory/page.h"
#include "process/lifecycle.h"
#include "scheduler/cpu.h"
#include "scheduler/scheduler.h"
#include "sync/channel.h"
#include "system_call/system_call.h"
#include "time/tick.h"
#include "trace/trace.h"
#include "trap/trap.h"

#define OVERCOMMIT_SHARE 64 /* at least this part of memory is reserved for copies */

#define GIGABYTE    (1ul << 30)
#define LARGE_PAGE  (1ul << 21)
#define PTE_VALID   (1ul << 0)
#define PTE_READ    (1ul << 1)
#define PTE_WRITE   (1ul << 2)
#define PTE_EXECUTE (1ul << 3)
#define PTE_GLOBAL  (1ul << 5)
#define PTE_USED    (1ul << 6 | 1ul << 7) /* accessed, dirty */

/* Where a waiting hart finds its stack and its CPU. boot/entry.S knows this layout. */
struct boot_slot {
    uint64_t stack; /* written last: it releases the hart */
    struct cpu *cpu;
};

uint32_t boot_winner;
struct boot_slot boot_slot[CPUS_MAX];
struct cpu cpus[CPUS_MAX];
struct machine_mode_state machine_mode[CPUS_MAX];

#define ENTRY_KNOWS(type, field, place)                                                            \
    _Static_assert(offsetof(struct type, field) == (place), "boot/entry.S knows this layout")
ENTRY_KNOWS(boot_slot, stack, 0);
ENTRY_KNOWS(boot_slot, cpu, 8);
ENTRY_KNOWS(machine_mode_state, saved, 0);
ENTRY_KNOWS(machine_mode_state, software, 8);
ENTRY_KNOWS(machine_mode_state, halt, 16);
ENTRY_KNOWS(machine_mode_state, halted, 24);
_Static_assert(sizeof(struct boot_slot) == 16, "boot/entry.S shifts a hart's number by 4");
_Static_assert(sizeof(struct machine_mode_state) == 32, "boot/entry.S shifts it by 5");
_Static_assert(CPUS_MAX == 256, "boot/entry.S keeps harts from 256 on out");

__attribute__((aligned(4096))) uint64_t kernel_root[512];
static __attribute__((aligned(4096))) uint64_t kernel_image_table[512];

extern char kernel_start[], kernel_writable[], kernel_end[];

static uint64_t leaf(uint64_t physical, uint64_t rights)
{
    return physical >> 12 << 10 | rights | PTE_VALID | PTE_GLOBAL | PTE_USED;
}

/*
 * Maps physical memory at KERNEL_BASE, with the kernel's code separate from writable memory. Runs
 * at the physical address, in machine mode, without paging: it may use only addresses relative to
 * pc.
 */
void boot_page_table(void)
{
    uint64_t image = (uint64_t)kernel_start;
    uint64_t writable = (uint64_t)kernel_writable;
    for (uint64_t i = 0; i < 128; i++)
        kernel_root[256 + i] = leaf(i * GIGABYTE, PTE_READ | PTE_WRITE);
    for (uint64_t i = 0; i < 512; i++) {
        uint64_t physical = image + i * LARGE_PAGE;
        uint64_t rights = physical < writable ? PTE_READ | PTE_EXECUTE : PTE_READ | PTE_WRITE;
        kernel_image_table[i] = leaf(physical, rights);
    }
    kernel_root[256 + image / GIGABYTE] = (uint64_t)kernel_image_table >> 12 << 10 | PTE_VALID;
}

static void identify_cpus(void)
{
    for (uint32_t i = 0; i < machine.cpus; i++) {
        uint64_t hart = machine.hart[i];
        cpus[i].id = i;
        cpus[i].hart = hart;
        machine_mode[hart].software = machine.clint.start + 4 * hart;
    }
}

static struct cpu *cpu_of_hart(uint64_t hart)
{
    for (uint32_t i = 0; i < machine.cpus; i++) {
        if (cpus[i].hart == hart)
            return &cpus[i];
    }
    return NULL;
}

/* Free memory: from the kernel's end to the initial ramdisk, or to the end of RAM. */
static void memory_init(void)
{
    physical_t start = pointer_to_physical(kernel_end);
    physical_t end = machine.memory.start + machine.memory.bytes;
    if (machine.initial_ramdisk.bytes > 0 && machine.initial_ramdisk.start < end)
        end = machine.initial_ramdisk.start;
    page_init(round_up(start, PAGE_BYTES), round_down(end, PAGE_BYTES));
    kernel_address_space_init(kernel_root);
}

/*
 * Limits the memory reserved for writers to shared pages. It is everything that fork promised, or
 * little enough that a fork of most of the memory succeeds. In the second case a writer may be
 * killed because there is no page. That never happens because another process took the last pages
 * by a call that could have failed.
 */
static void keep_promises(void)
{
    uint64_t overcommit = boot_argument_number("overcommit", 1);

    if (overcommit > 1)
        panic("boot argument overcommit=%lu: it is not 0 or 1", overcommit);
    if (overcommit)
        page_keep_promises(page_total() / OVERCOMMIT_SHARE);
}

static void *must_create_stack(void)
{
    void *stack = kernel_stack_create();
    if (!stack)
        panic("no memory for the CPUs' stacks: give the machine more memory");
    return stack;
}

void boot_release_other_cpus(void)
{
    for (uint32_t i = 0; i < machine.cpus; i++) {
        struct boot_slot *slot = &boot_slot[cpus[i].hart];
        if (&cpus[i] == this_cpu())
            continue;
        slot->cpu = &cpus[i];
        __atomic_store_n(&slot->stack, (uint64_t)must_create_stack(), __ATOMIC_RELEASE);
        cpu_interrupt(&cpus[i]);
    }
}

static _Noreturn void run_cpu(void)
{
    interrupt_controller_init_cpu();
    tick_init_cpu();
    trap_init_cpu();
    scheduler_idle();
}

_Noreturn void boot_start_other(struct cpu *cpu)
{
    __asm__ volatile("mv tp, %0" : : "r"(cpu));
    trace_record(TRACE_START, 0, 0, clock_cycles());
    run_cpu();
}

/* The rest of the boot, on a stack with a guard. */
static _Noreturn void boot_continue(void)
{
    struct policy_in_use use;
    interrupt_controller_init();
    console_init();
    trace_init();
    scheduler_init();
    process_init();
    channel_init();
    system_calls_init();
    block_init();
    scheduler_describe(&use);
    print("schedlab: %u CPUs, %lu KiB of memory free, tick %lu us, policy %s\n", machine.cpus,
          page_free_count() * PAGE_BYTES / 1024, clock_tick_ns() / 1000, use.text);
    trace_record(TRACE_START, 0, 0, clock_cycles());
    trace_text(TRACE_POLICY, use.shares_by, use.text);
    process_create_first();
    run_cpu();
}

static _Noreturn void continue_on_stack(void *stack)
{
    __asm__ volatile("mv sp, %0\n\tli s0, 0\n\tjr %1" : : "r"(stack), "r"(boot_continue));
    __builtin_unreachable();
}

_Noreturn void boot_start(uint64_t hart, physical_t device_tree)
{
    __asm__ volatile("mv tp, %0" : : "r"(&cpus[0]));
    int error = device_tree_read(physical_to_pointer(device_tree), &machine);
    console_init_early();
    if (error)
        panic("the device tree cannot be read");
    identify_cpus();
    struct cpu *cpu = cpu_of_hart(hart);
    if (!cpu)
        panic("the device tree does not know this hart, %lu", hart);
    __asm__ volatile("mv tp, %0" : : "r"(cpu));
    if (!machine.has_supervisor_timer)
        panic("the CPUs lack the Sstc extension: QEMU 7.2 or newer, or Spike with _sstc");
    memory_init();
    keep_promises();
    clock_init();
    continue_on_stack(must_create_stack());
}
