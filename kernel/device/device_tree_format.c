/* SPDX-License-Identifier: MIT */
#include "device_tree_format.h"

#include "lib/string.h"
#include "memory/layout.h"

static const char *const property_names[PROPERTIES] = {
    [PROPERTY_ADDRESS_CELLS] = "#address-cells",
    [PROPERTY_SIZE_CELLS] = "#size-cells",
    [PROPERTY_RANGES] = "ranges",
    [PROPERTY_REG] = "reg",
    [PROPERTY_COMPATIBLE] = "compatible",
    [PROPERTY_DEVICE_TYPE] = "device_type",
    [PROPERTY_STATUS] = "status",
    [PROPERTY_PHANDLE] = "phandle",
    [PROPERTY_INTERRUPTS] = "interrupts",
    [PROPERTY_INTERRUPTS_EXTENDED] = "interrupts-extended",
    [PROPERTY_ISA] = "riscv,isa",
    [PROPERTY_ISA_EXTENSIONS] = "riscv,isa-extensions",
    [PROPERTY_TIMEBASE] = "timebase-frequency",
    [PROPERTY_BOOT_ARGUMENTS] = "bootargs",
    [PROPERTY_RAMDISK_START] = "linux,initrd-start",
    [PROPERTY_RAMDISK_END] = "linux,initrd-end",
};

uint32_t cell_at(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* Returns the next n bytes, with the padding that keeps tokens aligned, or null if fewer remain. */
static const uint8_t *block_take(struct block *block, size_t n)
{
    size_t left = block->bytes - block->at;
    if (n > left)
        return NULL;
    const uint8_t *data = block->data + block->at;
    size_t padded = round_up(n, 4);
    block->at += padded < left ? padded : left;
    return data;
}

bool block_take_cell(struct block *block, uint32_t *cell)
{
    const uint8_t *data = block_take(block, 4);
    if (!data)
        return false;
    *cell = cell_at(data);
    return true;
}

/* Returns the text that begins at an offset, or null if it does not end within the block. */
static const char *text_in_block(const struct block *block, size_t offset)
{
    for (size_t i = offset; i < block->bytes; i++)
        if (block->data[i] == 0)
            return (const char *)block->data + offset;
    return NULL;
}

static const char *block_take_text(struct block *block)
{
    const char *text = text_in_block(block, block->at);
    if (text)
        block_take(block, strlen(text) + 1);
    return text;
}

bool property_has_text(const struct property *property, const char *text)
{
    size_t n = strlen(text) + 1;
    size_t begin = 0;
    for (size_t i = 0; i < property->bytes; i++) {
        if (property->data[i] != 0)
            continue;
        if (i + 1 - begin == n && memcmp(property->data + begin, text, n) == 0)
            return true;
        begin = i + 1;
    }
    return false;
}

bool property_number(const struct property *property, uint64_t *number)
{
    if (property->bytes == 4)
        *number = cell_at(property->data);
    else if (property->bytes == 8)
        *number = (uint64_t)cell_at(property->data) << 32 | cell_at(property->data + 4);
    else
        return false;
    return true;
}

uint32_t property_cell(const struct property *property, uint32_t fallback)
{
    return property->bytes == 4 ? cell_at(property->data) : fallback;
}

uint64_t take_cells(const uint8_t **data, uint32_t cells)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < cells; i++) {
        number = number << 32 | cell_at(*data);
        *data += 4;
    }
    return number;
}

static bool take_property(const struct block *strings, struct block *structure, struct node *node)
{
    uint32_t bytes;
    uint32_t name_offset;
    if (!block_take_cell(structure, &bytes) || !block_take_cell(structure, &name_offset))
        return false;
    const uint8_t *data = block_take(structure, bytes);
    const char *name = text_in_block(strings, name_offset);
    if (!data || !name)
        return false;
    for (int kind = 0; kind < PROPERTIES; kind++)
        if (strcmp(name, property_names[kind]) == 0)
            node->property[kind] = (struct property){data, bytes};
    return true;
}

bool take_node(const struct block *strings, struct block *structure, struct node *node)
{
    memset(node, 0, sizeof *node);
    node->name = block_take_text(structure);
    if (!node->name)
        return false;
    for (;;) {
        size_t before = structure->at;
        uint32_t token;
        if (!block_take_cell(structure, &token))
            return false;
        if (token == TOKEN_PROPERTY) {
            if (!take_property(strings, structure, node))
                return false;
        } else if (token != TOKEN_NOTHING) {
            structure->at = before;
            return true;
        }
    }
}
