/* SPDX-License-Identifier: MIT */
#include "device_tree.h"
#include "lib/panic.h"
#include "lib/string.h"

struct boot_argument {
    const char *name;
    size_t name_length;
    const char *value;
    size_t value_length;
};

/* Returns the argument that begins at or after `text`, and the place after it, or null if there
 * is no more. */
static const char *next_argument(const char *text, struct boot_argument *argument)
{
    while (*text == ' ')
        text++;
    if (*text == 0)
        return NULL;

    argument->name = text;
    while (*text != 0 && *text != ' ' && *text != '=')
        text++;
    argument->name_length = (size_t)(text - argument->name);
    if (*text == '=')
        text++;

    char end = ' ';
    if (*text == '"') {
        end = '"';
        text++;
    }
    argument->value = text;
    while (*text != 0 && *text != end)
        text++;
    argument->value_length = (size_t)(text - argument->value);
    return *text == '"' ? text + 1 : text;
}

static bool find_argument(const char *name, struct boot_argument *match)
{
    size_t length = strlen(name);
    struct boot_argument argument;
    bool is_present = false;

    for (const char *text = machine.boot_arguments; (text = next_argument(text, &argument));) {
        if (argument.name_length == length && memcmp(argument.name, name, length) == 0) {
            *match = argument;
            is_present = true;
        }
    }
    return is_present;
}

bool boot_argument_text(const char *name, char *value, size_t size)
{
    struct boot_argument argument;

    if (!find_argument(name, &argument))
        return false;
    if (argument.value_length >= size)
        panic("boot argument %s: it is longer than %lu characters", name, size - 1);
    memcpy(value, argument.value, argument.value_length);
    value[argument.value_length] = 0;
    return true;
}

/* Returns what a suffix multiplies by, or 0 if there is no such suffix. */
static uint64_t unit_of(const char *suffix)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(suffix, units[i].suffix) == 0)
            return units[i].factor;
    return 0;
}

static bool number_of(const char *text, uint64_t *number)
{
    const char *at = text;
    uint64_t value = 0;

    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    uint64_t unit = unit_of(at);
    if (at == text || unit == 0)
        return false;
    return !__builtin_mul_overflow(value, unit, number);
}

uint64_t boot_argument_number(const char *name, uint64_t fallback)
{
    char text[32];
    uint64_t number;

    if (!boot_argument_text(name, text, sizeof text))
        return fallback;
    if (!number_of(text, &number))
        panic("boot argument %s=%s: it is not a number, with ns, us, ms or s if it is a time", name,
              text);
    return number;
}
