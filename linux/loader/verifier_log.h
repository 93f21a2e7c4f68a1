/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_VERIFIER_LOG_H
#define LINUX_LOADER_VERIFIER_LOG_H

struct text;

/*
 * Adds why the object of this name could not be loaded: one line and, if the verifier refused it,
 * the verifier's last lines. `error`: negative errno. `messages`: libbpf's, null if there are none.
 * `log`: the kernel's, which may be empty.
 */
void explain_failed_load(struct text *text, const char *name, int error, const char *messages,
                         const char *log);

#endif
