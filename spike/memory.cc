// SPDX-License-Identifier: MIT

#include "memory.h"

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "failure.h"

static constexpr reg_t HOST_PAGE = 4096;

flat_memory::flat_memory(reg_t bytes) : bytes(bytes)
{
    void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        throw failure("memory of the machine");
    base = static_cast<char *>(place);
}

void flat_memory::lay(reg_t offset, int file, reg_t file_bytes)
{
    if (offset % HOST_PAGE == 0) {
        if (mmap(base + offset, file_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
                 0) == MAP_FAILED)
            throw failure("disk");
        return;
    }
    for (reg_t at = 0; at < file_bytes;) {
        ssize_t got = pread(file, base + offset + at, file_bytes - at, static_cast<off_t>(at));
        if (got <= 0)
            throw failure("disk");
        at += static_cast<reg_t>(got);
    }
}

bool flat_memory::holds(reg_t address, size_t count) const
{
    return address <= bytes && count <= bytes - address;
}

bool flat_memory::load(reg_t address, size_t count, uint8_t *to)
{
    if (!holds(address, count))
        return false;
    memcpy(to, base + address, count);
    return true;
}

bool flat_memory::store(reg_t address, size_t count, const uint8_t *from)
{
    if (!holds(address, count))
        return false;
    memcpy(base + address, from, count);
    return true;
}

char *flat_memory::contents(reg_t address)
{
    return base + address;
}

reg_t flat_memory::size()
{
    return bytes;
}

void flat_memory::dump(std::ostream &)
{
}
