/* SPDX-License-Identifier: MIT */

/*
 * Each CPU fills separate blocks, without a lock: only the sequence number is shared, and one
 * atomic addition takes it. A full block joins a queue of blocks that wait to leave the machine.
 * The output takes one at a time and works independently, so no process waits for it. A CPU waits
 * for a block only when all its blocks are full: a trace never drops records.
 *
 * For a monitor, records may leave before their block is full: the part written so far joins the
 * queue, and the rest when it is full.
 */

#include "trace/trace.h"

#include <stddef.h>

#include "device/device_tree.h"
#include "device/host.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/page.h"
#include "scheduler/cpu.h"
#include "time/clock.h"

#define BLOCK_PAGES   16
#define BLOCK_RECORDS (BLOCK_PAGES * PAGE_BYTES / sizeof(struct trace_record))

/* A block that waits to leave, or a part of one. */
struct outgoing {
    const void *start;
    size_t bytes;
    bool *waits; /* cleared once it has left; null: the header */
};

bool trace_queues;

static uint64_t delay_ns; /* the longest time that records may wait; 0: until their block is full */
static uint32_t sequence;

/* Guards the queue, and the flags of a CPU's blocks that they wait in it. */
static struct spinlock trace_lock = {.name = "trace", .rank = LOCK_TRACE};
static struct outgoing line[CPUS_MAX * (TRACE_BLOCKS + 1) + 1]; /* with a part of each CPU */
static uint32_t line_first, line_length;
static bool in_progress; /* the first of the queue */

static void join_line(const void *start, size_t bytes, bool *waits)
{
    uint32_t last = (line_first + line_length) % (sizeof(line) / sizeof(line[0]));
    kernel_assert(line_length < sizeof(line) / sizeof(line[0]));
    line[last] = (struct outgoing){start, bytes, waits};
    line_length++;
}

static void leave_line(void)
{
    struct outgoing *first = &line[line_first];
    if (first->waits)
        __atomic_store_n(first->waits, false, __ATOMIC_RELEASE);
    line_first = (line_first + 1) % (sizeof(line) / sizeof(line[0]));
    line_length--;
    in_progress = false;
}

/* Advances the output as much as possible without waiting. */
static void pump(void)
{
    if (in_progress && !trace_output_busy())
        leave_line();
    if (!in_progress && line_length > 0)
        in_progress = trace_output_start(line[line_first].start, line[line_first].bytes);
}

static void pump_all(void)
{
    while (line_length > 0)
        pump();
}

/* Queues the unsent part of the block. */
static void send_pending(struct trace_buffer *buffer, struct trace_record *end, bool *waits)
{
    join_line(buffer->kept, (size_t)((char *)end - (char *)buffer->kept), waits);
    buffer->kept = end;
    buffer->left = clock_now();
}

/*
 * Moves to the next block because the current one is full; it may have to leave
 * first. Separate from trace_record(), which therefore needs no stack.
 */
static __attribute__((noinline)) void next_block(struct trace_buffer *buffer)
{
    uint32_t done = buffer->current;
    uint32_t next = (done + 1) % TRACE_BLOCKS;
    spinlock_acquire(&trace_lock);
    buffer->full[done] = true;
    send_pending(buffer, buffer->end, &buffer->full[done]);
    pump();
    while (buffer->full[next])
        pump();
    spinlock_release(&trace_lock);
    buffer->current = next;
    buffer->kept = buffer->next = buffer->block[next];
    buffer->end = buffer->next + BLOCK_RECORDS;
}

void trace_record(enum trace_kind kind, uint32_t process, uint32_t first, uint64_t second)
{
    struct cpu *cpu = this_cpu();
    struct trace_record *record = cpu->trace.next;
    if (!record)
        return;
    record->time = clock_now();
    record->sequence = __atomic_fetch_add(&sequence, 1, __ATOMIC_RELAXED);
    record->process = process;
    record->kind = (uint16_t)kind;
    record->cpu = (uint16_t)cpu->id;
    record->first = first;
    record->second = second;
    cpu->trace.records++;
    cpu->trace.next = record + 1;
    if (cpu->trace.next == cpu->trace.end)
        next_block(&cpu->trace);
}

/* Packs twelve characters into the two arguments of a record; the text advances. */
static const char *pack_text(const char *text, uint32_t *first, uint64_t *second)
{
    char packed[12] = {0};
    for (int i = 0; i < 12 && *text; i++)
        packed[i] = *text++;
    memcpy(second, packed, 8);
    memcpy(first, packed + 8, 4);
    return text;
}

void trace_text(enum trace_kind kind, uint32_t process, const char *text)
{
    do {
        uint32_t first;
        uint64_t second;
        text = pack_text(text, &first, &second);
        trace_record(kind, process, first, second);
        kind = TRACE_TEXT;
    } while (*text);
}

void trace_tunable(uint32_t shares_by, const char *name, int64_t value)
{
    trace_record(TRACE_TUNABLE, shares_by, 0, (uint64_t)value);
    trace_text(TRACE_TEXT, 0, name);
}

static struct trace_header header;

static void fill_header(void)
{
    header = (struct trace_header){
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(struct trace_header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = machine.cpus,
        .tick_ns = clock_tick_ns(),
        .cycles_per_second = clock_cycles_per_second(),
        .seed = boot_argument_number("seed", 1),
    };
}

static void create_buffer(struct trace_buffer *buffer)
{
    struct trace_record *first = page_allocate_row(TRACE_BLOCKS * BLOCK_PAGES);
    if (!first)
        panic("no memory for the trace: give the machine more memory");
    for (uint32_t i = 0; i < TRACE_BLOCKS; i++)
        buffer->block[i] = first + i * BLOCK_RECORDS;
    buffer->end = buffer->block[0] + BLOCK_RECORDS;
    buffer->kept = buffer->next = buffer->block[0];
}

void trace_init(void)
{
    if (!trace_output_init())
        return;
    trace_queues = boot_argument_number("trace-queues", 0) != 0;
    delay_ns = boot_argument_number("trace-delay", 0);
    fill_header();
    join_line(&header, sizeof(header), NULL);
    for (uint32_t i = 0; i < machine.cpus; i++)
        create_buffer(&cpus[i].trace);
}

/* At most one part of a CPU is in the queue: more would only lengthen it. */
static bool pending_too_long(const struct trace_buffer *buffer)
{
    return delay_ns && buffer->next > buffer->kept && !buffer->part_waits &&
           clock_now() - buffer->left >= delay_ns;
}

bool trace_needs_ticks(void)
{
    return delay_ns > 0;
}

void trace_poll(void)
{
    struct trace_buffer *buffer = &this_cpu()->trace;
    if (!buffer->next || !(line_length > 0 || pending_too_long(buffer)) ||
        !spinlock_try(&trace_lock))
        return;
    if (pending_too_long(buffer)) {
        buffer->part_waits = true;
        send_pending(buffer, buffer->next, &buffer->part_waits);
    }
    pump();
    spinlock_release(&trace_lock);
}

/* Writes the records of a block that is not full. The other CPUs are parked. */
static void flush_rest(struct trace_buffer *buffer)
{
    if (buffer->next > buffer->kept)
        send_pending(buffer, buffer->next, NULL);
    buffer->next = NULL;
}

static void end_cpu(struct cpu *cpu)
{
    struct trace_record record = {
        .time = clock_now(),
        .sequence = sequence++,
        .kind = TRACE_END,
        .cpu = (uint16_t)cpu->id,
        .second = cpu->trace.records + 1,
    };
    *cpu->trace.next++ = record; /* there is always space for one */
}

void trace_finish(void)
{
    if (!this_cpu()->trace.next)
        return;
    spinlock_acquire(&trace_lock);
    for (uint32_t i = 0; i < machine.cpus; i++) {
        end_cpu(&cpus[i]);
        flush_rest(&cpus[i].trace);
    }
    pump_all();
    spinlock_release(&trace_lock);
}

void trace_abandon(void)
{
    if (!this_cpu()->trace.next)
        return;
    for (uint32_t i = 0; i < machine.cpus; i++)
        flush_rest(&cpus[i].trace);
    pump_all();
}

uint64_t trace_count(void)
{
    return sequence;
}
