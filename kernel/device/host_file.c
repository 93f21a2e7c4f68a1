/* SPDX-License-Identifier: MIT */
#include "abi/machine_status.h"
#include "device_tree.h"
#include "host.h"
#include "host_interface.h"
#include "lib/print.h"
#include "lib/string.h"
#include "memory/layout.h"
#include "trace_device.h"

/* Trace blocks into a file of the host, by the host's system calls; its name is relative to
 * Spike's working directory. */
#define HOST_WORKING_DIRECTORY ((uint64_t)-100)
#define HOST_WRITE_ONLY        0x001u
#define HOST_CREATE            0x040u
#define HOST_TRUNCATE          0x200u
#define FILE_NAME_BYTES        256

static struct {
    uint64_t descriptor;
    physical_t next; /* the rest of the block */
    uint64_t bytes;
} file;

static int64_t open_file(const char *name)
{
    int64_t descriptor;
    host_call_start(HOST_OPEN_AT, (const uint64_t[5]){
                                      HOST_WORKING_DIRECTORY,
                                      pointer_to_physical(name),
                                      strlen(name) + 1,
                                      HOST_WRITE_ONLY | HOST_CREATE | HOST_TRUNCATE,
                                      0644,
                                  });
    while (!host_call_done(&descriptor))
        ;
    return descriptor;
}

static bool init(void)
{
    static char name[FILE_NAME_BYTES]; /* the host reads it by its physical address */

    if (!machine.has_host_interface || !boot_argument_text("trace", name, sizeof name))
        return false;
    int64_t descriptor = open_file(name);
    if (descriptor < 0) {
        print("trace: the host cannot open %s: error %d\n", name, (int)-descriptor);
        machine_power_off(MACHINE_FAILED);
    }
    file.descriptor = (uint64_t)descriptor;
    return true;
}

static void write_rest(void)
{
    host_call_start(HOST_WRITE, (const uint64_t[5]){file.descriptor, file.next, file.bytes});
}

static void start(const void *block, size_t bytes)
{
    file.next = pointer_to_physical(block);
    file.bytes = bytes;
    write_rest();
}

/* A host may write less than requested; it gives the reason when asked for the rest. */
static enum trace_device_state poll(void)
{
    int64_t result;
    if (!host_call_done(&result))
        return TRACE_DEVICE_BUSY;
    if (result <= 0 || (uint64_t)result > file.bytes) {
        print("trace: the host did not write %lu bytes: result %ld\n", file.bytes, result);
        return TRACE_DEVICE_FAILED;
    }
    file.next += (uint64_t)result;
    file.bytes -= (uint64_t)result;
    if (file.bytes == 0)
        return TRACE_DEVICE_DONE;
    write_rest();
    return TRACE_DEVICE_BUSY;
}

const struct trace_device host_file = {"host file", init, start, poll};
