/* SPDX-License-Identifier: MIT */

/* Memory that programs allocate. Sizes and links of blocks are outside of the guest's memory, so
 * that programs cannot damage them. */

#include <string.h>

#include "sim/sched_ext/state.h"

static uint32_t unit_of(const struct sched_ext *ext, uint64_t address)
{
    uint64_t offset = (uint32_t)address;
    bool valid = address >> 32 == REGION_HEAP && offset % HEAP_UNIT == 0 && offset < HEAP_BYTES;
    uint32_t unit = (uint32_t)(offset / HEAP_UNIT);
    return valid && ext->heap.sizes[unit] > 0 ? unit : NONE;
}

uint64_t heap_take(struct sched_ext *ext, uint32_t bytes)
{
    struct heap *heap = &ext->heap;
    uint64_t units = ((uint64_t)bytes + HEAP_UNIT - 1) / HEAP_UNIT;
    uint32_t unit = units < HEAP_CLASSES ? heap->free[units] : 0;
    if (units == 0)
        return 0;
    if (unit) {
        heap->free[units] = heap->chain[unit];
    } else {
        unit = heap->taken + 1; /* unit 0 stays unused, because 0 ends chains */
        if (unit + units > HEAP_BYTES / HEAP_UNIT)
            return 0;
        heap->taken += (uint32_t)units;
    }
    heap->sizes[unit] = (uint32_t)units;
    heap->references[unit] = 1;
    memset(ext->guest.regions[REGION_HEAP].base + (size_t)unit * HEAP_UNIT, 0, units * HEAP_UNIT);
    return guest_address(REGION_HEAP, (uint64_t)unit * HEAP_UNIT);
}

bool heap_give_back(struct sched_ext *ext, uint64_t address)
{
    struct heap *heap = &ext->heap;
    uint32_t unit = unit_of(ext, address);
    if (unit == NONE)
        return false;
    uint32_t units = heap->sizes[unit];
    heap->sizes[unit] = 0;
    if (units < HEAP_CLASSES) {
        heap->chain[unit] = heap->free[units];
        heap->free[units] = unit;
    }
    return true;
}

uint32_t *heap_references(struct sched_ext *ext, uint64_t address)
{
    uint32_t unit = unit_of(ext, address);
    return unit == NONE ? NULL : &ext->heap.references[unit];
}
