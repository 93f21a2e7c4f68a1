/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_WORKLOAD_H
#define WORKLOADS_API_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The interface of workloads: one C file that uses these functions, which the
 * schedlab kernel's user space and Linux both offer. docs/workloads.md explains
 * them.
 *
 * A function here that fails prints the reason and ends the process with status
 * 1; such an end of a child makes the whole workload fail.
 */

/* An option with a number: "-n 8". */
struct workload_option {
    char letter;
    const char *meaning; /* one line, with the unit */
    int64_t *value;      /* contains the default initially */
    int64_t minimum;
    int64_t maximum;
};

/*
 * Must be called first in main(): reads the options, and -s SEED and --help,
 * which all workloads have. Without -s the seed is the machine's. Wrong usage
 * ends the process with status 2.
 */
void workload_init(int argc, char *argv[], const char *meaning,
                   const struct workload_option *options, size_t count);
/*
 * Must be called before that, in a program of several tests. Removes the first word, which names a
 * test or gives its number from 1, from the arguments. Returns the test's index among the names, or
 * -1 if there is no such word. A wrong word ends the program with status 2.
 */
int workload_choose(int *argc, char *argv[], const char *const names[], int count);
/* Ends the process with status 2, and "program: text: why". */
_Noreturn void workload_wrong_usage(const char *program, const char *text, const char *why);
/* Ends the process with status 1, after printing why it cannot do its work. */
_Noreturn void workload_fail(const char *why);

/* Opens the measured window, by the root process, which becomes the group "root". */
void workload_begin(void);
/* Waits for all children, and ends the window. Returns the exit status for main(): 0, or 1 if one
 * failed.
 */
int workload_finish(void);
/*
 * If the window must have a given length, its members open and close it. A running member notices
 * the time promptly, regardless of the root. Of several calls of one of these functions, the first
 * counts. The root first declares the window's length: a window of another length is not a result.
 */
void workload_window(int64_t ticks);
void workload_window_for(int64_t nanoseconds);
void workload_open(void);
void workload_end(void);

/* Starts a child that calls run(argument) and ends. Returns its PID. It has a separate sequence
 * of random numbers. */
int workload_start(void (*run)(int64_t argument), int64_t argument);
/* Waits for all children. Returns how many failed. */
int workload_wait_all(void);

/* Ends a child, which then does not count as failed. */
void workload_stop(int pid);

/*
 * A gate, for children that must all start at the same time. The parent creates
 * it before it starts them. Each child waits there when it is ready, and
 * receives a number when the gate opens. The parent waits for a given number of
 * children, and opens the gate.
 */
void workload_gate_make(void);
int64_t workload_gate_wait(void);
void workload_gate_gather(int64_t children);
void workload_gate_open(int64_t children, int64_t number);

/* Passes numbers between processes: a pipe, created before the processes that share it. */
struct workload_channel {
    int ends[2];
};
void workload_channel_make(struct workload_channel *channel);
void workload_send(const struct workload_channel *channel, int64_t number);
int64_t workload_receive(const struct workload_channel *channel); /* waits until there is one */
/* The caller will only read, or only write: that frees one of the few open files that it may
 * have. */
void workload_channel_sends(const struct workload_channel *channel);
void workload_channel_receives(const struct workload_channel *channel);

/* Sets the caller's group in the tables: up to 8 characters. */
void workload_group(const char *label);
/* Records a number in the trace, by a name of up to 8 characters, whether the window is open or
 * not. */
void workload_tell(const char *name, int64_t value);
/* Sets the scheduling attributes of the caller, and of its later children. */
void workload_priority(int priority);
void workload_tickets(int tickets);
void workload_weight(int weight);

/*
 * Uses CPU time without any other effect. On RISC-V, and on x86-64 since 2013 (BMI2), one iteration
 * is exactly WORKLOAD_BURN_INSTRUCTIONS instructions. So 100,000 iterations are a millisecond of a
 * 1 GHz CPU at one instruction a cycle, and 4 ms of Linux's instruction-counted guest. A machine
 * may let that time pass without executing them.
 */
#define WORKLOAD_BURN_INSTRUCTIONS 10
void workload_burn(uint64_t iterations);
/* Returns the instructions of this CPU since its start; 0 on other hosts than RISC-V. */
uint64_t workload_instructions(void);
/* Lets the time of these instructions pass without executing them, on a machine that can. Returns
 * false, at once, on others: then the caller must execute them. */
bool workload_pass(uint64_t instructions);

void workload_sleep(int64_t ticks);
int64_t workload_ticks(void);       /* since some time in the past */
int64_t workload_nanoseconds(void); /* the same, at the clock's resolution */
void workload_yield(void);
int64_t workload_switches(void); /* context switches of the machine since boot; -1: unknown */
/* Runs a program of the machine in place of the caller, by its name. */
_Noreturn void workload_become(char *const arguments[]);

/* The caller's own file: creates it with `bytes` bytes; reads it back and compares; removes it. */
void workload_write_file(int64_t bytes);
void workload_read_file(int64_t bytes);
void workload_remove_file(void);
void workload_remove_file_of(int pid); /* what a child has left behind */
/* Creates it, empty, and returns its descriptor; adds a line of text. */
int workload_create_file(void);
void workload_write_line(int file);

/* Writes a line to the console, in one write. */
void workload_print(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

/* Returns a seeded random number from 0 to `limit` - 1; limit > 0. Each process has a separate
 * sequence. */
uint64_t workload_random(uint64_t limit);

#endif
