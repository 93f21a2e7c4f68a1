#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make_symbols.sh NM [KERNEL]: the kernel's table of functions (kernel/lib/symbols.h)
# as assembly, from the kernel itself; without KERNEL an empty one, for the first
# of the two links. The table lies behind all code, so it moves no function.
set -eu
nm=$1
echo '# SPDX-License-Identifier: MIT'
echo '    .section .symbols, "aw"'
echo '    .globl symbols, symbol_count'
echo '    .balign 8'
echo 'symbols:'
if [ $# -gt 1 ]; then
    "$nm" --defined-only "$2" | sort | awk '
        $2 ~ /^[tT]$/ && $3 !~ /^[.$]/ { print "    .quad 0x" $1 ", name" NR; names = names "name" NR ": .asciz \"" $3 "\"\n"; n++ }
        END { printf "    .balign 8\nsymbol_count: .quad %d\n%s", n, names }'
else
    echo 'symbol_count: .quad 0'
fi
