/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_IMAGE_H
#define SIM_SCHED_EXT_IMAGE_H

#include <stdint.h>

/*
 * The image of a sched_ext scheduler: one flat file, written by the loader (schedlab.sched_ext) and
 * read by the engine. All numbers are little endian. The file begins with struct image_header;
 * every table begins at a multiple of 8 and lies completely within `size`.
 *
 * A program's address is `region << 32 | offset`, the same in every run and on every host.
 */
#define IMAGE_MAGIC   0x6567616d49786373ULL /* "scxImage" */
#define IMAGE_VERSION 1

enum {
    REGION_NULL,      /* nothing; the arena of a scheduler that has one, except its page 0 */
    REGION_STACK,     /* stacks of programs */
    REGION_CONTEXT,   /* arguments of callbacks */
    REGION_KERNEL,    /* the kernel's structures: tasks, masks, control groups */
    REGION_FUNCTIONS, /* offset: number of a kernel function; nothing is read or written here */
    REGION_CODE,      /* offset: number of an instruction; nothing is read or written here */
    REGION_VARIABLES, /* variables of the kernel, KERNEL_VARIABLE_STRIDE bytes per CPU */
    REGION_HEAP,      /* what programs allocate */
    REGION_MAPS,      /* offset: number of a map + 1; nothing is read or written here */
    REGION_ARENA,
    REGION_IMAGE = 16,   /* the image's regions have these numbers … */
    REGION_VALUES = 128, /* … below this; map m's values are in region REGION_VALUES + m */
    REGIONS = 384,
};
enum { IMAGE_MAPS_MAX = REGIONS - REGION_VALUES };

struct image_table {
    uint32_t offset; /* from the file's first byte */
    uint32_t count;  /* of its records; of bytes for IMAGE_STRINGS and IMAGE_DATA */
};

enum image_table_number {
    IMAGE_REGIONS,      /* struct image_region */
    IMAGE_INSTRUCTIONS, /* struct image_instruction */
    IMAGE_MAP_LIST,     /* struct image_map */
    IMAGE_INNER_MAPS,   /* struct image_inner_map */
    IMAGE_FIELDS,       /* struct image_field; regions, maps and types refer to ranges */
    IMAGE_OPS,          /* struct image_op */
    IMAGE_PROGRAMS,     /* struct image_program, ordered by first instruction, none overlap */
    IMAGE_VARIABLES,    /* struct image_variable */
    IMAGE_TYPES,        /* struct image_type */
    IMAGE_LINES,        /* struct image_line, ordered by instruction */
    IMAGE_STEPS,        /* struct image_step, in their order, before ops.init() */
    IMAGE_STRINGS,      /* texts that end with a 0; the first and the last byte are 0 */
    IMAGE_DATA,         /* initial contents of regions */
    IMAGE_TABLES,
};

/* A text is an offset in IMAGE_STRINGS; 0 is the empty text. */
typedef uint32_t image_text;

struct image_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size;    /* of the file */
    uint32_t profile; /* kernel version: KERNEL_6_12, … (kernel_functions.h) */
    image_text name;  /* ops.name */
    uint64_t flags;   /* ops.flags: SCX_OPS_… */
    uint32_t timeout_ms;
    uint32_t dispatch_max_batch;
    uint32_t exit_dump_len;
    uint32_t cpus; /* that settings were computed for; 0: any number */
    struct image_table tables[IMAGE_TABLES];
};

enum { IMAGE_READ_ONLY = 1 };
struct image_region {
    uint32_t number; /* REGION_ARENA, or REGION_IMAGE ≤ number < REGION_VALUES */
    image_text name; /* of the section */
    uint64_t size;   /* at most 1 << 32 */
    uint32_t flags;
    uint32_t first_field, fields; /* special fields, with offsets in the region */
    uint32_t data, data_size;     /* where in IMAGE_DATA the contents are; the rest is zero */
    uint32_t data_offset;         /* where in the region they begin */
};

/*
 * An instruction of BPF (ISA v4). Relocations are applied: a 64-bit immediate (0x18, source 0) is
 * an address or a value; a call (0x85) has one of these sources.
 */
enum {
    IMAGE_CALL_HELPER,   /* imm: number of a helper function */
    IMAGE_CALL_PROGRAM,  /* imm: distance from the next instruction */
    IMAGE_CALL_FUNCTION, /* imm: number of a kernel function */
    IMAGE_CALL_MISSING,  /* imm: a text, what the kernel lacks; executing it is an error */
};
struct image_instruction {
    uint8_t op;
    uint8_t registers; /* destination in the low half, source in the high half */
    int16_t offset;
    int32_t immediate;
};

struct image_map {
    image_text name;
    uint32_t type; /* Linux's number (MAP_TYPES) */
    uint32_t key_size, value_size, max_entries, flags;
    uint64_t extra;               /* map_extra */
    uint32_t first_field, fields; /* special fields of a value */
};

struct image_inner_map {
    uint32_t map;   /* an ARRAY_OF_MAPS or HASH_OF_MAPS … */
    uint32_t index; /* … has at this index … */
    uint32_t inner; /* … this map */
};

/* Parts of values and objects that only certain functions change. */
enum image_field_kind {
    FIELD_SPIN_LOCK,
    FIELD_RES_SPIN_LOCK,
    FIELD_TIMER,
    FIELD_WORKQUEUE,
    FIELD_KPTR,        /* a pointer that bpf_kptr_xchg() changes */
    FIELD_KPTR_UNREF,  /* a pointer without a reference */
    FIELD_KPTR_PERCPU, /* a pointer to an object that each CPU has */
    FIELD_RB_ROOT,
    FIELD_RB_NODE,
    FIELD_LIST_HEAD,
    FIELD_LIST_NODE,
    FIELD_REFCOUNT,
    FIELD_UPTR,
    FIELD_TASK_WORK,
    FIELD_KINDS,
};
struct image_field {
    uint32_t kind;
    uint32_t offset, size;
    image_text type_name; /* of a pointer's target, or of a tree's or list's elements */
    uint32_t type;        /* the same as a local type (struct image_type's id); 0: the kernel's */
    uint32_t node_offset; /* of the node within an element of the tree or list */
};

struct image_op {
    uint32_t op; /* SCHEDULER_OPS' number */
    uint32_t instruction;
};

enum image_program_kind {
    PROGRAM_SUBPROGRAM, /* called by programs only */
    PROGRAM_CALLBACK,   /* of struct_ops */
    PROGRAM_SYSCALL,    /* user space runs it */
    PROGRAM_OTHER,      /* fentry, tracepoint and others: never run here */
};
struct image_program {
    image_text name, section;
    uint32_t kind;
    uint32_t first, count; /* instructions */
};

struct image_variable {
    image_text name;
    uint32_t region, offset;
    uint32_t size;  /* of all elements */
    uint32_t count; /* of elements; 1 for a single value */
};

struct image_type { /* of objects that programs allocate */
    uint32_t id;    /* what programs pass to bpf_obj_new() */
    image_text name;
    uint32_t size;
    uint32_t first_field, fields;
};

struct image_line {
    uint32_t instruction; /* the first that belongs to this line */
    image_text file;
    uint32_t line, column;
};

/* What the scheduler's user space does between loading its programs and attaching them. */
enum image_step_kind {
    STEP_CALL,  /* copies the data to a context of `size` bytes, runs the program; it returns 0 */
    STEP_KEEP,  /* keeps the 8 bytes at `offset` of the context of the last call in a slot */
    STEP_USE,   /* the next call's context has the slot's 8 bytes at `offset` */
    STEP_STORE, /* stores the data at the slot's address + `offset` */
    STEP_MAP_UPDATE, /* the data is a key, then a value (one per CPU has the same), of a map */
    STEP_KINDS,
};
enum { STEP_SLOTS = 16, STEP_CONTEXT_MAX = 4096 };
struct image_step {
    uint32_t kind;
    uint32_t target; /* the program's, slot's or map's number */
    uint32_t offset;
    uint32_t size; /* of a call's context; at least data_size */
    uint32_t data, data_size;
};

_Static_assert(sizeof(struct image_header) == 48 + 8 * IMAGE_TABLES, "image_header");
_Static_assert(sizeof(struct image_region) == 40, "image_region");
_Static_assert(sizeof(struct image_instruction) == 8, "image_instruction");
_Static_assert(sizeof(struct image_map) == 40, "image_map");
_Static_assert(sizeof(struct image_inner_map) == 12, "image_inner_map");
_Static_assert(sizeof(struct image_field) == 24, "image_field");
_Static_assert(sizeof(struct image_op) == 8, "image_op");
_Static_assert(sizeof(struct image_program) == 20, "image_program");
_Static_assert(sizeof(struct image_variable) == 20, "image_variable");
_Static_assert(sizeof(struct image_type) == 20, "image_type");
_Static_assert(sizeof(struct image_line) == 16, "image_line");
_Static_assert(sizeof(struct image_step) == 24, "image_step");

#endif
