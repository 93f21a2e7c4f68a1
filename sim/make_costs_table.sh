#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: make_costs_table.sh PROFILE.json
#
# Prints the costs of a profile as C: the text that `--costs kernel` selects. `./schedlab calibrate`
# writes the profile, a cost on each line.
set -eu

costs=$(sed -n 's/^ *"\([a-z0-9_.:-]*\)": {"ns": \([0-9]*\),.*/\1=\2/p' "$1" | paste -sd, -)
test -n "$costs" || { echo "$1 names no costs" >&2; exit 1; }

echo "/* Made by sim/make_costs_table.sh. */"
echo '#include "sim/costs.h"'
echo
echo "const char costs_of_kernel[] = \"$costs\";"
