#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make_symbols.sh [MAP]: the kernel's table of functions (kernel/lib/symbols.h) as assembly, from
# the linker's map of the kernel; without MAP an empty one, for the first of the two links. The
# table lies behind all code, so it moves no function.
set -eu
echo '# SPDX-License-Identifier: MIT'
echo '    .section .symbols, "aw"'
echo '    .globl symbols, symbol_count'
echo '    .balign 8'
echo 'symbols:'
if [ $# -gt 0 ]; then
    # Names of output sections start in column 50, and those of symbols in column 66.
    awk '
        substr($0, 50, 1) != " " { text = $5 == ".text" }
        text && $5 ~ /^[A-Za-z_]/ && substr($0, 66) == $5 { print $1, $5 }' "$1" | sort | awk '
        { print "    .quad 0x" $1 ", name" NR; names = names "name" NR ": .asciz \"" $2 "\"\n"; n++ }
        END { printf "    .balign 8\nsymbol_count: .quad %d\n%s", n, names }'
else
    echo 'symbol_count: .quad 0'
fi
