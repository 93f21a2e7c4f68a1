// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

// Returns the value of name=value among the kernel's boot arguments, parsed as in
// kernel/device/boot_arguments.c; "" if it is missing.
std::string boot_argument(std::string_view arguments, std::string_view name);
