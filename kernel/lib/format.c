/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <stdbool.h>
#include <stdint.h>

#include "string.h"

/* The buffer for the text. `length` also counts characters that did not fit. */
struct sink {
    char *buffer;
    size_t size;
    size_t length;
};

/* One conversion: %[-0][width][l|ll|z]letter */
struct conversion {
    bool left;
    bool zeros;
    size_t width;
    bool is_long;
    char letter;
};

enum { WIDTH_MAX = 4096, DIGITS_MAX = 20 };

static void put(struct sink *sink, char character)
{
    if (sink->length + 1 < sink->size)
        sink->buffer[sink->length] = character;
    sink->length++;
}

static void put_many(struct sink *sink, char character, size_t n)
{
    for (; n > 0; n--)
        put(sink, character);
}

static void put_text(struct sink *sink, const char *text, size_t n)
{
    for (; n > 0; n--)
        put(sink, *text++);
}

/* Writes the text, padded to the width. Zeros go between the prefix ("-", "0x") and the text. */
static void put_field(struct sink *sink, const struct conversion *conversion, const char *prefix,
                      const char *text, size_t n)
{
    size_t used = strlen(prefix) + n;
    size_t fill = conversion->width > used ? conversion->width - used : 0;
    bool zeros = conversion->zeros && !conversion->left;

    if (!conversion->left && !zeros)
        put_many(sink, ' ', fill);
    put_text(sink, prefix, strlen(prefix));
    if (zeros)
        put_many(sink, '0', fill);
    put_text(sink, text, n);
    if (conversion->left)
        put_many(sink, ' ', fill);
}

static void put_number(struct sink *sink, const struct conversion *conversion, const char *prefix,
                       uint64_t value, unsigned base)
{
    char digits[DIGITS_MAX];
    size_t first = DIGITS_MAX;

    do {
        digits[--first] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    put_field(sink, conversion, prefix, &digits[first], DIGITS_MAX - first);
}

/* Reads a conversion after its %. Returns the first character after it. */
static const char *conversion_parse(struct conversion *conversion, const char *format)
{
    *conversion = (struct conversion){0};
    for (; *format == '-' || *format == '0'; format++) {
        if (*format == '-')
            conversion->left = true;
        else
            conversion->zeros = true;
    }
    for (; *format >= '0' && *format <= '9'; format++) {
        conversion->width = conversion->width * 10 + (size_t)(*format - '0');
        if (conversion->width > WIDTH_MAX)
            conversion->width = WIDTH_MAX;
    }
    for (; *format == 'l' || *format == 'z'; format++)
        conversion->is_long = true;
    conversion->letter = *format;
    return *format == '\0' ? format : format + 1;
}

int format_text_list(char *buffer, size_t size, const char *format, va_list arguments)
{
    struct sink sink = {buffer, size, 0};

    while (*format != '\0') {
        struct conversion conversion;

        if (*format != '%') {
            put(&sink, *format++);
            continue;
        }
        format = conversion_parse(&conversion, format + 1);
        switch (conversion.letter) {
        case 'd':
        case 'i': {
            int64_t value = conversion.is_long ? va_arg(arguments, long) : va_arg(arguments, int);

            if (value < 0)
                put_number(&sink, &conversion, "-", -(uint64_t)value, 10);
            else
                put_number(&sink, &conversion, "", (uint64_t)value, 10);
            break;
        }
        case 'u':
        case 'x': {
            uint64_t value = conversion.is_long ? va_arg(arguments, unsigned long)
                                                : va_arg(arguments, unsigned int);

            put_number(&sink, &conversion, "", value, conversion.letter == 'u' ? 10 : 16);
            break;
        }
        case 'p':
            put_number(&sink, &conversion, "0x", (uintptr_t)va_arg(arguments, void *), 16);
            break;
        case 's': {
            const char *text = va_arg(arguments, const char *);

            if (text == NULL)
                text = "(null)";
            conversion.zeros = false;
            put_field(&sink, &conversion, "", text, strlen(text));
            break;
        }
        case 'c': {
            char character = (char)va_arg(arguments, int);

            conversion.zeros = false;
            put_field(&sink, &conversion, "", &character, 1);
            break;
        }
        case '%':
            put(&sink, '%');
            break;
        default: /* unknown: shown literally, since the type of its argument is unknown, too */
            put(&sink, '%');
            if (conversion.letter != '\0')
                put(&sink, conversion.letter);
            break;
        }
    }
    if (size > 0)
        buffer[sink.length < size ? sink.length : size - 1] = '\0';
    return (int)sink.length;
}

int format_text(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = format_text_list(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}
