/* SPDX-License-Identifier: MIT */

#include "configuration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define BLANKS " \t\r\n"

static char place[4200];

const char *configuration_place(void)
{
    return place;
}

static char *without_blanks_at_the_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr(BLANKS, text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Keeps the line. Returns false if it is neither empty nor a setting. */
static bool take_line(const char *line, configuration_take *take, void *context)
{
    char *copy = strdup(line + strspn(line, BLANKS));
    if (!copy)
        return false;
    copy[strcspn(copy, "#")] = '\0';
    without_blanks_at_the_end(copy);
    char *equals = strchr(copy, '=');
    if (!copy[0])
        free(copy);
    else if (equals && equals > copy) {
        *equals = '\0';
        char *value = equals + 1;
        take(context, without_blanks_at_the_end(copy), value + strspn(value, BLANKS));
    } else
        return false;
    return true;
}

int configuration_read(const char *path, configuration_take *take, void *context)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool right = file != NULL;
    for (unsigned number = 1; right && getline(&line, &room, file) >= 0; number++) {
        snprintf(place, sizeof(place), "%.4000s, line %u: ", path, number);
        right = take_line(line, take, context);
        if (!right)
            say("%sinvalid line; write NAME = VALUE", place);
    }
    if (!file || ferror(file)) {
        say("%s: cannot be read: %s; name another file with --config", path, strerror(errno));
        right = false;
    }
    if (file)
        fclose(file);
    free(line);
    place[0] = '\0';
    return right ? 0 : -1;
}
