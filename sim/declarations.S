/* SPDX-License-Identifier: MIT */

/*
 * The text of the library's headers, one after the other and then a 0, as the symbol
 * simulator_declarations. Bindings read the library's interface from it.
 */

#ifdef __APPLE__
#define DECLARATIONS _simulator_declarations
    .section __TEXT, __const
#else
#define DECLARATIONS simulator_declarations
    .section .note.GNU-stack, "", %progbits
    .section .rodata
    .type DECLARATIONS, %object
#endif

    .globl DECLARATIONS
DECLARATIONS:
    .incbin "abi/trace_format.h"
    .incbin "abi/workload_steps.h"
    .incbin "sim/simulator.h"
    .incbin "sim/workload.h"
    .incbin "sim/control.h"
    .byte 0
