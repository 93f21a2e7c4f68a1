/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_DEVICE_TREE_FORMAT_H
#define KERNEL_DEVICE_DEVICE_TREE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The flattened device tree, version 17 (Devicetree Specification 0.4, chapter 5): a header, a
 * block of strings, and a block of tokens that open a node, give its properties, and close it. All
 * numbers are big-endian. The blob comes from outside, so no length or offset in it is trusted:
 * every read from a block uses block_take(), which checks the block's end.
 */
enum token {
    TOKEN_NODE_BEGIN = 1,
    TOKEN_NODE_END = 2,
    TOKEN_PROPERTY = 3,
    TOKEN_NOTHING = 4,
    TOKEN_END = 9,
};

/* The properties that the kernel uses. */
enum property_kind {
    PROPERTY_ADDRESS_CELLS,
    PROPERTY_SIZE_CELLS,
    PROPERTY_RANGES,
    PROPERTY_REG,
    PROPERTY_COMPATIBLE,
    PROPERTY_DEVICE_TYPE,
    PROPERTY_STATUS,
    PROPERTY_PHANDLE,
    PROPERTY_INTERRUPTS,
    PROPERTY_INTERRUPTS_EXTENDED,
    PROPERTY_ISA,
    PROPERTY_ISA_EXTENSIONS,
    PROPERTY_TIMEBASE,
    PROPERTY_BOOT_ARGUMENTS,
    PROPERTY_RAMDISK_START,
    PROPERTY_RAMDISK_END,
    PROPERTIES,
};

struct block {
    const uint8_t *data;
    size_t bytes;
    size_t at; /* the bytes before it have been taken */
};

struct property {
    const uint8_t *data; /* null: the node lacks it */
    size_t bytes;
};

struct node {
    const char *name;
    struct property property[PROPERTIES];
};

/* Returns a number of four bytes. */
uint32_t cell_at(const uint8_t *data);
/* Takes a number from the block. Returns false if it has ended. */
bool block_take_cell(struct block *block, uint32_t *cell);
/* Takes a node's name and its properties, which come before its children. Returns false if they are
 * cut short. */
bool take_node(const struct block *strings, struct block *structure, struct node *node);

/* Returns true if the text is one of the property's texts, which end with a 0 each. */
bool property_has_text(const struct property *property, const char *text);
/* Reads a number of one cell or two. Returns false if it is anything else. */
bool property_number(const struct property *property, uint64_t *number);
/* Returns a number of one cell, or `fallback` if it is not one. */
uint32_t property_cell(const struct property *property, uint32_t fallback);
/* Returns a number of this many cells, and moves `data` behind it. */
uint64_t take_cells(const uint8_t **data, uint32_t cells);

#endif
