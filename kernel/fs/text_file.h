/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_TEXT_FILE_H
#define KERNEL_FS_TEXT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/user_copy.h"

/*
 * Files in /proc whose text the kernel makes and whose commands it runs. On the
 * disk they are device nodes, DEVICE_TEXT and a number; the kernel creates
 * missing ones at boot.
 *
 * The first read() after open() makes the whole text, and later reads continue
 * in it: one open() gives one consistent view. Each write() is one command, of
 * one line.
 */

/* A growing text, in pages. */
struct text_page;
struct text {
    struct text_page *first;
    struct text_page *last;
    uint64_t length;
    bool cut; /* memory was short: the text is incomplete */
};

/* Adds to the text, like format_text(): TEXT_PIECE_BYTES at a time, with a final 0. */
#define TEXT_PIECE_BYTES 512
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns how many bytes it read, starting at `offset`; 0 at the end; or an error. */
int64_t text_read(const struct text *text, struct buffer *destination, uint64_t offset, uint64_t n);
void text_free(struct text *text);

#define TEXT_COMMAND_BYTES 128

struct text_file {
    const char *name; /* in /proc */
    /* Adds the whole text for a reader. Runs in the reader's process; may yield the CPU. */
    void (*make)(struct text *text);
    /* Runs one line, without surrounding blanks, as a command; it may change the line. Returns
     * 0, or an error with nothing changed. Null: the file cannot be written. */
    int (*obey)(char *line);
};

/* Called at boot, once the disk is mounted. A file's index in the array is its number on the
 * disk. */
void text_files_init(const struct text_file *files, uint32_t count);
/* Returns null if no file has that number. */
const struct text_file *text_file_numbered(uint32_t number);
const struct text_file *text_file_named(const char *name);

/* Makes the whole of a text file. Returns 0 or -ENOMEM. */
int text_file_make(const struct text_file *file, struct text *text);
/* Runs the command of one write(). Returns n, or an error. */
int64_t text_file_obey(const struct text_file *file, struct buffer *source, uint64_t n);

#endif
