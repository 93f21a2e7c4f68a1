/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_PROCESS_TABLE_H
#define KERNEL_PROCESS_PROCESS_TABLE_H

#include <stdint.h>

#include "lib/list.h"
#include "process/process.h"

/*
 * All processes, by PID and in the order of their creation, and the tree of
 * parents and children. Private to kernel/process/. process_tree_lock guards it.
 */
extern struct spinlock process_tree_lock;
extern struct list all_processes;

void process_table_init(void);
/* Gives the process a PID and a slot and puts it into the table. Returns 0 or -EAGAIN. */
int process_table_add(struct process *process);
void process_table_remove(struct process *process);
/* Returns null if there is none. Holding owners_lock is sufficient, too. */
struct process *process_table_find(int pid);
/* Returns the process created after that of PID `pid`; 0: the first one. Returns null if there
 * is none. If `pid` has ended since, the order of PIDs gives the position. */
struct process *process_table_after(int pid);
uint32_t process_table_count(void);

#endif
