/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_CONFIGURATION_H
#define LINUX_LOADER_CONFIGURATION_H

/*
 * A configuration file: lines "NAME = VALUE", where "#" begins a comment. What
 * names there are is the caller's to say.
 */

/* Takes one setting; both texts last as long as the process. Does not return if it is wrong, and
 * has said so, behind configuration_place(). */
typedef void configuration_take(void *context, const char *name, char *value);

/* Reads the file. Returns 0; or -1 if it cannot be read, or a line has another form, and said. */
int configuration_read(const char *path, configuration_take *take, void *context);

/* "FILE, line 3: " while a line of it is taken, else "". */
const char *configuration_place(void);

#endif
