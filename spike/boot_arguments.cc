// SPDX-License-Identifier: MIT

#include "boot_arguments.h"

#include <algorithm>

// Takes the text up to the first of these characters, or all of it, from the front of `text`.
static std::string_view take_until(std::string_view &text, const char *ends)
{
    std::string_view taken = text.substr(0, text.find_first_of(ends));
    text.remove_prefix(taken.size());
    return taken;
}

static void pass(std::string_view &text, char character)
{
    if (!text.empty() && text.front() == character)
        text.remove_prefix(1);
}

std::string boot_argument(std::string_view arguments, std::string_view name)
{
    std::string_view match;

    while (arguments.remove_prefix(std::min(arguments.find_first_not_of(' '), arguments.size())),
           !arguments.empty()) {
        bool requested = take_until(arguments, " =") == name;
        pass(arguments, '=');
        bool is_quoted = !arguments.empty() && arguments.front() == '"';
        pass(arguments, '"');
        std::string_view value = take_until(arguments, is_quoted ? "\"" : " ");
        pass(arguments, '"');
        if (requested)
            match = value;
    }
    return std::string(match);
}
