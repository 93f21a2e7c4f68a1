// SPDX-License-Identifier: MIT

#include "typed.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>

static constexpr size_t ESCAPE = 4; // characters of \xHH

static bool is_plain(char character)
{
    return character >= ' ' && character <= '~' && character != '\\';
}

static std::string escaped(const std::string &text)
{
    std::string result;
    for (char character : text) {
        char code[ESCAPE + 1];
        snprintf(code, sizeof(code), "\\x%02x", static_cast<unsigned char>(character));
        result += is_plain(character) ? std::string(1, character) : code;
    }
    return result;
}

template <typename number>
static bool read_number(const char *begin, const char *end, int base, number &value)
{
    auto [rest, error] = std::from_chars(begin, end, value, base);
    return begin < end && error == std::errc() && rest == end;
}

static std::optional<std::string> unescaped(const std::string &text)
{
    std::string result;
    for (size_t at = 0; at < text.size(); at++) {
        const char *place = text.data() + at;
        unsigned char code;
        if (is_plain(*place)) {
            result += *place;
            continue;
        }
        if (text.compare(at, 2, "\\x") != 0 || text.size() - at < ESCAPE ||
            !read_number(place + 2, place + ESCAPE, 16, code))
            return {};
        result += static_cast<char>(code);
        at += ESCAPE - 1;
    }
    return result;
}

static std::optional<typed> read_line(const std::string &line)
{
    size_t blank = std::min(line.find(' '), line.size());
    bool is_end = blank == line.size();
    uint64_t at_ns;
    auto text = unescaped(is_end ? "" : line.substr(blank + 1));
    if (!read_number(line.data(), line.data() + blank, 10, at_ns) || !text ||
        is_end != text->empty())
        return {};
    return typed{at_ns, *text};
}

typed_file::typed_file(const std::string &path) : file(path, std::ios::trunc)
{
    if (!file)
        throw std::runtime_error(path + ": " + strerror(errno));
}

void typed_file::add(const typed &next)
{
    file << next.at_ns << (next.text.empty() ? "" : " ") << escaped(next.text) << '\n'
         << std::flush;
    if (!file)
        throw std::runtime_error("the typed input cannot be "
                                 "recorded: " +
                                 std::string(strerror(errno)));
}

std::vector<typed> read_typed(const std::string &path)
{
    std::ifstream file(path);
    std::vector<typed> list;
    if (!file)
        throw std::runtime_error(path + ": " + strerror(errno));
    for (std::string line; std::getline(file, line);) {
        auto next = read_line(line);
        if (!next || (!list.empty() && next->at_ns <= list.back().at_ns))
            throw std::runtime_error(
                path + ", line " + std::to_string(list.size() + 1) +
                ": invalid line; expected an increasing time in ns, and the typed input");
        list.push_back(*next);
    }
    return list;
}
