/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_CONSOLE_H
#define KERNEL_DEVICE_CONSOLE_H

/*
 * The console: a 16550 UART. Input is edited by line (backspace, ^U, ^D for the
 * end of input, ^C kills the foreground children of the shell, ^P lists processes).
 */
void console_init_early(void); /* makes output work, by polling */
void console_init(void);       /* input by interrupt; registers DEVICE_CONSOLE */
/* Writes one character immediately, by polling; works any time, even in a panic. */
void console_put(char c);

/* Functions of the kernel that the console calls in its interrupt handler, with no lock held,
 * for ^P and ^C. */
void process_list_print(void);
void process_kill_foreground(void);

#endif
