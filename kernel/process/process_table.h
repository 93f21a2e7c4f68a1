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
/* Returns null if there is none. owners_lock serves, too. */
struct process *process_table_find(int pid);
/* Returns the one that comes after that of `pid` in the order of creation, the first one after 0,
 * or null if there is none. If that has ended meanwhile, PIDs tell where to go on. */
struct process *process_table_after(int pid);
uint32_t process_table_count(void);

#endif
