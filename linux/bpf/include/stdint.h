/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/* A BPF program has the fixed-width types from vmlinux.h; headers that ask for this one find
 * nothing that contradicts them. */
