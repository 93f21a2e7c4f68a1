/* SPDX-License-Identifier: MIT */
#include "console.h"

#include "abi/errors.h"
#include "abi/files.h"
#include "device_tree.h"
#include "fs/file.h"
#include "interrupt_controller.h"
#include "lib/print.h"
#include "mmio.h"
#include "process/process.h"

/*
 * A 16550 UART. Output waits for each character to be taken. Input comes by
 * interrupt into a ring of characters:
 *
 *   taken ..... finished ..... end
 *         lines that a reader    the line that is being
 *         may have               typed and edited
 */
#define UART_DATA             0 /* read: received; write: to be sent */
#define UART_INTERRUPT_ENABLE 1
#define UART_FIFO_CONTROL     2
#define UART_LINE_CONTROL     3
#define UART_LINE_STATUS      5

#define INTERRUPT_RECEIVED 0x01 /* in UART_INTERRUPT_ENABLE */
#define FIFO_ENABLE        0x01
#define LINE_8_BITS        0x03
#define STATUS_RECEIVED    0x01
#define STATUS_SENDABLE    0x20

#define INPUT_BYTES 4096 /* limit of typed-ahead input; a power of two */
#define READ_BYTES  512  /* returned by one read(), at most */
#define WRITE_BYTES 512  /* of one write() stay together */

#define CONTROL(letter) ((letter) - '@')
#define DELETE          0x7f
#define END_OF_INPUT    CONTROL('D') /* in the ring: ends the line before it */

/* LOCK_CONSOLE guards all of it. */
static struct {
    struct spinlock lock;
    struct wait_queue readers;
    char text[INPUT_BYTES];
    uint32_t taken; /* these three are never reset; their place is modulo INPUT_BYTES */
    uint32_t finished;
    uint32_t end;
    bool is_paused; /* the ring is full of lines: further input waits in the UART */
    bool echoes;    /* the boot argument console-echo: typed characters are shown; never changes */
} input;

/* Both machines use this address, so messages work before the device tree is read. */
static physical_t uart = 0x10000000;

/* ---- output ---- */

void console_put(char c)
{
    if (uart == 0)
        return;
    while (!(mmio_read_8(uart + UART_LINE_STATUS) & STATUS_SENDABLE))
        ;
    mmio_write_8(uart + UART_DATA, (uint8_t)c);
}

/* Shows typed characters, unless the boot arguments disable it. */
static void echo(const char *text)
{
    while (*text && input.echoes)
        console_put(*text++);
}

static int64_t console_write(struct buffer *source, uint64_t n)
{
    char text[WRITE_BYTES];
    uint64_t written = 0;

    while (written < n) {
        uint64_t part = n - written < sizeof text ? n - written : sizeof text;
        int error = current_killed() ? -EINTR : buffer_take(source, text, part);
        if (error)
            return written > 0 ? (int64_t)written : error;
        print_characters(text, part);
        written += part;
        preemption_point();
    }
    return (int64_t)written;
}

/* ---- input ---- */

static char *character_at(uint32_t place)
{
    return &input.text[place % INPUT_BYTES];
}

static uint32_t room(void)
{
    return INPUT_BYTES - (input.end - input.taken);
}

static void finish_line(char last)
{
    if (room() == 0)
        return;
    *character_at(input.end++) = last;
    input.finished = input.end;
    wake_all(&input.readers);
}

static void append(char c)
{
    if (room() <= 1) /* the last place is reserved for the end of the line */
        return;
    *character_at(input.end++) = c;
    echo((const char[]){c == '\t' ? ' ' : c, 0});
}

/* Erases a UTF-8 character with all its bytes: continuation bytes are 10xxxxxx. */
static bool erase_character(void)
{
    if (input.end == input.finished)
        return false;
    while (input.end - input.finished > 1 && (*character_at(input.end - 1) & 0xc0) == 0x80)
        input.end--;
    input.end--;
    echo("\b \b");
    return true;
}

static void erase_line(void)
{
    while (erase_character())
        ;
}

static void edit(char c)
{
    switch (c) {
    case '\r':
    case '\n':
        echo("\n");
        finish_line('\n');
        break;
    case CONTROL('D'):
        finish_line(END_OF_INPUT);
        break;
    case CONTROL('C'):
        input.end = input.finished;
        echo("^C\n");
        break;
    case CONTROL('U'):
        erase_line();
        break;
    case '\b':
    case DELETE:
        erase_character();
        break;
    default:
        if ((uint8_t)c >= ' ' || c == '\t')
            append(c);
    }
}

/* The functions called at the end access processes, whose locks precede the console's. */
static void receive(char c)
{
    spinlock_acquire(&input.lock);
    edit(c);
    spinlock_release(&input.lock);

    if (c == CONTROL('P'))
        process_list_print();
    if (c == CONTROL('C'))
        process_kill_foreground();
}

/* A full ring without one whole line is not held back: only editing can free space there. */
static bool hold_back(void)
{
    spinlock_acquire(&input.lock);
    bool is_paused = room() <= 1 && input.taken != input.finished;
    if (is_paused) {
        input.is_paused = true;
        mmio_write_8(uart + UART_INTERRUPT_ENABLE, 0);
    }
    spinlock_release(&input.lock);
    return is_paused;
}

/* Accepts input again once there is space; needs the lock. */
static void let_in(void)
{
    if (!input.is_paused)
        return;
    input.is_paused = false;
    mmio_write_8(uart + UART_INTERRUPT_ENABLE, INTERRUPT_RECEIVED);
}

static void console_interrupt(void *context)
{
    (void)context;
    while ((mmio_read_8(uart + UART_LINE_STATUS) & STATUS_RECEIVED) && !hold_back())
        receive((char)mmio_read_8(uart + UART_DATA));
}

/* Takes at most n characters of one line. */
static uint64_t take_line(char *text, uint64_t n)
{
    uint64_t count = 0;
    while (count < n && input.taken != input.finished) {
        char c = *character_at(input.taken++);
        if (c == END_OF_INPUT)
            break;
        text[count++] = c;
        if (c == '\n')
            break;
    }
    return count;
}

static int64_t console_read(struct buffer *destination, uint64_t n)
{
    char text[READ_BYTES];
    int error = 0;

    if (n == 0)
        return 0;
    spinlock_acquire(&input.lock);
    while (input.taken == input.finished && !error)
        error = wait_on(&input.readers, &input.lock, BLOCK_CONSOLE);
    uint64_t count = error ? 0 : take_line(text, n < sizeof text ? n : sizeof text);
    let_in();
    spinlock_release(&input.lock);

    if (!error)
        error = buffer_put(destination, text, count);
    return error ? error : (int64_t)count;
}

/* ---- start ---- */

void console_init_early(void)
{
    uart = machine.console.bytes > UART_LINE_STATUS ? machine.console.start : 0;
    if (uart == 0)
        return;
    mmio_write_8(uart + UART_INTERRUPT_ENABLE, 0);
    mmio_write_8(uart + UART_LINE_CONTROL, LINE_8_BITS);
    mmio_write_8(uart + UART_FIFO_CONTROL, FIFO_ENABLE); /* without it Spike receives nothing */
}

void console_init(void)
{
    static const struct device_operations operations = {console_read, console_write};

    spinlock_init(&input.lock, "console", LOCK_CONSOLE);
    wait_queue_init(&input.readers, "console");
    input.echoes = boot_argument_number("console-echo", 1) != 0;
    device_register(DEVICE_CONSOLE, &operations);
    if (uart == 0 || machine.console_interrupt == 0) {
        print("console: no interrupt, so no input\n");
        return;
    }
    interrupt_enable(machine.console_interrupt, console_interrupt, NULL);
    mmio_write_8(uart + UART_INTERRUPT_ENABLE, INTERRUPT_RECEIVED);
}
