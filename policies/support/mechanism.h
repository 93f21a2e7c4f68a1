/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_MECHANISM_H
#define SCHEDLAB_MECHANISM_H

/* For functions that hosts share, and that they define for the shared ones: each is inlined, so
 * the BPF verifier knows all about it. */
#define MECHANISM_FUNCTION static inline __attribute__((always_inline, unused))

#endif
