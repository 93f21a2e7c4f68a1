/* SPDX-License-Identifier: MIT */

/*
 * Tests the console with a simulated UART: what a reader gets and what the screen shows, for chosen
 * keys, and for random keys with a plain model.
 */

#include "device_stubs.h"

#include "kernel/device/console.c"

#define UART 0x10000000u

/* ---- the UART: a queue of keys, and a screen of one line ---- */

static char keys[100000];
static size_t keys_pressed, keys_taken;
static bool interrupts_expected;
static void (*interrupt)(void *context);

static char screen[10000]; /* since the last new line */
static size_t cursor;
static char output[100000]; /* all output so far */
static size_t output_length;

uint8_t mmio_read_8(physical_t address)
{
    if (address == UART + UART_LINE_STATUS)
        return STATUS_SENDABLE | (keys_taken < keys_pressed ? STATUS_RECEIVED : 0);
    check(address == UART + UART_DATA && keys_taken < keys_pressed);
    return (uint8_t)keys[keys_taken++];
}

static void show(char c)
{
    if (c == '\n') {
        memset(screen, 0, sizeof screen);
        cursor = 0;
    } else if (c == '\b') {
        cursor -= cursor > 0;
    } else if (((uint8_t)c & 0xc0) != 0x80) { /* a character of UTF-8 takes one column */
        screen[cursor++] = c;
    }
}

void mmio_write_8(physical_t address, uint8_t value)
{
    if (address == UART + UART_INTERRUPT_ENABLE)
        interrupts_expected = value & INTERRUPT_RECEIVED;
    if (address != UART + UART_DATA)
        return;
    show((char)value);
    check(output_length < sizeof output);
    output[output_length++] = (char)value;
}

void interrupt_enable(uint32_t source, void (*handler)(void *context), void *context)
{
    check(source == 10 && !context);
    interrupt = handler;
}

static void deliver_interrupts(void)
{
    while (interrupts_expected && keys_taken < keys_pressed)
        interrupt(NULL);
}

/* ---- the rest of the kernel ---- */

void print_characters(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        console_put(text[i]);
}

static uint64_t echo_expected = 1; /* the boot argument */

uint64_t boot_argument_number(const char *name, uint64_t fallback)
{
    check(strcmp(name, "console-echo") == 0 && fallback == 1);
    return echo_expected;
}

static const struct device_operations *operations;
static unsigned lists_printed, interrupted, waits;
static bool killed, bad_buffer;

void device_register(int number, const struct device_operations *its_operations)
{
    check(number == DEVICE_CONSOLE);
    operations = its_operations;
}

void wait_queue_init(struct wait_queue *queue, const char *name)
{
    (void)queue;
    (void)name;
}

/* Called if no user can type: the reader is killed. */
int wait_on(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason)
{
    check(queue == &input.readers && lock == &input.lock && lock->locked && locks_held == 1);
    check(reason == BLOCK_CONSOLE);
    waits++;
    return -EINTR;
}

void wake_all(struct wait_queue *queue)
{
    check(queue == &input.readers && input.lock.locked);
}

int buffer_put(struct buffer *buffer, const void *source, size_t n)
{
    check(locks_held == 0);
    if (bad_buffer)
        return -EFAULT;
    memcpy((void *)buffer->address, source, n);
    buffer->address += n;
    return 0;
}

int buffer_take(struct buffer *buffer, void *destination, size_t n)
{
    check(locks_held == 0);
    if (bad_buffer)
        return -EFAULT;
    memcpy(destination, (void *)buffer->address, n);
    buffer->address += n;
    return 0;
}

bool current_killed(void)
{
    return killed;
}

void preemption_point(void)
{
    check(locks_held == 0);
}

void process_list_print(void)
{
    check(locks_held == 0);
    lists_printed++;
}

void process_kill_foreground(void)
{
    check(locks_held == 0);
    interrupted++;
}

/* ---- helpers ---- */

static void start(void)
{
    memset(&input, 0, sizeof input);
    keys_pressed = keys_taken = cursor = output_length = 0;
    lists_printed = interrupted = waits = 0;
    killed = bad_buffer = false;
    machine.console = (struct device_range){UART, 0x100};
    machine.console_interrupt = 10;
    console_init_early();
    check(!interrupts_expected);
    console_init();
    check(interrupts_expected);
    memset(screen, 0, sizeof screen);
}

static void press(const char *text)
{
    size_t length = strlen(text);
    check(keys_pressed + length < sizeof keys);
    memcpy(keys + keys_pressed, text, length);
    keys_pressed += length;
    deliver_interrupts();
}

static int64_t read_into(char *text, uint64_t n)
{
    struct buffer buffer = {(uint64_t)text, false};
    int64_t count = operations->read(&buffer, n);
    if (count >= 0)
        text[count] = 0;
    deliver_interrupts();
    return count;
}

static bool reads(const char *expected)
{
    char text[READ_BYTES + 1];
    int64_t count = read_into(text, READ_BYTES);
    return count == (int64_t)strlen(expected) && strcmp(text, expected) == 0;
}

static bool nothing_to_read(void)
{
    char text[READ_BYTES + 1];
    unsigned before = waits;
    return read_into(text, READ_BYTES) == -EINTR && waits == before + 1;
}

/* ---- tests ---- */

static void test_lines(void)
{
    start();
    press("one\rtwo\nthr");
    check(strcmp(screen, "thr") == 0);
    check(reads("one\n") && reads("two\n") && nothing_to_read());
    press("ee\n\n");
    check(reads("three\n") && reads("\n") && nothing_to_read());
}

static void test_short_reads(void)
{
    char text[10];
    start();
    press("abcdefg\n");
    check(read_into(text, 0) == 0);
    check(read_into(text, 3) == 3 && strcmp(text, "abc") == 0);
    check(read_into(text, 5) == 5 && strcmp(text, "defg\n") == 0);
    check(nothing_to_read());
}

static void test_editing(void)
{
    start();
    press("ab\bc\177d");
    check(strcmp(screen, "ad") == 0);
    press("\b\b\b\b");
    check(strcmp(screen, "  ") == 0 && cursor == 0); /* erased at most to the start of the line */
    press("x\n\by\n");                               /* a finished line cannot change */
    check(reads("x\n") && reads("y\n"));
    press("gone\025kept\001\033\n");
    check(reads("kept\n"));
    press("t\tb\b\b\bu\n");
    check(reads("u\n") && nothing_to_read());
}

/* Typed text is edited as usual, but only program output appears. */
static void test_without_echo(void)
{
    echo_expected = 0;
    start();
    press("one\tx\b\025two\n\003three\n");
    check(output_length == 0);
    check(reads("two\n") && reads("three\n"));
    echo_expected = 1;
}

static void test_characters_of_many_bytes(void)
{
    start();
    press("a\303\251\342\202\254");
    check(cursor == 3);
    press("\b");
    check(cursor == 2);
    press("\n");
    check(reads("a\303\251\n"));
    press("\200\200\200\b\b\n"); /* not a character: erased to the start of the line */
    check(reads("\n"));
}

static void test_end_of_input(void)
{
    start();
    press("\004abc\004\004de\004\n");
    check(reads("") && reads("abc") && reads("") && reads("de") && reads("\n"));
    check(nothing_to_read());
}

static void test_process_keys(void)
{
    start();
    press("lo\020st\003kept\n");
    check(lists_printed == 1 && interrupted == 1);
    check(reads("kept\n") && nothing_to_read());
}

static void test_line_too_long(void)
{
    char text[READ_BYTES + 1];
    size_t total = 0;

    start();
    for (int i = 0; i < INPUT_BYTES + 100; i++)
        press("x");
    check(interrupts_expected && keys_taken == keys_pressed); /* still editable */
    press("\by\n");
    while (total == 0 || text[strlen(text) - 1] != '\n') {
        int64_t count = read_into(text, READ_BYTES);
        check(count > 0);
        total += (size_t)count;
    }
    check(total == INPUT_BYTES && nothing_to_read());
    check(text[READ_BYTES - 2] == 'y' && text[READ_BYTES - 3] == 'x');
}

/* Keys far beyond the ring's size, before any process reads: nothing is lost. */
static void test_typed_ahead(void)
{
    char line[20];
    start();
    for (int i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        press(line);
    }
    check(!interrupts_expected && keys_taken < keys_pressed);
    for (int i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        check(reads(line));
    }
    check(interrupts_expected && nothing_to_read());
}

static void test_write(void)
{
    static char text[2000];
    struct buffer buffer = {(uint64_t)text, false};

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    start();
    check(operations->write(&buffer, sizeof text) == sizeof text);
    check(output_length == sizeof text && memcmp(output, text, sizeof text) == 0);
    check(operations->write(&buffer, 0) == 0);
    bad_buffer = true;
    check(operations->write(&buffer, 1) == -EFAULT);
    bad_buffer = false;
    killed = true;
    check(operations->write(&buffer, 1) == -EINTR);
}

static void test_bad_buffer(void)
{
    char text[10];
    start();
    press("lost\nkept\n");
    bad_buffer = true;
    check(read_into(text, 5) == -EFAULT);
    bad_buffer = false;
    check(reads("kept\n"));
}

static void test_no_device(void)
{
    start();
    machine.console.bytes = 0;
    interrupts_expected = false;
    console_init_early();
    console_put('x');
    console_init();
    check(output_length == 0 && !interrupts_expected && nothing_to_read());
}

/* ---- random keys, compared with a model ---- */

static struct {
    char lines[1000000]; /* text for readers, in order */
    size_t lines_length;
    char line[5000]; /* line being typed */
    size_t length;
} model;

static void model_press(char c)
{
    if (c == '\n') {
        memcpy(model.lines + model.lines_length, model.line, model.length);
        model.lines_length += model.length;
        model.lines[model.lines_length++] = '\n';
        model.length = 0;
    } else if (c == '\b') {
        model.length -= model.length > 0;
    } else if (c == CONTROL('U') || c == CONTROL('C')) {
        model.length = 0;
    } else {
        model.line[model.length++] = c;
    }
    model.line[model.length] = 0;
}

static void check_screen(void)
{
    check(cursor == model.length && memcmp(screen, model.line, cursor) == 0);
    for (size_t i = cursor; screen[i]; i++)
        check(screen[i] == ' ');
}

static void test_random_keys(void)
{
    static const char kinds[] = "abcdefghijk\n\b\b\025\003";
    static char text[READ_BYTES + 1];
    size_t read = 0;

    start();
    for (int i = 0; i < 90000; i++) {
        char key[2] = {kinds[random_below(sizeof kinds - 1)], 0};
        press(key);
        model_press(key[0]);
        if (keys_taken == keys_pressed && key[0] != '\n' && key[0] != '\003')
            check_screen();
        output_length = 0;
        if (random_below(10) == 0 && input.taken != input.finished) {
            int64_t count = read_into(text, 1 + random_below(30));
            check(count > 0 && memcmp(text, model.lines + read, (size_t)count) == 0);
            read += (size_t)count;
        }
    }
    while (input.taken != input.finished) {
        int64_t count = read_into(text, READ_BYTES);
        check(count > 0 && memcmp(text, model.lines + read, (size_t)count) == 0);
        read += (size_t)count;
        output_length = 0;
    }
    check(read == model.lines_length && keys_taken == keys_pressed);
}

int main(void)
{
    run_test(test_lines);
    run_test(test_short_reads);
    run_test(test_editing);
    run_test(test_without_echo);
    run_test(test_characters_of_many_bytes);
    run_test(test_end_of_input);
    run_test(test_process_keys);
    run_test(test_line_too_long);
    run_test(test_typed_ahead);
    run_test(test_write);
    run_test(test_bad_buffer);
    run_test(test_no_device);
    run_test(test_random_keys);
    return 0;
}
