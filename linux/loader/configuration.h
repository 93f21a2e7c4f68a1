/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_CONFIGURATION_H
#define LINUX_LOADER_CONFIGURATION_H

/*
 * A configuration file: lines "NAME = VALUE", where "#" begins a comment. The
 * caller defines the names.
 */

/* Takes one setting; both texts last as long as the process. If it is wrong, prints that after
 * configuration_place() and does not return. */
typedef void configuration_take(void *context, const char *name, char *value);

/* Reads the file. Returns 0, or -1 after a message if it cannot be read or a line has another
 * form. */
int configuration_read(const char *path, configuration_take *take, void *context);

/* "FILE, line 3: " while that line is processed, else "". */
const char *configuration_place(void);

#endif
