# SPDX-License-Identifier: MIT
#
# The way from a program into the kernel and back. While a program runs,
# sscratch holds the address of its struct trap_frame, at the top of its kernel
# stack; while the kernel runs, sscratch is 0.

#define FRAME_CPU 264

    .text
    .globl trap_entry
    .align 2
trap_entry:
    csrrw sp, sscratch, sp
    beqz sp, from_kernel
    sd x1, 8(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd x\n, 8*\n(sp)
    .endr
    csrrw t0, sscratch, zero
    sd t0, 16(sp)
    csrr t0, sepc
    sd t0, 0(sp)
    ld tp, FRAME_CPU(sp)
    mv a0, sp
    li s0, 0                        # the backtrace ends here
    call user_trap

    .globl return_to_user
return_to_user:
    sd tp, FRAME_CPU(sp)
    ld t0, 0(sp)
    csrw sepc, t0
    csrw sscratch, sp
    li t0, 1 << 8                   # sstatus.SPP: to user mode
    csrc sstatus, t0
    li t0, 1 << 5                   # sstatus.SPIE: with interrupts on
    csrs sstatus, t0
    ld x1, 8(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld x\n, 8*\n(sp)
    .endr
    ld sp, 16(sp)
    sret

# The kernel runs with interrupts off and must not fault: this is a panic. If the
# stack itself is bad, go on with the CPU's emergency stack.
from_kernel:
    csrr sp, sscratch
    csrw sscratch, zero
    mv a0, sp
    la sp, emergency_stacks
    lwu t0, 0(tp)                   # struct cpu: id
    addi t0, t0, 1
    slli t0, t0, 12
    add sp, sp, t0
    call kernel_fault

# A new process's first steps: it comes here from the scheduler.
    .globl process_entry
process_entry:
    li s0, 0
    call process_begin
    j return_to_user

    .bss
    .align 12
emergency_stacks:
    .skip 256 * 4096                # CPUS_MAX
