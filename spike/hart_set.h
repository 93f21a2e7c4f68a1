// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

constexpr size_t HARTS_MAX = 256;

// A set of harts by number, in their order.
class hart_set
{
  public:
    bool has(size_t hart) const
    {
        return words[hart / 64] >> hart % 64 & 1;
    }

    void add(size_t hart)
    {
        words[hart / 64] |= 1ull << hart % 64;
    }

    void remove(size_t hart)
    {
        words[hart / 64] &= ~(1ull << hart % 64);
    }

    bool is_empty() const
    {
        return first(0) == HARTS_MAX;
    }

    // Returns the lowest hart that is at least `from`; HARTS_MAX: none.
    size_t first(size_t from) const
    {
        for (size_t word = from / 64; word < words.size(); word++) {
            uint64_t bits = words[word] & (word == from / 64 ? ~0ull << from % 64 : ~0ull);
            if (bits)
                return 64 * word + static_cast<size_t>(__builtin_ctzll(bits));
        }
        return HARTS_MAX;
    }

  private:
    std::array<uint64_t, HARTS_MAX / 64> words{};
};
