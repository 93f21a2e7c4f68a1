/* SPDX-License-Identifier: MIT */

/* Tests that a systemd service reports readiness, with a socket like systemd's. */

#include "linux/loader/supervisor.c"

#include <assert.h>
#include <stdio.h>

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int end = socket(AF_UNIX, SOCK_DGRAM, 0);
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    assert(end >= 0 && bind(end, (const struct sockaddr *)&address, length) == 0);
    return end;
}

static void hears(const char *path)
{
    char message[64] = "";
    int end = listen_at(path);
    setenv("NOTIFY_SOCKET", path, 1);
    supervisor_notify_ready();
    assert(recv(end, message, sizeof(message) - 1, MSG_DONTWAIT) == 7);
    assert(strcmp(message, "READY=1") == 0);
    close(end);
}

int main(void)
{
    char name[64];
    snprintf(name, sizeof(name), "@schedlab-supervisor-test-%d", (int)getpid());
    hears(name);
    snprintf(name, sizeof(name), "/tmp/schedlab-supervisor-test-%d", (int)getpid());
    hears(name);
    unlink(name);

    /* Without a usable socket, nothing happens. */
    supervisor_notify_ready();
    char longest[200];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    supervisor_notify_ready();
    unsetenv("NOTIFY_SOCKET");
    supervisor_notify_ready();
    return 0;
}
