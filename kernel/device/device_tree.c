/* SPDX-License-Identifier: MIT */
#include "device_tree.h"

#include "abi/errors.h"
#include "device_tree_format.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/layout.h"

struct machine machine;

#define TREE_MAGIC     0xd00dfeedu
#define TREE_VERSION   17u
#define TREE_BYTES_MAX (2u << 20)
#define DEPTH_MAX      16

enum header_field {
    HEADER_MAGIC,
    HEADER_BYTES,
    HEADER_STRUCTURE,
    HEADER_STRINGS,
    HEADER_RESERVATIONS,
    HEADER_VERSION,
    HEADER_COMPATIBLE_VERSION,
    HEADER_BOOT_CPU,
    HEADER_STRINGS_BYTES,
    HEADER_STRUCTURE_BYTES,
    HEADER_FIELDS,
};

/* The properties of a node that affect its children. */
struct level {
    uint32_t address_cells;
    uint32_t size_cells;
    bool same_addresses; /* addresses in a child are CPU addresses */
    bool is_cpu;         /* the CPU that was last added */
};

struct reader {
    struct machine *machine;
    struct block strings;
    uint32_t local_controller[CPUS_MAX]; /* phandle of each CPU's own interrupt controller */
    uint32_t cpus_with_timer;
    uint64_t ramdisk_start;
    uint64_t ramdisk_end;
    struct property contexts; /* of the interrupt controller: interrupts-extended */
};

static int refuse(const char *why)
{
    print("device tree: %s\n", why);
    return -EINVAL;
}

/* ---- nodes ---- */

/* Reads the index-th address and length of a node. Returns false if there is none, or none that
 * can be accessed. */
static bool node_range(const struct node *node, const struct level *parent, size_t index,
                       struct device_range *range)
{
    const struct property *reg = &node->property[PROPERTY_REG];
    if (parent->address_cells == 0 || parent->address_cells > 2 || parent->size_cells > 2)
        return false;
    size_t entry_bytes = 4 * (size_t)(parent->address_cells + parent->size_cells);
    if (index >= reg->bytes / entry_bytes)
        return false;

    const uint8_t *data = reg->data + index * entry_bytes;
    range->start = take_cells(&data, parent->address_cells);
    range->bytes = take_cells(&data, parent->size_cells);
    return true;
}

static bool is_reachable(const struct device_range *range)
{
    uint64_t reach = KERNEL_DIRECT_END - KERNEL_BASE;
    return range->bytes > 0 && range->start < reach && range->bytes <= reach - range->start;
}

static bool is_enabled(const struct node *node)
{
    const struct property *status = &node->property[PROPERTY_STATUS];
    return !status->data || property_has_text(status, "okay") || property_has_text(status, "ok");
}

static bool is_compatible(const struct node *node, const char *kind)
{
    return property_has_text(&node->property[PROPERTY_COMPATIBLE], kind);
}

/* Returns true if an extension is in a text such as "rv64imac_zicntr_sstc". */
static bool isa_has(const struct property *isa, const char *extension)
{
    size_t n = strlen(extension);
    for (size_t i = 0; i + 1 + n < isa->bytes; i++) {
        uint8_t after = isa->data[i + 1 + n];
        if (isa->data[i] == '_' && memcmp(isa->data + i + 1, extension, n) == 0 &&
            (after == '_' || after == 0))
            return true;
    }
    return false;
}

static int read_timebase(struct reader *reader, const struct node *node)
{
    const struct property *timebase = &node->property[PROPERTY_TIMEBASE];
    if (timebase->data && !property_number(timebase, &reader->machine->timebase_hz))
        return refuse("timebase-frequency is not a number");
    return 0;
}

/* Returns 1 if the CPU was added, or 0 if it must not be used. */
static int read_cpu(struct reader *reader, const struct node *node, const struct level *parent)
{
    struct machine *machine = reader->machine;
    struct device_range hart;

    if (!is_enabled(node))
        return 0;
    if (parent->size_cells != 0 || !node_range(node, parent, 0, &hart))
        return refuse("a CPU has no number");
    for (uint32_t cpu = 0; cpu < machine->cpus; cpu++)
        if (machine->hart[cpu] == hart.start)
            return refuse("two CPUs have the same number");
    if (hart.start >= CPUS_MAX) {
        print("device tree: CPU %lu is not used: its number is above %u\n", hart.start,
              CPUS_MAX - 1);
        return 0;
    }

    machine->hart[machine->cpus++] = hart.start;
    reader->cpus_with_timer += isa_has(&node->property[PROPERTY_ISA], "sstc") ||
                               property_has_text(&node->property[PROPERTY_ISA_EXTENSIONS], "sstc");
    int error = read_timebase(reader, node);
    return error ? error : 1;
}

static void read_memory(struct reader *reader, const struct node *node, const struct level *parent)
{
    struct device_range *memory = &reader->machine->memory;
    struct device_range range;

    for (size_t i = 0; node_range(node, parent, i, &range); i++)
        if (is_reachable(&range) && range.bytes > memory->bytes)
            *memory = range;
}

static int read_chosen(struct reader *reader, const struct node *node)
{
    struct machine *machine = reader->machine;
    const struct property *arguments = &node->property[PROPERTY_BOOT_ARGUMENTS];

    if (arguments->data) {
        if (arguments->bytes > sizeof machine->boot_arguments)
            return refuse("the boot arguments are longer than 1023 characters");
        if (arguments->bytes == 0 || arguments->data[arguments->bytes - 1] != 0)
            return refuse("the boot arguments are not a text");
        memcpy(machine->boot_arguments, arguments->data, arguments->bytes);
    }
    if (!property_number(&node->property[PROPERTY_RAMDISK_START], &reader->ramdisk_start) ||
        !property_number(&node->property[PROPERTY_RAMDISK_END], &reader->ramdisk_end))
        reader->ramdisk_start = reader->ramdisk_end = 0;
    return 0;
}

/* Returns the source at the interrupt controller, or 0 if there is none. */
static uint32_t interrupt_of(const struct node *node)
{
    const struct property *interrupts = &node->property[PROPERTY_INTERRUPTS];
    const struct property *extended = &node->property[PROPERTY_INTERRUPTS_EXTENDED];
    uint32_t source = 0;

    if (interrupts->bytes >= 4)
        source = cell_at(interrupts->data);
    else if (extended->bytes >= 8)
        source = cell_at(extended->data + 4);
    return source < INTERRUPT_SOURCES ? source : 0;
}

static void add_virtio(struct machine *machine, const struct node *node,
                       const struct device_range *range)
{
    if (machine->virtio_count == VIRTIO_SLOTS_MAX)
        return;
    machine->virtio[machine->virtio_count] = *range;
    machine->virtio_interrupt[machine->virtio_count] = interrupt_of(node);
    machine->virtio_count++;
}

static void read_device(struct reader *reader, const struct node *node, const struct level *parent)
{
    struct machine *machine = reader->machine;
    struct device_range range;

    if (is_compatible(node, "ucb,htif0"))
        machine->has_host_interface = true;
    if (!node_range(node, parent, 0, &range) || !is_reachable(&range))
        return;

    if (is_compatible(node, "ns16550a") && machine->console.bytes == 0) {
        machine->console = range;
        machine->console_interrupt = interrupt_of(node);
    } else if (is_compatible(node, "riscv,clint0") || is_compatible(node, "sifive,clint0")) {
        machine->clint = range;
    } else if (is_compatible(node, "riscv,plic0") || is_compatible(node, "sifive,plic-1.0.0")) {
        machine->interrupt_controller = range;
        reader->contexts = node->property[PROPERTY_INTERRUPTS_EXTENDED];
    } else if (is_compatible(node, "sifive,test0")) {
        machine->power = range;
    } else if (is_compatible(node, "virtio,mmio")) {
        add_virtio(machine, node, &range);
    }
}

/* Adds a node's properties to the machine. Returns 1 if it is a CPU, 0 if not, or an error. */
static int read_node(struct reader *reader, const struct node *node, const struct level *parent,
                     uint32_t depth)
{
    if (property_has_text(&node->property[PROPERTY_DEVICE_TYPE], "cpu"))
        return read_cpu(reader, node, parent);
    if (depth == 1 && strcmp(node->name, "cpus") == 0)
        return read_timebase(reader, node);
    if (depth == 1 && strcmp(node->name, "chosen") == 0)
        return read_chosen(reader, node);
    if (parent->is_cpu && is_compatible(node, "riscv,cpu-intc"))
        reader->local_controller[reader->machine->cpus - 1] =
            property_cell(&node->property[PROPERTY_PHANDLE], 0);

    if (!is_enabled(node) || !parent->same_addresses)
        return 0;
    if (property_has_text(&node->property[PROPERTY_DEVICE_TYPE], "memory"))
        read_memory(reader, node, parent);
    else
        read_device(reader, node, parent);
    return 0;
}

/* ---- the tree ---- */

static struct level level_of(const struct node *node, const struct level *parent, uint32_t depth,
                             bool is_cpu)
{
    const struct property *ranges = &node->property[PROPERTY_RANGES];
    bool passes_addresses_on = depth == 0 || (ranges->data && ranges->bytes == 0);

    /* The defaults are the specification's. */
    return (struct level){
        .address_cells = property_cell(&node->property[PROPERTY_ADDRESS_CELLS], 2),
        .size_cells = property_cell(&node->property[PROPERTY_SIZE_CELLS], 1),
        .same_addresses = parent->same_addresses && passes_addresses_on,
        .is_cpu = is_cpu,
    };
}

static int read_structure(struct reader *reader, struct block *structure)
{
    struct level levels[DEPTH_MAX + 1] = {{2, 1, true, false}};
    struct node node;
    uint32_t depth = 0;
    uint32_t token;

    while (block_take_cell(structure, &token)) {
        if (token == TOKEN_NODE_BEGIN) {
            if (depth == DEPTH_MAX)
                return refuse("nodes are nested too deeply");
            if (!take_node(&reader->strings, structure, &node))
                return refuse("a node is cut short");
            int result = read_node(reader, &node, &levels[depth], depth);
            if (result < 0)
                return result;
            levels[depth + 1] = level_of(&node, &levels[depth], depth, result == 1);
            depth++;
        } else if (token == TOKEN_NODE_END && depth > 0) {
            depth--;
        } else if (token == TOKEN_END && depth == 0) {
            return 0;
        } else if (token != TOKEN_NOTHING) {
            return refuse("a token is out of place");
        }
    }
    return refuse("it has no end");
}

/* ---- processing after all nodes are known ---- */

static void sort_cpus(struct reader *reader)
{
    uint64_t *hart = reader->machine->hart;
    uint32_t *controller = reader->local_controller;

    for (uint32_t i = 1; i < reader->machine->cpus; i++) {
        for (uint32_t j = i; j > 0 && hart[j] < hart[j - 1]; j--) {
            uint64_t other_hart = hart[j - 1];
            uint32_t other_controller = controller[j - 1];
            hart[j - 1] = hart[j];
            controller[j - 1] = controller[j];
            hart[j] = other_hart;
            controller[j] = other_controller;
        }
    }
}

/*
 * The interrupt controller lists the targets of its contexts: pairs of a CPU's local controller and
 * the cause there. The S-mode context is the one with cause 9.
 */
static void find_contexts(struct reader *reader)
{
    const uint32_t supervisor_external = 9;
    struct machine *machine = reader->machine;

    for (uint32_t cpu = 0; cpu < machine->cpus; cpu++) {
        machine->interrupt_context[cpu] = INTERRUPT_CONTEXT_NONE;
        for (size_t i = 0; i < reader->contexts.bytes / 8; i++) {
            const uint8_t *pair = reader->contexts.data + 8 * i;
            if (reader->local_controller[cpu] != 0 &&
                cell_at(pair) == reader->local_controller[cpu] &&
                cell_at(pair + 4) == supervisor_external)
                machine->interrupt_context[cpu] = (uint32_t)i;
        }
    }
}

static void check_ramdisk(struct reader *reader)
{
    const struct device_range *memory = &reader->machine->memory;
    uint64_t start = reader->ramdisk_start;
    uint64_t end = reader->ramdisk_end;

    if (start == end)
        return;
    if (start > end || start < memory->start || end > memory->start + memory->bytes) {
        print("device tree: the initial ramdisk is outside of memory: not used\n");
        return;
    }
    reader->machine->initial_ramdisk = (struct device_range){start, end - start};
}

static int finish(struct reader *reader)
{
    struct machine *machine = reader->machine;

    if (machine->cpus == 0)
        return refuse("there is no CPU");
    if (machine->memory.bytes == 0)
        return refuse("there is no memory");
    if (machine->timebase_hz == 0)
        return refuse("there is no timebase-frequency");
    machine->has_supervisor_timer = reader->cpus_with_timer == machine->cpus;
    sort_cpus(reader);
    find_contexts(reader);
    check_ramdisk(reader);
    return 0;
}

/* Returns false if the part is not inside the blob. */
static bool part_of(const uint8_t *blob, uint32_t blob_bytes, uint32_t offset, uint32_t bytes,
                    struct block *part)
{
    if (offset > blob_bytes || bytes > blob_bytes - offset)
        return false;
    *part = (struct block){blob + offset, bytes, 0};
    return true;
}

int device_tree_read(const void *blob, struct machine *machine)
{
    const uint8_t *data = blob;
    uint32_t header[HEADER_FIELDS];
    struct reader reader = {.machine = machine};
    struct block structure;

    memset(machine, 0, sizeof *machine);
    for (size_t i = 0; i < HEADER_FIELDS; i++)
        header[i] = cell_at(data + 4 * i);

    if (header[HEADER_MAGIC] != TREE_MAGIC)
        return refuse("there is none at the address that the boot loader gave");
    if (header[HEADER_VERSION] < TREE_VERSION || header[HEADER_COMPATIBLE_VERSION] > TREE_VERSION)
        return refuse("it is not of version 17");
    if (header[HEADER_BYTES] > TREE_BYTES_MAX)
        return refuse("it is larger than 2 MiB");
    if (!part_of(data, header[HEADER_BYTES], header[HEADER_STRUCTURE],
                 header[HEADER_STRUCTURE_BYTES], &structure) ||
        !part_of(data, header[HEADER_BYTES], header[HEADER_STRINGS], header[HEADER_STRINGS_BYTES],
                 &reader.strings))
        return refuse("a block lies outside of it");

    int error = read_structure(&reader, &structure);
    return error ? error : finish(&reader);
}
