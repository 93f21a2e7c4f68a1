// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

// What was typed at one moment of the kernel's time.
struct typed {
    uint64_t at_ns;
    std::string text; // "": the machine was ended from outside
};

// The file in which it is kept: a line for each moment, in their order, of the time in ns and,
// after a blank, the text. What is no printable character of ASCII, and \, is \xHH there.
class typed_file
{
  public:
    // Makes it anew. Raises std::runtime_error.
    explicit typed_file(const std::string &path);

    // Keeps one more. It is in the file at once, however the machine ends.
    void add(const typed &next);

  private:
    std::ofstream file;
};

// Returns what such a file says. Raises std::runtime_error, with the line that is wrong.
std::vector<typed> read_typed(const std::string &path);
