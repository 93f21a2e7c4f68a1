// SPDX-License-Identifier: MIT

#include "holds.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <stdexcept>
#include <tuple>

#include "hart.h"

// One turn in 4, 8, … or 128 is cut short, depending on the seed: with few cuts, the important ones
// are easier to identify.
static constexpr uint64_t DENSEST = 4;
static constexpr uint64_t DENSITIES = 6;
static constexpr uint64_t BOUNDARY_TIMES = 4; // this many times as often at a boundary
static constexpr uint64_t ROUNDS_MAX = 20;
static constexpr uint64_t CALLED_ONE_IN = 16;
static constexpr uint64_t CALLED_ROUNDS_MAX = 400;

static FILE *must_open(const std::string &path, const char *how)
{
    FILE *file = fopen(path.c_str(), how);
    if (!file)
        throw std::runtime_error(path + ": " + strerror(errno));
    return file;
}

bool hold::is_before(const hold &other) const
{
    return std::tie(boundaries, instructions, called) <
           std::tie(other.boundaries, other.instructions, other.called);
}

holds::holds(uint64_t seed) : draws(interleaving(seed))
{
    cut_one_in = DENSEST << draws->draw(DENSITIES);
    boundary_one_in = cut_one_in / BOUNDARY_TIMES;
}

holds holds::of_file(const std::string &path)
{
    static constexpr char LINE[] = "%zu %" SCNu64 " %" SCNu64 " %d %" SCNu64 "%*[^\n]";
    holds match;
    hold one;
    size_t hart;
    int called;
    FILE *file = must_open(path, "re");
    int count;
    while ((count = fscanf(file, LINE, &hart, &one.boundaries, &one.instructions, &called,
                           &one.rounds)) == 5 &&
           hart < HARTS_MAX) {
        one.called = called != 0;
        match.lists[hart].push_back(one);
    }
    fclose(file);
    if (count != EOF)
        throw std::runtime_error(path + ": invalid line; use a file that --keep-holds wrote");
    for (auto &list : match.lists)
        std::sort(list.begin(), list.end(),
                  [](const hold &a, const hold &b) { return a.is_before(b); });
    return match;
}

void holds::keep_in(const std::string &path)
{
    kept = must_open(path, "we");
}

void holds::keep(size_t hart, const hold &taken, uint64_t address, uint64_t caller,
                 uint64_t kernel_ns)
{
    if (kept)
        fprintf(kept,
                "%zu %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIu64 "\n",
                hart, taken.boundaries, taken.instructions, taken.called, taken.rounds, address,
                caller, kernel_ns);
}

uint64_t holds::cut(uint64_t turn)
{
    return draws && !draws->draw(cut_one_in) ? 1 + draws->draw(turn - 1) : turn;
}

uint64_t holds::when_called(size_t hart, uint64_t boundaries, uint64_t instructions)
{
    if (!draws)
        return listed(hart, boundaries, instructions, true);
    return draws->draw(CALLED_ONE_IN) ? 0 : 1 + draws->draw(CALLED_ROUNDS_MAX);
}

uint64_t holds::when_cut()
{
    return 1 + draws->draw(ROUNDS_MAX);
}

uint64_t holds::at_boundary()
{
    return draws && !draws->draw(boundary_one_in) ? 1 + draws->draw(ROUNDS_MAX) : 0;
}

uint64_t holds::until_listed(size_t hart, uint64_t boundaries, uint64_t instructions)
{
    const auto &list = lists[hart];
    const hold now = {boundaries, instructions, false, 0};
    size_t &at = next[hart];

    while (at < list.size() && list[at].is_before(now))
        at++;
    bool is_ahead = at < list.size() && list[at].boundaries == boundaries && !list[at].called;
    return is_ahead ? list[at].instructions - instructions : NEVER;
}

uint64_t holds::listed(size_t hart, uint64_t boundaries, uint64_t instructions, bool called)
{
    const auto &list = lists[hart];
    const hold now = {boundaries, instructions, called, 0};
    size_t &at = next[hart];

    while (at < list.size() && list[at].is_before(now))
        at++;
    return at < list.size() && !now.is_before(list[at]) ? list[at++].rounds : 0;
}
