/* SPDX-License-Identifier: MIT */

/*
 * Runs BPF code without an image: `run_code CODE ENTRY BYTES` calls the program at instruction
 * ENTRY for each structure of BYTES from the standard input, and prints each result. The structure
 * is in the context region. Exit status 1: the program trapped, and the reason is printed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sched_ext/guest.h"

#define CODE_MAX (1 << 20)

static unsigned char context[GUEST_CONTEXT_BYTES];
static unsigned char stack[(GUEST_FRAMES_MAX + 1) * GUEST_FRAME_BYTES];
static struct image_instruction code[CODE_MAX];
static struct guest guest;

/* Helper 181, bpf_loop(): calls back with the index until the callback returns not 0. */
static uint64_t loop(struct guest *of, const uint64_t *arguments)
{
    uint64_t i = 0;
    while (i < (uint32_t)arguments[0] && !of->trapped) {
        const uint64_t given[5] = {i++, arguments[2]};
        if (guest_call(of, (uint32_t)arguments[1], given))
            break;
    }
    return i;
}

static host_function *const helpers[GUEST_HELPERS_MAX] = {[181] = loop};

static void begin(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(2);
    guest.code_count = (uint32_t)fread(code, sizeof(code[0]), CODE_MAX, file);
    guest.code = code;
    guest.helpers = helpers;
    guest.trap_place = UINT32_MAX;
    guest.call_limit = 1000000;
    guest.regions[REGION_STACK] = (struct region){stack, 0, sizeof(stack), sizeof(stack)};
    guest.regions[REGION_CONTEXT] = (struct region){context, 0, sizeof(context), sizeof(context)};
    fclose(file);
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 4)
        return 2;
    begin(arguments[1]);
    size_t bytes = strtoul(arguments[3], NULL, 10);
    while (bytes <= sizeof(context) && fread(context, 1, bytes, stdin) == bytes) {
        const uint64_t given[5] = {guest_address(REGION_CONTEXT, 0)};
        guest_begin(&guest);
        uint64_t result = guest_call(&guest, (uint32_t)strtoul(arguments[2], NULL, 10), given);
        if (guest.trapped) {
            printf("%u: %s\n", guest.trap_place, guest.trap_text);
            return 1;
        }
        printf("%016" PRIx64 "\n", result);
    }
    return 0;
}
