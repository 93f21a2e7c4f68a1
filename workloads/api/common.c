/* SPDX-License-Identifier: MIT */

/* The part of the workload API that is the same on all hosts. */

#include "workloads/api/host.h"
#include "workloads/api/workload.h"

#include "abi/machine_hints.h"
#include "user/library/random.h"

static struct random numbers;
static uint64_t started; /* children, so far */
static bool stopped;     /* a child, by workload_stop() */
static int root;         /* PID of the process that set the length of the window */

/* Options */

static bool same_text(const char *left, const char *right)
{
    while (*left && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

static void show_help(const char *program, const char *meaning,
                      const struct workload_option *options, size_t count)
{
    host_print(false, "usage: %s [OPTION NUMBER]...\n%s\n\n", program, meaning);
    for (size_t i = 0; i < count; i++)
        host_print(false, "  -%c  %s (%ld; from %ld to %ld)\n", options[i].letter,
                   options[i].meaning, *options[i].value, options[i].minimum, options[i].maximum);
    host_print(false, "  -s  seed of the random numbers (the boot argument seed, or 1)\n");
}

void workload_wrong_usage(const char *program, const char *text, const char *why)
{
    host_print(true, "%s: %s: %s; see %s --help\n", program, text, why, program);
    host_exit(2);
}

void workload_fail(const char *why)
{
    host_print(true, "workload: %s\n", why);
    host_exit(1);
}

/* Returns false if it is not a decimal number below 10^18. */
static bool read_number(const char *text, int64_t *number)
{
    int64_t value = 0;
    int digits = 0;
    for (; *text >= '0' && *text <= '9' && digits < 18; text++, digits++)
        value = value * 10 + (*text - '0');
    *number = value;
    return digits > 0 && !*text;
}

static const struct workload_option *
find_option(const char *text, const struct workload_option *options, size_t count)
{
    if (text[0] != '-' || !text[1] || text[2])
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (options[i].letter == text[1])
            return &options[i];
    }
    return NULL;
}

static void take_option(const char *program, char *const argument[],
                        const struct workload_option *option)
{
    int64_t number;
    if (!argument[1] || !read_number(argument[1], &number))
        workload_wrong_usage(program, argument[0], "needs a number");
    if (number < option->minimum || number > option->maximum)
        workload_wrong_usage(program, argument[0], "out of range");
    *option->value = number;
}

void workload_init(int argc, char *argv[], const char *meaning,
                   const struct workload_option *options, size_t count)
{
    const char *program = argc > 0 ? argv[0] : "workload";
    int64_t seed = (int64_t)(host_seed() & INT64_MAX);
    const struct workload_option seed_option = {'s', "", &seed, 0, INT64_MAX};

    for (int i = 1; i < argc; i += 2) {
        if (same_text(argv[i], "--help")) {
            show_help(program, meaning, options, count);
            host_exit(0);
        }
        const struct workload_option *option = find_option(argv[i], options, count);
        if (!option)
            option = find_option(argv[i], &seed_option, 1);
        if (!option)
            workload_wrong_usage(program, argv[i], "no such option");
        take_option(program, argv + i, option);
    }
    numbers.state = (uint64_t)seed;
}

/* Returns the index of a name, given as a number from 1 or as the name itself; -1: not found. */
static int find_name(const char *text, const char *const names[], int count)
{
    int64_t number;
    if (read_number(text, &number))
        return number >= 1 && number <= count ? (int)number - 1 : -1;
    for (int i = 0; i < count; i++) {
        if (same_text(text, names[i]))
            return i;
    }
    return -1;
}

int workload_choose(int *argc, char *argv[], const char *const names[], int count)
{
    if (*argc < 2 || argv[1][0] == '-')
        return -1;
    int match = find_name(argv[1], names, count);
    if (match < 0)
        workload_wrong_usage(argv[0], argv[1], "no such test");
    for (int i = 1; i < *argc; i++)
        argv[i] = argv[i + 1];
    --*argc;
    return match;
}

/* The window and its processes */

void workload_begin(void)
{
    workload_group("root");
    host_mark(MARK_BEGIN, 0);
}

int workload_finish(void)
{
    int failed = workload_wait_all();
    host_mark(MARK_END, 0);
    if (failed > 0)
        host_print(true, "%d processes failed\n", failed);
    return failed > 0 ? 1 : 0;
}

void workload_window(int64_t ticks)
{
    workload_window_for(ticks * (int64_t)host_tick_ns());
}

void workload_window_for(int64_t nanoseconds)
{
    root = host_process();
    workload_group("root");
    workload_tell("window", nanoseconds);
}

void workload_open(void)
{
    host_mark(MARK_BEGIN, (uint64_t)root);
}

void workload_end(void)
{
    host_mark(MARK_END, 0);
}

int workload_start(void (*run)(int64_t argument), int64_t argument)
{
    uint64_t seed = random_next(&numbers) + ++started;
    int pid = host_fork();
    if (pid < 0)
        host_fail("fork");
    if (pid == 0) {
        numbers.state = seed;
        started = 0;
        run(argument);
        host_exit(0);
    }
    return pid;
}

int workload_wait_all(void)
{
    int failed = 0;
    int status;
    while (host_wait(&status) > 0)
        failed += status > 0 || (status < 0 && !stopped);
    return failed;
}

void workload_stop(int pid)
{
    stopped = true; /* a child may now have ended because of workload_stop() */
    host_kill(pid);
}

/* The gate: a pipe that reports arrivals, and a pipe that releases children. */

static int gate_arrivals[2];
static int gate_numbers[2];

void workload_gate_make(void)
{
    if (!host_pipe(gate_arrivals) || !host_pipe(gate_numbers))
        host_fail("pipe");
}

int64_t workload_gate_wait(void)
{
    int64_t number = 0;
    char token = 0;
    if (!host_write(gate_arrivals[1], &token, sizeof(token)) ||
        !host_read(gate_numbers[0], &number, sizeof(number)))
        host_fail("gate");
    return number;
}

void workload_gate_gather(int64_t children)
{
    char token;
    for (int64_t i = 0; i < children; i++) {
        if (!host_read(gate_arrivals[0], &token, sizeof(token)))
            host_fail("gate");
    }
}

/* Each write wakes one child, so that no child depends on another for its wake-up. */
void workload_gate_open(int64_t children, int64_t number)
{
    for (int64_t i = 0; i < children; i++) {
        if (!host_write(gate_numbers[1], &number, sizeof(number)))
            host_fail("gate");
    }
}

/* A number is written and read atomically: several processes may write, and several may read. */

void workload_channel_make(struct workload_channel *channel)
{
    if (!host_pipe(channel->ends))
        host_fail("pipe");
}

void workload_send(const struct workload_channel *channel, int64_t number)
{
    if (!host_write(channel->ends[1], &number, sizeof(number)))
        host_fail("send");
}

int64_t workload_receive(const struct workload_channel *channel)
{
    int64_t number;
    if (!host_read(channel->ends[0], &number, sizeof(number)))
        host_fail("receive");
    return number;
}

void workload_channel_sends(const struct workload_channel *channel)
{
    host_close(channel->ends[0]);
}

void workload_channel_receives(const struct workload_channel *channel)
{
    host_close(channel->ends[1]);
}

/* Returns up to 8 characters as a number, the first in its lowest byte. */
static uint64_t mark_text(const char *text)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8 && text[i]; i++)
        value |= (uint64_t)(unsigned char)text[i] << (8 * i);
    return value;
}

void workload_group(const char *label)
{
    host_mark(MARK_GROUP, mark_text(label));
}

void workload_tell(const char *name, int64_t value)
{
    host_mark(MARK_NAME, mark_text(name));
    host_mark(MARK_VALUE, (uint64_t)value);
}

uint64_t workload_random(uint64_t limit)
{
    return random_below(&numbers, limit);
}

/* Work */

#define BURN_START 88172645463325252u

#ifdef __riscv
uint64_t workload_instructions(void)
{
    uint64_t instructions;
    __asm__ volatile("rdinstret %0" : "=r"(instructions));
    return instructions;
}

bool workload_pass(uint64_t instructions)
{
    __asm__ volatile("slti x0, %[left], %[burn]"
                     : [left] "+r"(instructions)
                     : [burn] "i"(HINT_BURN));
    return instructions == 0;
}
#else
uint64_t workload_instructions(void)
{
    return 0;
}

bool workload_pass(uint64_t instructions)
{
    (void)instructions;
    return false;
}
#endif

/* The step is xorshift64 (Marsaglia 2003); the sum keeps the whole chain alive. */
#ifdef __riscv
/*
 * First comes an instruction that the instruction set reserves for custom hints, so that most
 * machines ignore it. A machine that knows it lets that much time pass there (abi/machine_hints.h),
 * and sets the register to 0. With the loop or without, the number of instructions is the same.
 */
void workload_burn(uint64_t iterations)
{
    uint64_t time = WORKLOAD_BURN_INSTRUCTIONS * iterations + 1;
    uint64_t value = BURN_START;
    uint64_t sum = 0;
    uint64_t shifted;
    if (iterations == 0)
        return;
    __asm__ volatile("   slti x0, %[time], %[burn]\n"
                     "   beqz %[time], 2f\n"
                     "1: slli %[shifted], %[value], 13\n"
                     "   xor  %[value], %[value], %[shifted]\n"
                     "   srli %[shifted], %[value], 7\n"
                     "   xor  %[value], %[value], %[shifted]\n"
                     "   slli %[shifted], %[value], 17\n"
                     "   xor  %[value], %[value], %[shifted]\n"
                     "   add  %[sum], %[sum], %[value]\n"
                     "   xor  %[sum], %[sum], %[left]\n"
                     "   addi %[left], %[left], -1\n"
                     "   bnez %[left], 1b\n"
                     "2:\n"
                     : [time] "+r"(time), [value] "+r"(value), [sum] "+r"(sum),
                       [left] "+r"(iterations), [shifted] "=&r"(shifted)
                     : [burn] "i"(HINT_BURN));
}
#else
static void burn_anywhere(uint64_t iterations)
{
    uint64_t value = BURN_START;
    uint64_t sum = 0;
    for (; iterations > 0; iterations--) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        sum = (sum + value) ^ iterations;
        __asm__ volatile("" : "+r"(sum));
    }
}

#ifdef __x86_64__
/* BMI2 has shifts with three operands: with them the number of instructions is the same as on
 * RISC-V. */
static void burn_exactly(uint64_t iterations)
{
    uint64_t value = BURN_START;
    uint64_t sum = 0;
    uint64_t shifted;
    if (iterations == 0)
        return;
    __asm__ volatile(
        "1: shlx %[by13], %[value], %[shifted]\n"
        "   xor  %[shifted], %[value]\n"
        "   shrx %[by7], %[value], %[shifted]\n"
        "   xor  %[shifted], %[value]\n"
        "   shlx %[by17], %[value], %[shifted]\n"
        "   xor  %[shifted], %[value]\n"
        "   add  %[value], %[sum]\n"
        "   xor  %[left], %[sum]\n"
        "   dec  %[left]\n"
        "   jnz  1b\n"
        : [value] "+r"(value), [sum] "+r"(sum), [left] "+r"(iterations), [shifted] "=&r"(shifted)
        : [by13] "r"(13ull), [by7] "r"(7ull), [by17] "r"(17ull)
        : "cc");
}

void workload_burn(uint64_t iterations)
{
    if (__builtin_cpu_supports("bmi2"))
        burn_exactly(iterations);
    else
        burn_anywhere(iterations);
}
#else
void workload_burn(uint64_t iterations)
{
    burn_anywhere(iterations);
}
#endif
#endif

uint64_t fastest_burn(uint64_t iterations, int tries)
{
    uint64_t fastest = 1;
    for (; tries > 0; tries--) {
        int64_t begin = workload_nanoseconds();
        workload_burn(iterations);
        uint64_t time = (uint64_t)(workload_nanoseconds() - begin);
        uint64_t speed = iterations * 1000000 / (time ? time : 1);
        if (speed > fastest)
            fastest = speed;
    }
    return fastest;
}

/* Files */

enum { BLOCK_SIZE = 4096 };

static char block[BLOCK_SIZE];

/* Returns byte `offset` of a process's file: it reveals a block in a wrong place or file. */
static char file_byte(int pid, int64_t offset)
{
    return (char)(pid * 31 + offset * 7 + offset / 256);
}

static int part(int64_t left)
{
    return left < BLOCK_SIZE ? (int)left : BLOCK_SIZE;
}

static int open_file(bool create)
{
    int descriptor = host_open(create);
    if (descriptor < 0)
        host_fail("open");
    return descriptor;
}

void workload_write_file(int64_t bytes)
{
    int descriptor = open_file(true);
    int pid = host_process();
    int n;
    for (int64_t offset = 0; offset < bytes; offset += n) {
        n = part(bytes - offset);
        for (int i = 0; i < n; i++)
            block[i] = file_byte(pid, offset + i);
        if (!host_write(descriptor, block, n))
            host_fail("write");
    }
    host_close(descriptor);
}

void workload_read_file(int64_t bytes)
{
    int descriptor = open_file(false);
    int pid = host_process();
    int n;
    for (int64_t offset = 0; offset < bytes; offset += n) {
        n = part(bytes - offset);
        if (!host_read(descriptor, block, n))
            host_fail("read");
        for (int i = 0; i < n; i++) {
            if (block[i] != file_byte(pid, offset + i))
                workload_fail("its file does not hold what was written");
        }
    }
    host_close(descriptor);
}

int workload_create_file(void)
{
    return open_file(true);
}

void workload_write_line(int file)
{
    static const char line[] = "A line of text, as somebody who types might write it.\n";
    if (!host_write(file, line, sizeof(line) - 1))
        host_fail("write");
}

void workload_remove_file_of(int pid)
{
    if (!host_remove(pid))
        host_fail("unlink");
}

void workload_remove_file(void)
{
    workload_remove_file_of(host_process());
}
