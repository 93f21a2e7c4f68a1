// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

// The value of name=value among the kernel's boot arguments, as kernel/device/boot_arguments.c
// reads them; "" if it is not there.
std::string boot_argument(std::string_view arguments, std::string_view name);
