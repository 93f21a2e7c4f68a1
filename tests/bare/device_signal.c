/* SPDX-License-Identifier: MIT */

/*
 * A standalone kernel for two harts. It tests that a software interrupt, on its way through machine
 * mode (kernel/boot/entry.S), neither loses nor keeps a device's signal. The boot hart interrupts
 * itself repeatedly. In each round, the other hart makes the UART raise its line. The signal must
 * then be pending, and must be gone once the line is low and the interrupt is complete.
 */

#include <stdbool.h>
#include <stdint.h>

#include "kernel/boot/machine_mode.h"
#include "kernel/memory/layout.h"
#include "kernel/scheduler/cpu.h"
#include "kernel/trap/csr.h"

#define ROUNDS        100
#define LONGEST_DELAY 4000 /* before the line is raised, in clock steps: 0.4 ms */
#define PATIENCE      1000 /* polls of the signal */

/* Device addresses, equal on both machines. */
#define CLINT_SOFTWARE(hart)   (0x02000000 + 4 * (hart))
#define CLINT_TIMER(hart)      (0x02004000 + 8 * (hart))
#define PLIC_PRIORITY(source)  (0x0c000000 + 4ul * (source))
#define PLIC_ENABLE(hart)      (0x0c002080 + 0x100 * (hart))
#define PLIC_THRESHOLD(hart)   (0x0c201000 + 0x2000 * (hart))
#define PLIC_CLAIM(hart)       (PLIC_THRESHOLD(hart) + 4)
#define PLIC_SOURCES           32 /* includes the UART's source */
#define UART_DATA              0x10000000
#define UART_INTERRUPTS        0x10000001
#define UART_IDENTIFICATION    0x10000002
#define UART_LINE_STATUS       0x10000005
#define UART_MAY_SEND          0x20
#define UART_INTERRUPT_TO_SEND 2
#define POWER_OFF              0x00100000 /* QEMU only; Spike has tohost */
#define POWER_OFF_PASSED       0x5555
#define POWER_OFF_FAILED       0x13333 /* status 1 */

#define GIGABYTE   (1ul << 30)
#define PTE_RIGHTS 0xcful /* valid, read, write, execute, accessed, dirty */

/* Symbols that boot/entry.S expects from the rest of the kernel. */
struct boot_slot {
    uint64_t stack;
    struct cpu *cpu;
};

uint32_t boot_winner;
struct boot_slot boot_slot[CPUS_MAX];
struct machine_mode_state machine_mode[CPUS_MAX];
__attribute__((aligned(4096))) uint64_t kernel_root[512];

__attribute__((section(".htif"))) volatile uint64_t tohost_word, fromhost_word;

static __attribute__((aligned(16))) char other_stack[4096];
static uint32_t round_requested;
static uint32_t round_raised;

void boot_page_table(void);
_Noreturn void boot_start(uint64_t hart);
_Noreturn void boot_start_other(void);

static volatile uint32_t *word_at(physical_t address)
{
    return physical_to_pointer(address);
}

static volatile uint8_t *byte_at(physical_t address)
{
    return physical_to_pointer(address);
}

/* Maps all physical memory at KERNEL_BASE. */
void boot_page_table(void)
{
    for (uint64_t i = 0; i < 128; i++)
        kernel_root[256 + i] = i * GIGABYTE >> 12 << 10 | PTE_RIGHTS;
}

static void say(const char *text)
{
    for (; *text; text++) {
        while (!(*byte_at(UART_LINE_STATUS) & UART_MAY_SEND))
            ;
        *byte_at(UART_DATA) = (uint8_t)*text;
    }
}

static void say_count(uint32_t count, const char *what)
{
    char digits[11];
    char *first = digits + sizeof(digits) - 1;
    *first = 0;
    do {
        *--first = (char)('0' + count % 10);
    } while (count /= 10);
    say(first);
    say(what);
}

static void wait_steps(uint64_t steps)
{
    uint64_t start = csr_read(time);
    while (csr_read(time) - start < steps)
        ;
}

static _Noreturn void power_off(bool passed)
{
    tohost_word = passed ? 1 : 3;
    wait_steps(LONGEST_DELAY);
    *word_at(POWER_OFF) = passed ? POWER_OFF_PASSED : POWER_OFF_FAILED;
    for (;;)
        ;
}

static bool device_signals(void)
{
    return csr_read(sip) & INTERRUPT_EXTERNAL;
}

static void interrupt_self(uint64_t hart)
{
    *word_at(CLINT_SOFTWARE(hart)) = 1;
    while (!(csr_read(sip) & INTERRUPT_SOFTWARE))
        ;
    csr_clear(sip, INTERRUPT_SOFTWARE);
}

/* QEMU examines every pending interrupt, even a disabled one. */
static void stop_timers(void)
{
    for (uint64_t hart = 0; hart < 2; hart++)
        *word_at(CLINT_TIMER(hart) + 4) = UINT32_MAX;
}

static void let_devices_interrupt(uint64_t hart)
{
    for (uint32_t source = 1; source < PLIC_SOURCES; source++)
        *word_at(PLIC_PRIORITY(source)) = 1;
    *word_at(PLIC_ENABLE(hart)) = ~1u;
    *word_at(PLIC_THRESHOLD(hart)) = 0;
}

static void serve_device(uint64_t hart)
{
    uint32_t source;
    *byte_at(UART_INTERRUPTS) = 0;
    (void)*byte_at(UART_IDENTIFICATION);
    while ((source = *word_at(PLIC_CLAIM(hart))))
        *word_at(PLIC_CLAIM(hart)) = source;
}

static bool signal_comes(void)
{
    for (uint32_t i = 0; i < PATIENCE; i++) {
        if (device_signals())
            return true;
    }
    return false;
}

_Noreturn void boot_start(uint64_t hart)
{
    uint32_t lost = 0;
    uint32_t remaining = 0;
    for (uint64_t index = 0; index < 2; index++)
        machine_mode[index].software = CLINT_SOFTWARE(index);
    stop_timers();
    let_devices_interrupt(hart);
    __atomic_store_n(&boot_slot[!hart].stack, (uint64_t)(other_stack + sizeof(other_stack)),
                     __ATOMIC_RELEASE);
    *word_at(CLINT_SOFTWARE(!hart)) = 1;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        __atomic_store_n(&round_requested, round, __ATOMIC_RELEASE);
        while (__atomic_load_n(&round_raised, __ATOMIC_ACQUIRE) != round)
            interrupt_self(hart);
        lost += !signal_comes();
        serve_device(hart);
        remaining += device_signals();
    }
    say_count(ROUNDS, " signals, ");
    say_count(lost, " lost, ");
    say_count(remaining, " kept\n");
    power_off(lost == 0 && remaining == 0);
}

_Noreturn void boot_start_other(void)
{
    for (uint32_t round = 1;; round++) {
        while (__atomic_load_n(&round_requested, __ATOMIC_ACQUIRE) != round)
            ;
        wait_steps(round * 7919 % LONGEST_DELAY);
        *byte_at(UART_INTERRUPTS) = UART_INTERRUPT_TO_SEND;
        __atomic_store_n(&round_raised, round, __ATOMIC_RELEASE);
    }
}
