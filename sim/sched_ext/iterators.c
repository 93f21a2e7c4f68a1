/* SPDX-License-Identifier: MIT */

/* Iterators: their state is in the program's structure, and is checked at each use. */

#include <string.h>

#include "sim/sched_ext/functions.h"

#define NUMBERS_MAX   (8 << 20)
#define BIT_WORDS_MAX 511u

/* Returns the iterator at an address, or null after a trap. */
static void *iterator_at(struct guest *guest, uint64_t address, size_t bytes)
{
    void *iterator = guest_words(guest, address, bytes);
    if (!iterator)
        guest_trap(guest, "there is no iterator at %#llx", (unsigned long long)address);
    return iterator;
}

/* ---- numbers ---- */

struct number_iterator {
    int32_t current;
    int32_t end;
};

_Static_assert(sizeof(struct number_iterator) == sizeof(struct bpf_iter_num), "the program's size");

FUNCTION(bpf_iter_num_new)
{
    struct number_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    int64_t first = (int32_t)arguments[1];
    int64_t end = (int32_t)arguments[2];
    if (!iterator)
        return 0;
    *iterator = (struct number_iterator){0};
    if (first > end)
        return failure(LINUX_EINVAL);
    if (end - first > NUMBERS_MAX)
        return failure(LINUX_E2BIG);
    iterator->current = (int32_t)((uint32_t)first - 1);
    iterator->end = (int32_t)end;
    return 0;
}

FUNCTION(bpf_iter_num_next)
{
    struct number_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator)
        return 0;
    int32_t next = (int32_t)((uint32_t)iterator->current + 1);
    if (next >= iterator->end) {
        *iterator = (struct number_iterator){0};
        return 0;
    }
    iterator->current = next;
    return arguments[0];
}

CONSTANT_FUNCTION(bpf_iter_num_destroy, 0)

/* ---- the bits of words ---- */

struct bit_iterator {
    uint32_t copy; /* offset of the words in the heap; 0: there are none */
    uint16_t words;
    uint16_t next; /* the next bit */
    int32_t bit;   /* the result */
    uint32_t unused;
};

_Static_assert(sizeof(struct bit_iterator) == sizeof(struct bpf_iter_bits), "the program's size");

FUNCTION(bpf_iter_bits_new)
{
    struct sched_ext *ext = ext_of(guest);
    struct bit_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    uint32_t words = (uint32_t)arguments[2];
    if (!iterator)
        return 0;
    *iterator = (struct bit_iterator){0};
    if (words == 0 || words > BIT_WORDS_MAX)
        return failure(words ? LINUX_E2BIG : LINUX_EINVAL);
    const void *from = guest_memory(guest, arguments[1], words * 8);
    if (!from)
        return failure(LINUX_EFAULT);
    uint64_t copy = heap_take(ext, words * 8);
    if (!copy)
        return failure(LINUX_ENOMEM);
    memcpy(guest_memory(guest, copy, words * 8), from, words * 8);
    iterator->copy = (uint32_t)copy;
    iterator->words = (uint16_t)words;
    return 0;
}

FUNCTION(bpf_iter_bits_next)
{
    struct bit_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator || !iterator->copy)
        return 0;
    const unsigned char *words = guest_memory(guest, guest_address(REGION_HEAP, iterator->copy),
                                              (uint64_t)iterator->words * 8);
    uint32_t bits = words ? iterator->words * 64u : 0;
    for (uint32_t bit = iterator->next; bit < bits; bit++) {
        if (words[bit / 8] >> bit % 8 & 1) {
            iterator->bit = (int32_t)bit;
            iterator->next = (uint16_t)(bit + 1);
            return arguments[0] + offsetof(struct bit_iterator, bit);
        }
    }
    iterator->next = (uint16_t)bits;
    return 0;
}

FUNCTION(bpf_iter_bits_destroy)
{
    struct bit_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (iterator && iterator->copy)
        heap_give_back(ext_of(guest), guest_address(REGION_HEAP, iterator->copy));
    if (iterator)
        iterator->copy = 0;
    return 0;
}

/* ---- the tasks of a dispatch queue ---- */

enum { OVERRIDES_SLICE = 1, OVERRIDES_VTIME = 2 };

struct queue_iterator {
    uint32_t queue; /* number + 1; 0: none */
    uint32_t next;  /* slot + 1; 0: none */
    uint32_t reversed;
    uint32_t overrides; /* what the next move sets */
    uint64_t slice;
    uint64_t vtime;
    uint64_t end; /* tasks that were enqueued later are not visited */
    uint64_t unused;
};

_Static_assert(sizeof(struct queue_iterator) == sizeof(struct bpf_iter_scx_dsq),
               "the program's size");

FUNCTION(bpf_iter_scx_dsq_new)
{
    struct sched_ext *ext = ext_of(guest);
    struct queue_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator)
        return 0;
    *iterator = (struct queue_iterator){0};
    if (arguments[1] & SCX_DSQ_FLAG_BUILTIN)
        return failure(LINUX_EINVAL);
    uint32_t number = find_queue(ext, arguments[1], ext->this_cpu);
    if (number == NONE)
        return failure(LINUX_ENOENT);
    const struct dispatch_queue *queue = &ext->queues[number];
    iterator->queue = number + 1;
    iterator->reversed = (arguments[2] & SCX_DSQ_ITER_REV) != 0;
    iterator->next = (iterator->reversed ? queue->last : queue->first) + 1;
    iterator->end = ext->enqueued;
    return 0;
}

FUNCTION(bpf_iter_scx_dsq_next)
{
    struct sched_ext *ext = ext_of(guest);
    struct queue_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    while (iterator && iterator->next) {
        uint32_t slot = iterator->next - 1;
        if (slot >= ext->task_limit || ext->tasks[slot].queue != iterator->queue - 1)
            break;
        const struct ext_task *task = &ext->tasks[slot];
        iterator->next = (iterator->reversed ? task->previous : task->next) + 1;
        if (task->enqueued_at <= iterator->end)
            return task_address(ext, slot);
    }
    if (iterator)
        iterator->next = 0;
    return 0;
}

CONSTANT_FUNCTION(bpf_iter_scx_dsq_destroy, 0)

FUNCTION(scx_bpf_dsq_move_set_slice)
{
    struct queue_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator)
        return 0;
    iterator->slice = arguments[1];
    iterator->overrides |= OVERRIDES_SLICE;
    return 0;
}

FUNCTION(scx_bpf_dsq_move_set_vtime)
{
    struct queue_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator)
        return 0;
    iterator->vtime = arguments[1];
    iterator->overrides |= OVERRIDES_VTIME;
    return 0;
}

/* Moves the iterator's task to another queue. Returns false if the task has left its queue. */
static bool move_task(struct guest *guest, const uint64_t *arguments, uint64_t flags)
{
    struct sched_ext *ext = ext_of(guest);
    struct queue_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    uint32_t slot = iterator ? require_task(ext, arguments[1]) : NONE;
    if (slot == NONE || ext->tasks[slot].queue == NONE ||
        ext->tasks[slot].queue != iterator->queue - 1)
        return false;
    struct sched_ext_entity *entity = &task_struct_of(ext, slot)->scx;
    if (iterator->overrides & OVERRIDES_SLICE)
        entity->slice = iterator->slice;
    if (iterator->overrides & OVERRIDES_VTIME)
        entity->dsq_vtime = iterator->vtime;
    iterator->overrides = 0;
    uint32_t to = find_queue_for_dispatch(ext, arguments[2], slot, ext->this_cpu);
    if (to < ext->cpu_count && !task_allows(ext, slot, to))
        to = global_queue(ext);
    dispatch_dequeue(ext, slot);
    ext->tasks[slot].placed_by = calling_callback(ext);
    dispatch_to_queue(ext, to, slot, flags);
    ext->dispatched++;
    return true;
}

FUNCTION(scx_bpf_dsq_move)
{
    return move_task(guest, arguments, arguments[3]);
}

FUNCTION(scx_bpf_dsq_move_vtime)
{
    return move_task(guest, arguments, arguments[3] | SCX_ENQ_DSQ_PRIQ);
}

/* The names in Linux 6.12. */
SAME_FUNCTION(scx_bpf_dispatch_from_dsq, scx_bpf_dsq_move)
SAME_FUNCTION(scx_bpf_dispatch_vtime_from_dsq, scx_bpf_dsq_move_vtime)
SAME_FUNCTION(scx_bpf_dispatch_from_dsq_set_slice, scx_bpf_dsq_move_set_slice)
SAME_FUNCTION(scx_bpf_dispatch_from_dsq_set_vtime, scx_bpf_dsq_move_set_vtime)

/* ---- the groups below a group, each before those below it ---- */

struct group_iterator {
    uint32_t root; /* number + 1; 0: none */
    uint32_t next;
    uint64_t unused[2];
};

_Static_assert(sizeof(struct group_iterator) == sizeof(struct bpf_iter_css), "the program's size");

FUNCTION(bpf_iter_css_new)
{
    struct sched_ext *ext = ext_of(guest);
    struct group_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    const struct cgroup_subsys_state *css = guest_memory(guest, arguments[1], sizeof(*css));
    if (!iterator)
        return 0;
    *iterator = (struct group_iterator){0};
    uint64_t address = css && arguments[1] % 8 == 0 ? css->cgroup : 0;
    uint32_t group = group_at(ext, address);
    if (group == NONE)
        return failure(LINUX_EINVAL);
    iterator->root = group + 1;
    iterator->next = group;
    return 0;
}

static bool is_below(const struct sched_ext *ext, uint32_t group, uint32_t root)
{
    while (group != root && group != 0)
        group = ext->groups[group].parent;
    return group == root;
}

/* A group has a higher number than its parent. */
FUNCTION(bpf_iter_css_next)
{
    struct sched_ext *ext = ext_of(guest);
    struct group_iterator *iterator = iterator_at(guest, arguments[0], sizeof(*iterator));
    if (!iterator || !iterator->root || iterator->root > GROUPS_MAX)
        return 0;
    while (iterator->next < GROUPS_MAX) {
        uint32_t group = iterator->next++;
        if (ext->groups[group].exists && is_below(ext, group, iterator->root - 1))
            return group_address(ext, group) + offsetof(struct group_structures, task_group.css);
    }
    return 0;
}

CONSTANT_FUNCTION(bpf_iter_css_destroy, 0)
