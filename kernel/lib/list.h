/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_LIST_H
#define KERNEL_LIB_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A circular, doubly linked, intrusive list. A node that is on no list points to itself. */
struct list {
    struct list *next;
    struct list *previous;
};

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

static inline void list_init(struct list *list)
{
    list->next = list;
    list->previous = list;
}

static inline bool list_empty(const struct list *list)
{
    return list->next == list;
}

static inline void list_append(struct list *list, struct list *node)
{
    node->next = list;
    node->previous = list->previous;
    list->previous->next = node;
    list->previous = node;
}

static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

#define list_for_each(node, head)                                                                  \
    for (struct list *node = (head)->next; (node) != (head); (node) = (node)->next)

#endif
