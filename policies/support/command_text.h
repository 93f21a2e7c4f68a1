/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_COMMAND_TEXT_H
#define SCHEDLAB_COMMAND_TEXT_H

/* Reads a command that is written to a file, for all hosts that offer such files. */

#include <stdbool.h>
#include <stddef.h>

#define TEXT_FUNCTION static inline __attribute__((unused))

TEXT_FUNCTION bool text_is_one_of(const char *set, char character)
{
    while (*set && *set != character)
        set++;
    return *set != '\0';
}

TEXT_FUNCTION size_t text_length(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

/* Returns true if the text consists of one or more digits only. */
TEXT_FUNCTION bool text_is_number(const char *text)
{
    const char *end = text;
    while (*end >= '0' && *end <= '9')
        end++;
    return end != text && *end == '\0';
}

/*
 * Returns the one line among the first `length` bytes of `written`, without surrounding blanks and
 * ended by a 0. Needs room for one more byte. Returns null if the line is empty, there is more than
 * one, or it is not text.
 */
TEXT_FUNCTION char *text_one_line(char *written, size_t length)
{
    static const char blanks[] = " \t\r\n";
    while (length > 0 && text_is_one_of(blanks, written[length - 1]))
        length--;
    written[length] = '\0';
    while (text_is_one_of(blanks, *written)) {
        written++;
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        if (written[i] == '\0' || written[i] == '\n')
            return NULL;
    }
    return length > 0 ? written : NULL;
}

/* Returns the next word of the line, ended by a 0, or null if there is none. Advances the line. */
TEXT_FUNCTION char *text_take_word(char **line, const char *separators)
{
    char *word = *line;
    while (*word && text_is_one_of(separators, *word))
        word++;
    char *end = word;
    while (*end && !text_is_one_of(separators, *end))
        end++;
    *line = *end ? end + 1 : end;
    *end = '\0';
    return *word ? word : NULL;
}

/* Splits the line into two words. Returns false if it has more, or fewer. */
TEXT_FUNCTION bool text_take_two(char *line, const char *separators, char **first, char **second)
{
    *first = text_take_word(&line, separators);
    *second = text_take_word(&line, separators);
    return *second && !text_take_word(&line, separators);
}

#endif
