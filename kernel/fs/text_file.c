/* SPDX-License-Identifier: MIT */

#include "fs/text_file.h"

#include <stdarg.h>
#include <stddef.h>

#include "abi/errors.h"
#include "fs/namespace.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/page.h"
#include "policies/support/command_text.h"

enum { TEXT_PAGE_BYTES = PAGE_BYTES - sizeof(struct text_page *) };

struct text_page {
    struct text_page *next;
    char bytes[TEXT_PAGE_BYTES];
};

static const struct text_file *text_files;
static uint32_t text_file_count;

/* ---- texts ---- */

/* Returns the free space after the end of the text, or null if memory is short. */
static char *text_end(struct text *text, size_t *room)
{
    size_t used = text->length % TEXT_PAGE_BYTES;
    if (used == 0) {
        struct text_page *page = page_allocate();
        if (!page)
            return NULL;
        page->next = NULL;
        *(text->last ? &text->last->next : &text->first) = page;
        text->last = page;
    }
    *room = TEXT_PAGE_BYTES - used;
    return text->last->bytes + used;
}

static void append(struct text *text, const char *from, size_t n)
{
    while (n > 0 && !text->cut) {
        size_t room;
        char *to = text_end(text, &room);
        size_t part = n < room ? n : room;
        text->cut = !to;
        if (!to)
            return;
        memcpy(to, from, part);
        text->length += part;
        from += part;
        n -= part;
    }
}

void text_add(struct text *text, const char *format, ...)
{
    char piece[TEXT_PIECE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    format_text_list(piece, sizeof(piece), format, arguments);
    va_end(arguments);
    append(text, piece, strlen(piece));
}

int64_t text_read(const struct text *text, struct buffer *destination, uint64_t offset, uint64_t n)
{
    const struct text_page *page = text->first;
    uint64_t done = 0;
    for (uint64_t i = offset / TEXT_PAGE_BYTES; page && i > 0; i--)
        page = page->next;
    for (; page && done < n && offset < text->length; page = page->next) {
        uint64_t start = offset % TEXT_PAGE_BYTES;
        uint64_t part = TEXT_PAGE_BYTES - start;
        if (part > text->length - offset)
            part = text->length - offset;
        if (part > n - done)
            part = n - done;
        int error = buffer_put(destination, page->bytes + start, part);
        if (error)
            return error;
        offset += part;
        done += part;
    }
    return (int64_t)done;
}

void text_free(struct text *text)
{
    while (text->first) {
        struct text_page *page = text->first;
        text->first = page->next;
        page_release(page);
    }
    *text = (struct text){0};
}

/* ---- files ---- */

static void make_node(const char *name, uint16_t type, uint32_t number)
{
    struct inode *inode;
    int error = namespace_create(root_directory, name, type, type == FILE_DEVICE ? DEVICE_TEXT : 0,
                                 (uint16_t)number, &inode);
    if (error == 0)
        inode_put(inode);
    else if (error != -EEXIST)
        print("%s cannot be made: error %d\n", name, -error);
}

void text_files_init(const struct text_file *files, uint32_t count)
{
    text_files = files;
    text_file_count = count;
    make_node("/proc", FILE_DIRECTORY, 0);
    for (uint32_t i = 0; i < count; i++) {
        char path[PATH_BYTES];
        format_text(path, sizeof(path), "/proc/%s", files[i].name);
        make_node(path, FILE_DEVICE, i);
    }
}

const struct text_file *text_file_numbered(uint32_t number)
{
    return number < text_file_count ? &text_files[number] : NULL;
}

const struct text_file *text_file_named(const char *name)
{
    for (uint32_t i = 0; i < text_file_count; i++) {
        if (strcmp(text_files[i].name, name) == 0)
            return &text_files[i];
    }
    return NULL;
}

int text_file_make(const struct text_file *file, struct text *text)
{
    file->make(text);
    if (!text->cut)
        return 0;
    text_free(text);
    return -ENOMEM;
}

int64_t text_file_obey(const struct text_file *file, struct buffer *source, uint64_t n)
{
    char written[TEXT_COMMAND_BYTES];
    if (!file->obey)
        return -EPERM;
    if (n >= sizeof(written))
        return -ENAMETOOLONG;
    int error = buffer_take(source, written, n);
    if (error)
        return error;
    char *line = text_one_line(written, n);
    error = line ? file->obey(line) : -EINVAL;
    return error ? error : (int64_t)n;
}
