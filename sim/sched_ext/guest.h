/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_GUEST_H
#define SIM_SCHED_EXT_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/sched_ext/image.h"

/*
 * The machine that runs BPF programs: memory in regions, code, and the state of running programs.
 *
 * A guest address is a region's number in the upper half and an offset in the lower half, so
 * addresses are the same in every run. Nothing checks programs in advance. Each memory access is
 * checked instead: a load from an invalid address reads 0 and is counted, as in the kernel, and an
 * invalid store ends the scheduler.
 */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "programs expect little-endian memory");

#define GUEST_FRAME_BYTES   512
#define GUEST_FRAMES_MAX    64
#define GUEST_HELPERS_MAX   256
#define GUEST_CONTEXT_BYTES 4096
#define GUEST_CALL_LIMIT    100000000ull /* instructions of one call of an operation */

static inline uint64_t guest_address(uint32_t region, uint64_t offset)
{
    return (uint64_t)region << 32 | (uint32_t)offset;
}

struct region {
    unsigned char *base; /* of the first valid byte */
    uint64_t first;      /* offset of this byte */
    uint64_t size;
    uint64_t writable; /* `size`, or 0 if programs must not write */
};

struct guest;

/* A function of the kernel. `arguments` are registers 1 to 5. */
typedef uint64_t host_function(struct guest *guest, const uint64_t *arguments);

/* Fields of structures that programs may write, although the rest of the region is read-only. */
#define GUEST_FIELDS_MAX 3
struct guest_fields {
    uint32_t region;
    uint64_t first; /* offset of the first structure */
    uint64_t bytes; /* of a structure */
    uint64_t count;
    uint32_t offsets[GUEST_FIELDS_MAX];
    uint32_t sizes[GUEST_FIELDS_MAX];
};

struct guest_frame {
    uint64_t saved[4]; /* registers 6 to 9 of the caller */
    uint32_t return_to;
};

struct guest {
    struct region regions[REGIONS];
    const struct image_instruction *code;
    uint32_t code_count;
    host_function *const *helpers;   /* by number, GUEST_HELPERS_MAX; null: not available */
    host_function *const *functions; /* by number; null: not available */
    uint32_t function_count;
    struct guest_fields fields;
    const char *strings; /* of the image: names of what the kernel lacks */
    uint32_t string_bytes;
    uint32_t depth; /* frames in use */
    struct guest_frame frames[GUEST_FRAMES_MAX];
    uint64_t instructions; /* executed so far */
    uint64_t call_limit;   /* of one call from outside, including its callbacks */
    uint64_t limit;        /* the present call is endless if `instructions` reaches this value */
    /* Index of the first instruction that did this, + 1; 0: none. */
    uint32_t bad_load;
    uint32_t zero_division;
    bool trapped;        /* a program has failed; no program runs afterwards */
    uint32_t trap_place; /* index of the failed instruction, or UINT32_MAX */
    char trap_text[160];
};

/* Returns the memory at a guest address, or null if it has fewer bytes. */
static inline void *guest_memory(const struct guest *guest, uint64_t address, uint64_t bytes)
{
    uint64_t region = address >> 32;
    uint64_t offset = (uint32_t)address;
    if (__builtin_expect(region >= REGIONS, 0))
        return NULL;
    const struct region *memory = &guest->regions[region];
    offset -= memory->first;
    if (__builtin_expect(bytes > memory->size || offset > memory->size - bytes, 0))
        return NULL;
    return memory->base + offset;
}

/* The same for memory that a program may write. */
static inline void *guest_writable(const struct guest *guest, uint64_t address, uint64_t bytes)
{
    uint64_t region = address >> 32;
    uint64_t offset = (uint32_t)address;
    if (__builtin_expect(region >= REGIONS, 0))
        return NULL;
    const struct region *memory = &guest->regions[region];
    offset -= memory->first;
    if (__builtin_expect(bytes > memory->writable || offset > memory->writable - bytes, 0))
        return NULL;
    return memory->base + offset;
}

/* Returns writable memory for a structure of 8-byte words, or null. */
static inline void *guest_words(const struct guest *guest, uint64_t address, uint64_t bytes)
{
    return address % 8 ? NULL : guest_writable(guest, address, bytes);
}

/* Ends the program that runs, and all later calls, with a reason. Keeps the first reason. */
__attribute__((format(printf, 2, 3), cold)) void guest_trap(struct guest *guest, const char *format,
                                                            ...);

/* Calls a program, or a callback from within a function of the kernel. Returns register 0, or 0
 * after a trap. `arguments`: five values. */
uint64_t guest_call(struct guest *guest, uint32_t entry, const uint64_t *arguments);

/* Starts to count the instructions of a call from outside. */
static inline void guest_begin(struct guest *guest)
{
    guest->limit = guest->instructions + guest->call_limit;
}

#endif
