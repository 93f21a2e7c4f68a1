/* SPDX-License-Identifier: MIT */

#include "model/message.h"

#define REPLACEMENT 0xfffd

void write_number(struct message *message, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        write_byte(message, digits[--count]);
}

void write_signed(struct message *message, int64_t number)
{
    if (number < 0)
        write_byte(message, '-');
    write_number(message, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void write_thousands(struct message *message, uint64_t number)
{
    if (number < 1000) {
        write_number(message, number);
        return;
    }
    write_thousands(message, number / 1000);
    write_byte(message, ',');
    write_byte(message, (char)('0' + number / 100 % 10));
    write_byte(message, (char)('0' + number / 10 % 10));
    write_byte(message, (char)('0' + number % 10));
}

/* ---- characters ---- */

/* Returns how many bytes follow the first byte of a character; 0xff if it begins none. Sets
 * `low` and `high` to the range of the second byte. */
static uint32_t bytes_after(uint8_t first, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first == 0xe0)
        *low = 0xa0;
    if (first == 0xed)
        *high = 0x9f;
    if (first == 0xf0)
        *low = 0x90;
    if (first == 0xf4)
        *high = 0x8f;
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first < 0xe0)
        return 1;
    if (first >= 0xe0 && first < 0xf0)
        return 2;
    return first >= 0xf0 && first < 0xf5 ? 3 : 0xff;
}

/* Reads a character from UTF-8. An incomplete or invalid one becomes REPLACEMENT. */
static uint32_t take_character(const uint8_t **bytes, const uint8_t *end)
{
    uint8_t low, high, first = *(*bytes)++;
    uint32_t more = bytes_after(first, &low, &high);
    if (more == 0xff)
        return REPLACEMENT;
    uint32_t character = more == 0 ? first : first & (0x3fu >> more);
    for (; more > 0; more--) {
        if (*bytes == end || **bytes < low || **bytes > high)
            return REPLACEMENT;
        character = character << 6 | (*(*bytes)++ & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    return character;
}

/* Returns true for characters that terminals interpret, that reverse the writing direction, or
 * that crash libraries. */
static bool is_unseen(uint32_t character)
{
    static const struct {
        uint16_t first;
        uint16_t last;
    } unseen[] = {
        {0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xffff},
    };
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++) {
        if (character >= unseen[i].first && character <= unseen[i].last)
            return true;
    }
    return false;
}

static void write_escape(struct message *message, uint32_t character)
{
    uint32_t digits = character < 0x100 ? 2 : 4;
    write_words(message, character < 0x100 ? "\\x" : "\\u");
    while (digits-- > 0)
        write_byte(message, "0123456789abcdef"[character >> 4 * digits & 15]);
}

static void write_utf8(struct message *message, uint32_t character)
{
    uint32_t more = (character >= 0x80) + (character >= 0x800) + (character >= 0x10000);
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    write_byte(message, (char)(marks[more] | character >> 6 * more));
    while (more-- > 0)
        write_byte(message, (char)(0x80 | (character >> 6 * more & 0x3f)));
}

static void write_character(struct message *message, uint32_t character)
{
    if (character == '\n')
        write_words(message, "\\n");
    else if (character == '\t')
        write_words(message, "\\t");
    else if (is_unseen(character))
        write_escape(message, character);
    else
        write_utf8(message, character);
}

void write_name(struct message *message, const struct text *name)
{
    const uint8_t *next = (const uint8_t *)name->byte;
    const uint8_t *end = next + name->bytes;
    while (next < end)
        write_character(message, take_character(&next, end));
}

void write_label(struct message *message, uint64_t label)
{
    struct text text = {0};
    for (; (label & 0xff) != 0; label >>= 8)
        text.byte[text.bytes++] = (char)label;
    write_name(message, &text);
}

void write_process(struct message *message, bool named, const struct text *name, uint32_t pid)
{
    if (named) {
        write_name(message, name);
        return;
    }
    write_words(message, "process ");
    write_number(message, pid);
}
