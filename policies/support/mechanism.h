/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_MECHANISM_H
#define SCHEDLAB_MECHANISM_H

/* Of what hosts of policies share, and of what they define for it: each is folded into its caller,
 * which the BPF verifier then knows all about. */
#define MECHANISM_FUNCTION static inline __attribute__((always_inline, unused))

#endif
