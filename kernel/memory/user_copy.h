/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_USER_COPY_H
#define KERNEL_MEMORY_USER_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The only functions that access the current process's memory. Each returns 0,
 * -EFAULT or -ENOMEM; any address and length are allowed.
 */
int copy_from_user(void *destination, uint64_t source, size_t n);
int copy_to_user(uint64_t destination, const void *source, size_t n);

/* Copies a text with its final 0, of at most `size` bytes. Returns its length, -EFAULT or
 * -ENAMETOOLONG. */
int copy_text_from_user(char *destination, uint64_t source, size_t size);

/* A buffer in the user's memory or in the kernel's, filled or emptied from its front. */
struct buffer {
    uint64_t address;
    bool in_user;
};

int buffer_put(struct buffer *buffer, const void *source, size_t n);
int buffer_take(struct buffer *buffer, void *destination, size_t n);

#endif
