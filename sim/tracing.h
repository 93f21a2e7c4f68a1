/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACING_H
#define SIM_TRACING_H

#include "sim/machine.h"

#define TEXT_BYTES_PER_RECORD 12

/* Manages the trace's file, and writes the records that the engines do not write. */

/* Creates the trace's file. */
bool open_trace(struct simulator *simulator, const char *path, struct simulator_error *error);
/* Creates the trace's file, and writes the header and each CPU's first record. */
bool begin_trace(struct simulator *simulator, const struct simulator_setup *setup,
                 struct simulator_error *error);
/* Returns true if the trace could not be written; the run then fails. */
bool trace_failed(struct simulator *simulator);
/* Closes the file if it is open, and discards the buffer's contents. */
void close_trace(struct simulator *simulator);

/* Writes a record with the time `time`. `cpu` may be OUTSIDE. */
void record_at(struct simulator *simulator, uint64_t time, uint32_t cpu, enum trace_kind kind,
               uint32_t process, uint32_t first, uint64_t second);
/* Writes a record of an action from outside. */
void record_outside(struct simulator *simulator, enum trace_kind kind, uint32_t process,
                    uint32_t first, uint64_t second);
/* Records the program's name of the CPU's process, when the process first gets a CPU. */
void record_name(struct simulator *simulator, struct cpu *cpu);
void record_policy(struct simulator *simulator, uint32_t cpu, const char *text);
/* Records an annotation about no process, from outside. */
void record_note(struct simulator *simulator, const char *text);
/* Records the present value of the tunable at `index`. */
void record_tunable(struct simulator *simulator, uint32_t cpu, uint32_t index);

#endif
