/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SUPERVISOR_H
#define LINUX_LOADER_SUPERVISOR_H

/* Tells systemd, if it has started this process as a service of Type=notify, that the service is
 * ready: sd_notify(3), which is one datagram to $NOTIFY_SOCKET. */
void supervisor_tell_ready(void);

#endif
