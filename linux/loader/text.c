/* SPDX-License-Identifier: MIT */

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_FIRST_ROOM 4096

/* Reserves memory for `length` more bytes and a final 0. */
static bool text_grow(struct text *text, size_t length)
{
    size_t room = text->room ? text->room : TEXT_FIRST_ROOM;
    if (text->cut)
        return false;
    while (room < text->length + length + 1)
        room *= 2;
    if (room == text->room)
        return true;
    char *bytes = realloc(text->bytes, room);
    text->cut = !bytes;
    if (bytes) {
        text->bytes = bytes;
        text->room = room;
    }
    return bytes;
}

void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    if (!text_grow(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !text_grow(text, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

int format_text(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

bool text_to_number(const char *text, int64_t *number)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    char *end;
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *number = value;
    return true;
}

bool text_to_seconds(const char *text, int64_t *seconds)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
    const size_t count = sizeof(units) / sizeof(units[0]);
    size_t unit = 0;
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    while (unit < count && strcmp(end, units[unit].name) != 0)
        unit++;
    if (errno || unit == count || number > INT64_MAX / units[unit].seconds)
        return false;
    *seconds = number * units[unit].seconds;
    return true;
}

bool read_small_file(const char *path, char *buffer, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, buffer, size - 1);
    int error = errno;
    close(file);
    errno = error;
    if (length < 0)
        return false;
    while (length > 0 && buffer[length - 1] == '\n')
        length--;
    buffer[length] = '\0';
    return true;
}

void say(const char *format, ...)
{
    char message[4096];
    va_list arguments;
    int head = snprintf(message, sizeof(message), "schedlab-linux: ");
    va_start(arguments, format);
    int length =
        head + vsnprintf(message + head, sizeof(message) - (size_t)head - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof(message) - 2)
        length = (int)sizeof(message) - 2;
    message[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, message, (size_t)length);
    (void)written; /* an error cannot be reported anywhere */
}
