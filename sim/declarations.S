/* SPDX-License-Identifier: MIT */

/*
 * The text of the library's headers, one after the other and then a 0, as the symbol
 * simulator_declarations: bindings read from it what the library offers.
 */

    .section .rodata
    .globl simulator_declarations
    .type simulator_declarations, @object
simulator_declarations:
    .incbin "abi/trace_format.h"
    .incbin "abi/workload_steps.h"
    .incbin "sim/simulator.h"
    .incbin "sim/workload.h"
    .incbin "sim/control.h"
    .byte 0
    .size simulator_declarations, . - simulator_declarations

    .section .note.GNU-stack, "", @progbits
