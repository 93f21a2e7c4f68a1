/* SPDX-License-Identifier: MIT */

#include "supervisor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void supervisor_notify_ready(void)
{
    static const char ready[] = "READY=1";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || !path[0] || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') /* a name that is in no file system */
        address.sun_path[0] = '\0';
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int end = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (end < 0)
        return;
    ssize_t sent = sendto(end, ready, sizeof(ready) - 1, MSG_NOSIGNAL,
                          (const struct sockaddr *)&address, length);
    (void)sent; /* systemd itself reports a missing notification */
    close(end);
}
