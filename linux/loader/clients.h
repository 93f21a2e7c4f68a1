/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_CLIENTS_H
#define LINUX_LOADER_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

/* Requests of the command line to a server, through its control files. Each returns the exit
 * status: 0; 1: it failed; 2: wrong usage, or no server runs. */

struct client {
    const char *control; /* directory of the control files */
    bool as_json;
};

int client_status(const struct client *client);
int client_policies(const struct client *client);
int client_tunables(const struct client *client);
/* Ends the server, and waits until it has. */
int client_stop(void);
/* Makes the server choose the fair class. Without a server, checks that the fair class is
 * active, and removes the mount that a killed server has left. */
int client_restore(const struct client *client);
/* Writes the words, with blanks between them, to the file of this name. */
int client_command(const struct client *client, const char *name, char *const *words, size_t count);

#endif
