/* SPDX-License-Identifier: MIT */

/* The machine's shape, as given at boot: device trees do not contain it. */

#include "scheduler/machine_shape.h"

#include "device/device_tree.h"
#include "lib/panic.h"
#include "policies/support/shape_text.h"

static struct machine_shape shape;

const struct machine_shape *machine_shape_at_boot(void)
{
    static char text[sizeof(machine.boot_arguments)];
    struct shape_model unused;
    if (!boot_argument_text("shape", text, sizeof(text)))
        return NULL;
    const char *flaw = shape_read(text, machine.cpus, &shape, &unused);
    if (flaw)
        panic("boot argument shape=%s: of %u CPUs: %s", text, machine.cpus, flaw);
    return &shape;
}
