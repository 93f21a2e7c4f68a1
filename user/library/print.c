/* SPDX-License-Identifier: MIT */

#include "user/library/print.h"

#include <stdbool.h>
#include <stdint.h>

#include "user/library/system.h"
#include "user/library/text.h"

/* The destination of printed characters: memory, or through it a descriptor. */
struct sink {
    char *memory;
    size_t capacity;
    size_t used;
    int descriptor; /* -1: characters that do not fit are dropped */
    int total;
    bool failed;
};

/* One conversion: the part between % and its letter. */
struct conversion {
    bool left;
    bool zeros;
    bool wide; /* an argument of 64 bits */
    int width;
    int precision; /* -1: none */
};

static void sink_flush(struct sink *sink)
{
    size_t done = 0;
    while (done < sink->used && !sink->failed) {
        int n = write(sink->descriptor, sink->memory + done, (int)(sink->used - done));
        if (n <= 0)
            sink->failed = true;
        else
            done += (size_t)n;
    }
    sink->used = 0;
}

static void put(struct sink *sink, char c)
{
    sink->total++;
    if (sink->used == sink->capacity) {
        if (sink->descriptor < 0)
            return;
        sink_flush(sink);
    }
    sink->memory[sink->used++] = c;
}

static void put_repeated(struct sink *sink, char c, int times)
{
    while (times-- > 0)
        put(sink, c);
}

static void put_text(struct sink *sink, const struct conversion *conversion, const char *text)
{
    int n = 0;
    while ((conversion->precision < 0 || n < conversion->precision) && text[n])
        n++;
    if (!conversion->left)
        put_repeated(sink, ' ', conversion->width - n);
    for (int i = 0; i < n; i++)
        put(sink, text[i]);
    if (conversion->left)
        put_repeated(sink, ' ', conversion->width - n);
}

static void put_number(struct sink *sink, const struct conversion *conversion, uint64_t value,
                       unsigned base, const char *sign, bool capitals)
{
    const char *digits = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[20];
    int n = 0;
    do {
        text[n++] = digits[value % base];
        value /= base;
    } while (value);

    int padding = conversion->width - n - (int)strlen(sign);
    if (!conversion->left && !conversion->zeros)
        put_repeated(sink, ' ', padding);
    while (*sign)
        put(sink, *sign++);
    if (!conversion->left && conversion->zeros)
        put_repeated(sink, '0', padding);
    while (n > 0)
        put(sink, text[--n]);
    if (conversion->left)
        put_repeated(sink, ' ', padding);
}

/* A copy of va_list in a struct can be passed by address on every machine. */
struct arguments {
    va_list list;
};

static int take_count(const char **format, struct arguments *arguments)
{
    int count = 0;
    if (**format == '*') {
        (*format)++;
        return va_arg(arguments->list, int);
    }
    for (; **format >= '0' && **format <= '9'; (*format)++)
        count = count < 10000 ? count * 10 + (**format - '0') : count;
    return count;
}

static struct conversion take_conversion(const char **format, struct arguments *arguments)
{
    struct conversion conversion = {.precision = -1};
    for (; **format == '-' || **format == '0'; (*format)++) {
        if (**format == '-')
            conversion.left = true;
        else
            conversion.zeros = true;
    }
    conversion.width = take_count(format, arguments);
    if (conversion.width < 0) {
        conversion.left = true;
        conversion.width = -conversion.width;
    }
    if (**format == '.') {
        (*format)++;
        conversion.precision = take_count(format, arguments);
    }
    for (; **format == 'l' || **format == 'z'; (*format)++)
        conversion.wide = true;
    return conversion;
}

static void put_signed(struct sink *sink, const struct conversion *conversion, int64_t value)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    put_number(sink, conversion, size, 10, value < 0 ? "-" : "", false);
}

static void put_unsigned(struct sink *sink, const struct conversion *conversion, char letter,
                         struct arguments *arguments)
{
    uint64_t value =
        conversion->wide ? va_arg(arguments->list, uint64_t) : va_arg(arguments->list, unsigned);
    put_number(sink, conversion, value, letter == 'u' ? 10 : 16, "", letter == 'X');
}

static void put_conversion(struct sink *sink, const struct conversion *conversion, char letter,
                           struct arguments *arguments)
{
    char text[2] = {0};
    switch (letter) {
    case 'd':
    case 'i':
        put_signed(sink, conversion,
                   conversion->wide ? va_arg(arguments->list, int64_t)
                                    : va_arg(arguments->list, int));
        break;
    case 'u':
    case 'x':
    case 'X':
        put_unsigned(sink, conversion, letter, arguments);
        break;
    case 'p':
        put_number(sink, conversion, (uintptr_t)va_arg(arguments->list, void *), 16, "0x", false);
        break;
    case 'c':
        text[0] = (char)va_arg(arguments->list, int);
        put_text(sink, conversion, text);
        break;
    case 's': {
        const char *string = va_arg(arguments->list, const char *);
        put_text(sink, conversion, string ? string : "(null)");
        break;
    }
    default: /* %% and unknown conversions are printed literally */
        put(sink, letter);
    }
}

static void format_into(struct sink *sink, const char *format, struct arguments *arguments)
{
    while (*format) {
        if (*format != '%') {
            put(sink, *format++);
            continue;
        }
        format++;
        struct conversion conversion = take_conversion(&format, arguments);
        if (!*format)
            break;
        put_conversion(sink, &conversion, *format++, arguments);
    }
}

int vfprintf(int descriptor, const char *format, va_list list)
{
    char memory[PRINT_BYTES];
    struct sink sink = {.memory = memory, .capacity = PRINT_BYTES, .descriptor = descriptor};
    struct arguments arguments;
    va_copy(arguments.list, list);
    format_into(&sink, format, &arguments);
    va_end(arguments.list);
    sink_flush(&sink);
    return sink.failed ? -1 : sink.total;
}

int fprintf(int descriptor, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = vfprintf(descriptor, format, list);
    va_end(list);
    return result;
}

int printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = vfprintf(1, format, list);
    va_end(list);
    return result;
}

int snprintf(char *destination, size_t size, const char *format, ...)
{
    struct sink sink = {.memory = destination, .capacity = size ? size - 1 : 0, .descriptor = -1};
    struct arguments arguments;
    va_start(arguments.list, format);
    format_into(&sink, format, &arguments);
    va_end(arguments.list);
    if (size)
        destination[sink.used] = 0;
    return sink.total;
}

const char *error_text(int error)
{
    static const char *const texts[] = {
        [0] = "no error",
        [EPERM] = "not permitted",
        [ENOENT] = "no such file or directory",
        [ESRCH] = "no such process",
        [EINTR] = "killed while waiting",
        [EIO] = "the device failed",
        [E2BIG] = "argument list too long",
        [ENOEXEC] = "not an executable of this machine",
        [EBADF] = "not an open file, or not open for that",
        [ECHILD] = "no child to wait for",
        [EAGAIN] = "no more processes",
        [ENOMEM] = "out of memory",
        [EFAULT] = "bad address",
        [EBUSY] = "in use",
        [EEXIST] = "exists already",
        [EXDEV] = "on another device",
        [ENODEV] = "no such device",
        [ENOTDIR] = "not a directory",
        [EISDIR] = "is a directory",
        [EINVAL] = "invalid argument",
        [ENFILE] = "too many open files in the system",
        [EMFILE] = "too many open files in this process",
        [EFBIG] = "file too large",
        [ENOSPC] = "no space left on the disk",
        [EMLINK] = "too many links",
        [EPIPE] = "no reader at the other end",
        [ERANGE] = "out of range",
        [ENAMETOOLONG] = "name too long",
        [ENOSYS] = "no such system call",
        [ENOTEMPTY] = "directory not empty",
        [EPOLICY] = "no such policy or preset",
        [ETUNABLE] = "the policy has no such tunable",
    };
    int count = (int)(sizeof(texts) / sizeof(texts[0]));
    if (error < 0 || error >= count || !texts[error])
        return "unknown error";
    return texts[error];
}

int complain(const char *program, const char *what)
{
    fprintf(2, "%s: %s: %s\n", program, what, error_text(last_error()));
    return 1;
}

void usage(const char *text)
{
    fprintf(2, "usage: %s\n", text);
    exit(2);
}
