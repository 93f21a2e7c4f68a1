/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SUPERVISOR_H
#define LINUX_LOADER_SUPERVISOR_H

/* Notifies systemd that the service is ready, if systemd started this process as a service of
 * Type=notify. See sd_notify(3): one datagram to $NOTIFY_SOCKET. */
void supervisor_notify_ready(void);

#endif
