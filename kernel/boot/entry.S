# SPDX-License-Identifier: MIT
#
# Every hart begins here, in machine mode, at its physical address, with its
# number in a0 and the device tree in a1. One of them boots the machine; the
# others wait until it has made them a stack (boot/start.c, struct boot_slot).

#define MSTATUS_MPP        (3 << 11)
#define MSTATUS_MPP_S      (1 << 11)
#define SATP_SV39          (8 << 60)
#define KERNEL_BASE        0xffffffc000000000
#define MACHINE_SOFTWARE   (1 << 3)
#define SUPERVISOR_SOFTWARE (1 << 1)

    .section .text.entry, "ax"
    .globl entry
entry:
    .option push
    .option norelax
    csrw mie, zero
    li t0, 256
1:  bgeu a0, t0, 1b                 # CPUS_MAX: more than the kernel can use
    la t0, machine_mode
    slli t1, a0, 5
    add t0, t0, t1
    csrw mscratch, t0
    la t0, boot_winner
    li t1, 1
    amoadd.w t0, t1, (t0)
    bnez t0, wait_for_release

    la sp, boot_stack + 4096
    mv s0, a0
    mv s1, a1
    call boot_page_table            # still physical: all of it is relative to pc
    mv a0, s0
    mv a1, s1
    la t0, boot_start
    li t1, KERNEL_BASE
    la sp, boot_stack + 4096
    add sp, sp, t1
    li tp, 0
    j enter_supervisor

# A hart that did not win: until boot_slot[hart] has a stack for it. It sleeps meanwhile: a software
# interrupt follows each stack.
wait_for_release:
    la t2, boot_slot
    slli t3, a0, 4
    add t2, t2, t3
    li t3, MACHINE_SOFTWARE
    csrs mie, t3                    # wakes it, and is not taken: mstatus.MIE is 0
1:  ld t4, 0(t2)
    bnez t4, 2f
    wfi
    j 1b
2:  fence r, rw
    csrr t3, mscratch
    ld t5, 8(t3)
    sw zero, 0(t5)
    ld t5, 16(t3)
    bnez t5, halt_here              # a panic has called it in vain
    mv sp, t4
    ld tp, 8(t2)
    mv a0, tp
    la t0, boot_start_other

# To the function at physical t0, in supervisor mode, at its virtual address.
enter_supervisor:
    li t1, MSTATUS_MPP
    csrc mstatus, t1
    li t1, MSTATUS_MPP_S
    csrs mstatus, t1
    li t1, -1
    csrw pmpaddr0, t1               # supervisor mode may touch all memory
    li t1, 0x1f
    csrw pmpcfg0, t1
    li t1, 0xffff
    csrw medeleg, t1
    csrw mideleg, t1
    li t1, 7
    csrw mcounteren, t1             # cycle, time, instret: for the kernel
    csrw scounteren, t1             # … and for programs
    li t1, 1
    slli t1, t1, 63
    csrs 0x30a, t1                  # menvcfg.STCE: the supervisor's own timer
    la t1, machine_trap
    csrw mtvec, t1
    li t1, MACHINE_SOFTWARE
    csrs mie, t1
    la t1, kernel_root
    srli t1, t1, 12
    li t2, SATP_SV39
    or t1, t1, t2
    csrw satp, t1
    sfence.vma
    li t1, KERNEL_BASE
    add t0, t0, t1
    csrw mepc, t0
    mret

# The only trap that machine mode takes: a software interrupt from another hart.
# It becomes supervisor mode's, or parks this hart (struct machine_mode_state).
    .align 2
machine_trap:
    csrrw t6, mscratch, t6
    sd t5, 0(t6)
    csrr t5, mcause
1:  bgez t5, 1b                     # an exception in machine mode: cannot be
    ld t5, 8(t6)
    sw zero, 0(t5)
    ld t5, 16(t6)
    bnez t5, machine_halt
    li t5, SUPERVISOR_SOFTWARE
    csrs sip, t5                    # in sip only this bit is written. A write to mip may erase a
                                    # device's signal in QEMU, and makes it stick in Spike (2360)
    ld t5, 0(t6)
    csrrw t6, mscratch, t6
    mret

machine_halt:
    mv t3, t6
halt_here:
    csrw mie, zero
    li t5, 1
    sd t5, 24(t3)
1:  wfi
    j 1b
    .option pop

    .bss
    .align 12
boot_stack:
    .skip 4096
