/* SPDX-License-Identifier: MIT */

#include "process/machine_commands.h"

#include <stddef.h>

#include "abi/errors.h"
#include "abi/machine_commands.h"
#include "abi/machine_status.h"
#include "boot/shutdown.h"
#include "device/interrupt_controller.h"
#include "fs/text_file.h"
#include "lib/print.h"
#include "lib/string.h"

#include "policies/support/command_text.h"

/* The machine finds it by the symbol machine_commands, its physical address (kernel.ld), and
 * writes it while no CPU runs. */
extern volatile char machine_commands_text[MACHINE_COMMANDS_BYTES];
volatile char machine_commands_text[MACHINE_COMMANDS_BYTES];

static void take_text(char text[MACHINE_COMMANDS_BYTES])
{
    for (size_t i = 0; i < MACHINE_COMMANDS_BYTES; i++)
        text[i] = machine_commands_text[i];
    text[MACHINE_COMMANDS_BYTES - 1] = 0;
    machine_commands_text[0] = 0;
}

static int obey(char *line)
{
    const char *name = text_take_word(&line, " ");
    const struct text_file *file = name ? text_file_named(name) : NULL;
    if (!file)
        return -ENOENT;
    return file->obey && *line ? file->obey(line) : -EINVAL;
}

/* Runs in CPU 0's interrupt, with no lock held. */
static void obey_machine(void *context)
{
    static char text[MACHINE_COMMANDS_BYTES];
    char *rest = text;
    char *line;
    (void)context;
    take_text(text);
    while ((line = text_take_word(&rest, "\n"))) {
        char command[TEXT_COMMAND_BYTES];
        text_copy(command, line, sizeof(command));
        int error = obey(line);
        if (error) {
            print("schedlab: the kernel refuses, error %d: %s\n", -error, command);
            shutdown(MACHINE_REFUSED);
        }
    }
}

void machine_commands_init(void)
{
    interrupt_unclaimed(obey_machine, NULL);
}
