// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

// The input at one moment of the kernel's time.
struct typed {
    uint64_t at_ns;
    std::string text; // "": the machine was ended from outside
};

// The file that stores it: a line for each moment, in their order, with the time in ns, a blank and
// the text. Each \ and each character that is not printable ASCII is written as \xHH.
class typed_file
{
  public:
    // Creates the file. Raises std::runtime_error.
    explicit typed_file(const std::string &path);

    // Adds one entry. It is in the file at once, however the machine ends.
    void add(const typed &next);

  private:
    std::ofstream file;
};

// Reads such a file. Raises std::runtime_error, with the wrong line.
std::vector<typed> read_typed(const std::string &path);
