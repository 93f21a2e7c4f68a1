/* SPDX-License-Identifier: MIT */

/* Runs a policy's module with the library wasmtime. Python loads wasmtime and passes the
 * addresses of its functions, so this file is not linked with wasmtime. */

#include <string.h>

#include "sim/apart/apart.h"

struct wasmtime_machine {
    struct separate_machine machine;
    void *context;                             /* wasmtime_context_t */
    const void *functions[SEPARATE_FUNCTIONS]; /* wasmtime_func_t */
    unsigned char *memory;
    uint64_t hook_instructions; /* maximum number of instructions that a hook may execute */
    void *(*set_fuel)(void *context, uint64_t fuel);
    void *(*get_fuel)(const void *context, uint64_t *fuel);
    void *(*call)(void *context, const void *function, void *arguments_and_results, size_t,
                  void **trap);
    /* Why the module stopped: at most one of these is not null. The caller frees it. */
    void *error, *trap;
};

static struct wasmtime_machine *wasmtime_of(struct separate_machine *machine)
{
    return (struct wasmtime_machine *)(void *)machine; /* `machine` is the first member */
}

bool separate_call(struct separate_machine *machine, enum separate_function function,
                   uint64_t *executed)
{
    struct wasmtime_machine *runs = wasmtime_of(machine);
    uint64_t left = 0;
    uint64_t nothing[2] = {0}; /* the functions have neither parameters nor results */
    runs->set_fuel(runs->context, runs->hook_instructions);
    runs->error = runs->call(runs->context, runs->functions[function], nothing, 0, &runs->trap);
    runs->get_fuel(runs->context, &left);
    *executed = runs->hook_instructions - left;
    return !runs->error && !runs->trap;
}

void separate_write(struct separate_machine *machine, uint64_t address, const void *from,
                    size_t bytes)
{
    memcpy(wasmtime_of(machine)->memory + address, from, bytes);
}

void separate_read(struct separate_machine *machine, uint64_t address, void *to, size_t bytes)
{
    memcpy(to, wasmtime_of(machine)->memory + address, bytes);
}
