#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: make_engine_table.sh POLICY_TABLE.c
#
# Prints the simulator's table of engines (sim/machine.h) as C, in the order of the table of
# policies from tools/make_policy_table.sh.
set -eu

names=$(sed -n 's/^ *&policy_\([a-z0-9_]*\),$/\1/p' "$1")

echo "/* Made by sim/make_engine_table.sh. */"
echo '#include "sim/machine.h"'
echo
for name in $names; do
    echo "extern const struct engine engine_$name;"
done
echo
echo "const struct engine *const engines[] = {"
for name in $names; do
    echo "    &engine_$name,"
done
echo "};"
