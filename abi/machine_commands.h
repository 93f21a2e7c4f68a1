/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_COMMANDS_H
#define SCHEDLAB_ABI_MACHINE_COMMANDS_H

/*
 * What a machine tells the kernel in the middle of a run: a text of lines, ended by a 0, at the
 * physical address that the kernel's symbol `machine_commands` names, and then an external
 * interrupt of CPU 0 that no device claims. A line is the name of a file in /proc, a blank, and
 * what a program would write to that file. The kernel obeys all lines before anything else, and
 * leaves an empty text. If it refuses a line, it says so, and the machine ends with
 * MACHINE_REFUSED.
 */
#define MACHINE_COMMANDS_SYMBOL "machine_commands"
#define MACHINE_COMMANDS_BYTES  1024 /* with the final 0 */

/* The kernel's time is that of the machine's timer, less what the 64 bits say that lie at the
 * physical address of this symbol: the timer when the kernel's clock began. */
#define MACHINE_CLOCK_SYMBOL "machine_clock"

#endif
