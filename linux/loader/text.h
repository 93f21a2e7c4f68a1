/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TEXT_H
#define LINUX_LOADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing text. All zero: an empty one. */
struct text {
    char *bytes; /* with a final 0; null while it is empty */
    size_t length;
    size_t room;
    bool cut; /* memory was short: the text is incomplete */
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds this many bytes of any kind. */
void text_add_bytes(struct text *text, const char *bytes, size_t length);
void text_free(struct text *text);

/* Like snprintf(); texts that all hosts share call it by this name. */
int format_text(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the whole of `text` as a decimal number, optionally with a minus sign. Returns false,
 * with *number unchanged, if it is not a number, or exceeds 64 bits. */
bool text_to_number(const char *text, int64_t *number);

/* Reads a length of time in seconds: a number of at least 0, optionally followed by s, m or h.
 * Returns false, with *seconds unchanged, if it is invalid, or exceeds 64 bits. */
bool text_to_seconds(const char *text, int64_t *seconds);

/* Reads a small file's text, without its last newline, into `buffer`. Returns false if it
 * cannot; errno gives the reason. */
bool read_small_file(const char *path, char *buffer, size_t size);

/* Writes to standard error, in one write: "schedlab-linux: …". */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
