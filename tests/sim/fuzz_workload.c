/* SPDX-License-Identifier: MIT */

/*
 * libFuzzer target: any bytes are read as a workload file or refused with a reason. A file that is
 * read makes a machine, or is refused with a reason. The target fills in the header fields that
 * only a well-informed author gets right: magic, version, sizes, checksum and tick.
 */

#include <stdlib.h>
#include <string.h>

#include "abi/workload_file.h"
#include "sim/simulator.h"
#include "sim/workload.h"

#define TICK_NS    1000000
#define LENGTH_MAX 65536

static void expect(bool good, const struct simulator_error *error)
{
    if (good == (error->text[0] == '\0'))
        return;
    __builtin_trap();
}

static void make(const struct simulator_workload *workload)
{
    struct simulator_error error = {""};
    const struct simulator_setup setup = {
        .policy = "rr", .cpus = 2, .processes = 16, .tick_ns = TICK_NS, .seed = 1};
    struct simulator *simulator = simulator_create(&setup, workload, &error);
    expect(simulator != NULL, &error);
    /* Programs without time steps perform millions of acts: those are not run. */
    simulator_destroy(simulator);
}

static void read_workload(const void *bytes, size_t length)
{
    struct simulator_error error = {""};
    struct simulator_workload workload;
    bool read = simulator_read_workload(&workload, "fuzz", bytes, length, TICK_NS, &error);
    expect(read, &error);
    if (read) {
        make(&workload);
        simulator_free_workload(&workload);
    }
}

/* An odd `reserved` keeps the counts; otherwise they are reduced to fit the file. */
static void correct(struct workload_file_header *header, size_t length)
{
    header->magic = WORKLOAD_FILE_MAGIC;
    header->version = WORKLOAD_FILE_VERSION;
    header->header_bytes = sizeof(*header);
    header->bytes = length;
    header->tick_ns = TICK_NS;
    if (header->reserved % 2 == 0) {
        header->program_count %= 8;
        header->channel_count %= 8;
        header->text_count %= 8;
        header->step_count %= 64;
        header->text_bytes = 0;
        uint64_t rest = length - workload_file_bytes(header);
        header->text_bytes = rest < length ? (uint32_t)rest : 0;
    }
    header->checksum =
        workload_file_checksum(WORKLOAD_FILE_CHECKSUM_BEGIN, header + 1, length - sizeof(*header));
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    if (length > LENGTH_MAX)
        return 0;
    void *file =
        malloc(length ? length : 1); /* no longer, so that reads past its end are detected */
    if (!file)
        abort();
    memcpy(file, bytes, length);
    read_workload(file, length);
    if (length >= sizeof(struct workload_file_header)) {
        correct(file, length);
        read_workload(file, length);
    }
    free(file);
    return 0;
}
