/* SPDX-License-Identifier: MIT */

/*
 * Tests the ELF loader with programs as linkers make them, and with a hundred thousand programs
 * that are damaged in seeded, random ways. Each loaded program is compared with a second, bytewise
 * reading of the file.
 */

#include "memory_machine.h"

#include "kernel/memory/address_space.c"
#include "kernel/memory/executable.c"
#include "kernel/memory/kernel_stack.c"
#include "kernel/memory/page_table.c"

enum { RAM_PAGES = 200, FILE_MAX = 64 * 1024, MUTATIONS = 100000 };

/* A program file, and how reading it fails. */
struct image {
    uint64_t size;
    int64_t reads_left; /* successful reads before a failure; negative: no failure */
    int64_t failure;    /* the error, or the number of missing bytes */
    uint8_t bytes[FILE_MAX];
};

static uint64_t kernel_pages;

static int64_t image_read(void *context, void *destination, uint64_t offset, uint64_t n)
{
    struct image *image = context;

    check(n > 0 && n <= PAGE_BYTES);
    check(offset <= image->size && n <= image->size - offset);
    if (image->reads_left == 0)
        return image->failure < 0 ? image->failure : (int64_t)n - 1;
    image->reads_left--;
    memcpy(destination, image->bytes + offset, n);
    return (int64_t)n;
}

static struct elf_header *header_of(struct image *image)
{
    return (struct elf_header *)image->bytes;
}

static struct elf_segment *segment_of(struct image *image, unsigned index)
{
    return (struct elf_segment *)(image->bytes + 64 + 56 * index);
}

static void image_begin(struct image *image, unsigned segments)
{
    memset(image, 0, sizeof(*image));
    image->reads_left = -1;
    image->size = 64 + 56 * segments;
    *header_of(image) = (struct elf_header){
        .magic = {0x7f, 'E', 'L', 'F'},
        .class = 2,
        .byte_order = 1,
        .identity_version = 1,
        .type = 2,
        .machine = 243,
        .version = 1,
        .segments_offset = 64,
        .header_bytes = 64,
        .segment_bytes = 56,
        .segments = (uint16_t)segments,
    };
}

/* A segment with random contents at the file's end. */
static void image_segment(struct image *image, unsigned index, uint32_t flags, uint64_t address,
                          uint64_t file_bytes, uint64_t memory_bytes)
{
    *segment_of(image, index) = (struct elf_segment){
        .type = 1,
        .flags = flags,
        .offset = image->size,
        .address = address,
        .physical_address = address,
        .file_bytes = file_bytes,
        .memory_bytes = memory_bytes,
        .alignment = PAGE_BYTES,
    };
    check(image->size + file_bytes <= FILE_MAX);
    for (uint64_t index_of_byte = 0; index_of_byte < file_bytes; index_of_byte++)
        image->bytes[image->size++] = (uint8_t)random_number();
}

/* Separate text and data, as linkers make programs now, and a note that is not loaded. */
static void image_modern(struct image *image)
{
    image_begin(image, 3);
    segment_of(image, 0)->type = 4;
    image_segment(image, 1, 5, 0, 2 * PAGE_BYTES + 123, 2 * PAGE_BYTES + 123);
    image_segment(image, 2, 6, 3 * PAGE_BYTES, 77, PAGE_BYTES + 5);
    header_of(image)->entry = 0x10;
}

/* One segment for everything, as in older programs of xv6. */
static void image_old(struct image *image)
{
    image_begin(image, 1);
    image_segment(image, 0, 7, 0, 3000, 9000);
    header_of(image)->entry = 0;
}

/* Segments with a wide gap between them. */
static void image_wide(struct image *image)
{
    image_begin(image, 4);
    image_segment(image, 0, 5, 0x10000, PAGE_BYTES, PAGE_BYTES);
    image_segment(image, 1, 4, 0x200000, 10, 10);
    image_segment(image, 2, 6, 0x40000000, 0, 3 * PAGE_BYTES);
    image_segment(image, 3, 6, USER_END - 3 * PAGE_BYTES, 2, PAGE_BYTES);
    header_of(image)->entry = 0x10ffe;
}

static int load(struct image *image, struct address_space *space, char *const arguments[],
                struct start_state *start)
{
    struct executable file = {image->size, image_read, image};

    return executable_load(space, &file, arguments, start);
}

static uint64_t entry_at(const struct address_space *space, uint64_t address)
{
    return machine_walk(SATP_SV39 | pointer_to_physical(space->root) / PAGE_BYTES, address);
}

static uint8_t byte_at(const struct address_space *space, uint64_t address)
{
    uint64_t entry = entry_at(space, address);

    check(entry & 16);
    return ((uint8_t *)physical_to_pointer(entry >> 10 << 12))[address % PAGE_BYTES];
}

/* Reads the bytes and rights of a segment from the file. Returns its number of pages. */
static uint64_t check_segment(const struct image *image, const struct elf_segment *segment,
                              const struct address_space *space)
{
    uint64_t page_count = (segment->memory_bytes + PAGE_BYTES - 1) / PAGE_BYTES;

    for (uint64_t done = 0; done < segment->memory_bytes; done += PAGE_BYTES) {
        uint64_t entry = entry_at(space, segment->address + done);

        check((entry & 0x12) == 0x12);
        check(!(entry & 4) == !(segment->flags & 2));
        check(!(entry & 8) == !(segment->flags & 1));
        const uint8_t *page = physical_to_pointer(entry >> 10 << 12);
        for (uint64_t index = 0; index < PAGE_BYTES; index++) {
            bool in_file = done + index < segment->file_bytes;

            check(page[index] == (in_file ? image->bytes[segment->offset + done + index] : 0));
        }
    }
    return page_count;
}

static uint64_t count_pages(const uint64_t *table, int level)
{
    uint64_t count = 0;

    for (int index = 0; index < (level == 2 ? 256 : 512); index++) {
        if (!(table[index] & 1))
            continue;
        count +=
            level == 0 ? 1 : count_pages(physical_to_pointer(table[index] >> 10 << 12), level - 1);
    }
    return count;
}

static void check_arguments(const struct address_space *space, char *const arguments[],
                            const struct start_state *start)
{
    uint64_t count = 0;

    for (; arguments[count] != NULL; count++) {
        uint64_t text = 0;

        for (int index = 7; index >= 0; index--)
            text = text << 8 | byte_at(space, start->stack + count * 8 + (uint64_t)index);
        check(text >= start->stack && text < space->end);
        for (size_t index = 0; index <= strlen(arguments[count]); index++)
            check(byte_at(space, text + index) == (uint8_t)arguments[count][index]);
    }
    for (uint64_t index = 0; index < 8; index++)
        check(byte_at(space, start->stack + count * 8 + index) == 0);
    check(start->arguments == count);
}

/* Checks everything that a loaded program must satisfy. */
static void check_loaded(struct image *image, const struct address_space *space,
                         char *const arguments[], const struct start_state *start)
{
    const struct elf_header *header = header_of(image);
    uint64_t page_count = 1;
    uint64_t program_end = 0;

    for (unsigned index = 0; index < header->segments; index++) {
        struct elf_segment segment;

        memcpy(&segment, image->bytes + header->segments_offset + 56 * index, 56);
        if (segment.type != 1 || segment.memory_bytes == 0)
            continue;
        page_count += check_segment(image, &segment, space);
        program_end = segment.address + segment.memory_bytes;
    }
    check(start->entry == header->entry && (entry_at(space, start->entry) & 8));

    uint64_t stack = (program_end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
    check(space->end == stack + PAGE_BYTES && space->heap == space->end);
    check(entry_at(space, stack - 1) == 0);
    check((entry_at(space, stack) & 0x1e) == 0x16);
    check(start->stack % 16 == 0 && start->stack >= stack && start->stack < space->end);
    check(count_pages(space->root, 2) == page_count);
    check_arguments(space, arguments, start);
}

static void check_no_leak(void)
{
    check(page_total() - page_free_count() == kernel_pages);
}

static char *const some_arguments[] = {"program", "", "a longer argument, of 33 letters.", NULL};

static void check_loads(void (*make)(struct image *), char *const arguments[])
{
    static struct image image;
    struct address_space space;
    struct start_state start;

    make(&image);
    check(load(&image, &space, arguments, &start) == 0);
    check_loaded(&image, &space, arguments, &start);
    address_space_destroy(&space);
    check_no_leak();
}

static void test_valid_programs(void)
{
    static char *const none[] = {NULL};

    check_loads(image_modern, some_arguments);
    check_loads(image_old, some_arguments);
    check_loads(image_wide, some_arguments);
    check_loads(image_modern, none);
}

static int load_result(struct image *image, char *const arguments[])
{
    struct address_space space;
    struct start_state start;
    int error = load(image, &space, arguments, &start);

    if (error == 0)
        address_space_destroy(&space);
    check(space.root == NULL);
    check_no_leak();
    return error;
}

static void test_arguments_that_fill_the_stack(void)
{
    static struct image image;
    static char text[PAGE_BYTES + 1];
    char *many[600] = {NULL};
    char *one[] = {text, NULL};

    image_modern(&image);
    memset(text, 'x', PAGE_BYTES);
    check(load_result(&image, one) == -E2BIG);
    text[PAGE_BYTES - 16 - 1] = '\0'; /* with its 0 and two pointers: a page */
    check(load_result(&image, one) == 0);
    text[PAGE_BYTES - 16 - 1] = 'x';
    text[PAGE_BYTES - 16] = '\0';
    check(load_result(&image, one) == -E2BIG);
    for (int index = 0; index < 171; index++)
        many[index] = "";
    check(load_result(&image, many) == -E2BIG);
    many[170] = NULL;
    check(load_result(&image, many) == 0);
}

/* Each damage alone makes the loader refuse the program. */
static void test_damaged_programs(void)
{
    static struct image image;

#define refused(damage, error)                                                                     \
    do {                                                                                           \
        image_modern(&image);                                                                      \
        struct elf_header *header = header_of(&image);                                             \
        struct elf_segment *text = segment_of(&image, 1), *data = segment_of(&image, 2);           \
        damage;                                                                                    \
        (void)header, (void)text, (void)data;                                                      \
        check(load_result(&image, some_arguments) == (error));                                     \
    } while (0)

    refused((void)0, 0);
    refused(header->magic[0] = 'E', -ENOEXEC);
    refused(header->class = 1, -ENOEXEC);
    refused(header->byte_order = 2, -ENOEXEC);
    refused(header->identity_version = 0, -ENOEXEC);
    refused(header->type = 3, -ENOEXEC);
    refused(header->machine = 62, -ENOEXEC);
    refused(header->segments = 0, -ENOEXEC);
    refused(header->segments = 65535, -ENOEXEC);
    refused(header->segment_bytes = 57, -ENOEXEC);
    refused(header->segments_offset = UINT64_MAX - 55, -ENOEXEC);
    refused(header->segments_offset = image.size - 100, -ENOEXEC);
    refused(header->entry = 0x11, -ENOEXEC);
    refused(header->entry = text->memory_bytes, -ENOEXEC);
    refused(header->entry = data->address, -ENOEXEC);
    refused(header->entry = UINT64_MAX - 1, -ENOEXEC);
    refused(text->flags = 4, -ENOEXEC);
    refused(text->address = 8, -ENOEXEC);
    refused(text->address = 0x1000, -ENOEXEC); /* overlaps the data */
    refused(text->address = 0x5000, -ENOEXEC); /* descending */
    refused(text->file_bytes++, -ENOEXEC);
    refused(text->memory_bytes = UINT64_MAX, -ENOEXEC);
    refused(data->address = 2 * PAGE_BYTES, -ENOEXEC);
    refused(data->address = USER_END - PAGE_BYTES, -ENOEXEC);
    refused(data->address = -PAGE_BYTES, -ENOEXEC);
    refused(data->address = KERNEL_BASE, -ENOEXEC);
    refused(data->memory_bytes = 76, -ENOEXEC);
    refused(data->memory_bytes = USER_END, -ENOEXEC);
    refused(data->memory_bytes = USER_END / 2, -ENOMEM);
    refused(data->memory_bytes = RAM_PAGES * PAGE_BYTES, -ENOMEM);
    refused(data->offset = image.size - 76, -ENOEXEC);
    refused(data->offset = UINT64_MAX, -ENOEXEC);
    refused(text->type = data->type = 2, -ENOEXEC);
    refused(image.size = 0, -ENOEXEC);
    refused(image.size = 63, -ENOEXEC);
    refused(image.size = 64, -ENOEXEC);
    refused(image.size -= 1, -ENOEXEC);
#undef refused
}

static void test_reads_that_fail(void)
{
    static struct image image;
    int64_t reads = -1;

    for (int64_t failure = -EIO; failure <= 1; failure += EIO + 1) {
        for (int64_t good = 0;; good++) {
            image_modern(&image);
            image.reads_left = good;
            image.failure = failure;
            int error = load_result(&image, some_arguments);
            if (error == 0) {
                check(reads == -1 || reads == good);
                reads = good;
                break;
            }
            check(error == (failure < 0 ? failure : -ENOEXEC));
        }
    }
    check(reads == 1 + 3 + 3 + 1); /* header, segment headers, pages of text and data */
}

static void test_out_of_memory_anywhere(void)
{
    static struct image image;
    int error;
    int64_t successes = 0;

    image_wide(&image);
    do {
        allocations_left = successes++;
        error = load_result(&image, some_arguments);
        check(error == 0 || error == -ENOMEM);
    } while (error != 0);
    allocations_left = -1;
    check(successes > 15);
}

/* Returns numbers near the limits of the arithmetic. */
static uint64_t strange_number(const struct image *image)
{
    static const uint64_t edges[] = {0,         1,         PAGE_BYTES,     1ul << 21,  1ul << 30,
                                     1ul << 31, 1ul << 32, USER_END,       1ul << 39,  1ul << 63,
                                     0,         1,         2 * PAGE_BYTES, KERNEL_BASE};
    uint64_t number = edges[random_below(sizeof(edges) / sizeof(edges[0]))];

    switch (random_below(6)) {
    case 0:
        return random_number() >> random_below(64);
    case 1:
        return image->size + random_below(3) - 1;
    case 2:
        return number - 1 - random_below(100);
    case 3:
        return number - PAGE_BYTES * random_below(4);
    case 4:
        return PAGE_BYTES * random_below(300);
    default:
        return number + random_below(8);
    }
}

static void mutate(struct image *image)
{
    uint64_t head = 64 + 56ul * header_of(image)->segments;
    uint64_t number = strange_number(image);
    uint64_t at = random_below(head < image->size ? head : 64);

    switch (random_below(10)) {
    case 0:
        image->bytes[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        image->bytes[at] = (uint8_t)number;
        break;
    case 2:
        image->size = random_below(FILE_MAX);
        break;
    case 3:
        memcpy(image->bytes + 24 + 8 * random_below(3), &number, 8); /* entry and offsets */
        break;
    case 4:
        memcpy(image->bytes + 54 + 2 * random_below(2), &number, 2); /* counts */
        break;
    case 5:
        memcpy(image->bytes + 64 + 56 * random_below(4), image->bytes + 64 + 56 * random_below(4),
               56);
        break;
    default: /* a field of a segment */
        memcpy(image->bytes + 64 + 56 * random_below(4) + 8 * random_below(7), &number, 8);
        break;
    }
}

static void test_mutations(void)
{
    static void (*const makers[])(struct image *) = {image_modern, image_old, image_wide};
    static struct image originals[3], image;
    int results[4] = {0};

    for (int index = 0; index < 3; index++)
        makers[index](&originals[index]);
    for (int round = 0; round < MUTATIONS; round++) {
        const struct image *original = &originals[random_below(3)];
        struct address_space space;
        struct start_state start;

        memcpy(&image, original, offsetof(struct image, bytes) + original->size);
        for (uint64_t count = 1 + random_below(3); count > 0; count--)
            mutate(&image);
        if (random_below(50) == 0)
            allocations_left = (int64_t)random_below(20);
        int error = load(&image, &space, some_arguments, &start);
        allocations_left = -1;
        check(error == 0 || error == -ENOEXEC || error == -ENOMEM);
        if (error == 0) {
            check_loaded(&image, &space, some_arguments, &start);
            address_space_destroy(&space);
        }
        results[error == 0 ? 0 : error == -ENOEXEC ? 1 : 2]++;
        check(space.root == NULL);
        check_no_leak();
    }
    check(results[0] > MUTATIONS / 50 && results[1] > MUTATIONS / 10);
    check(results[2] > MUTATIONS / 100);
}

int main(void)
{
    machine_init(RAM_PAGES);
    uint64_t *root = page_allocate_zeroed();
    kernel_address_space_init(root);
    address_space_activate(NULL);
    kernel_pages = page_total() - page_free_count();

    run_test(test_valid_programs);
    run_test(test_arguments_that_fill_the_stack);
    run_test(test_damaged_programs);
    run_test(test_reads_that_fail);
    run_test(test_out_of_memory_anywhere);
    run_test(test_mutations);
    return 0;
}
