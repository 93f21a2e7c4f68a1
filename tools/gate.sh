#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: tools/gate.sh BASELINE [POLICY.c]... [OPTION]...
#
# Compares policies of another repository with a baseline: copies them into this checkout, and runs
# `./schedlab compare BASELINE --gate OPTION...`. action.yml and .pre-commit-hooks.yaml call it.
set -eu
here=$(cd -- "$(dirname -- "$0")/.." && pwd)
if [ $# -eq 0 ] || [ ! -f "$1" ]; then
    echo "usage: tools/gate.sh BASELINE [POLICY.c]... [OPTION]...; 'docs/comparing.md' says how a baseline is made" >&2
    exit 2
fi
baseline=$1
shift
for each in "$@"; do
    shift
    case $each in
    *.c) cp -- "$each" "$here/policies/" ;;
    *) set -- "$@" "$each" ;;
    esac
done
exec "$here/schedlab" compare "$baseline" --gate "$@"
