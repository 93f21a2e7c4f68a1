/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACING_H
#define SIM_TRACING_H

#include "sim/machine.h"

#define TEXT_BYTES_PER_RECORD 12

/* The trace's file, and the records that no engine writes. */

/* Creates the file, for the following records. */
bool open_trace(struct simulator *simulator, const char *path, struct simulator_error *error);
/* Creates it, and writes the header and each CPU's first record. */
bool begin_trace(struct simulator *simulator, const struct simulator_setup *setup,
                 struct simulator_error *error);
/* Fails the run if the trace could not be written. Returns true then. */
bool trace_failed(struct simulator *simulator);
/* Closes the file if it is open; the buffer's contents are lost. */
void close_trace(struct simulator *simulator);

/* Writes a record at another time than now; `cpu` may be OUTSIDE. */
void record_at(struct simulator *simulator, uint64_t time, uint32_t cpu, enum trace_kind kind,
               uint32_t process, uint32_t first, uint64_t second);
/* Writes a record of an action from outside. */
void record_outside(struct simulator *simulator, enum trace_kind kind, uint32_t process,
                    uint32_t first, uint64_t second);
/* Names the program of the CPU's process, on that process's first turn. */
void record_name(struct simulator *simulator, struct cpu *cpu);
void record_policy(struct simulator *simulator, uint32_t cpu, const char *text);
/* Records the tunable at `index`, with its value now. */
void record_tunable(struct simulator *simulator, uint32_t cpu, uint32_t index);

#endif
