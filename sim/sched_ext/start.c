/* SPDX-License-Identifier: MIT */

/* Starts and ends a scheduler: the steps of its user space, init(), and exit(). */

#include <stdio.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/engine.h"
#include "sim/sched_ext/state.h"

#define PREFIX "scx:"

/* A scheduler never starts when Linux boots, so no time that a program reads is 0. */
#define FIRST_TIME_NS 3600000000000ull

const char *sched_ext_path(const char *policy)
{
    return strncmp(policy, PREFIX, strlen(PREFIX)) == 0 ? policy + strlen(PREFIX) : NULL;
}

const char *sched_ext_name(const struct sched_ext *ext)
{
    return ext->name;
}

/* ---- the steps of user space ---- */

struct user_space {
    uint64_t slots[STEP_SLOTS];
    uint8_t inputs[STEP_CONTEXT_MAX];        /* by offset in the next context: slot + 1; 0: none */
    unsigned char context[STEP_CONTEXT_MAX]; /* of the last call */
};

/* Returns the guest's context for calls of user space. */
static unsigned char *context_of(const struct sched_ext *ext)
{
    return guest_memory(&ext->guest, guest_address(REGION_CONTEXT, 0), STEP_CONTEXT_MAX);
}

static void call_program(struct sched_ext *ext, struct user_space *user,
                         const struct image_step *step, const unsigned char *data)
{
    uint32_t count;
    const struct image_program *programs = image_table(ext, IMAGE_PROGRAMS, &count);
    const struct image_program *program = &programs[step->target];
    const uint64_t arguments[5] = {guest_address(REGION_CONTEXT, 0)};
    unsigned char *context = context_of(ext);
    memset(context, 0, STEP_CONTEXT_MAX);
    memcpy(context, data, step->data_size);
    for (uint32_t i = 0; i + 8 <= step->size; i++) {
        if (user->inputs[i])
            memcpy(context + i, &user->slots[user->inputs[i] - 1], 8);
    }
    memset(user->inputs, 0, sizeof(user->inputs));
    guest_begin(&ext->guest);
    int32_t result = (int32_t)guest_call(&ext->guest, program->first, arguments);
    memcpy(user->context, context, STEP_CONTEXT_MAX);
    note_trap(ext);
    if (result != 0)
        scx_error(ext, "program %.60s, which user space calls first, returned %d",
                  image_string(ext, program->name), result);
}

static void store_data(struct sched_ext *ext, const struct user_space *user,
                       const struct image_step *step, const unsigned char *data)
{
    uint64_t address = user->slots[step->target] + step->offset;
    void *memory = guest_writable(&ext->guest, address, step->data_size);
    if (memory)
        memcpy(memory, data, step->data_size);
    else
        scx_error(ext, "user space stores %u bytes to invalid address %#llx", step->data_size,
                  (unsigned long long)address);
}

static void do_step(struct sched_ext *ext, struct user_space *user, const struct image_step *step)
{
    uint32_t bytes;
    const unsigned char *data =
        (const unsigned char *)image_table(ext, IMAGE_DATA, &bytes) + step->data;
    switch (step->kind) {
    case STEP_CALL:
        call_program(ext, user, step, data);
        break;
    case STEP_KEEP:
        memcpy(&user->slots[step->target], user->context + step->offset, 8);
        break;
    case STEP_USE:
        user->inputs[step->offset] = (uint8_t)(step->target + 1);
        break;
    case STEP_STORE:
        store_data(ext, user, step, data);
        break;
    default:
        if (!update_map(ext, step->target, data, step->data_size))
            scx_error(ext, "user space cannot update map %.60s",
                      image_string(ext, ext->maps[step->target].image->name));
        break;
    }
}

/* ---- start ---- */

static void call_init(struct sched_ext *ext)
{
    if (!has_op(ext, OP_init) || ext->exit_kind != SCX_EXIT_NONE)
        return;
    int32_t result = (int32_t)call_op(ext, OP_init, 0, 0, 0);
    if (result != 0)
        scx_error(ext, "init() returned %d", result);
}

void begin_scheduler(struct sched_ext *ext, struct simulator *simulator)
{
    uint32_t count;
    const struct image_step *steps = image_table(ext, IMAGE_STEPS, &count);
    struct user_space user = {0};
    ext->simulator = simulator;
    if (!simulator->policy_clock)
        simulator->policy_clock = FIRST_TIME_NS;
    ext->random_state = simulator->scheduler.seed * 0x9e3779b97f4a7c15ull | 1;
    begin_kernel(ext);
    for (uint32_t i = 0; i < count && ext->exit_kind == SCX_EXIT_NONE; i++)
        do_step(ext, &user, &steps[i]);
    call_init(ext);
    if (ext->exit_kind == SCX_EXIT_NONE)
        begin_groups(ext);
}

/* ---- end ---- */

static void fill_exit_info(struct sched_ext *ext, struct scx_exit_info *info)
{
    char *text = kernel_memory(ext, ext->kernel.exit_text);
    char *reason = kernel_memory(ext, ext->kernel.exit_reason);
    snprintf(text, SCX_EXIT_MSG_LEN, "%s", ext->exit_text);
    snprintf(reason, 64, "%s",
             ext->exit_kind >= SCX_EXIT_ERROR       ? "runtime error"
             : ext->exit_kind == SCX_EXIT_UNREG_BPF ? "unregistered from BPF"
                                                    : "unregistered from user space");
    *info = (struct scx_exit_info){
        .kind = ext->exit_kind,
        .exit_code = ext->exit_code,
        .reason = guest_address(REGION_KERNEL, ext->kernel.exit_reason),
        .msg = guest_address(REGION_KERNEL, ext->kernel.exit_text),
        .dump = guest_address(REGION_KERNEL, ext->kernel.exit_text),
    };
}

void call_exit(struct sched_ext *ext)
{
    uint64_t address = guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS);
    struct scx_exit_info *info = guest_memory(&ext->guest, address, sizeof(*info));
    ext->guest.trapped = false; /* after a trap, exit() may still run */
    ext->guest.depth = 0;
    ext->nested = 0;
    ext->direct_task = ext->dispatching = NONE;
    fill_exit_info(ext, info);
    if (has_op(ext, OP_exit))
        call_op(ext, OP_exit, address, 0, 0);
    ext->is_ended = true;
}
