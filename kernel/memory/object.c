/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <stdint.h>

#include "lib/panic.h"
#include "lib/string.h"
#include "page.h"
#include "poison.h"

/*
 * The algorithm is that of J. Bonwick, "The Slab Allocator" (1994), with one
 * page to a slab. A page is on its cache's `partial` list while it has a free
 * object; a page without used objects goes back to the page allocator.
 */
enum { OBJECT_ALIGNMENT = 16 };

struct free_object {
    struct free_object *next;
};

/* At the start of each page. */
struct object_page {
    struct list link; /* in cache->partial, while there is a free object */
    struct object_cache *cache;
    struct free_object *free; /* objects that were freed */
    uint32_t used;
    uint32_t fresh; /* offset of the first object that was never used */
};

enum { OBJECTS_BEGIN = (sizeof(struct object_page) + OBJECT_ALIGNMENT - 1) & -OBJECT_ALIGNMENT };

/* An object that leaves no space for the header gets a whole page. */
static bool takes_full_page(const struct object_cache *cache)
{
    return cache->object_bytes > PAGE_BYTES - OBJECTS_BEGIN;
}

void object_cache_init(struct object_cache *cache, const char *name, size_t object_bytes)
{
    kernel_assert(object_bytes > 0 && object_bytes <= PAGE_BYTES);
    spinlock_init(&cache->lock, name, LOCK_OBJECTS);
    cache->object_bytes = round_up(object_bytes, OBJECT_ALIGNMENT);
    list_init(&cache->partial);
    cache->used = 0;
}

static bool page_has_fresh(const struct object_page *page)
{
    return page->fresh + page->cache->object_bytes <= PAGE_BYTES;
}

static bool page_full(const struct object_page *page)
{
    return page->free == NULL && !page_has_fresh(page);
}

/* Returns a page with a free object, on the partial list, or null if memory is short. */
static struct object_page *partial_page(struct object_cache *cache)
{
    if (!list_empty(&cache->partial))
        return container_of(cache->partial.next, struct object_page, link);

    struct object_page *page = page_allocate();
    if (page != NULL) {
        *page = (struct object_page){.cache = cache, .fresh = OBJECTS_BEGIN};
        list_append(&cache->partial, &page->link);
        poison((char *)page + OBJECTS_BEGIN, PAGE_BYTES - OBJECTS_BEGIN);
    }
    return page;
}

static void *take_object(struct object_page *page)
{
    void *object = page->free;

    if (object != NULL) {
        page->free = page->free->next;
    } else {
        object = (char *)page + page->fresh;
        page->fresh += page->cache->object_bytes;
    }
    page->used++;
    if (page_full(page))
        list_remove(&page->link);
    return object;
}

void *object_allocate(struct object_cache *cache)
{
    void *object = NULL;

    spinlock_acquire(&cache->lock);
    if (takes_full_page(cache)) {
        object = page_allocate();
    } else {
        struct object_page *page = partial_page(cache);

        if (page != NULL)
            object = take_object(page);
    }
    if (object != NULL)
        cache->used++;
    spinlock_release(&cache->lock);

    if (object != NULL) {
        unpoison(object, cache->object_bytes);
        memset(object, 0, cache->object_bytes);
    }
    return object;
}

static void give_object(struct object_page *page, void *object)
{
    struct free_object *free = object;

    kernel_assert(page->used > 0);
    if (page_full(page))
        list_append(&page->cache->partial, &page->link);
    free->next = page->free;
    page->free = free;
    page->used--;
    poison(free + 1, page->cache->object_bytes - sizeof(*free));
    if (page->used == 0) {
        list_remove(&page->link);
        page->cache = NULL;
        unpoison(page, PAGE_BYTES);
        page_release(page);
    }
}

void object_free(struct object_cache *cache, void *object)
{
    struct object_page *page = (void *)round_down((uintptr_t)object, PAGE_BYTES);

    spinlock_acquire(&cache->lock);
    kernel_assert(cache->used > 0);
    cache->used--;
    if (takes_full_page(cache)) {
        page_release(object);
    } else {
        kernel_assert(page->cache == cache);
        kernel_assert(((char *)object - (char *)page - OBJECTS_BEGIN) % cache->object_bytes == 0);
        kernel_assert(object != page->free);
        give_object(page, object);
    }
    spinlock_release(&cache->lock);
}
