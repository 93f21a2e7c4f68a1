/* SPDX-License-Identifier: MIT */
#include "executable.h"

#include <stdbool.h>

#include "abi/errors.h"
#include "lib/string.h"

/* The ELF format: System V Application Binary Interface, chapters 4 and 5; RISC-V ELF psABI. */
enum {
    ELF_CLASS_64 = 2,
    ELF_LITTLE_ENDIAN = 1,
    ELF_VERSION = 1,
    ELF_TYPE_EXECUTABLE = 2,
    ELF_MACHINE_RISCV = 243,

    SEGMENT_LOAD = 1,
    SEGMENT_EXECUTE = 1 << 0,
    SEGMENT_WRITE = 1 << 1,

    STACK_ALIGNMENT = 16, /* of the RISC-V calling convention */
};

struct elf_header {
    uint8_t magic[4];
    uint8_t class;
    uint8_t byte_order;
    uint8_t identity_version;
    uint8_t padding[9];
    uint16_t type;
    uint16_t machine;
    uint32_t version;
    uint64_t entry;
    uint64_t segments_offset;
    uint64_t sections_offset;
    uint32_t flags;
    uint16_t header_bytes;
    uint16_t segment_bytes;
    uint16_t segments;
    uint16_t section_bytes;
    uint16_t sections;
    uint16_t names_section;
};

struct elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t offset;
    uint64_t address;
    uint64_t physical_address;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
};

_Static_assert(sizeof(struct elf_header) == 64, "ELF64 header");
_Static_assert(sizeof(struct elf_segment) == 56, "ELF64 program header");

/* The guard and the stack page that follow the program. */
#define STACK_BYTES PAGE_BYTES
#define PROGRAM_MAX (USER_END - PAGE_BYTES - STACK_BYTES)

/* Returns true if [start, start + n) lies in [0, end). */
static bool range_within(uint64_t start, uint64_t n, uint64_t end)
{
    return start <= end && n <= end - start;
}

/* Reads exactly these bytes. Returns 0, -ENOEXEC if the file ends before, or the error of
 * read(). */
static int read_all(const struct executable *file, void *destination, uint64_t offset, uint64_t n)
{
    if (!range_within(offset, n, file->size))
        return -ENOEXEC;
    int64_t result = file->read(file->context, destination, offset, n);
    if (result < 0)
        return (int)result;
    return (uint64_t)result == n ? 0 : -ENOEXEC;
}

static bool header_valid(const struct elf_header *header, uint64_t file_size)
{
    return memcmp(header->magic, "\177ELF", sizeof(header->magic)) == 0 &&
           header->class == ELF_CLASS_64 && header->byte_order == ELF_LITTLE_ENDIAN &&
           header->identity_version == ELF_VERSION && header->type == ELF_TYPE_EXECUTABLE &&
           header->machine == ELF_MACHINE_RISCV &&
           header->segment_bytes == sizeof(struct elf_segment) && header->segments > 0 &&
           range_within(header->segments_offset,
                        (uint64_t)header->segments * sizeof(struct elf_segment), file_size);
}

/* Segments start at a page boundary, ascend, as ELF requires, and share no page. */
static bool segment_valid(const struct elf_segment *segment, uint64_t program_end,
                          uint64_t file_size)
{
    return segment->address % PAGE_BYTES == 0 && segment->address >= program_end &&
           segment->file_bytes <= segment->memory_bytes &&
           range_within(segment->address, segment->memory_bytes, PROGRAM_MAX) &&
           range_within(segment->offset, segment->file_bytes, file_size);
}

static int segment_rights(const struct elf_segment *segment)
{
    return PAGE_READ | (segment->flags & SEGMENT_WRITE ? PAGE_WRITE : 0) |
           (segment->flags & SEGMENT_EXECUTE ? PAGE_EXECUTE : 0);
}

/* Reads the segment's bytes into its pages, which exist. */
static int segment_read(struct address_space *space, const struct executable *file,
                        const struct elf_segment *segment)
{
    for (uint64_t done = 0; done < segment->file_bytes; done += PAGE_BYTES) {
        uint64_t rest = segment->file_bytes - done;
        void *page = address_space_page(space, segment->address + done, PAGE_READ);
        int error =
            read_all(file, page, segment->offset + done, rest < PAGE_BYTES ? rest : PAGE_BYTES);

        if (error != 0)
            return error;
    }
    return 0;
}

static int segment_load(struct address_space *space, const struct executable *file,
                        const struct elf_segment *segment)
{
    if (!segment_valid(segment, space->end, file->size))
        return -ENOEXEC;
    uint64_t end = round_up(segment->address + segment->memory_bytes, PAGE_BYTES);
    int error = address_space_map(space, segment->address, end, segment_rights(segment));
    return error != 0 ? error : segment_read(space, file, segment);
}

static bool segment_holds_entry(const struct elf_segment *segment, uint64_t entry)
{
    return (segment->flags & SEGMENT_EXECUTE) && entry % 2 == 0 && entry >= segment->address &&
           entry - segment->address < segment->memory_bytes;
}

/* Loads all segments and returns the entry point. */
static int program_load(struct address_space *space, const struct executable *file, uint64_t *entry)
{
    struct elf_header header;
    bool entry_match = false;
    int error = read_all(file, &header, 0, sizeof(header));

    if (error != 0)
        return error;
    if (!header_valid(&header, file->size))
        return -ENOEXEC;
    for (unsigned index = 0; index < header.segments; index++) {
        struct elf_segment segment;

        error = read_all(file, &segment, header.segments_offset + index * sizeof(segment),
                         sizeof(segment));
        if (error != 0)
            return error;
        if (segment.type != SEGMENT_LOAD || segment.memory_bytes == 0)
            continue;
        error = segment_load(space, file, &segment);
        if (error != 0)
            return error;
        entry_match = entry_match || segment_holds_entry(&segment, header.entry);
    }
    *entry = header.entry;
    return entry_match ? 0 : -ENOEXEC;
}

/* Lowers the stack's top, which ends at an offset in its page, for n bytes. */
static bool stack_reserve(uint64_t *top, uint64_t n)
{
    if (n > *top)
        return false;
    *top = round_down(*top - n, STACK_ALIGNMENT);
    return true;
}

/*
 * The arguments at the stack's upper end: their texts, the first one uppermost,
 * then the array of pointers to them. The stack pointer points to the array.
 */
static int arguments_push(char *page, uint64_t address, char *const arguments[],
                          struct start_state *start)
{
    uint64_t top = STACK_BYTES;
    uint64_t count = 0;

    for (; arguments[count] != NULL; count++) {
        uint64_t bytes = strlen(arguments[count]) + 1;

        if (!stack_reserve(&top, bytes))
            return -E2BIG;
        memcpy(page + top, arguments[count], bytes);
    }
    if (!stack_reserve(&top, (count + 1) * sizeof(uint64_t)))
        return -E2BIG;

    uint64_t *pointers = (uint64_t *)(void *)(page + top);
    uint64_t text = STACK_BYTES;
    for (uint64_t index = 0; index < count; index++) {
        stack_reserve(&text, strlen(arguments[index]) + 1);
        pointers[index] = address + text;
    }
    pointers[count] = 0;
    start->arguments = count;
    start->stack = address + top;
    return 0;
}

static int stack_load(struct address_space *space, char *const arguments[],
                      struct start_state *start)
{
    uint64_t stack = round_up(space->end, PAGE_BYTES) + PAGE_BYTES;
    int error = address_space_map(space, stack, stack + STACK_BYTES, PAGE_READ | PAGE_WRITE);

    if (error != 0)
        return error;
    space->heap = space->end;
    return arguments_push(address_space_page(space, stack, PAGE_WRITE), stack, arguments, start);
}

int executable_load(struct address_space *space, const struct executable *file,
                    char *const arguments[], struct start_state *start)
{
    int error = address_space_create(space);

    if (error == 0)
        error = program_load(space, file, &start->entry);
    if (error == 0)
        error = stack_load(space, arguments, start);
    if (error != 0)
        address_space_destroy(space);
    return error;
}
