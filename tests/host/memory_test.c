/* SPDX-License-Identifier: MIT */

/*
 * Tests physical pages, objects, address spaces and user copies. Address spaces are compared with a
 * model that holds each page's bytes in plain arrays, through a memory management unit that is
 * independent of the kernel.
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_machine.h"

#include "kernel/memory/address_space.c"
#include "kernel/memory/kernel_stack.c"
#include "kernel/memory/object.c"
#include "kernel/memory/page_table.c"
#include "kernel/memory/user_copy.c"

enum { RAM_PAGES = 3000, SPACES = 6, MODEL_PAGES = 1500 };

static uint64_t root_of_kernel[512] __attribute__((aligned(4096)));

/* Pages in use from the start: the kernel's tables. */
static uint64_t kernel_pages;

/* Physical pages */

static void test_pages_are_given_once(void)
{
    uint64_t total = page_total();
    void **all = malloc(total * sizeof(*all));

    for (uint64_t index = 0; index < total; index++) {
        check(page_free_count() == total - index);
        all[index] = page_allocate();
        check(all[index] != NULL && (uintptr_t)all[index] % PAGE_BYTES == 0);
        memset(all[index], (int)index, PAGE_BYTES);
    }
    check(page_allocate() == NULL && page_allocate_zeroed() == NULL);
    check(page_allocate_row(1) == NULL);
    for (uint64_t index = 0; index < total; index++) {
        uint8_t *page = all[index];

        check(page[0] == (uint8_t)index && page[PAGE_BYTES - 1] == (uint8_t)index);
        page_release(page);
    }
    check(page_free_count() == total);
    uint64_t *zeroed = page_allocate_zeroed();
    for (unsigned index = 0; index < PAGE_BYTES / 8; index++)
        check(zeroed[index] == 0);
    page_release(zeroed);
    free(all);
}

static void test_page_users(void)
{
    void *page = page_allocate();
    uint64_t free_pages = page_free_count();

    check(!page_shared(page));
    page_share(page);
    page_share(page);
    check(page_shared(page));
    page_release(page);
    check(page_shared(page));
    page_release(page);
    check(!page_shared(page) && page_free_count() == free_pages);
    page_release(page);
    check(page_free_count() == free_pages + 1);
}

static void test_page_promises(void)
{
    uint64_t total = page_total();

    check(!page_promise(total + 1) && page_promise(0) && page_promise(total));
    check(page_free_count() == 0 && !page_promise(1));
    check(page_allocate() == NULL && page_allocate_row(1) == NULL);
    void *page = page_allocate_promised();
    check(page != NULL && page_free_count() == 0);
    page_promise_end(1);
    check(page_allocate() == NULL);
    page_promise_end(1);
    check(page_free_count() == 1);
    void *other = page_allocate();
    check(other != NULL && page_allocate() == NULL);
    page_promise_end(total - 2);
    page_release(page);
    page_release(other);
    check(page_free_count() == total);
}

/* Overcommitment: the kept number of pages is reserved for the spaces that hold promises. */
static void test_promises_beyond_what_there_is(void)
{
    uint64_t total = page_total();
    void **all = malloc(total * sizeof(*all));

    page_keep_promises(3);
    check(page_promise(2) && page_free_count() == total - 2);
    check(page_promise(2 * total) && page_free_count() == total - 3);
    for (uint64_t index = 0; index < total - 3; index++)
        check((all[index] = page_allocate()) != NULL);
    check(page_allocate() == NULL && page_free_count() == 0);
    for (uint64_t index = total - 3; index < total; index++)
        check((all[index] = page_allocate_promised()) != NULL);
    check(page_allocate_promised() == NULL);
    page_promise_end(2 * total + 1);
    page_release(all[0]);
    check(page_allocate() == NULL && page_free_count() == 0);
    page_promise_end(1);
    check((all[0] = page_allocate()) != NULL);
    for (uint64_t index = 0; index < total; index++)
        page_release(all[index]);
    page_keep_promises(UINT64_MAX);
    check(page_free_count() == total);
    free(all);
}

static void test_page_rows(void)
{
    uint64_t total = page_total();
    char *row = page_allocate_row(10);
    char *next = page_allocate_row(7);
    char *page = page_allocate();

    check(row != NULL && next != NULL && page_free_count() == total - 18);
    check(page_allocate_row(total) == NULL && page_free_count() == total - 18);
    memset(row, 1, 10 * PAGE_BYTES);
    memset(next, 2, 7 * PAGE_BYTES);
    check(row[10 * PAGE_BYTES - 1] == 1);
    for (int index = 0; index < 10; index++)
        page_release(row + index * PAGE_BYTES);
    /* Used pages can form a row again, and none of them is allocated twice. */
    char *again = page_allocate_row(10);
    check(again == row);
    char *other = page_allocate();
    check(other < again || other >= again + 10 * PAGE_BYTES);
    page_release(other);
    /* No page is skipped: the row includes a used page and the unused pages after it. */
    char *longer = page_allocate_row(2);
    check(longer == other);
    page_release(longer);
    page_release(longer + PAGE_BYTES);
    for (int index = 0; index < 10; index++)
        page_release(again + index * PAGE_BYTES);
    for (int index = 0; index < 7; index++)
        page_release(next + index * PAGE_BYTES);
    page_release(page);
    check(page_free_count() == total);
    void *all = page_allocate_row(total);
    check(all != NULL && page_allocate() == NULL);
    for (uint64_t index = 0; index < total; index++)
        page_release((char *)all + index * PAGE_BYTES);
}

/* Objects */

enum { OBJECTS = 2000 };

static void check_objects_of(size_t bytes)
{
    static struct {
        uint8_t *object;
        uint8_t mark;
    } live[OBJECTS];
    struct object_cache cache;
    uint64_t free_pages = page_free_count();
    size_t count = 0;

    object_cache_init(&cache, "test", bytes);
    for (int step = 0; step < 4000; step++) {
        bool filling = step / 500 % 2 == 0;
        bool allocate = count == 0 || (count < OBJECTS && random_below(100) < (filling ? 70 : 30));

        if (allocate) {
            uint8_t *object = object_allocate(&cache);

            if (object == NULL) {
                check(page_free_count() == 0);
                continue;
            }
            check((uintptr_t)object % 16 == 0);
            for (size_t index = 0; index < bytes; index++)
                check(object[index] == 0);
            live[count].object = object;
            live[count].mark = (uint8_t)random_number();
            memset(object, live[count].mark, bytes);
            count++;
        } else {
            size_t which = random_below(count);

            for (size_t index = 0; index < bytes; index++)
                check(live[which].object[index] == live[which].mark);
            object_free(&cache, live[which].object);
            live[which] = live[--count];
        }
        check(cache.used == count);
    }
    while (count > 0)
        object_free(&cache, live[--count].object);
    check(page_free_count() == free_pages && list_empty(&cache.partial));
}

static void test_objects(void)
{
    static const size_t sizes[] = {1,    8,    16,   24,   100,  512, 1000,
                                   2024, 2048, 4000, 4048, 4090, 4096};

    for (size_t index = 0; index < sizeof(sizes) / sizeof(sizes[0]); index++)
        check_objects_of(sizes[index]);
}

static void test_objects_are_used_again(void)
{
    enum { COUNT = 50 };
    struct object_cache cache;
    void *object[COUNT];

    object_cache_init(&cache, "test", 500);
    for (int index = 0; index < COUNT; index++)
        object[index] = object_allocate(&cache);
    uint64_t free_pages = page_free_count();
    for (int index = 0; index < COUNT; index += 3)
        object_free(&cache, object[index]);
    for (int index = 0; index < COUNT; index += 3)
        object[index] = object_allocate(&cache);
    check(page_free_count() == free_pages);
    for (int index = 0; index < COUNT; index++)
        object_free(&cache, object[index]);
}

static void test_objects_out_of_memory(void)
{
    struct object_cache cache;

    object_cache_init(&cache, "test", 100);
    allocations_left = 0;
    check(object_allocate(&cache) == NULL && cache.used == 0 && list_empty(&cache.partial));
    allocations_left = -1;
    void *object = object_allocate(&cache);
    check(object != NULL);
    object_free(&cache, object);
}

/* A forbidden act of the kernel ends it at once. */

static struct object_cache small_objects;

static void free_page_twice(void)
{
    void *page = page_allocate();

    page_release(page);
    page_release(page);
}

static void free_foreign_page(void)
{
    page_release(ram);
}

static void free_part_of_page(void)
{
    page_release((char *)page_allocate() + 8);
}

static void share_free_page(void)
{
    void *page = page_allocate();

    page_release(page);
    page_share(page);
}

static void free_object_twice(void)
{
    void *object = object_allocate(&small_objects);

    object_allocate(&small_objects);
    object_free(&small_objects, object);
    object_free(&small_objects, object);
}

static void free_foreign_object(void)
{
    object_allocate(&small_objects);
    object_free(&small_objects, page_allocate_zeroed());
}

static void free_part_of_object(void)
{
    object_free(&small_objects, (char *)object_allocate(&small_objects) + 16);
}

static void check_ends_in_panic(void (*misuse)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        freopen("/dev/null", "w", stderr);
        misuse();
        _exit(0);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_misuse(void)
{
    object_cache_init(&small_objects, "test", 100);
    check_ends_in_panic(free_page_twice);
    check_ends_in_panic(free_foreign_page);
    check_ends_in_panic(free_part_of_page);
    check_ends_in_panic(share_free_page);
    check_ends_in_panic(free_object_twice);
    check_ends_in_panic(free_foreign_object);
    check_ends_in_panic(free_part_of_object);
}

/* The model of an address space */

struct model_page {
    uint64_t address;
    int rights;
    uint8_t *bytes;
};

struct model {
    bool alive;
    uint64_t heap;
    uint64_t end;
    unsigned count;
    struct model_page page[MODEL_PAGES];
};

static struct model models[SPACES];
static struct process processes[SPACES];

static struct model_page *model_find(struct model *model, uint64_t address)
{
    address = round_down(address, PAGE_BYTES);
    for (unsigned index = 0; index < model->count; index++) {
        if (model->page[index].address == address)
            return &model->page[index];
    }
    return NULL;
}

static struct model_page *model_add(struct model *model, uint64_t address, int rights)
{
    check(model->count < MODEL_PAGES && model_find(model, address) == NULL);
    struct model_page *page = &model->page[model->count++];

    page->address = round_down(address, PAGE_BYTES);
    page->rights = rights | PAGE_READ;
    page->bytes = calloc(1, PAGE_BYTES);
    return page;
}

static void model_remove(struct model *model, uint64_t start, uint64_t end)
{
    for (unsigned index = 0; index < model->count;) {
        struct model_page *page = &model->page[index];

        if (page->address >= start && page->address < end) {
            free(page->bytes);
            *page = model->page[--model->count];
        } else {
            index++;
        }
    }
}

static void model_copy(struct model *copy, const struct model *from)
{
    *copy = *from;
    for (unsigned index = 0; index < copy->count; index++) {
        copy->page[index].bytes = malloc(PAGE_BYTES);
        memcpy(copy->page[index].bytes, from->page[index].bytes, PAGE_BYTES);
    }
}

/* Returns the page for an access, and creates it if it is lazy; null: not permitted. */
static struct model_page *model_access(struct model *model, uint64_t address, int access)
{
    struct model_page *page = model_find(model, address);

    if (page != NULL)
        return page->rights & access ? page : NULL;
    if (address >= model->heap && address < round_up(model->end, PAGE_BYTES) &&
        access != PAGE_EXECUTE)
        return model_add(model, address, PAGE_WRITE);
    return NULL;
}

/* Comparison of the tables with the model and the user counts */

struct census {
    uint64_t tables;
    uint64_t leaves;
    uint32_t users[RAM_PAGES];
    bool writable[RAM_PAGES];
    uint32_t copies[RAM_PAGES]; /* users of copy-on-write */
};

static struct census census;

static unsigned ram_index(uint64_t entry)
{
    return (unsigned)(((entry >> 10 << 12) - RAM_START) / PAGE_BYTES);
}

static void count_table(struct model *model, uint64_t entry, int level, uint64_t address,
                        bool contents)
{
    const uint64_t *table = physical_to_pointer(entry >> 10 << 12);
    uint64_t span = 1ul << (12 + 9 * level);

    census.tables++;
    check(census.users[ram_index(entry)]++ == 0);
    for (unsigned index = 0; index < 512; index++, address += span) {
        if (!(table[index] & 1)) {
            check(table[index] == 0);
            continue;
        }
        check(address < round_up(model->end, PAGE_BYTES));
        if (level > 0) {
            count_table(model, table[index], level - 1, address, contents);
            continue;
        }
        struct model_page *page = model_find(model, address);
        check(page != NULL);
        check((table[index] & 0xd1) == 0xd1); /* V U A D */
        check((table[index] & 10) == ((uint64_t)page->rights & 10));
        check(!(table[index] & 4) || (page->rights & PAGE_WRITE));
        census.leaves++;
        census.users[ram_index(table[index])]++;
        census.writable[ram_index(table[index])] |= (table[index] & 4) != 0;
        census.copies[ram_index(table[index])] += (page->rights & PAGE_WRITE) != 0;
        if (contents)
            check(memcmp(physical_to_pointer(table[index] >> 10 << 12), page->bytes, PAGE_BYTES) ==
                  0);
    }
}

static void count_space(struct model *model, struct address_space *space, bool contents)
{
    uint64_t leaves = census.leaves;

    check(space->end == model->end && space->heap == model->heap);
    check(memcmp(&space->root[256], &root_of_kernel[256], 2048) == 0);
    census.tables++;
    check(census.users[ram_index(pointer_to_physical(space->root) >> 2)]++ == 0);
    for (unsigned index = 0; index < 256; index++) {
        if (space->root[index] & 1)
            count_table(model, space->root[index], 1, (uint64_t)index << 30, contents);
        else
            check(space->root[index] == 0);
    }
    check(census.leaves - leaves == model->count);
}

static void check_everything(bool contents)
{
    uint64_t used = kernel_pages;
    uint64_t promised_pages = 0;

    memset(&census, 0, sizeof(census));
    for (int index = 0; index < SPACES; index++) {
        if (models[index].alive)
            count_space(&models[index], &processes[index].space, contents);
    }
    for (unsigned index = 0; index < RAM_PAGES; index++) {
        physical_t address = RAM_START + index * PAGE_BYTES;

        if (census.users[index] == 0)
            continue;
        used++;
        check(pages.users[(address - pages.first) / PAGE_BYTES] == census.users[index]);
        check(!census.writable[index] || census.users[index] == 1);
        if (census.copies[index] > 0)
            promised_pages += census.copies[index] - 1;
    }
    check(page_total() - pages.free_count == used);
    check(pages.promised == promised_pages);
    check(page_free_count() == pages.free_count - promised_pages);
}

/* Random work */

static void become(int which)
{
    machine_process = &processes[which];
    address_space_activate(&processes[which].space);
}

static bool fits(const struct model *model, uint64_t more)
{
    return model->count + more <= MODEL_PAGES;
}

/* Maps a program as exec() would, with a heap that may begin anywhere. */
static void step_create(int which)
{
    static const uint64_t bases[] = {0, 0, 0, 0x1fe000, 0x3fffe000, 0x7ffff000};
    struct model *model = &models[which];
    struct address_space *space = &processes[which].space;
    uint64_t address = bases[random_below(6)];

    if (address_space_create(space) != 0) {
        check(space->root == NULL);
        return;
    }
    *model = (struct model){.alive = true};
    for (int segment = 0; segment < 3; segment++) {
        uint64_t count = 1 + random_below(4);
        int rights = (int)random_below(8) << 1;

        rights = rights & PAGE_WRITE ? rights | PAGE_READ : rights;
        int error = address_space_map(space, address, address + count * PAGE_BYTES, rights);
        if (error != 0) {
            check(error == -ENOMEM);
            break;
        }
        for (uint64_t page = 0; page < count; page++)
            model_add(model, address + page * PAGE_BYTES, rights);
        address += count * PAGE_BYTES;
        model->end = address;
        address += random_below(2) * PAGE_BYTES; /* perhaps a guard page */
    }
    space->heap = model->heap = space->end;
}

static void step_copy(int from, int to)
{
    int error = address_space_copy(&processes[to].space, &processes[from].space);

    if (error != 0) {
        check(error == -ENOMEM && processes[to].space.root == NULL);
        return;
    }
    model_copy(&models[to], &models[from]);
}

static void step_destroy(int which)
{
    address_space_destroy(&processes[which].space);
    check(processes[which].space.root == NULL);
    model_remove(&models[which], 0, UINT64_MAX);
    models[which].alive = false;
}

static int64_t random_change(const struct model *model)
{
    uint64_t heap = model->end - model->heap;

    switch (random_below(8)) {
    case 0:
        return -(int64_t)random_below(heap + PAGE_BYTES);
    case 1:
        return -(int64_t)heap;
    case 2:
        return (int64_t)random_below(4ul << 30); /* only lazily */
    case 3:
        return (int64_t)(round_up(model->end, 1ul << 21) - model->end);
    case 4:
        return random_below(10) != 0 ? 100 : (int64_t)(HEAP_END - model->end + random_below(2));
    case 5:
        return random_below(2) ? INT64_MIN + (int64_t)random_below(3)
                               : INT64_MAX - (int64_t)random_below(3);
    default:
        return (int64_t)random_below(40 * PAGE_BYTES) - 10 * (int64_t)PAGE_BYTES;
    }
}

static void step_grow(int which)
{
    struct model *model = &models[which];
    int64_t change = random_change(model);
    bool lazy = change > 100 * (int64_t)PAGE_BYTES || random_below(2);
    __int128 end = (__int128)model->end + change;
    int error = address_space_grow(&processes[which].space, change, lazy);

    if (end < model->heap) {
        check(error == 0 && processes[which].space.end == model->end);
        return;
    }
    if (end > HEAP_END) {
        check(error == -EINVAL);
        return;
    }
    if (error != 0) {
        check(error == -ENOMEM && allocations_left == 0);
        return;
    }
    uint64_t old_pages_end = round_up(model->end, PAGE_BYTES);
    model->end = (uint64_t)end;
    model_remove(model, round_up(model->end, PAGE_BYTES), UINT64_MAX);
    for (uint64_t page = old_pages_end; !lazy && page < model->end; page += PAGE_BYTES)
        model_add(model, page, PAGE_WRITE);
}

static uint64_t random_address(const struct model *model)
{
    static const uint64_t strange[] = {USER_END - 1, USER_END, KERNEL_BASE + RAM_START,
                                       KERNEL_STACKS, UINT64_MAX};

    switch (random_below(8)) {
    case 0:
        return strange[random_below(5)];
    case 1:
        return model->end == 0 ? 0 : random_below(model->end);
    case 2:
        return round_up(model->end, PAGE_BYTES) + random_below(3 * PAGE_BYTES);
    case 3:
        return model->end > 0 ? model->end - 1 - random_below(smaller(model->end, 9000)) : 0;
    default:
        return model->count == 0
                   ? 0
                   : model->page[random_below(model->count)].address + random_below(PAGE_BYTES);
    }
}

/* Simulates an access of a program and the page-fault handler. */
static int user_access(struct address_space *space, uint64_t address, enum page_right access,
                       char **place)
{
    for (int try = 0; try < 3; try++) {
        *place = machine_access(address, access);
        if (*place != NULL)
            return 0;
        int error = address_space_fault(space, address, access);
        if (error != 0)
            return error;
    }
    check(!"a fault that was mended comes again and again");
    return 0;
}

static void step_access(int which)
{
    static const enum page_right rights[] = {PAGE_READ, PAGE_WRITE, PAGE_WRITE, PAGE_EXECUTE};
    struct model *model = &models[which];
    uint64_t address = random_address(model);
    enum page_right access = rights[random_below(4)];
    char *place;

    if (!fits(model, 1))
        return;
    int error = user_access(&processes[which].space, address, access, &place);
    if (error == -ENOMEM) {
        check(allocations_left == 0);
        return;
    }
    struct model_page *page = model_access(model, address, access);
    check((error == 0) == (page != NULL) && (error == 0 || error == -EFAULT));
    void *seen = address_space_page(&processes[which].space, address, access);
    check(seen == (error == 0 ? place - address % PAGE_BYTES : NULL));
    if (error != 0)
        return;
    uint8_t *byte = &page->bytes[address % PAGE_BYTES];
    check(memcmp(place - address % PAGE_BYTES, page->bytes, PAGE_BYTES) == 0);
    if (access == PAGE_WRITE)
        *place = (char)(*byte = (uint8_t)random_number());
}

/* Returns how many of n bytes the kernel may access in the model, and creates their pages. */
static size_t model_reach(struct model *model, uint64_t address, size_t n, int access)
{
    size_t reached = 0;

    if (n > USER_END || address > USER_END - n)
        return 0;
    while (reached < n) {
        uint64_t at = address + reached;

        if (model_access(model, at, access) == NULL)
            return reached;
        reached += bytes_on_page(at, n - reached);
    }
    return n;
}

/* Memory ran out somewhere in the range; copies the kernel's progress into the model. */
static void learn_from_tables(int which, uint64_t address, size_t n)
{
    check(allocations_left == 0);
    for (uint64_t at = address; at < address + n; at += bytes_on_page(at, address + n - at)) {
        uint64_t entry = machine_walk(satp_of(processes[which].space.root), at);
        struct model_page *page = model_find(&models[which], at);

        if (entry == 0)
            return;
        if (page == NULL)
            page = model_add(&models[which], at, PAGE_WRITE);
        memcpy(page->bytes, physical_to_pointer(entry >> 10 << 12), PAGE_BYTES);
    }
}

static void step_user_copy(int which)
{
    static char buffer[5 * PAGE_BYTES];
    struct model *model = &models[which];
    uint64_t address = random_address(model);
    size_t n = random_below(4) == 0 ? random_below(4 * PAGE_BYTES) : random_below(40);
    bool writes = random_below(2);
    int error;

    if (!fits(model, 6))
        return;
    for (size_t index = 0; index < n; index++)
        buffer[index] = (char)random_number();
    if (random_below(20) == 0)
        n = SIZE_MAX - random_below(PAGE_BYTES);
    struct buffer view = {address, true};
    if (writes)
        error = buffer_put(&view, buffer, n);
    else
        error = buffer_take(&view, buffer, n);
    check(view.address == (error == 0 ? address + n : address));

    if (error == -ENOMEM) {
        learn_from_tables(which, address, n);
        return;
    }
    size_t reached = model_reach(model, address, n, writes ? PAGE_WRITE : PAGE_READ);
    bool inside = n <= USER_END && address <= USER_END - n;
    check(error == (inside && reached == n ? 0 : -EFAULT));
    for (size_t index = 0; index < reached; index++) {
        struct model_page *page = model_find(model, address + index);
        uint8_t *byte = &page->bytes[(address + index) % PAGE_BYTES];

        if (writes)
            *byte = (uint8_t)buffer[index];
        else
            check((uint8_t)buffer[index] == *byte);
    }
}

static void step_text(int which)
{
    static char buffer[3 * PAGE_BYTES];
    struct model *model = &models[which];
    uint64_t address = random_address(model);
    size_t size = random_below(4) == 0 ? random_below(sizeof(buffer)) : random_below(20);

    if (!fits(model, 6))
        return;
    int result = copy_text_from_user(buffer, address, size);
    if (result == -ENOMEM) {
        learn_from_tables(which, address, size);
        return;
    }
    int expected = -ENAMETOOLONG;
    for (size_t index = 0; index < size; index++) {
        struct model_page *page = NULL;

        if (model_reach(model, address + index, 1, PAGE_READ) == 1)
            page = model_find(model, address + index);
        if (page == NULL) {
            expected = -EFAULT;
            break;
        }
        char byte = (char)page->bytes[(address + index) % PAGE_BYTES];
        check(buffer[index] == byte);
        if (byte == '\0') {
            expected = (int)index;
            break;
        }
    }
    check(result == expected);
}

static void step(void)
{
    /* Mostly the same space as before, so that cached translations must be correct. */
    static int which;
    if (random_below(4) == 0)
        which = (int)random_below(SPACES);
    int other = (int)random_below(SPACES);

    if (random_below(6) == 0)
        allocations_left = (int64_t)random_below(8);
    if (!models[which].alive) {
        step_create(which);
    } else {
        become(which);
        switch (random_below(24)) {
        case 0:
            step_destroy(which);
            break;
        case 1:
        case 2:
            if (!models[other].alive)
                step_copy(which, other);
            break;
        case 3:
        case 4:
        case 5:
            if (fits(&models[which], 600))
                step_grow(which);
            break;
        case 6:
        case 7:
        case 8:
        case 9:
            step_user_copy(which);
            break;
        case 10:
            step_text(which);
            break;
        default:
            for (int times = 0; times < 5; times++)
                step_access(which);
        }
    }
    allocations_left = -1;
}

static void test_random_work(void)
{
    for (int round = 0; round < 60000; round++) {
        step();
        check_everything(round % 64 == 0);
    }
    check(preemptions > 0);
    for (int which = 0; which < SPACES; which++) {
        if (models[which].alive)
            step_destroy(which);
    }
    check_everything(true);
    check(page_total() - page_free_count() == kernel_pages);
    machine_process = NULL;
    check(translation_root() == satp_of(kernel_table));
}

/* Lack of memory at each allocation in turn */

enum operation { CREATE, COPY, MAP, GROW, SHARE, TOUCH_LAZY, OPERATIONS };

static int operate(enum operation operation, struct address_space *space,
                   struct address_space *other)
{
    uint64_t lazy = round_up(space->heap, 1ul << 30) + (5ul << 30);
    uint64_t start;

    switch (operation) {
    case CREATE:
        return address_space_create(other);
    case COPY:
        return address_space_copy(other, space);
    case MAP:
        return address_space_map(space, 1ul << 37, (1ul << 37) + 5 * PAGE_BYTES, PAGE_WRITE);
    case GROW:
        return address_space_grow(space, 1030 * PAGE_BYTES, false);
    case SHARE:
        return address_space_share(space, 1030 * PAGE_BYTES, &start);
    default:
        check(space->end > lazy);
        return address_space_page(space, lazy, PAGE_READ) != NULL ? 0 : -ENOMEM;
    }
}

static void fail_at_each_allocation(enum operation operation)
{
    struct address_space space, sharer, other = {0};
    uint64_t free_at_start = page_free_count();
    int error;

    check(address_space_create(&space) == 0);
    check(address_space_map(&space, 0, 3 * PAGE_BYTES, PAGE_WRITE) == 0);
    space.heap = space.end;
    if (operation == TOUCH_LAZY)
        check(address_space_grow(&space, 10l << 30, true) == 0);
    check(address_space_copy(&sharer, &space) == 0);

    struct address_space before = space;
    uint64_t free_before = page_free_count();
    int64_t failures = -1;
    do {
        allocations_left = ++failures;
        error = operate(operation, &space, &other);
        check(error == 0 || error == -ENOMEM);
        if (error != 0) {
            check(allocations_left == 0 && other.root == NULL);
            check(memcmp(&before, &space, sizeof(space)) == 0);
            /*
             * The table for a page that could not be allocated may stay, because the next try needs
             * it.
             */
            check(operation == TOUCH_LAZY || page_free_count() == free_before);
        }
    } while (error != 0);
    allocations_left = -1;
    check(failures > 0);
    address_space_destroy(&other);
    address_space_destroy(&space);
    address_space_destroy(&sharer);
    check(page_free_count() == free_at_start);
}

static void test_out_of_memory_anywhere(void)
{
    for (int operation = 0; operation < OPERATIONS; operation++)
        fail_at_each_allocation((enum operation)operation);
}

/* Takes all available pages, and returns them. */
static void *hoard;

static void take_all_memory(void)
{
    for (void **page; (page = page_allocate()) != NULL; hoard = page)
        *page = hoard;
}

static void give_all_memory(void)
{
    while (hoard != NULL) {
        void *next = *(void **)hoard;

        page_release(hoard);
        hoard = next;
    }
}

/* All sharers of a copy can write to it, even if no other memory is available. */
static void test_promises_are_kept(void)
{
    enum { SHARERS = 5, SHARED = 20 };
    struct address_space space[SHARERS], more;
    uint64_t free_pages = page_free_count();

    check(address_space_create(&space[0]) == 0);
    check(address_space_map(&space[0], 0, 10 * PAGE_BYTES, PAGE_EXECUTE) == 0);
    check(address_space_map(&space[0], 10 * PAGE_BYTES, (10 + SHARED) * PAGE_BYTES, PAGE_WRITE) ==
          0);
    for (int index = 1; index < SHARERS; index++)
        check(address_space_copy(&space[index], &space[index - 1]) == 0);
    check(pages.promised == (SHARERS - 1) * SHARED);
    take_all_memory();
    check(page_free_count() == 0 && pages.free_count == pages.promised);
    check(address_space_copy(&more, &space[0]) == -ENOMEM);
    check(address_space_grow(&space[0], PAGE_BYTES, false) == -ENOMEM);

    address_space_destroy(&space[2]); /* frees its tables and its share of the promises */
    check(page_free_count() == SHARED + 3);
    take_all_memory();
    for (int index = 0; index < SHARERS; index++) {
        for (uint64_t page = 10; index != 2 && page < 10 + SHARED; page++)
            check(address_space_page(&space[index], page * PAGE_BYTES, PAGE_WRITE) != NULL);
    }
    check(pages.free_count == 0 && pages.promised == 0);
    for (int index = 0; index < SHARERS; index++)
        address_space_destroy(&space[index]);
    give_all_memory();
    check(page_free_count() == free_pages);
}

/* If no page remains, a writing space gets an error, and no memory changes. */
static void test_a_copy_that_cannot_be_made(void)
{
    struct address_space space;
    struct address_space copy;
    uint64_t free_pages = page_free_count();

    page_keep_promises(1);
    check(address_space_create(&space) == 0);
    check(address_space_grow(&space, 4 * PAGE_BYTES, false) == 0);
    check(address_space_copy(&copy, &space) == 0);
    take_all_memory();
    check(page_free_count() == 0 && pages.free_count == 1);
    check(address_space_fault(&space, 0, PAGE_WRITE) == 0);
    check(address_space_fault(&space, PAGE_BYTES, PAGE_WRITE) == -ENOMEM);
    check(address_space_fault(&copy, 2 * PAGE_BYTES, PAGE_WRITE) == -ENOMEM);
    check(address_space_fault(&copy, 0, PAGE_WRITE) == 0); /* now its only user */
    const char *page = address_space_page(&space, PAGE_BYTES, PAGE_READ);
    check(page != NULL && page == address_space_page(&copy, PAGE_BYTES, PAGE_READ));
    address_space_destroy(&copy);
    check(address_space_fault(&space, PAGE_BYTES, PAGE_WRITE) == 0);
    address_space_destroy(&space);
    check(pages.promised == 0);
    give_all_memory();
    page_keep_promises(UINT64_MAX);
    check(page_free_count() == free_pages);
}

/* Children share writable pages, which need no promises. */
static void test_shared_pages(void)
{
    enum { FAMILY = 3, SHARED = 4 };
    struct address_space space[FAMILY];
    uint64_t free_pages = page_free_count();
    uint64_t start;

    check(address_space_create(&space[0]) == 0);
    check(address_space_grow(&space[0], PAGE_BYTES + 100, false) == 0);
    check(address_space_share(&space[0], SHARED * PAGE_BYTES - 5, &start) == 0);
    check(start == 2 * PAGE_BYTES && space[0].end == (2 + SHARED) * PAGE_BYTES);
    for (int i = 1; i < FAMILY; i++)
        check(address_space_copy(&space[i], &space[i - 1]) == 0);
    check(pages.promised == (FAMILY - 1) * 2);
    for (uint64_t page = 0; page < 2 + SHARED; page++) {
        const char *first = address_space_page(&space[0], page * PAGE_BYTES, PAGE_WRITE);
        for (int i = 1; i < FAMILY; i++) {
            const char *other = address_space_page(&space[i], page * PAGE_BYTES, PAGE_WRITE);
            check((other == first) == (page >= 2));
        }
    }
    check(address_space_grow(&space[1], -(int64_t)PAGE_BYTES, false) == 0); /* one sharer ends */
    check(address_space_page(&space[1], space[1].end, PAGE_READ) == NULL);
    check(address_space_page(&space[2], space[1].end, PAGE_WRITE) != NULL);
    check(address_space_share(&space[0], USER_END, &start) == -EINVAL);
    check(address_space_share(&space[0], UINT64_MAX, &start) == -EINVAL);
    check(address_space_share(&space[0], page_total() * PAGE_BYTES, &start) == -ENOMEM);
    for (int i = 0; i < FAMILY; i++)
        address_space_destroy(&space[i]);
    check(page_free_count() == free_pages && pages.promised == 0);
}

static void test_more_than_there_is(void)
{
    struct address_space space;
    uint64_t free_pages = page_free_count();

    check(address_space_create(&space) == 0);
    check(address_space_grow(&space, 100l << 30, false) == -ENOMEM);
    check(address_space_grow(&space, (int64_t)(page_free_count() * PAGE_BYTES), false) == -ENOMEM);
    check(space.end == 0 && page_free_count() == free_pages - 1);
    check(address_space_grow(&space, (int64_t)HEAP_END, true) == 0);
    check(address_space_grow(&space, 1, true) == -EINVAL);
    for (uint64_t address = 0; address < HEAP_END; address += 1ul << 35)
        check(address_space_page(&space, address + 7, PAGE_WRITE) != NULL);
    address_space_destroy(&space);
    check(page_free_count() == free_pages);
}

/* If the kernel copies a page for its own write, the program also sees the copy. */
static void test_kernel_writes_are_seen(void)
{
    struct address_space *space = &processes[0].space, sharer;
    uint64_t free_pages = page_free_count();
    char byte = 'x';

    check(address_space_create(space) == 0);
    check(address_space_map(space, 0, PAGE_BYTES, PAGE_WRITE) == 0);
    check(address_space_copy(&sharer, space) == 0);
    become(0);
    check(*machine_access(5, PAGE_READ) == 0 && machine_access(5, PAGE_WRITE) == NULL);
    check(copy_to_user(5, &byte, 1) == 0);
    check(*machine_access(5, PAGE_READ) == 'x');
    check(*((char *)address_space_page(&sharer, 0, PAGE_READ) + 5) == 0);
    address_space_destroy(space);
    address_space_destroy(&sharer);
    check(page_free_count() == free_pages);
}

/* Kernel stacks */

static bool stack_page_mapped(uint64_t address)
{
    return machine_walk(satp_of(kernel_table), address) != 0;
}

static void test_kernel_stacks(void)
{
    enum { STACKS = 1100 }; /* more than the initial tables can map */
    uint64_t top[STACKS];
    uint64_t free_pages = page_free_count();

    for (int64_t failures = 0; failures < 2; failures++) {
        allocations_left = failures;
        check(kernel_stack_create() == NULL);
        check(page_free_count() == free_pages);
    }
    allocations_left = -1;
    for (int index = 0; index < STACKS; index++) {
        bool needs_table = index == TABLES_AT_BOOT * 128;
        for (int64_t failures = 0; needs_table && failures < 3; failures++) {
            uint64_t before = page_free_count();
            allocations_left = failures;
            check(kernel_stack_create() == NULL);
            check(page_free_count() >= before - 1); /* the table stays for the next stack */
            allocations_left = -1;
        }
        top[index] = (uintptr_t)kernel_stack_create();
        check(top[index] % 16 == 0 && top[index] > KERNEL_STACKS);
        for (int other = 0; other < index; other++)
            check(top[other] != top[index]);
        check(stack_page_mapped(top[index] - 1) && stack_page_mapped(top[index] - 8192));
        check(!stack_page_mapped(top[index] - 8193) && !stack_page_mapped(top[index] - 16384));
    }
    free_pages = page_free_count();
    for (int index = 0; index < STACKS; index++)
        kernel_stack_destroy((void *)top[index]);
    check(page_free_count() == free_pages + 2 * (STACKS - SPARE_STACKS));
    check(kernel_stacks_spare_pages() == 2 * SPARE_STACKS);
    check(kernel_stacks_give_spare() == 2 * SPARE_STACKS && kernel_stacks_give_spare() == 0);
    check(page_free_count() == free_pages + 2 * STACKS && kernel_stacks_spare_pages() == 0);
    for (int index = 0; index < STACKS; index++)
        check(!stack_page_mapped(top[index] - 1));
    for (int index = 0; index < SPARE_STACKS; index++)
        top[index] = (uintptr_t)kernel_stack_create();
    for (int index = 0; index < SPARE_STACKS; index++)
        kernel_stack_destroy((void *)top[index]);
    for (int index = 0; index < STACKS; index++) {
        if (index >= SPARE_STACKS) {
            allocations_left = index % 2; /* a page that cannot be made stays free */
            check(kernel_stack_create() == NULL);
            allocations_left = -1;
        }
        uint64_t again = (uintptr_t)kernel_stack_create();
        int same = 0;

        for (int other = 0; other < STACKS; other++)
            same += top[other] == again;
        check(same == 1 && stack_page_mapped(again - 1));
        check(!stack_page_mapped(again - 8193));
    }
    check(page_free_count() == free_pages);
    for (int index = STACKS / 4; index < STACKS; index++)
        kernel_stack_destroy((void *)top[index]);
    kernel_stacks_give_spare();
    kernel_pages = page_total() - page_free_count();
}

int main(void)
{
    machine_init(RAM_PAGES);
    run_test(test_page_rows); /* first, while most pages have never been used */
    run_test(test_pages_are_given_once);
    run_test(test_page_users);
    run_test(test_page_promises);
    run_test(test_promises_beyond_what_there_is);
    run_test(test_objects);
    run_test(test_objects_are_used_again);
    run_test(test_objects_out_of_memory);
    run_test(test_misuse);

    /* The boot code's table is in RAM, like all tables; the direct map needs no tables here. */
    uint64_t *root = page_allocate_zeroed();
    root[256] = 0xcf;
    kernel_address_space_init(root);
    memcpy(root_of_kernel, root, sizeof(root_of_kernel));
    address_space_activate(NULL);
    kernel_pages = page_total() - page_free_count();

    run_test(test_kernel_stacks);
    run_test(test_random_work);
    run_test(test_out_of_memory_anywhere);
    run_test(test_promises_are_kept);
    run_test(test_a_copy_that_cannot_be_made);
    run_test(test_shared_pages);
    run_test(test_more_than_there_is);
    run_test(test_kernel_writes_are_seen);
    check(page_total() - page_free_count() == kernel_pages);
    return 0;
}
