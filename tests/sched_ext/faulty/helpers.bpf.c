/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* init() returns the number of the first wrong result of a helper; 0: all are right. */
#include "../objects/scheduler.h"

enum { MAP_PERF_EVENT_ARRAY = 4, MAP_RINGBUF = 27, RECORD_BYTES = 16, TOO_MANY_BYTES = 8192 };

struct bpf_dynptr {
    u64 hidden[2];
} __attribute__((aligned(8)));

static s64 (*const reserve)(void *ring, u32 size, u64 flags, struct bpf_dynptr *to) = (void *)198;
static void (*const submit)(struct bpf_dynptr *from, u64 flags) = (void *)199;
static void (*const discard)(struct bpf_dynptr *from, u64 flags) = (void *)200;
static s64 (*const dynptr_write)(struct bpf_dynptr *to, u32 offset, void *from, u32 size,
                                 u64 flags) = (void *)202;

static s64 (*const read_counter)(void *map, u64 flags, void *value, u32 size) = (void *)55;

struct {
    NUMBER(type, MAP_RINGBUF);
    NUMBER(max_entries, 4096);
} records SECTION(".maps");

struct {
    NUMBER(type, MAP_PERF_EVENT_ARRAY);
    NUMBER(key_size, 4);
    NUMBER(value_size, 4);
} counters SECTION(".maps");

struct chosen {
    u32 first;
    u64 list[3];
};

struct {
    NUMBER(type, MAP_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct chosen);
} chosen SECTION(".maps");

/* No counter was opened, so its value is 0. */
static int check_counters(void)
{
    u64 value[3] = {1, 1, 1};
    if (read_counter(&counters, 0, value, sizeof(value)) != -NO_SUCH_ENTRY)
        return 10;
    return value[0] || value[1] || value[2] ? 11 : 0;
}

static int check_records(void)
{
    struct bpf_dynptr place;
    u64 record[2] = {1, 2};
    if (reserve(&records, TOO_MANY_BYTES, 0, &place) == 0)
        return 1;
    if (dynptr_write(&place, 0, record, 8, 0) == 0)
        return 2;
    discard(&place, 0);
    if (reserve(&records, RECORD_BYTES, 0, &place) != 0)
        return 3;
    if (dynptr_write(&place, 0, record, RECORD_BYTES, 0) != 0)
        return 4;
    if (dynptr_write(&place, 8, record, RECORD_BYTES, 0) == 0)
        return 5;
    submit(&place, 0);
    return dynptr_write(&place, 0, record, 8, 0) == 0 ? 6 : 0;
}

static int check_values(void)
{
    u32 key = 0;
    const struct chosen *value = map_lookup(&chosen, &key);
    if (!value || value->first != 7 || value->list[0] != 1)
        return 7;
    return value->list[1] == 2 && value->list[2] == 9 ? 0 : 8;
}

CALLBACK(s32, helpers_init)
{
    int wrong = check_records();
    if (time_ns() == 0)
        return 9;
    if (!wrong)
        wrong = check_counters();
    return wrong ? wrong : check_values();
}

SECTION(".struct_ops.link")
struct sched_ext_ops helpers = {.init = (void *)helpers_init, .name = "helpers"};
