/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_LIFECYCLE_H
#define KERNEL_PROCESS_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"
#include "process/process.h"

void process_init(void);
/* Makes the first process, PID 1, which mounts the file system and becomes the program `init`. */
void process_create_first(void);

/* Returns the child's PID, -EAGAIN or -ENOMEM. */
int64_t process_fork(void);
/* Ends the current process; PID 1 gets its children. */
_Noreturn void process_exit(int status);
/* Waits for a child to end. Returns its PID, and its status at user address `status` unless that
 * is 0; or -ECHILD, -EINTR or -EFAULT. */
int64_t process_wait(uint64_t status);
/* Returns in addition the child's resource use. */
struct ended_process {
    uint64_t run_time;     /* nanoseconds */
    uint64_t waiting_time; /* nanoseconds that it was runnable and did not run */
    uint64_t selections;   /* times that it was picked */
};
int64_t process_wait_for(uint64_t status, struct ended_process *ended);
/* Makes the process end before it returns to user mode. Returns 0, -ESRCH, or -EPERM for PID 1. */
int64_t process_kill(int pid);
/* Replaces the program; on success returns argc, which becomes its first argument. */
int64_t process_exec(uint64_t path, uint64_t arguments);
/* Waits until `ticks` ticks have passed. Returns 0 or -EINTR. */
int64_t process_sleep(int64_t ticks);
/* Sleeps until `when` nanoseconds after boot. Returns 0; 1 if that time has passed and it did
 * not sleep; or -EINTR. */
int64_t process_sleep_until(uint64_t when);

/* Returns 0, -ESRCH or -ERANGE. pid 0: the caller; -n: all processes of group n. */
int64_t process_set_attribute(int pid, uint32_t kind, int64_t value);
int64_t process_get_attribute(int pid, uint32_t kind, int64_t *value);
/* Set and get the CPUs of a process. Both return 0 or -ESRCH; the first one -EINVAL if there are
 * no such CPUs. */
int64_t process_set_affinity(int pid, const struct cpu_set *cpus);
int64_t process_get_affinity(int pid, struct cpu_set *cpus);
/* Fills in the row of a process; pid 0: of the caller. Returns 0 or -ESRCH. */
int process_describe(int pid, struct process_info *row);
/* Fills up to `room` rows with the processes created after that of PID *last, in the order of
 * creation; 0 starts with the first. Returns their number; *last becomes the last one's PID. */
int process_describe_next(struct process_info *rows, int room, int *last);
/* Fills rows in user memory. Returns how many processes there are, or -EFAULT. */
int64_t process_get_info(uint64_t rows, int64_t capacity);
/* Returns its name as one word. */
const char *process_state_name(enum process_state state);
uint32_t process_count(void);
uint64_t process_finished(void);

void process_mark_killed(struct process *process);
/* Returns true for PID 1, which no process may end. */
bool process_is_first(const struct process *process);

/* Marks the current process as blocked. Returns false if it was killed, and is not blocked. */
bool process_block(struct process *process, enum block_reason reason, bool killable);
/* Makes the process runnable if it is blocked. */
void process_wake(struct process *process);

/* For the console, ^C: ends the shell's children. */
void process_kill_foreground(void);
/* For the console, ^P: prints the processes. */
void process_list_print(void);

#endif
