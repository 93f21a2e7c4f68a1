/* SPDX-License-Identifier: MIT */

/*
 * sys_shape FOLDER: the shape of the CPUs that are online by a machine's /sys or a copy of it, and
 * what had to be assumed, for `./schedlab shape`. A word and numbers in each line:
 *
 *     cpu NUMBER CORE CACHE NODE KIND
 *     kind CAPACITY...             in the order of their numbers, the highest level first
 *     distances DISTANCE...        of node 0 to each, then of node 1 ...
 *     gap TEXT
 *
 * Exit status 1: it does not say which CPUs there are.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "abi/cpu_list.h"
#include "linux/loader/sys_shape.h"
#include "linux/loader/text.h"
#include "policies/support/cpu_set.h"

static struct machine_shape shape;

static void print_shape(const struct cpu_set *online, uint32_t cpus)
{
    for (uint32_t cpu = cpu_set_next(online, 0, cpus); cpu != NO_CPU;
         cpu = cpu_set_next(online, cpu + 1, cpus)) {
        const struct cpu_place *place = &shape.cpu[cpu];
        printf("cpu %" PRIu32 " %u %u %u %u\n", cpu, place->core, place->cache, place->node,
               place->kind);
    }
    for (uint32_t i = 0; i < shape.kinds; i++) {
        printf("kind");
        for (uint32_t level = 0; level < shape.kind[i].levels; level++)
            printf(" %" PRIu32, shape.kind[i].capacity[level]);
        printf("\n");
    }
    for (uint32_t from = 0; from < shape.nodes; from++) {
        printf("distances");
        for (uint32_t to = 0; to < shape.nodes; to++)
            printf(" %u", shape.distance[from][to]);
        printf("\n");
    }
}

int main(int argument_count, char **arguments)
{
    char path[4096];
    char text[8192];
    struct cpu_set online;
    if (argument_count != 2)
        return 2;
    snprintf(path, sizeof(path), "%s/devices/system/cpu/online", arguments[1]);
    if (!read_small_file(path, text, sizeof(text)) || !cpu_list_read(text, online.words))
        return 1;
    uint32_t cpus = POLICY_CPUS_MAX;
    while (cpus > 1 && !cpu_set_has(&online, cpus - 1))
        cpus--;
    uint32_t gaps = sys_shape_read(arguments[1], cpus, &shape);
    print_shape(&online, cpus);
    for (uint32_t gap = 0; gap < GAPS; gap++) {
        if (gaps >> gap & 1)
            printf("gap %s\n", sys_gap_text((enum sys_gap)gap));
    }
    return 0;
}
