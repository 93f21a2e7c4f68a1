#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints a hash of the C sources that page/schedlab.html and policies/catalogue.json are made from.
# While the hash is unchanged, both serve hosts that have no compiler for them.
cd "$(dirname "$0")/.." || exit
find page abi policies sim model tools/policy_list.c -path sim/sched_ext -prune -o \
    \( -name '*.[chS]' -o -name '*.mk' -o -path 'sim/costs/*.json' \) -type f -print |
    LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d ' ' -f 1
