#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: make_policy_table.sh POLICY.c...
#
# Prints the table of policies (policies/registry.h) as C. A file NAME.c defines
# `const struct policy policy_NAME`, with each - of the name as _. The policies of
# the studies come first, numbered as in study 5 (0 the standard one, 1 weighted
# round-robin, 2 the lottery); the others follow by name; and behind all that have
# numbers, by name, the files in a folder `studies`, which hold presets. The order of
# the arguments does not matter.
set -eu

if [ $# -eq 0 ]; then
    echo "usage: $0 POLICY.c..." >&2
    exit 2
fi

names=
files=
studies=
for file; do
    name=$(basename "$file" .c | tr - _)
    case $file in
    *.c) ;;
    *)
        echo "$0: $file: not a C file" >&2
        exit 2
        ;;
    esac
    case $name in
    *[!a-z0-9_]* | [!a-z]*)
        echo "$0: $file: a policy's name is of a-z, 0-9, - and begins with a letter" >&2
        exit 2
        ;;
    esac
    case " $names " in
    *" $name "*)
        echo "$0: $file: a second policy of the name $name" >&2
        exit 2
        ;;
    esac
    case $(basename "$(dirname "$file")") in
    studies) studies="$studies $name" ;;
    esac
    names="$names $name"
    files="$files $name=$(basename "$file" .c)"
done

first=
for name in rr wrr lottery priority mlfq; do
    case " $names " in
    *" $name "*) first="$first $name" ;;
    esac
done
others=
for name in $(printf '%s\n' $names | LC_ALL=C sort); do
    case " $first $studies " in
    *" $name "*) ;;
    *) others="$others $name" ;;
    esac
done
numbered="$first $others"
names="$numbered $(printf '%s\n' $studies | LC_ALL=C sort)"

echo "/* Made by tools/make_policy_table.sh. */"
echo '#include "policies/registry.h"'
echo
for name in $names; do
    echo "extern const struct policy policy_$name;"
done
echo
echo "const struct policy *const policies[] = {"
for name in $names; do
    echo "    &policy_$name,"
done
echo "};"
echo "const uint32_t policy_sources_count = sizeof(policies) / sizeof(policies[0]);"
echo "const uint32_t policies_count = $(echo $numbered | wc -w);"
echo
echo "const char *const policy_files[] = {"
for name in $names; do
    for file in $files; do
        case $file in
        "$name="*) echo "    \"${file#*=}\"," ;;
        esac
    done
done
echo "};"
