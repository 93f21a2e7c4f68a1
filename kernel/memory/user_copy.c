/* SPDX-License-Identifier: MIT */
#include "user_copy.h"

#include "abi/errors.h"
#include "address_space.h"
#include "lib/string.h"
#include "process/process.h"

/*
 * Visits the process's tables page by page and copies through the kernel's view
 * of each page. So no user address is ever accessed and the kernel never
 * faults. Callers may hold spin locks.
 */

/* Returns true if [address, address + n) lies in the user's half. */
static bool in_user_half(uint64_t address, size_t n)
{
    return n <= USER_END && address <= USER_END - n;
}

/* Finds the kernel's view of the byte at `address`, if that access is allowed. Returns 0,
 * -EFAULT or -ENOMEM. */
static int user_byte(uint64_t address, enum page_right access, char **byte)
{
    struct address_space *space = &current_process()->space;
    char *page = address_space_page(space, address, access);

    while (page == NULL) {
        int error = address_space_fault(space, address, access);

        if (error != 0)
            return error;
        page = address_space_page(space, address, access);
    }
    *byte = page + address % PAGE_BYTES;
    return 0;
}

/* Returns how many of n bytes from `address` lie on its page. */
static size_t bytes_on_page(uint64_t address, size_t n)
{
    size_t rest = PAGE_BYTES - address % PAGE_BYTES;

    return n < rest ? n : rest;
}

int copy_from_user(void *destination, uint64_t source, size_t n)
{
    char *to = destination;

    if (!in_user_half(source, n))
        return -EFAULT;
    while (n > 0) {
        size_t part = bytes_on_page(source, n);
        char *from;
        int error = user_byte(source, PAGE_READ, &from);

        if (error != 0)
            return error;
        memcpy(to, from, part);
        to += part;
        source += part;
        n -= part;
    }
    return 0;
}

int copy_to_user(uint64_t destination, const void *source, size_t n)
{
    const char *from = source;

    if (!in_user_half(destination, n))
        return -EFAULT;
    while (n > 0) {
        size_t part = bytes_on_page(destination, n);
        char *to;
        int error = user_byte(destination, PAGE_WRITE, &to);

        if (error != 0)
            return error;
        memcpy(to, from, part);
        from += part;
        destination += part;
        n -= part;
    }
    return 0;
}

int copy_text_from_user(char *destination, uint64_t source, size_t size)
{
    size_t length = 0;

    while (length < size) {
        size_t part = bytes_on_page(source, size - length);
        char *from;

        if (!in_user_half(source, part))
            return -EFAULT;
        int error = user_byte(source, PAGE_READ, &from);
        if (error != 0)
            return error;
        for (size_t index = 0; index < part; index++) {
            destination[length] = from[index];
            if (from[index] == '\0')
                return (int)length;
            length++;
        }
        source += part;
    }
    return -ENAMETOOLONG;
}

int buffer_put(struct buffer *buffer, const void *source, size_t n)
{
    int error = 0;

    if (buffer->in_user)
        error = copy_to_user(buffer->address, source, n);
    else
        memcpy((void *)buffer->address, source, n);
    if (error == 0)
        buffer->address += n;
    return error;
}

int buffer_take(struct buffer *buffer, void *destination, size_t n)
{
    int error = 0;

    if (buffer->in_user)
        error = copy_from_user(destination, buffer->address, n);
    else
        memcpy(destination, (const void *)buffer->address, n);
    if (error == 0)
        buffer->address += n;
    return error;
}
