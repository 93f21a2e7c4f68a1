# SPDX-License-Identifier: MIT
#
# void switch_context(struct switch_frame *from, const struct switch_frame *to)
#
# The context switch itself: puts away what a function call preserves, and goes
# on where `to` was put away.

    .text
    .globl switch_context
switch_context:
    sd ra, 0(a0)
    sd sp, 8(a0)
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    sd s\n, 16+8*\n(a0)
    .endr
    ld ra, 0(a1)
    ld sp, 8(a1)
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
    ld s\n, 16+8*\n(a1)
    .endr
    ret
