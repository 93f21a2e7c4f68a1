// SPDX-License-Identifier: MIT

#include "live.h"

#include <algorithm>
#include <cmath>

#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static constexpr int64_t SECOND = 1000000000;
// A machine that was stopped, or is slower than its pace, catches up by at most this much.
static constexpr int64_t LAG_MAX = SECOND / 20;

static int64_t host_now()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

bool console_is_live()
{
    struct stat input;
    return fstat(STDIN_FILENO, &input) == 0 &&
           (isatty(STDIN_FILENO) || S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode));
}

live::live(double pace) : pace(pace), origin(host_now())
{
}

// Waits at most this long; -1: without limit. Returns true if there is input.
bool live::poll_input(int64_t host_ns)
{
    struct pollfd input = {is_open ? STDIN_FILENO : -1, POLLIN, 0};
    struct timespec limit = {host_ns / SECOND, host_ns % SECOND};

    if (ppoll(&input, 1, host_ns < 0 ? nullptr : &limit, nullptr) <= 0)
        return false;
    if (input.revents & POLLIN)
        return true;
    is_open = false;
    return false;
}

std::optional<char> live::take()
{
    char character;
    if (!poll_input(0))
        return {};
    if (read(STDIN_FILENO, &character, 1) == 1)
        return character;
    is_open = false;
    return {};
}

bool live::catch_up(uint64_t machine_ns)
{
    if (pace == 0)
        return poll_input(0);
    int64_t due = origin + std::llround(static_cast<double>(machine_ns) / pace);
    int64_t ahead = due - host_now();
    if (ahead < -LAG_MAX)
        origin += -ahead - LAG_MAX;
    return poll_input(std::max<int64_t>(ahead, 0));
}

uint64_t live::machine_time(uint64_t machine_ns) const
{
    if (pace == 0)
        return machine_ns;
    double now = static_cast<double>(host_now() - origin) * pace;
    return std::min(machine_ns, static_cast<uint64_t>(std::max(now, 0.0)));
}

bool live::wait_for_input()
{
    return is_open && poll_input(-1);
}
