/* SPDX-License-Identifier: MIT */

#include "time/timer_heap.h"

#include <stddef.h>

static bool goes_before(const struct timer *a, const struct timer *b)
{
    return a->when < b->when || (a->when == b->when && a->order < b->order);
}

/* `previous` of a first child is its parent, of the others the sibling to the left. */
static void make_child(struct timer *parent, struct timer *child)
{
    child->previous = parent;
    child->sibling = parent->child;
    if (parent->child)
        parent->child->previous = child;
    parent->child = child;
}

struct timer *timer_heap_meld(struct timer *a, struct timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (goes_before(b, a)) {
        struct timer *earlier = b;
        b = a;
        a = earlier;
    }
    make_child(a, b);
    return a;
}

/* The heap of a row of siblings: melded in pairs from the left, the pairs from the right. */
static struct timer *meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL; /* in reverse order, linked by `sibling` */
    while (first) {
        struct timer *a = first;
        struct timer *b = a->sibling;
        first = b ? b->sibling : NULL;
        a->sibling = a->previous = NULL;
        if (b)
            b->sibling = b->previous = NULL;
        struct timer *pair = timer_heap_meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    struct timer *heap = NULL;
    while (pairs) {
        struct timer *pair = pairs;
        pairs = pair->sibling;
        pair->sibling = NULL;
        heap = timer_heap_meld(pair, heap);
    }
    return heap;
}

static void cut(struct timer *timer)
{
    if (timer->previous->child == timer)
        timer->previous->child = timer->sibling;
    else
        timer->previous->sibling = timer->sibling;
    if (timer->sibling)
        timer->sibling->previous = timer->previous;
    timer->sibling = timer->previous = NULL;
}

struct timer *timer_heap_remove(struct timer *heap, struct timer *timer)
{
    struct timer *children = meld_siblings(timer->child);
    timer->child = NULL;
    if (timer == heap)
        return children;
    cut(timer);
    return timer_heap_meld(heap, children);
}
