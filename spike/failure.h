// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

// Returns the error of the last system call, with what it was to do.
inline std::runtime_error failure(const std::string &what)
{
    return std::runtime_error(what + ": " + strerror(errno));
}
