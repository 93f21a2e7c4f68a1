/* SPDX-License-Identifier: MIT */

#include "boot/shutdown.h"

#include "abi/machine_status.h"
#include "device/device_tree.h"
#include "device/host.h"
#include "lib/print.h"
#include "process/lifecycle.h"
#include "scheduler/cpu.h"
#include "trace/trace.h"

_Noreturn void shutdown(int status)
{
    cpu_stop_others();
    trace_finish();
    machine_power_off(status);
}

void shutdown_at_limit(uint64_t now)
{
    static uint64_t limit;
    if (limit == 0)
        limit = boot_argument_number("limit", UINT64_MAX);
    if (now < limit)
        return;
    print("schedlab: ended after %lu ms, the limit of this run\n", now / 1000000);
    process_list_print();
    shutdown(MACHINE_LIMIT);
}
