/* SPDX-License-Identifier: MIT */

/* Interprets BPF, version 4 of its instruction set (RFC 9669), with the kernel's instructions for
 * loops and arenas. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/sched_ext/guest.h"

/* The number of times that a program may pass its may_goto instructions. */
#define LOOP_PASSES_MAX (1u << 23)
#define REGISTERS       16 /* instructions can name 16; BPF uses 11 */
#define FRAME_POINTER   10
#define CAST_TO_KERNEL  1 /* address space 1 to 0 */

enum atomic_operation {
    ATOMIC_FETCH = 0x01,
    ATOMIC_ADD = 0x00,
    ATOMIC_OR = 0x40,
    ATOMIC_AND = 0x50,
    ATOMIC_XOR = 0xa0,
    ATOMIC_EXCHANGE = 0xe1,
    ATOMIC_COMPARE = 0xf1,
    ATOMIC_LOAD_ACQUIRE = 0x100,
    ATOMIC_STORE_RELEASE = 0x110,
};

void guest_trap(struct guest *guest, const char *format, ...)
{
    va_list arguments;
    if (guest->trapped)
        return;
    guest->trapped = true;
    va_start(arguments, format);
    vsnprintf(guest->trap_text, sizeof(guest->trap_text), format, arguments);
    va_end(arguments);
}

static __attribute__((cold, noinline)) void trap_at(struct guest *guest, uint32_t place,
                                                    const char *text, uint64_t value)
{
    if (guest->trapped)
        return;
    guest->trap_place = place;
    guest_trap(guest, text, (unsigned long long)value);
}

/* `place`: index of the next instruction. */
static __attribute__((cold, noinline)) void note_bad_load(struct guest *guest, uint32_t place)
{
    if (!guest->bad_load)
        guest->bad_load = place;
}

/* ---- arithmetic ---- */

/* Notes a division by 0 of the instruction before `place`. */
static inline uint64_t noted(struct guest *guest, uint32_t place, uint64_t divisor)
{
    if (__builtin_expect(divisor == 0, 0) && !guest->zero_division)
        guest->zero_division = place;
    return divisor;
}

static uint64_t divide(uint64_t a, uint64_t b, bool is_signed)
{
    if (b == 0)
        return 0;
    if (!is_signed)
        return a / b;
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(uint64_t a, uint64_t b, bool is_signed)
{
    if (b == 0)
        return a;
    if (!is_signed)
        return a % b;
    return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
}

static uint32_t divide_32(uint32_t a, uint32_t b, bool is_signed)
{
    if (b == 0)
        return 0;
    if (!is_signed)
        return a / b;
    return b == UINT32_MAX ? 0 - a : (uint32_t)((int32_t)a / (int32_t)b);
}

static uint32_t remainder_of_32(uint32_t a, uint32_t b, bool is_signed)
{
    if (b == 0)
        return a;
    if (!is_signed)
        return a % b;
    return b == UINT32_MAX ? 0 : (uint32_t)((int32_t)a % (int32_t)b);
}

static uint64_t sign_extend(uint64_t value, int bits)
{
    switch (bits) {
    case 8:
        return (uint64_t)(int64_t)(int8_t)value;
    case 16:
        return (uint64_t)(int64_t)(int16_t)value;
    case 32:
        return (uint64_t)(int64_t)(int32_t)value;
    default:
        return value;
    }
}

static uint64_t swap_bytes(uint64_t value, int bits)
{
    switch (bits) {
    case 16:
        return __builtin_bswap16((uint16_t)value);
    case 32:
        return __builtin_bswap32((uint32_t)value);
    default:
        return __builtin_bswap64(value);
    }
}

static uint64_t truncate(uint64_t value, int bits)
{
    return bits == 16 ? (uint16_t)value : bits == 32 ? (uint32_t)value : value;
}

/* Converts an address of the arena: programs access memory through its kernel's form, which is in
 * REGION_NULL, and store and compare its user's form. */
static uint64_t cast_address(uint64_t address, int spaces)
{
    uint64_t offset = (uint32_t)address;
    return spaces == CAST_TO_KERNEL || offset == 0 ? offset : guest_address(REGION_ARENA, offset);
}

/* ---- atomic operations ---- */

static uint64_t atomic_result(uint32_t operation, uint64_t old, uint64_t value, uint64_t expected)
{
    switch (operation) {
    case ATOMIC_ADD:
    case ATOMIC_ADD | ATOMIC_FETCH:
        return old + value;
    case ATOMIC_OR:
    case ATOMIC_OR | ATOMIC_FETCH:
        return old | value;
    case ATOMIC_AND:
    case ATOMIC_AND | ATOMIC_FETCH:
        return old & value;
    case ATOMIC_XOR:
    case ATOMIC_XOR | ATOMIC_FETCH:
        return old ^ value;
    case ATOMIC_COMPARE:
        return old == expected ? value : old;
    default: /* an exchange, or the store of store-release */
        return value;
    }
}

static bool atomic_exists(uint32_t operation)
{
    uint32_t base = operation & ~(uint32_t)ATOMIC_FETCH;
    return base == ATOMIC_ADD || base == ATOMIC_OR || base == ATOMIC_AND || base == ATOMIC_XOR ||
           operation == ATOMIC_EXCHANGE || operation == ATOMIC_COMPARE ||
           operation == ATOMIC_STORE_RELEASE;
}

static void load_acquire(struct guest *guest, uint32_t place, struct image_instruction instruction,
                         uint64_t *registers, uint32_t bytes)
{
    uint64_t source = registers[instruction.registers >> 4];
    uint64_t value = 0;
    const void *memory = guest_memory(guest, source + (uint64_t)instruction.offset, bytes);
    if (memory)
        memcpy(&value, memory, bytes);
    else
        note_bad_load(guest, place);
    registers[instruction.registers & 15] = value;
}

static __attribute__((noinline)) void execute_atomic(struct guest *guest, uint32_t place,
                                                     struct image_instruction instruction,
                                                     uint64_t *registers)
{
    static const uint8_t sizes[] = {4, 2, 1, 8};
    uint32_t bytes = sizes[instruction.op >> 3 & 3];
    uint32_t operation = (uint32_t)instruction.immediate;
    uint64_t *source = &registers[instruction.registers >> 4];
    uint64_t address = registers[instruction.registers & 15] + (uint64_t)instruction.offset;
    uint64_t old = 0;
    if (operation == ATOMIC_LOAD_ACQUIRE) {
        load_acquire(guest, place + 1, instruction, registers, bytes);
        return;
    }
    void *memory = guest_writable(guest, address, bytes);
    if (!memory || !atomic_exists(operation)) {
        trap_at(guest, place,
                memory ? "unknown atomic operation %#llx"
                       : "atomic operation at invalid address %#llx",
                memory ? operation : address);
        return;
    }
    memcpy(&old, memory, bytes);
    uint64_t expected = bytes == 8 ? registers[0] : registers[0] & (UINT64_MAX >> (64 - 8 * bytes));
    uint64_t result = atomic_result(operation, old, *source, expected);
    memcpy(memory, &result, bytes);
    if (operation == ATOMIC_COMPARE)
        registers[0] = old;
    else if (operation & ATOMIC_FETCH)
        *source = old;
}

/* ---- calls ---- */

/* Enters a program. Returns its first instruction, or a place outside the code after a trap. */
static uint32_t enter_frame(struct guest *guest, uint32_t entry, uint32_t return_to,
                            uint64_t *registers)
{
    if (guest->depth >= GUEST_FRAMES_MAX) {
        trap_at(guest, return_to - 1, "more than %llu nested calls", GUEST_FRAMES_MAX);
        return UINT32_MAX;
    }
    struct guest_frame *frame = &guest->frames[guest->depth++];
    memcpy(frame->saved, registers + 6, sizeof(frame->saved));
    frame->return_to = return_to;
    registers[FRAME_POINTER] = guest_address(REGION_STACK, guest->depth * GUEST_FRAME_BYTES);
    return entry;
}

static uint32_t leave_frame(struct guest *guest, uint64_t *registers)
{
    const struct guest_frame *frame = &guest->frames[--guest->depth];
    memcpy(registers + 6, frame->saved, sizeof(frame->saved));
    registers[FRAME_POINTER] = guest_address(REGION_STACK, guest->depth * GUEST_FRAME_BYTES);
    return frame->return_to;
}

static __attribute__((cold, noinline)) void trap_call(struct guest *guest, uint32_t place,
                                                      struct image_instruction instruction)
{
    uint32_t number = (uint32_t)instruction.immediate;
    if (guest->trapped)
        return;
    guest->trap_place = place;
    if (instruction.registers >> 4 == IMAGE_CALL_HELPER)
        guest_trap(guest, "calls helper %u, which does not exist here", number);
    else if (instruction.registers >> 4 == IMAGE_CALL_MISSING && number < guest->string_bytes)
        guest_trap(guest, "needs %.100s, which this kernel lacks", guest->strings + number);
    else
        guest_trap(guest, "calls kernel function %u, which does not exist here", number);
}

/* Calls a helper or a function of the kernel. */
static void call_host(struct guest *guest, uint32_t place, struct image_instruction instruction,
                      uint64_t *registers)
{
    uint32_t number = (uint32_t)instruction.immediate;
    uint32_t kind = instruction.registers >> 4;
    host_function *function = NULL;
    if (kind == IMAGE_CALL_HELPER && number < GUEST_HELPERS_MAX)
        function = guest->helpers[number];
    else if (kind == IMAGE_CALL_FUNCTION && number < guest->function_count)
        function = guest->functions[number];
    if (!function) {
        trap_call(guest, place, instruction);
        return;
    }
    registers[0] = function(guest, registers + 1);
    if (__builtin_expect(guest->trapped && guest->trap_place == UINT32_MAX, 0))
        guest->trap_place = place;
}

/* ---- stores to the kernel's structures ---- */

/* Returns the memory of a writable field, or null. */
static __attribute__((noinline)) void *field_memory(const struct guest *guest, uint64_t address,
                                                    uint64_t bytes)
{
    const struct guest_fields *fields = &guest->fields;
    uint64_t offset = (uint32_t)address - fields->first;
    if (address >> 32 != fields->region || fields->bytes == 0 ||
        offset / fields->bytes >= fields->count)
        return NULL;
    uint64_t within = offset % fields->bytes;
    for (int i = 0; i < GUEST_FIELDS_MAX; i++) {
        if (within >= fields->offsets[i] && within - fields->offsets[i] + bytes <= fields->sizes[i])
            return guest_memory(guest, address, bytes);
    }
    return NULL;
}

/* ---- instructions ---- */

#define DESTINATION registers[instruction.registers & 15]
#define SOURCE      registers[instruction.registers >> 4]
#define IMMEDIATE   ((uint64_t)(int64_t)instruction.immediate)
#define IS_SIGNED   (instruction.offset != 0)

/* An operation of two operands, with an immediate and with a register, in 64 and in 32 bits. */
#define NOTED(divisor) noted(guest, place, divisor)
#define OPERATION(base, result_64, result_32)                                                      \
    case (base) | 0x07: {                                                                          \
        uint64_t a = DESTINATION, b = IMMEDIATE;                                                   \
        DESTINATION = (result_64);                                                                 \
        break;                                                                                     \
    }                                                                                              \
    case (base) | 0x0f: {                                                                          \
        uint64_t a = DESTINATION, b = SOURCE;                                                      \
        DESTINATION = (result_64);                                                                 \
        break;                                                                                     \
    }                                                                                              \
    case (base) | 0x04: {                                                                          \
        uint32_t a = (uint32_t)DESTINATION, b = (uint32_t)instruction.immediate;                   \
        DESTINATION = (uint32_t)(result_32);                                                       \
        break;                                                                                     \
    }                                                                                              \
    case (base) | 0x0c: {                                                                          \
        uint32_t a = (uint32_t)DESTINATION, b = (uint32_t)SOURCE;                                  \
        DESTINATION = (uint32_t)(result_32);                                                       \
        break;                                                                                     \
    }

/* A backward jump checks the limit, because every loop has one. */
#define JUMP_BY(distance)                                                                          \
    do {                                                                                           \
        if ((distance) < 0 && __builtin_expect(count >= limit, 0))                                 \
            goto endless;                                                                          \
        place += (uint32_t)(int32_t)(distance);                                                    \
    } while (0)

#define JUMP JUMP_BY(instruction.offset)

#define JUMP_IF(condition)                                                                         \
    do {                                                                                           \
        if (condition)                                                                             \
            JUMP;                                                                                  \
    } while (0)

/* A conditional jump in its four forms. `type` is `int` or `uint`. */
#define CONDITION(base, type, operator)                                                            \
    case (base) | 0x05:                                                                            \
        JUMP_IF((type##64_t)DESTINATION operator(type##64_t) IMMEDIATE);                           \
        break;                                                                                     \
    case (base) | 0x0d:                                                                            \
        JUMP_IF((type##64_t)DESTINATION operator(type##64_t) SOURCE);                              \
        break;                                                                                     \
    case (base) | 0x06:                                                                            \
        JUMP_IF((type##32_t)DESTINATION operator(type##32_t) instruction.immediate);               \
        break;                                                                                     \
    case (base) | 0x0e:                                                                            \
        JUMP_IF((type##32_t)DESTINATION operator(type##32_t) SOURCE);                              \
        break;

#define LOAD(code, type)                                                                           \
    case code: {                                                                                   \
        const void *memory =                                                                       \
            guest_memory(guest, SOURCE + (uint64_t)instruction.offset, sizeof(type));              \
        type value = 0;                                                                            \
        if (__builtin_expect(memory != NULL, 1))                                                   \
            memcpy(&value, memory, sizeof(value));                                                 \
        else                                                                                       \
            note_bad_load(guest, place);                                                           \
        DESTINATION = (uint64_t)(int64_t)value;                                                    \
        break;                                                                                     \
    }

#define STORE(code, type, stored)                                                                  \
    case code: {                                                                                   \
        void *memory =                                                                             \
            guest_writable(guest, DESTINATION + (uint64_t)instruction.offset, sizeof(type));       \
        type value = (type)(stored);                                                               \
        if (__builtin_expect(memory == NULL, 0)) {                                                 \
            memory =                                                                               \
                field_memory(guest, DESTINATION + (uint64_t)instruction.offset, sizeof(type));     \
            if (!memory)                                                                           \
                goto bad_store;                                                                    \
        }                                                                                          \
        memcpy(memory, &value, sizeof(value));                                                     \
        break;                                                                                     \
    }

/* Executes from `place` until the return from the frame at `bottom`. */
static uint64_t execute(struct guest *guest, uint32_t place, uint64_t *registers, uint32_t bottom)
{
    const struct image_instruction *code = guest->code;
    const uint32_t code_count = guest->code_count;
    const uint64_t limit = guest->limit;
    uint64_t count = guest->instructions;
    uint32_t passes = 0;
    struct image_instruction instruction = {0};
    for (;;) {
        if (__builtin_expect(place >= code_count, 0))
            goto outside;
        instruction = code[place++];
        count++;
        switch (instruction.op) {
            OPERATION(0x00, a + b, a + b)
            OPERATION(0x10, a - b, a - b)
            OPERATION(0x20, a * b, a * b)
            OPERATION(0x30, divide(a, NOTED(b), IS_SIGNED),
                      divide_32(a, (uint32_t)NOTED(b), IS_SIGNED))
            OPERATION(0x40, a | b, a | b)
            OPERATION(0x50, a & b, a & b)
            OPERATION(0x60, a << (b & 63), a << (b & 31))
            OPERATION(0x70, a >> (b & 63), a >> (b & 31))
            OPERATION(0x90, remainder_of(a, NOTED(b), IS_SIGNED),
                      remainder_of_32(a, (uint32_t)NOTED(b), IS_SIGNED))
            OPERATION(0xa0, a ^ b, a ^ b)
            OPERATION(0xc0, (uint64_t)((int64_t)a >> (b & 63)), (int32_t)a >> (b & 31))
        case 0x87:
            DESTINATION = 0 - DESTINATION;
            break;
        case 0x84:
            DESTINATION = (uint32_t)(0 - DESTINATION);
            break;
        case 0xb7:
            DESTINATION = IMMEDIATE;
            break;
        case 0xb4:
            DESTINATION = (uint32_t)instruction.immediate;
            break;
        case 0xbf: /* the offset is the width of a sign extension, or 1 for address spaces */
            DESTINATION = instruction.offset == 0   ? SOURCE
                          : instruction.offset == 1 ? cast_address(SOURCE, instruction.immediate)
                                                    : sign_extend(SOURCE, instruction.offset);
            break;
        case 0xbc:
            DESTINATION = (uint32_t)sign_extend(SOURCE, instruction.offset);
            break;
        case 0xd4:
            DESTINATION = truncate(DESTINATION, instruction.immediate);
            break;
        case 0xdc:
        case 0xd7:
            DESTINATION = swap_bytes(DESTINATION, instruction.immediate);
            break;

        case 0x05:
            JUMP;
            break;
        case 0x06: /* a jump with a long distance */
            JUMP_BY(instruction.immediate);
            break;
        case 0xe5: /* may_goto leaves a loop that takes too long */
            if (passes++ >= LOOP_PASSES_MAX)
                JUMP;
            break;
            CONDITION(0x10, uint, ==)
            CONDITION(0x20, uint, >)
            CONDITION(0x30, uint, >=)
            CONDITION(0x40, uint, &)
            CONDITION(0x50, uint, !=)
            CONDITION(0x60, int, >)
            CONDITION(0x70, int, >=)
            CONDITION(0xa0, uint, <)
            CONDITION(0xb0, uint, <=)
            CONDITION(0xc0, int, <)
            CONDITION(0xd0, int, <=)

        case 0x18: /* two instructions */
            if (__builtin_expect(place >= code_count, 0))
                goto outside;
            DESTINATION =
                (uint32_t)instruction.immediate | (uint64_t)(uint32_t)code[place].immediate << 32;
            place++;
            break;
            LOAD(0x71, uint8_t)
            LOAD(0x69, uint16_t)
            LOAD(0x61, uint32_t)
            LOAD(0x79, uint64_t)
            LOAD(0x91, int8_t)
            LOAD(0x89, int16_t)
            LOAD(0x81, int32_t)
            STORE(0x72, uint8_t, instruction.immediate)
            STORE(0x6a, uint16_t, instruction.immediate)
            STORE(0x62, uint32_t, instruction.immediate)
            STORE(0x7a, uint64_t, IMMEDIATE)
            STORE(0x73, uint8_t, SOURCE)
            STORE(0x6b, uint16_t, SOURCE)
            STORE(0x63, uint32_t, SOURCE)
            STORE(0x7b, uint64_t, SOURCE)
        case 0xc3:
        case 0xcb:
        case 0xd3:
        case 0xdb:
            execute_atomic(guest, place - 1, instruction, registers);
            if (__builtin_expect(guest->trapped, 0))
                goto end;
            break;

        case 0x85:
            if (instruction.registers >> 4 == IMAGE_CALL_PROGRAM) {
                place =
                    enter_frame(guest, place + (uint32_t)instruction.immediate, place, registers);
            } else {
                guest->instructions = count;
                call_host(guest, place - 1, instruction, registers);
                count = guest->instructions;
            }
            if (__builtin_expect(guest->trapped, 0))
                goto end;
            if (__builtin_expect(count >= limit, 0))
                goto endless;
            break;
        case 0x8d: /* a call through a register */
            if (DESTINATION >> 32 != REGION_CODE)
                goto bad_call;
            place = enter_frame(guest, (uint32_t)DESTINATION, place, registers);
            if (__builtin_expect(guest->trapped, 0))
                goto end;
            break;
        case 0x95:
            place = leave_frame(guest, registers);
            if (guest->depth == bottom) {
                guest->instructions = count;
                return registers[0];
            }
            break;
        default:
            trap_at(guest, place - 1, "unknown instruction %#llx", instruction.op);
            goto end;
        }
    }
outside:
    trap_at(guest, place, "leaves the code at instruction %llu", place);
    goto end;
bad_store:
    trap_at(guest, place - 1, "store to invalid address %#llx",
            DESTINATION + (uint64_t)instruction.offset);
    goto end;
bad_call:
    trap_at(guest, place - 1, "call of invalid address %#llx", DESTINATION);
    goto end;
endless:
    trap_at(guest, place - 1, "executes more than %llu instructions in one call: endless loop",
            guest->call_limit);
end:
    guest->instructions = count;
    return 0;
}

uint64_t guest_call(struct guest *guest, uint32_t entry, const uint64_t *arguments)
{
    uint64_t registers[REGISTERS] = {0};
    uint32_t bottom = guest->depth;
    if (guest->trapped)
        return 0;
    if (guest->instructions >= guest->limit) {
        trap_at(guest, entry, "executes more than %llu instructions in one call: endless loop",
                guest->call_limit);
        return 0;
    }
    memcpy(registers + 1, arguments, 5 * sizeof(*arguments));
    uint32_t place = enter_frame(guest, entry, UINT32_MAX, registers);
    return guest->trapped ? 0 : execute(guest, place, registers, bottom);
}
