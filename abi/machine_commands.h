/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_COMMANDS_H
#define SCHEDLAB_ABI_MACHINE_COMMANDS_H

/*
 * Commands from a machine to the kernel during a run: a text of lines, ended by a 0. It lies at the
 * physical address of the kernel's symbol `machine_commands`, followed by an external interrupt of
 * CPU 0 that no device claims. A line is the name of a file in /proc, a blank, and the text that a
 * program would write to that file. The kernel runs all lines before anything else, and leaves an
 * empty text. If it refuses a line, it reports the error, and the machine ends with
 * MACHINE_REFUSED.
 */
#define MACHINE_COMMANDS_SYMBOL "machine_commands"
#define MACHINE_COMMANDS_BYTES  1024 /* with the final 0 */

/* The kernel's time is the machine's timer minus the 64-bit number at the physical address of
 * this symbol: the timer's value when the kernel's clock began. */
#define MACHINE_CLOCK_SYMBOL "machine_clock"

#endif
