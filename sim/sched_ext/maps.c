/* SPDX-License-Identifier: MIT */

/* Maps. The values of a map, and the keys of a hash, are in the map's region; the rest is outside
 * of the guest's memory. */

#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/state.h"

enum { MAP_ANY, MAP_NO_EXIST, MAP_EXIST };
#define STORAGE_CREATE 1
#define QUEUE_REPLACE  2 /* BPF_EXIST: a full queue drops its oldest element */

#define KEY_BYTES_MAX    512u
#define VALUE_BYTES_MAX  (32u << 20)
#define RECORD_BYTES_MAX (1u << 20) /* of a ring buffer, whose memory has room for one record */
#define MAP_ELEMENTS_MAX (1u << 26)

static bool is_hash(const struct ext_map *map)
{
    uint32_t type = map->image->type;
    return type == MAP_HASH || type == MAP_PERCPU_HASH || type == MAP_LRU_HASH ||
           type == MAP_LRU_PERCPU_HASH || type == MAP_HASH_OF_MAPS;
}

static bool is_lru(const struct ext_map *map)
{
    return map->image->type == MAP_LRU_HASH || map->image->type == MAP_LRU_PERCPU_HASH;
}

static bool is_array(const struct ext_map *map)
{
    return map->image->type == MAP_ARRAY || map->image->type == MAP_PERCPU_ARRAY ||
           map->image->type == MAP_ARRAY_OF_MAPS;
}

static bool is_per_cpu(const struct ext_map *map)
{
    uint32_t type = map->image->type;
    return type == MAP_PERCPU_ARRAY || type == MAP_PERCPU_HASH || type == MAP_LRU_PERCPU_HASH;
}

static bool has_inner(const struct ext_map *map)
{
    return map->image->type == MAP_ARRAY_OF_MAPS || map->image->type == MAP_HASH_OF_MAPS;
}

static bool is_queue(const struct ext_map *map)
{
    return map->image->type == MAP_QUEUE || map->image->type == MAP_STACK;
}

/* ---- memory ---- */

static bool is_known_type(uint32_t type)
{
    switch (type) {
#define MAP_TYPE(name, number) case number:
        MAP_TYPES(MAP_TYPE)
#undef MAP_TYPE
        return true;
    default:
        return false;
    }
}

static uint32_t capacity_of(const struct sched_ext *ext, const struct image_map *image)
{
    switch (image->type) {
    case MAP_TASK_STORAGE:
        return ext->task_limit;
    case MAP_CGRP_STORAGE:
        return GROUPS_MAX;
    case MAP_PERF_EVENT_ARRAY:
        return ext->cpu_count;
    case MAP_ARENA:
    case MAP_RINGBUF:
    case MAP_USER_RINGBUF:
        return 1;
    default:
        return image->max_entries;
    }
}

static bool is_ring(uint32_t type)
{
    return type == MAP_RINGBUF || type == MAP_USER_RINGBUF;
}

static uint32_t record_bytes_max(const struct image_map *image)
{
    return image->max_entries < RECORD_BYTES_MAX ? image->max_entries : RECORD_BYTES_MAX;
}

bool measure_map(struct sched_ext *ext, struct ext_map *map, struct simulator_error *error)
{
    const struct image_map *image = map->image;
    const char *name = image_string(ext, image->name);
    uint32_t value_size = is_ring(image->type) ? record_bytes_max(image)
                          : has_inner(map)     ? 4
                                               : image->value_size;
    map->capacity = capacity_of(ext, image);
    map->stride = image->type == MAP_ARENA ? 0 : (value_size + 7) / 8 * 8;
    map->key_stride = is_hash(map) ? (image->key_size + 7) / 8 * 8 : 0;
    if (!is_known_type(image->type)) {
        set_error(error, "map %.60s: type %u does not exist here", name, image->type);
        return false;
    }
    if (value_size > VALUE_BYTES_MAX || image->key_size > KEY_BYTES_MAX ||
        map->capacity > MAP_ELEMENTS_MAX || map->capacity == 0 ||
        (is_array(map) && image->key_size != 4) || (is_hash(map) && image->key_size == 0)) {
        set_error(error,
                  "map %.60s: keys of %u bytes, values of %u and %u elements are not allowed", name,
                  image->key_size, value_size, map->capacity);
        return false;
    }
    uint64_t copies = is_per_cpu(map) ? ext->cpu_count : 1;
    map->keys_at = (uint64_t)map->stride * map->capacity * copies;
    map->region_size = map->keys_at + (uint64_t)map->key_stride * map->capacity;
    if (map->region_size > UINT32_MAX) {
        set_error(error, "map %.60s: needs %llu MiB; a map has at most 4096", name,
                  (unsigned long long)(map->region_size >> 20));
        return false;
    }
    return true;
}

void lay_out_map(struct sched_ext *ext, struct ext_map *map, struct arena *arena)
{
    uint32_t buckets = 1;
    unsigned char *base = arena_take(arena, map->region_size, 1);
    ext->guest.regions[REGION_VALUES + map->number] =
        (struct region){base, 0, map->region_size, map->keys_at}; /* keys cannot be written */
    map->used = arena_take(arena, map->capacity, 1);
    if (has_inner(map))
        map->inner = arena_take(arena, map->capacity, sizeof(*map->inner));
    if (!is_hash(map))
        return;
    while (buckets < map->capacity)
        buckets *= 2;
    map->buckets_mask = buckets - 1;
    map->buckets = arena_take(arena, buckets, sizeof(*map->buckets));
    map->chain = arena_take(arena, map->capacity, sizeof(*map->chain));
    if (is_lru(map))
        map->used_at = arena_take(arena, map->capacity, sizeof(*map->used_at));
}

struct ext_map *map_at(struct sched_ext *ext, uint64_t address)
{
    uint32_t number = (uint32_t)address - 1;
    if (address >> 32 != REGION_MAPS || number >= ext->map_count) {
        guest_trap(&ext->guest, "there is no map at %#llx", (unsigned long long)address);
        return NULL;
    }
    return &ext->maps[number];
}

uint64_t map_value(const struct ext_map *map, uint32_t index, uint32_t cpu)
{
    uint64_t copy = is_per_cpu(map) ? (uint64_t)cpu * map->capacity : 0;
    return guest_address(REGION_VALUES + map->number, (copy + index) * map->stride);
}

static uint64_t key_address(const struct ext_map *map, uint32_t index)
{
    return guest_address(REGION_VALUES + map->number,
                         map->keys_at + (uint64_t)index * map->key_stride);
}

bool map_element(const struct ext_map *map, uint64_t address, uint32_t *index, uint64_t *value)
{
    uint64_t offset = (uint32_t)address;
    if (address >> 32 != REGION_VALUES + map->number || offset >= map->keys_at)
        return false;
    *index = (uint32_t)(offset / map->stride % map->capacity);
    *value = address - offset % map->stride;
    return true;
}

uint64_t map_key(struct sched_ext *ext, const struct ext_map *map, uint32_t index)
{
    uint64_t place = CONTEXT_KEYS + (uint64_t)ext->guest.depth * 8;
    if (map->key_stride)
        return key_address(map, index);
    memcpy(guest_memory(&ext->guest, guest_address(REGION_CONTEXT, place), 4), &index, 4);
    return guest_address(REGION_CONTEXT, place);
}

/* ---- hashes: elements are numbered plus 1 in buckets and chains, so zeros are an empty hash ----
 */

static uint32_t *bucket_of(const struct ext_map *map, const unsigned char *key)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (uint32_t i = 0; i < map->image->key_size; i++)
        hash = (hash ^ key[i]) * 0x100000001b3ull;
    return &map->buckets[(hash ^ hash >> 32) & map->buckets_mask];
}

static unsigned char *key_of(struct sched_ext *ext, const struct ext_map *map, uint32_t index)
{
    return ext->guest.regions[REGION_VALUES + map->number].base + map->keys_at +
           (size_t)index * map->key_stride;
}

static uint32_t find_in_hash(struct sched_ext *ext, struct ext_map *map, const unsigned char *key)
{
    uint32_t number = *bucket_of(map, key);
    while (number && memcmp(key_of(ext, map, number - 1), key, map->image->key_size) != 0)
        number = map->chain[number - 1];
    if (number && is_lru(map))
        map->used_at[number - 1] = ++ext->lru_clock;
    return number ? number - 1 : NONE;
}

static void remove_from_hash(struct sched_ext *ext, struct ext_map *map, uint32_t index)
{
    uint32_t *link = bucket_of(map, key_of(ext, map, index));
    while (*link && *link != index + 1)
        link = &map->chain[*link - 1];
    if (*link)
        *link = map->chain[index];
    map->chain[index] = map->free;
    map->free = index + 1;
    map->used[index] = 0;
    map->count--;
}

static uint32_t least_recently_used(const struct ext_map *map)
{
    uint32_t oldest = NONE;
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->used[i] && (oldest == NONE || map->used_at[i] < map->used_at[oldest]))
            oldest = i;
    }
    return oldest;
}

/* Returns a free element, or NONE. Elements that were never used follow one another. */
static uint32_t take_free(struct sched_ext *ext, struct ext_map *map)
{
    if (!map->free && map->first == map->capacity && is_lru(map))
        remove_from_hash(ext, map, least_recently_used(map));
    if (map->free) {
        uint32_t index = map->free - 1;
        map->free = map->chain[index];
        return index;
    }
    return map->first < map->capacity ? map->first++ : NONE;
}

static uint32_t add_to_hash(struct sched_ext *ext, struct ext_map *map, const unsigned char *key)
{
    uint32_t index = take_free(ext, map);
    if (index == NONE)
        return NONE;
    memmove(key_of(ext, map, index), key, map->image->key_size);
    uint32_t *bucket = bucket_of(map, key_of(ext, map, index));
    map->chain[index] = *bucket;
    *bucket = index + 1;
    map->used[index] = 1;
    map->count++;
    if (is_lru(map))
        map->used_at[index] = ++ext->lru_clock;
    uint32_t copies = is_per_cpu(map) ? ext->cpu_count : 1;
    for (uint32_t cpu = 0; cpu < copies; cpu++)
        memset(guest_memory(&ext->guest, map_value(map, index, cpu), map->stride), 0, map->stride);
    return index;
}

/* ---- elements ---- */

static const unsigned char *require_memory(struct sched_ext *ext, uint64_t address, uint32_t bytes,
                                           const char *what)
{
    const unsigned char *memory = guest_memory(&ext->guest, address, bytes);
    if (!memory)
        guest_trap(&ext->guest, "%s at %#llx is not in memory", what, (unsigned long long)address);
    return memory;
}

/* Returns the element with a key, or NONE. */
static uint32_t find_element(struct sched_ext *ext, struct ext_map *map, uint64_t key_at)
{
    uint32_t index;
    const unsigned char *key = require_memory(ext, key_at, map->image->key_size, "a map's key");
    if (!key)
        return NONE;
    if (is_hash(map))
        return find_in_hash(ext, map, key);
    if (!is_array(map)) {
        guest_trap(&ext->guest, "map %.60s has no keys", image_string(ext, map->image->name));
        return NONE;
    }
    memcpy(&index, key, sizeof(index));
    return index < map->capacity ? index : NONE;
}

static uint64_t look_up(struct sched_ext *ext, struct ext_map *map, uint64_t key, uint32_t cpu)
{
    uint32_t index = find_element(ext, map, key);
    if (index == NONE)
        return 0;
    if (has_inner(map))
        return map->inner[index] ? guest_address(REGION_MAPS, map->inner[index]) : 0;
    return map_value(map, index, cpu);
}

static bool copy_value(struct sched_ext *ext, const struct ext_map *map, uint64_t to, uint64_t from)
{
    const unsigned char *source = require_memory(ext, from, map->image->value_size, "a value");
    if (!source)
        return false;
    memmove(guest_memory(&ext->guest, to, map->image->value_size), source, map->image->value_size);
    return true;
}

static uint64_t store_element(struct sched_ext *ext, struct ext_map *map, const uint64_t *arguments)
{
    uint64_t mode = arguments[3] & 3;
    uint32_t index = find_element(ext, map, arguments[1]);
    if (is_array(map) && index == NONE)
        return failure(LINUX_E2BIG);
    if (index != NONE && mode == MAP_NO_EXIST)
        return failure(LINUX_EEXIST);
    if (index == NONE && mode == MAP_EXIST)
        return failure(LINUX_ENOENT);
    if (index == NONE && !ext->guest.trapped) {
        const unsigned char *key = guest_memory(&ext->guest, arguments[1], map->image->key_size);
        index = add_to_hash(ext, map, key);
    }
    if (index == NONE)
        return failure(LINUX_E2BIG);
    return copy_value(ext, map, map_value(map, index, ext->this_cpu), arguments[2])
               ? 0
               : failure(LINUX_EFAULT);
}

bool update_map(struct sched_ext *ext, uint32_t number, const unsigned char *data, uint32_t bytes)
{
    struct ext_map *map = &ext->maps[number];
    uint32_t key_bytes = map->image->key_size;
    uint32_t index = 0;
    if (bytes != key_bytes + map->image->value_size || has_inner(map) ||
        (!is_array(map) && !is_hash(map)))
        return false;
    if (is_array(map))
        memcpy(&index, data, sizeof(index));
    else if ((index = find_in_hash(ext, map, data)) == NONE)
        index = add_to_hash(ext, map, data);
    if (index >= map->capacity)
        return false;
    uint32_t copies = is_per_cpu(map) ? ext->cpu_count : 1;
    for (uint32_t cpu = 0; cpu < copies; cpu++)
        memcpy(guest_memory(&ext->guest, map_value(map, index, cpu), map->image->value_size),
               data + key_bytes, map->image->value_size);
    return true;
}

/* ---- functions for programs ---- */

host_function helper_map_lookup_elem;
uint64_t helper_map_lookup_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = map_at(ext, arguments[0]);
    return map ? look_up(ext, map, arguments[1], ext->this_cpu) : 0;
}

host_function helper_map_lookup_percpu_elem;
uint64_t helper_map_lookup_percpu_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = map_at(ext, arguments[0]);
    uint32_t cpu = (uint32_t)arguments[2];
    return map && cpu < ext->cpu_count ? look_up(ext, map, arguments[1], cpu) : 0;
}

host_function helper_map_update_elem;
uint64_t helper_map_update_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = map_at(ext, arguments[0]);
    if (!map)
        return 0;
    return has_inner(map) ? failure(LINUX_EINVAL) : store_element(ext, map, arguments);
}

host_function helper_map_delete_elem;
uint64_t helper_map_delete_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = map_at(ext, arguments[0]);
    if (!map)
        return 0;
    if (!is_hash(map))
        return failure(LINUX_EINVAL);
    uint32_t index = find_element(ext, map, arguments[1]);
    if (index == NONE)
        return failure(LINUX_ENOENT);
    remove_from_hash(ext, map, index);
    return 0;
}

/* Returns the queue at an address, or null after a trap. */
static struct ext_map *queue_at(struct sched_ext *ext, uint64_t address)
{
    struct ext_map *map = map_at(ext, address);
    if (map && !is_queue(map)) {
        guest_trap(&ext->guest, "map %.60s is not a queue", image_string(ext, map->image->name));
        return NULL;
    }
    return map;
}

host_function helper_map_push_elem;
uint64_t helper_map_push_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = queue_at(ext, arguments[0]);
    if (!map)
        return 0;
    if (map->count == map->capacity) {
        if (!(arguments[2] & QUEUE_REPLACE))
            return failure(LINUX_E2BIG);
        map->first = (map->first + 1) % map->capacity;
        map->count--;
    }
    uint32_t index = (uint32_t)(((uint64_t)map->first + map->count) % map->capacity);
    map->count += copy_value(ext, map, map_value(map, index, 0), arguments[1]);
    return 0;
}

/* Copies the next element of a queue or stack, and removes it if `removes`. */
static uint64_t take_next(struct guest *guest, const uint64_t *arguments, bool removes)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = queue_at(ext, arguments[0]);
    if (!map)
        return 0;
    void *value = guest_writable(guest, arguments[1], map->image->value_size);
    if (!value) {
        guest_trap(guest, "a value is stored to invalid address %#llx",
                   (unsigned long long)arguments[1]);
        return 0;
    }
    if (map->count == 0) {
        memset(value, 0, map->image->value_size);
        return failure(LINUX_ENOENT);
    }
    bool is_stack = map->image->type == MAP_STACK;
    uint64_t index =
        is_stack ? ((uint64_t)map->first + map->count - 1) % map->capacity : map->first;
    memmove(value, guest_memory(guest, map_value(map, (uint32_t)index, 0), map->image->value_size),
            map->image->value_size);
    if (removes && !is_stack)
        map->first = (map->first + 1) % map->capacity;
    map->count -= removes;
    return 0;
}

host_function helper_map_pop_elem;
uint64_t helper_map_pop_elem(struct guest *guest, const uint64_t *arguments)
{
    return take_next(guest, arguments, true);
}

host_function helper_map_peek_elem;
uint64_t helper_map_peek_elem(struct guest *guest, const uint64_t *arguments)
{
    return take_next(guest, arguments, false);
}

host_function helper_for_each_map_elem;
uint64_t helper_for_each_map_elem(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    struct ext_map *map = map_at(ext, arguments[0]);
    uint64_t called = 0;
    if (map && !is_hash(map) && !is_array(map))
        return failure(LINUX_EINVAL);
    for (uint32_t i = 0; map && i < map->capacity && !guest->trapped; i++) {
        if (is_hash(map) && !map->used[i])
            continue;
        const uint64_t given[5] = {arguments[0], map_key(ext, map, i),
                                   map_value(map, i, ext->this_cpu), arguments[2]};
        called++;
        if (guest_call(guest, (uint32_t)arguments[1], given))
            break;
    }
    return called;
}

/* ---- storage of tasks and groups ---- */

void forget_storage(struct sched_ext *ext, enum map_type type, uint32_t owner)
{
    for (uint32_t i = 0; i < ext->map_count; i++) {
        if (ext->maps[i].image->type == type && owner < ext->maps[i].capacity)
            ext->maps[i].used[owner] = 0;
    }
}

/* Returns the address of an owner's value. Creates it if the flags request it. */
static uint64_t storage_of(struct sched_ext *ext, const uint64_t *arguments, uint32_t owner,
                           uint32_t type)
{
    struct ext_map *map = map_at(ext, arguments[0]);
    if (!map || owner == NONE || map->image->type != type || owner >= map->capacity)
        return 0;
    uint64_t value = map_value(map, owner, 0);
    if (map->used[owner])
        return value;
    if (!(arguments[3] & STORAGE_CREATE))
        return 0;
    map->used[owner] = 1;
    memset(guest_memory(&ext->guest, value, map->stride), 0, map->stride);
    if (arguments[2])
        copy_value(ext, map, value, arguments[2]);
    return value;
}

static uint64_t delete_storage(struct sched_ext *ext, const uint64_t *arguments, uint32_t owner,
                               uint32_t type)
{
    struct ext_map *map = map_at(ext, arguments[0]);
    if (!map || owner == NONE || map->image->type != type || !map->used[owner])
        return failure(LINUX_ENOENT);
    map->used[owner] = 0;
    return 0;
}

host_function helper_task_storage_get;
uint64_t helper_task_storage_get(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    return storage_of(ext, arguments, task_at(ext, arguments[1]), MAP_TASK_STORAGE);
}

host_function helper_task_storage_delete;
uint64_t helper_task_storage_delete(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    return delete_storage(ext, arguments, task_at(ext, arguments[1]), MAP_TASK_STORAGE);
}

host_function helper_cgrp_storage_get;
uint64_t helper_cgrp_storage_get(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    return storage_of(ext, arguments, group_at(ext, arguments[1]), MAP_CGRP_STORAGE);
}

host_function helper_cgrp_storage_delete;
uint64_t helper_cgrp_storage_delete(struct guest *guest, const uint64_t *arguments)
{
    struct sched_ext *ext = ext_of(guest);
    return delete_storage(ext, arguments, group_at(ext, arguments[1]), MAP_CGRP_STORAGE);
}

/* ---- ring buffers: they have no reader, so each record overwrites the previous one ---- */

/* Returns the address of memory for a record, or 0 if the map has no room for it. */
static uint64_t record_space(struct guest *guest, uint64_t address, uint64_t bytes)
{
    const struct ext_map *map = map_at(ext_of(guest), address);
    bool fits = map && map->image->type == MAP_RINGBUF && bytes <= record_bytes_max(map->image);
    return fits ? map_value(map, 0, 0) : 0;
}

host_function helper_ringbuf_reserve;
uint64_t helper_ringbuf_reserve(struct guest *guest, const uint64_t *arguments)
{
    return record_space(guest, arguments[0], arguments[1]);
}

host_function helper_ringbuf_output;
uint64_t helper_ringbuf_output(struct guest *guest, const uint64_t *arguments)
{
    return record_space(guest, arguments[0], arguments[2]) ? 0 : failure(LINUX_ENOSPC);
}

/* A struct bpf_dynptr of a program. */
struct dynamic_pointer {
    uint64_t address; /* 0: of nothing */
    uint64_t bytes;
};

static struct dynamic_pointer *dynamic_pointer_at(struct guest *guest, uint64_t address)
{
    struct dynamic_pointer *pointer = guest_writable(guest, address, sizeof(*pointer));
    if (!pointer)
        guest_trap(guest, "a dynptr at invalid address %#llx", (unsigned long long)address);
    return pointer;
}

host_function helper_ringbuf_reserve_dynptr;
uint64_t helper_ringbuf_reserve_dynptr(struct guest *guest, const uint64_t *arguments)
{
    struct dynamic_pointer *pointer = dynamic_pointer_at(guest, arguments[3]);
    uint64_t record = record_space(guest, arguments[0], (uint32_t)arguments[1]);
    const struct dynamic_pointer value = {record, record ? (uint32_t)arguments[1] : 0};
    if (pointer)
        memcpy(pointer, &value, sizeof(value));
    return record ? 0 : failure(LINUX_ENOSPC);
}

host_function helper_ringbuf_submit_dynptr;
uint64_t helper_ringbuf_submit_dynptr(struct guest *guest, const uint64_t *arguments)
{
    struct dynamic_pointer *pointer = dynamic_pointer_at(guest, arguments[0]);
    if (pointer)
        memset(pointer, 0, sizeof(*pointer));
    return 0;
}

host_function helper_dynptr_write;
uint64_t helper_dynptr_write(struct guest *guest, const uint64_t *arguments)
{
    const struct dynamic_pointer *pointer = dynamic_pointer_at(guest, arguments[0]);
    uint32_t offset = (uint32_t)arguments[1];
    uint32_t bytes = (uint32_t)arguments[3];
    struct dynamic_pointer to = {0};
    if (pointer)
        memcpy(&to, pointer, sizeof(to));
    if (!to.address)
        return failure(LINUX_EINVAL);
    if ((uint64_t)offset + bytes > to.bytes)
        return failure(LINUX_E2BIG);
    void *target = guest_writable(guest, to.address + offset, bytes);
    const void *source = guest_memory(guest, arguments[2], bytes);
    if (!target || !source)
        return failure(LINUX_EFAULT);
    memmove(target, source, bytes);
    return 0;
}
