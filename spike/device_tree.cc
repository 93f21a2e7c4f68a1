// SPDX-License-Identifier: MIT

// The library describes its machine as text, and compiles that with the program dtc. The function
// below replaces the library's, so that dtc is not needed.

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dts.h>

namespace
{
// Of the format, as devicetree.org specifies it: version 17.
constexpr uint32_t MAGIC = 0xd00dfeed;
constexpr uint32_t VERSION = 17;
constexpr uint32_t OLDEST_VERSION = 16;
constexpr uint32_t BEGIN_NODE = 1;
constexpr uint32_t END_NODE = 2;
constexpr uint32_t PROPERTY = 3;
constexpr uint32_t END = 9;
constexpr size_t WORD = 4;
constexpr size_t HEADER = 10 * WORD;
constexpr size_t RESERVATIONS = 16; // the empty entry that ends the list

constexpr std::string_view BLANK = " \t\n";
constexpr std::string_view SIGNS = "{};=<>&";

// Takes a text in quotes, including the first quote. The library escapes only quotes.
std::string take_text(std::string_view &source)
{
    std::string text(1, '"');
    for (size_t i = 1; i < source.size(); i++) {
        if (source[i] == '"') {
            source.remove_prefix(i + 1);
            return text;
        }
        if (source.substr(i, 2) == "\\\"")
            i++;
        text += source[i];
    }
    throw std::runtime_error("device tree: unbalanced quotation mark; check the arguments");
}

// Splits the source into signs, texts, and the parts between them.
std::vector<std::string> split(std::string_view source)
{
    std::vector<std::string> tokens;
    while (source.remove_prefix(std::min(source.find_first_not_of(BLANK), source.size())),
           !source.empty()) {
        if (source[0] == '"') {
            tokens.push_back(take_text(source));
            continue;
        }
        bool is_sign = SIGNS.find(source[0]) != std::string_view::npos;
        size_t length =
            is_sign ? 1 : std::min(source.find_first_of(" \t\n{};=<>&\""), source.size());
        tokens.emplace_back(source.substr(0, length));
        source.remove_prefix(length);
    }
    return tokens;
}

std::string big_endian(uint32_t value)
{
    std::string bytes(WORD, 0);
    for (size_t i = 0; i < WORD; i++)
        bytes[i] = static_cast<char>(value >> 8 * (WORD - 1 - i));
    return bytes;
}

class tree
{
  public:
    explicit tree(std::string_view source) : tokens(split(source))
    {
        find_labels();
        expect("/dts-v1/");
        expect(";");
        expect("/");
        add_node("", "");
        add_word(END);
    }

    std::string blob() const
    {
        auto size = static_cast<uint32_t>(structure.size());
        auto names = static_cast<uint32_t>(strings.size());
        constexpr auto begin = static_cast<uint32_t>(HEADER + RESERVATIONS);
        const std::array<uint32_t, HEADER / WORD> header = {
            MAGIC,   begin + size + names, begin, begin + size, HEADER,
            VERSION, OLDEST_VERSION,       0,     names,        size};
        std::string bytes;
        for (uint32_t value : header)
            bytes += big_endian(value);
        return bytes + std::string(RESERVATIONS, 0) + structure + strings;
    }

  private:
    // Finds the paths of labelled nodes, and numbers the nodes that cells refer to, in their order.
    void find_labels()
    {
        std::string path;
        bool in_cells = false;
        for (size_t i = 1; i + 1 < tokens.size(); i++) {
            const std::string &token = tokens[i];
            if (token == "{" && tokens[i - 1] != "/") {
                path += '/' + tokens[i - 1];
                if (i > 1 && tokens[i - 2].back() == ':')
                    paths[tokens[i - 2]] = path;
            } else if (token == "}")
                path.resize(std::min(path.rfind('/'), path.size()));
            else if (token == "<" || token == ">")
                in_cells = token == "<";
            else if (token == "&" && in_cells)
                handles.try_emplace(tokens[i + 1] + ':', handles.size() + 1);
        }
    }

    const std::string &take()
    {
        if (next == tokens.size())
            throw std::runtime_error("device tree: its text is truncated");
        return tokens[next++];
    }

    void expect(std::string_view token)
    {
        const std::string &match = take();
        if (match != token)
            throw std::runtime_error("device tree: " + match + " instead of " + std::string(token));
    }

    void add_word(uint32_t value)
    {
        structure += big_endian(value);
    }

    void add_padded(const std::string &bytes)
    {
        structure += bytes;
        structure.resize((structure.size() + WORD - 1) / WORD * WORD);
    }

    void add_property(const std::string &name, const std::string &value)
    {
        std::string requested = name + '\0';
        size_t place = strings.find(requested);
        if (place == std::string::npos) {
            place = strings.size();
            strings += requested;
        }
        add_word(PROPERTY);
        add_word(static_cast<uint32_t>(value.size()));
        add_word(static_cast<uint32_t>(place));
        add_padded(value);
    }

    // Properties precede nodes. The number that cells use to refer to a node is its last property.
    void add_node(const std::string &label, const std::string &name)
    {
        auto handle = handles.find(label);
        add_word(BEGIN_NODE);
        add_padded(name + '\0');
        expect("{");
        while (tokens.at(next) != "}" && tokens.at(next).back() != ':' &&
               tokens.at(next + 1) != "{") {
            const std::string &property = take();
            add_property(property, take_value());
        }
        if (handle != handles.end())
            add_property("phandle", big_endian(static_cast<uint32_t>(handle->second)));
        while (tokens.at(next) != "}") {
            const std::string inner = tokens.at(next).back() == ':' ? take() : "";
            add_node(inner, take());
        }
        expect("}");
        expect(";");
        add_word(END_NODE);
    }

    std::string take_value()
    {
        std::string value;
        for (std::string token = take(); token != ";"; token = take()) {
            if (token == "<")
                value += take_cells();
            else if (token == "&")
                value += paths.at(take() + ':') + '\0';
            else if (token[0] == '"')
                value += token.substr(1) + '\0';
            else if (token != "=" && token != ",")
                throw std::runtime_error("device tree: " + token + " is no value");
        }
        return value;
    }

    std::string take_cells()
    {
        std::string cells;
        for (std::string token = take(); token != ">"; token = take()) {
            unsigned long value =
                token == "&" ? handles.at(take() + ':') : std::stoul(token, nullptr, 0);
            cells += big_endian(static_cast<uint32_t>(value));
        }
        return cells;
    }

    std::vector<std::string> tokens;
    size_t next = 0;
    std::map<std::string, std::string> paths; // by labels, with their colons
    std::map<std::string, size_t> handles;
    std::string structure;
    std::string strings;
};
} // namespace

// Replaces the library's function.
std::string dts_to_dtb(const std::string &source)
{
    return tree(source).blob();
}
