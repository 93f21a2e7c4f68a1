/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/* A BPF program has the fixed-width types from vmlinux.h. Headers that include this file find
 * nothing that contradicts them. */
