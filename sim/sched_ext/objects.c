/* SPDX-License-Identifier: MIT */

/*
 * Objects that programs allocate, and the trees and lists of these objects. The links are in the
 * objects, as in the kernel. Programs could damage them, so each link is checked when it is used.
 */

#include <string.h>

#include "sim/sched_ext/functions.h"

#define PAGE_BYTES 4096u
#define LINKS_MAX  (1u << 24) /* a longer chain is a cycle */

/* ---- objects ---- */

FUNCTION(bpf_obj_new_impl)
{
    struct sched_ext *ext = ext_of(guest);
    const struct image_type *type = image_type_of(ext, arguments[0]);
    if (!type)
        guest_trap(guest, "allocates an object of unknown type %llu",
                   (unsigned long long)arguments[0]);
    return type ? heap_take(ext, type->size) : 0;
}

FUNCTION(bpf_obj_drop_impl)
{
    uint32_t *references = heap_references(ext_of(guest), arguments[0]);
    if (!references)
        guest_trap(guest, "drops an object at %#llx, where there is none",
                   (unsigned long long)arguments[0]);
    else if (--*references == 0)
        heap_give_back(ext_of(guest), arguments[0]);
    return 0;
}

FUNCTION(bpf_refcount_acquire_impl)
{
    uint32_t *references = heap_references(ext_of(guest), arguments[0]);
    if (references)
        ++*references;
    return arguments[0];
}

IDENTITY_FUNCTION(bpf_rdonly_cast)
IDENTITY_FUNCTION(bpf_cast_to_kern_ctx)

/* ---- chains: the root has the first and the last node ---- */

struct chain_root {
    uint64_t first;
    uint64_t last;
};

struct chain_node {
    uint64_t next;
    uint64_t previous;
    uint64_t root; /* 0: in no chain */
};

_Static_assert(sizeof(struct chain_root) == sizeof(struct bpf_rb_root) &&
                   sizeof(struct chain_root) == sizeof(struct bpf_list_head),
               "roots");
_Static_assert(sizeof(struct chain_node) <= sizeof(struct bpf_rb_node) &&
                   sizeof(struct chain_node) <= sizeof(struct bpf_list_node),
               "nodes");

static struct chain_node *node_at(struct guest *guest, uint64_t address)
{
    struct chain_node *node = guest_words(guest, address, sizeof(*node));
    if (!node)
        guest_trap(guest, "there is no node of a tree or list at %#llx",
                   (unsigned long long)address);
    return node;
}

static struct chain_root *root_at(struct guest *guest, uint64_t address)
{
    struct chain_root *root = guest_words(guest, address, sizeof(*root));
    if (!root)
        guest_trap(guest, "there is no tree or list at %#llx", (unsigned long long)address);
    return root;
}

/* Returns the place that refers to the next or the previous node: in a node, or in the root. */
static uint64_t *forward_link(struct guest *guest, struct chain_root *root, uint64_t previous)
{
    struct chain_node *node = previous ? node_at(guest, previous) : NULL;
    return previous ? node ? &node->next : NULL : &root->first;
}

static uint64_t *backward_link(struct guest *guest, struct chain_root *root, uint64_t next)
{
    struct chain_node *node = next ? node_at(guest, next) : NULL;
    return next ? node ? &node->previous : NULL : &root->last;
}

/* Adds a node before `next`; 0: at the end. */
static uint64_t add_node(struct guest *guest, uint64_t root_address, uint64_t address,
                         uint64_t next)
{
    struct chain_root *root = root_at(guest, root_address);
    struct chain_node *node = node_at(guest, address);
    if (!root || !node)
        return 0;
    if (node->root)
        return failure(LINUX_EINVAL);
    uint64_t *backward = backward_link(guest, root, next);
    uint64_t previous = backward ? *backward : 0;
    uint64_t *forward = forward_link(guest, root, previous);
    if (!backward || !forward)
        return 0;
    *node = (struct chain_node){.next = next, .previous = previous, .root = root_address};
    *forward = address;
    *backward = address;
    return 0;
}

/* Returns the node's address, or 0 if the node is not in this chain. */
static uint64_t remove_node(struct guest *guest, uint64_t root_address, uint64_t address)
{
    struct chain_root *root = root_at(guest, root_address);
    struct chain_node *node = address ? node_at(guest, address) : NULL;
    if (!root || !node || node->root != root_address)
        return 0;
    uint64_t *backward = backward_link(guest, root, node->next);
    uint64_t *forward = forward_link(guest, root, node->previous);
    if (!backward || !forward)
        return 0;
    *forward = node->next;
    *backward = node->previous;
    memset(node, 0, sizeof(*node));
    return address;
}

static uint64_t first_of(struct guest *guest, uint64_t address)
{
    const struct chain_root *root = root_at(guest, address);
    return root ? root->first : 0;
}

static uint64_t last_of(struct guest *guest, uint64_t address)
{
    const struct chain_root *root = root_at(guest, address);
    return root ? root->last : 0;
}

static uint64_t next_of(struct guest *guest, uint64_t address)
{
    const struct chain_node *node = node_at(guest, address);
    return node ? node->next : 0;
}

/* ---- trees, as chains in the tree's order: a tree without left children ---- */

/* Returns true if the program orders the new node before the other one. */
static bool is_less(struct guest *guest, uint64_t callback, uint64_t node, uint64_t other)
{
    const uint64_t given[5] = {node, other};
    return guest_call(guest, (uint32_t)callback, given) & 1;
}

FUNCTION(bpf_rbtree_add_impl)
{
    uint64_t next = first_of(guest, arguments[0]);
    for (uint32_t i = 0; next && !is_less(guest, arguments[2], arguments[1], next); i++) {
        if (i > LINKS_MAX)
            guest_trap(guest, "a tree has a cycle");
        if (guest->trapped)
            return 0;
        next = next_of(guest, next);
    }
    return add_node(guest, arguments[0], arguments[1], next);
}

FUNCTION(bpf_rbtree_first)
{
    return first_of(guest, arguments[0]);
}

FUNCTION(bpf_rbtree_remove)
{
    return remove_node(guest, arguments[0], arguments[1]);
}

SAME_FUNCTION(bpf_rbtree_root, bpf_rbtree_first)
CONSTANT_FUNCTION(bpf_rbtree_left, 0)

FUNCTION(bpf_rbtree_right)
{
    return next_of(guest, arguments[1]);
}

/* ---- lists ---- */

FUNCTION(bpf_list_push_front_impl)
{
    return add_node(guest, arguments[0], arguments[1], first_of(guest, arguments[0]));
}

FUNCTION(bpf_list_push_back_impl)
{
    return add_node(guest, arguments[0], arguments[1], 0);
}

FUNCTION(bpf_list_pop_front)
{
    return remove_node(guest, arguments[0], first_of(guest, arguments[0]));
}

FUNCTION(bpf_list_pop_back)
{
    return remove_node(guest, arguments[0], last_of(guest, arguments[0]));
}

FUNCTION(bpf_list_front)
{
    return first_of(guest, arguments[0]);
}

FUNCTION(bpf_list_back)
{
    return last_of(guest, arguments[0]);
}

/* ---- arenas ---- */

FUNCTION(bpf_arena_alloc_pages)
{
    struct sched_ext *ext = ext_of(guest);
    struct arena_pages *pages = &ext->arena_pages;
    uint64_t count = (uint32_t)arguments[2];
    uint64_t run = 0;
    if (!map_at(ext, arguments[0]) || count == 0 || count > pages->count)
        return 0;
    for (uint64_t i = 0; i < pages->count; i++) {
        uint64_t page = (pages->next + i) % pages->count;
        run = page == 0 || pages->used[page] ? 0 : run + 1; /* page 0 stays unused */
        if (run < count)
            continue;
        memset(pages->used + page + 1 - count, 1, count);
        pages->next = page + 1;
        return guest_address(REGION_ARENA, (page + 1 - count) * PAGE_BYTES);
    }
    return 0;
}

FUNCTION(bpf_arena_free_pages)
{
    struct sched_ext *ext = ext_of(guest);
    struct arena_pages *pages = &ext->arena_pages;
    uint64_t first = (uint32_t)arguments[1] / PAGE_BYTES;
    uint64_t count = (uint32_t)arguments[2];
    if (!map_at(ext, arguments[0]) || first == 0 || first + count > pages->count)
        return 0;
    memset(ext->guest.regions[REGION_ARENA].base + first * PAGE_BYTES, 0, count * PAGE_BYTES);
    memset(pages->used + first, 0, count);
    return 0;
}

CONSTANT_FUNCTION(bpf_arena_reserve_pages, 0)
