# SPDX-License-Identifier: MIT
#
# All that a machine runs to show that it runs (python/schedlab/machines/linux/kvm.py): in place of a BIOS, from the
# processor's reset on, through 16-bit code to 64-bit code with paging, an instruction of BMI2 where the
# processor says that it has them, and an interrupt of the timer out of a halt. Then it answers at port
# 0xe9 and ends the machine by port 0xf4. Whatever goes wrong before is a triple fault or silence.

.set base, 0xf0000 # where the image begins
.set levels, 0x1000 # RAM, which is zero at first: three levels of page tables
.set stack, 0x8000
.set controller, 0xfee00000 # the processor's own

.macro gate handler
    .word (\handler - start) & 0xffff, 8, 0x8e00, base >> 16
    .long 0, 0
.endm

.code16
start:
    cli
    xor %ax, %ax
    mov %ax, %ds
    # The first 2 MiB, each address its own.
    movl $(levels + 0x1003), levels
    movl $(levels + 0x2003), levels + 0x1000
    movl $0x83, levels + 0x2000
    # In the fourth GiB likewise, for the sake of the interrupt controller's 2 MiB.
    movl $(levels + 0x2003), levels + 0x1000 + 3 * 8
    movl $(controller + 0x83), levels + 0x2000 + (controller >> 21 & 511) * 8
    lgdtl %cs:(segments_end - start)
    mov $0x20, %eax # PAE
    mov %eax, %cr4
    mov $levels, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx # EFER
    rdmsr
    or $0x100, %ax # long mode
    wrmsr
    mov $0x80000001, %eax # paging, protection
    mov %eax, %cr0
    ljmpl $8, $(base + wide - start)

.code64
wide:
    mov $16, %ax
    mov %ax, %ds
    mov %ax, %ss
    mov $stack, %esp
    lidt base + gates_end - start

    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    bt $8, %ebx
    jnc interrupt
    mov $3, %ecx
    mov $5, %eax
    shlx %ecx, %eax, %edx
    cmp $40, %edx
    jne halt

interrupt:
    mov $controller, %ebx
    movl $0x1ff, 0xf0(%rbx) # it is on
    movl $0x700, 0x350(%rbx) # and hands on what the old controllers say
    # The timer's interrupt alone, as vector 0: any other is beyond the table's end.
    mov $0x11, %al
    out %al, $0x20
    mov $0, %al
    out %al, $0x21
    mov $4, %al
    out %al, $0x21
    mov $1, %al
    out %al, $0x21
    mov $0xfe, %al
    out %al, $0x21
    # One, after about a millisecond.
    mov $0x30, %al
    out %al, $0x43
    mov $0xa9, %al
    out %al, $0x40
    mov $4, %al
    out %al, $0x40
    xor %ebp, %ebp
    sti
1:  hlt
    test %ebp, %ebp
    jz 1b

    lea answer(%rip), %rsi
    mov $(answer_end - answer), %ecx
    mov $0xe9, %edx
    rep outsb
    mov $0x10, %al
    out %al, $0xf4
halt:
    cli
    hlt
    jmp halt

tick:
    inc %ebp
    iretq

answer: .ascii "a guest runs\n"
answer_end:

.balign 16
segments:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
segments_end:
    .word segments_end - segments - 1
    .long base + segments - start

.balign 16
gates:
    gate tick
gates_end:
    .word gates_end - gates - 1
    .quad base + gates - start

# The processor begins 16 bytes before the end of the image.
.org 0xfff0
.code16
    ljmp $(base >> 4), $0
.org 0x10000
