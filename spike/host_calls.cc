// SPDX-License-Identifier: MIT

#include "host_calls.h"

#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

enum call_number : uint64_t { OPEN_AT = 56, WRITE = 64 };

static constexpr uint64_t CALL_BYTES = 64;
static constexpr uint64_t STATUS_MASK = 255;

// The kernel's numbers.
enum guest_descriptor : uint64_t { STANDARD_OUTPUT = 1, FILE_OPENED = 3 };

host_calls::host_calls(translation memory, std::string file)
    : memory(std::move(memory)), file(std::move(file))
{
    if (this->file.empty())
        return;
    opened = open(this->file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (opened < 0)
        opened = -errno;
}

void host_calls::serve(volatile uint64_t *tohost, volatile uint64_t *fromhost)
{
    uint64_t request = *tohost;

    if (!request)
        return;
    *tohost = 0;
    if (request & 1) {
        status = static_cast<int>(request >> 1 & STATUS_MASK);
        return;
    }
    char *place = memory(request, CALL_BYTES);
    if (!place)
        return;
    uint64_t call[CALL_BYTES / 8];
    memcpy(call, place, CALL_BYTES);
    int64_t result = perform(call);
    memcpy(place, &result, sizeof(result));
    *fromhost = 1;
}

// Returns the result of the host's system call: a negative error on failure.
int64_t host_calls::perform(const uint64_t call[]) const
{
    switch (call[0]) {
    case OPEN_AT:
        return open_file(call[2], call[3]);
    case WRITE:
        return write_file(call[1], call[2], call[3]);
    default:
        return -ENOSYS;
    }
}

int64_t host_calls::open_file(uint64_t name, uint64_t bytes) const
{
    const char *text = memory(name, bytes);

    if (!text || bytes != file.size() + 1 || memcmp(text, file.c_str(), bytes) != 0)
        return -EACCES;
    return opened < 0 ? opened : static_cast<int64_t>(FILE_OPENED);
}

int64_t host_calls::write_file(uint64_t descriptor, uint64_t start, uint64_t bytes) const
{
    const char *data = memory(start, bytes);
    int to = descriptor == STANDARD_OUTPUT ? STDOUT_FILENO : static_cast<int>(opened);

    if ((descriptor != STANDARD_OUTPUT && descriptor != FILE_OPENED) || to < 0)
        return -EBADF;
    if (!data)
        return -EFAULT;
    ssize_t written = write(to, data, bytes);
    return written < 0 ? -errno : written;
}
