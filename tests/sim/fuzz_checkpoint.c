/* SPDX-License-Identifier: MIT */

/*
 * libFuzzer target: checkpoints of this build with valid checksums, whose content is made of the
 * input's bytes. Each is either refused with a reason or restores a sound machine, which then
 * continues.
 */

#include "sim/checkpoint_file.c" /* replaces the library's function: its private state is needed */

#include <sys/mman.h>

#include "sim/control.h"

#define GOES_ON_NS 20000000
/* Longer inputs are refused or handled in the same way, and are slow. */
#define PROCESSES_MOST 2000
#define HAPPENED_MOST  20000

/* The input starts with the fields of the header that are not computed, taken from a saved file. */
struct claims {
    uint64_t until;
    uint32_t ran;
    uint32_t traced;
    struct simulator_counts counts;
};

static void write_all(int file, const void *bytes, size_t length)
{
    if (write(file, bytes, length) != (ssize_t)length)
        abort();
}

static struct checkpoint_header sealed(const struct claims *claims, const unsigned char *recipe,
                                       size_t length)
{
    struct checkpoint_header header = {
        .magic = MAGIC,
        .version = FORMAT_VERSION,
        .bytes = sizeof(header),
        .recipe_bytes = length,
        .recipe_checksum = checksum(recipe, length),
        .until = claims->until,
        .ran = claims->ran,
        .traced = claims->traced,
        .counts = claims->counts,
    };
    memcpy(header.build, build_name, CHECKPOINT_BUILD_BYTES);
    header.checksum = checksum(&header, offsetof(struct checkpoint_header, checksum));
    return header;
}

static void go_on(struct simulator *simulator)
{
    struct simulator_error error = {""};
    if (simulator->status == SIMULATOR_TIME && !simulator_audit(simulator, &error))
        abort();
    uint64_t until = simulator->now + GOES_ON_NS;
    if (simulator->scheduler.cpus <= 16)
        simulator_run(simulator, until, &error);
    simulator_destroy(simulator);
}

static bool takes_long(const struct claims *claims, const unsigned char *recipe, size_t length)
{
    struct recipe_setup setup = {0};
    memcpy(&setup, recipe, length < sizeof(setup) ? length : sizeof(setup));
    const struct simulator_counts *counts = &claims->counts;
    return setup.processes > PROCESSES_MOST || setup.added_steps > PROCESSES_MOST ||
           counts->decisions > HAPPENED_MOST || counts->ticks > HAPPENED_MOST ||
           counts->wakeups > HAPPENED_MOST || counts->idle_switches > HAPPENED_MOST;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    struct claims claims;
    char path[64];
    if (length < sizeof(claims))
        return 0;
    memcpy(&claims, bytes, sizeof(claims));
    length = (length - sizeof(claims)) / 8 * 8;
    if (takes_long(&claims, bytes + sizeof(claims), length))
        return 0;
    const struct checkpoint_header header = sealed(&claims, bytes + sizeof(claims), length);
    int file = memfd_create("checkpoint", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    write_all(file, &header, sizeof(header));
    write_all(file, bytes + sizeof(claims), length);
    struct simulator_error error = {""};
    struct simulator *simulator = simulator_restore(path, NULL, &error);
    close(file);
    if (simulator)
        go_on(simulator);
    else if (!strstr(error.text, "no run has this state"))
        abort();
    return 0;
}
