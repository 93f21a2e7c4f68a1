/* SPDX-License-Identifier: MIT */

/*
 * The simulator as a WebAssembly module: functions of numbers and texts, for session/machine.js of
 * the monitor's page. There is one machine in each instance, so a copy of the instance's memory is
 * a copy of the machine.
 *
 * A function that fails returns 0 (or false); machine_error() gives the reason. Times are
 * nanoseconds.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/memory_trace.h"
#include "sim/control.h"
#include "sim/workload.h"

#define EXPORTED(name) __attribute__((export_name(#name), used)) name

static struct simulator *machine;
static struct simulator_error error;
static char *text;

/* ---- memory that the host writes texts into ---- */

void *EXPORTED(take_memory)(size_t bytes)
{
    return malloc(bytes);
}

void EXPORTED(give_memory)(void *taken)
{
    free(taken);
}

const char *EXPORTED(machine_error)(void)
{
    return error.text;
}

/* ---- a machine ---- */

static uint64_t policy_clock, policy_run_time;

/* Sets the offsets of the times that the next machine's policy sees (sim/simulator.h). */
void EXPORTED(machine_offset_policy)(uint64_t clock, uint64_t run_time)
{
    policy_clock = clock;
    policy_run_time = run_time;
}

/* Creates a machine that plays a workload file (abi/workload_file.h). `added_steps`: capacity
 * for machine_add(). */
bool EXPORTED(machine_play)(const char *policy, const char *tunables, uint32_t cpus,
                            uint32_t processes, uint64_t tick_ns, uint64_t seed, const char *costs,
                            const void *file, uint32_t bytes, bool trace_queues,
                            uint32_t added_steps)
{
    struct simulator_workload workload;
    struct simulator_setup setup = {
        .policy = policy,
        .tunables = tunables,
        .cpus = cpus,
        .processes = processes,
        .tick_ns = tick_ns,
        .seed = seed,
        .trace = "memory",
        .trace_queues = trace_queues,
        .added_steps = added_steps,
        .policy_clock = policy_clock,
        .policy_run_time = policy_run_time,
    };
    if (!simulator_read_costs(&setup.costs, costs, &error) ||
        !simulator_read_workload(&workload, "workload", file, bytes, tick_ns, &error))
        return false;
    machine = simulator_create(&setup, &workload, &error);
    simulator_free_workload(&workload);
    return machine != NULL;
}

/* enum simulator_status. */
uint32_t EXPORTED(machine_run)(uint64_t until)
{
    return simulator_run(machine, until, &error);
}

uint64_t EXPORTED(machine_next)(void)
{
    return simulator_next(machine);
}

/* Makes all records so far available. */
bool EXPORTED(machine_flush)(void)
{
    return simulator_flush(machine, &error);
}

bool EXPORTED(machine_finish)(void)
{
    return simulator_finish(machine, &error);
}

/* Ends the machine. Returns false if a process is not in exactly one place, or if the policy does
 * not give back exactly the queued processes. */
bool EXPORTED(machine_drain)(void)
{
    return simulator_audit(machine, &error) && simulator_drain(machine, &error);
}

/* Checks that each process is in exactly one place. */
bool EXPORTED(machine_audit)(void)
{
    return simulator_audit(machine, &error);
}

/* ---- counts ---- */

static struct simulator_counts counts(void)
{
    struct simulator_counts counted;
    simulator_count(machine, &counted);
    return counted;
}

uint64_t EXPORTED(machine_now)(void)
{
    return counts().now;
}

uint64_t EXPORTED(machine_decisions)(void)
{
    return counts().decisions;
}

uint64_t EXPORTED(machine_records)(void)
{
    return counts().records;
}

uint32_t EXPORTED(machine_processes)(void)
{
    return counts().processes;
}

/* ---- the trace ---- */

static size_t taken_bytes;

const void *EXPORTED(machine_trace_header)(void)
{
    return memory_trace_header();
}

/* Returns the records since the last call. */
const unsigned char *EXPORTED(machine_take_records)(void)
{
    return memory_trace_take(&taken_bytes);
}

/* Returns the length of the last result of machine_take_records(). */
size_t EXPORTED(machine_taken_bytes)(void)
{
    return taken_bytes;
}

/* ---- acts ---- */

/* Adds a workload file and starts it. Returns its first process's PID. */
int32_t EXPORTED(machine_add)(const char *name, const void *file, uint32_t bytes, uint64_t tick_ns)
{
    struct simulator_workload workload;
    if (!simulator_read_workload(&workload, name, file, bytes, tick_ns, &error))
        return 0;
    uint32_t program = simulator_add_workload(machine, &workload, &error);
    simulator_free_workload(&workload);
    return program == SIMULATOR_NO_PROGRAM ? 0 : simulator_fork(machine, program, &error);
}

bool EXPORTED(machine_kill)(int32_t pid)
{
    return simulator_kill(machine, pid, &error);
}

bool EXPORTED(machine_set_attribute)(int32_t pid, uint32_t kind, uint64_t value)
{
    return simulator_set_attribute(machine, pid, kind, value, &error);
}

/* Runs a line of sched_status or sched_tunables as a command. */
bool EXPORTED(machine_command)(const char *file, const char *line)
{
    return simulator_command(machine, file, line, &error);
}

/* Returns the text of sched_status, sched_tunables or sched_policies; it is valid until the next
 * call. */
const char *EXPORTED(machine_text)(const char *file)
{
    size_t length = simulator_text(machine, file, NULL, 0);
    free(text);
    text = length == SIZE_MAX ? NULL : malloc(length + 1);
    if (text)
        simulator_text(machine, file, text, length + 1);
    return text;
}

/* Prints the policies' descriptions, as build/policy_list does. Returns 0 on success. */
int policy_list(void);

int EXPORTED(print_policies)(void)
{
    int status = policy_list();
    fflush(stdout);
    return status;
}
