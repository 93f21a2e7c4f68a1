/* SPDX-License-Identifier: MIT */

/*
 * Tests the machine's shape: what policies read of it, the choice of the best idle CPU, and invalid
 * texts.
 */

#include <stdio.h>
#include <string.h>

#include "../../policies/near_placement.h"
#include "../../policies/support/shape_text.h"
#include "check.h"

#define CPUS 8

static struct machine_shape shape;
static struct shape_model model;
static struct scheduler scheduler;
static struct run_queue queues[CPUS];

static void machine(const char *text)
{
    const char *flaw = text ? shape_read(text, CPUS, &shape, &model) : NULL;
    if (flaw)
        fprintf(stderr, "%s: %s\n", text, flaw);
    check(!flaw);
    scheduler = (struct scheduler){.cpus = CPUS, .queues = CPUS, .shape = text ? &shape : NULL};
    for (uint32_t i = 0; i < CPUS; i++) {
        queues[i] = (struct run_queue){.scheduler = &scheduler, .cpu = i};
        scheduler.queue[i] = &queues[i];
    }
}

static void without_a_shape_all_cpus_are_alike(void)
{
    machine(NULL);
    for (uint32_t i = 0; i < CPUS; i++) {
        check(cpu_capacity(&scheduler, i) == CAPACITY_FULL);
        check(cpu_capacity_now(&scheduler, i) == CAPACITY_FULL);
        check(next_sibling(&scheduler, i) == i);
        check(node_of(&scheduler, i) == 0);
        for (uint32_t j = 0; j < CPUS; j++) {
            check(share_core(&scheduler, i, j) == (i == j));
            check(share_cache(&scheduler, i, j));
            check(node_distance(&scheduler, i, j) == DISTANCE_LOCAL);
        }
    }
}

/* CPUs 0 and 4, 1 and 5, ... are threads of a core; cores 0 and 1 share a cache and a node. */
#define TWO_NODES "core%4/1,cache%4/2,node%4/2,distance10.21:31.10,kind%4/2,speed1024.600:512"

static void what_the_text_says_is_told(void)
{
    machine(TWO_NODES ",threads600.400,cold1.20.300,demand");
    check(share_core(&scheduler, 1, 5) && !share_core(&scheduler, 0, 1));
    check(next_sibling(&scheduler, 1) == 5 && next_sibling(&scheduler, 5) == 1);
    check(share_cache(&scheduler, 0, 5) && !share_cache(&scheduler, 5, 2));
    check(node_of(&scheduler, 4) == 0 && node_of(&scheduler, 7) == 1);
    check(node_distance(&scheduler, 0, 7) == 21 && node_distance(&scheduler, 7, 0) == 31);
    check(cpu_capacity(&scheduler, 4) == 1024 && cpu_capacity(&scheduler, 6) == 512);
    check(shape.kind[0].levels == 2 && shape.kind[0].capacity[1] == 600);
    check(model.threads[0] == 1000 && model.threads[1] == 600);
    check(model.threads[2] == 400 && model.threads[7] == 400);
    check(model.cold[COLD_CORE] == 1 && model.cold[COLD_NODE] == 300 && model.demand);
    machine("core0.0.0.1.1.1.2.2");
    check(next_sibling(&scheduler, 0) == 1 && next_sibling(&scheduler, 2) == 0);
}

static uint32_t placed_from(uint32_t home)
{
    const struct task task = {.cpu = home};
    return place_near(&scheduler, &task);
}

static void the_best_idle_cpu_is_taken(void)
{
    machine(TWO_NODES);
    check(placed_from(1) == 1);
    queues[1].running = 1;
    check(placed_from(1) == 0); /* not 5, whose core is busy, nor a slow CPU */
    queues[0].running = 1;
    check(placed_from(1) == 2); /* an idle core, though slow and on the other node */
    queues[2].running = queues[3].queued = 1;
    check(placed_from(1) == 5); /* no core is idle: the nearest fast CPU */
    check(placed_from(6) == 4);
    queues[4].running = queues[5].running = 1;
    check(placed_from(0) == 6);
    queues[6].running = 1;
    check(placed_from(0) == 7);
    queues[7].running = 1;
    queues[0].queued = 1;
    check(placed_from(0) == 1); /* no CPU is idle: the CPU with the fewest tasks */
    const struct cpu_set few = {{1 << 6}};
    const struct task bound = {.cpu = 0, .cpus = &few};
    check(place_near(&scheduler, &bound) == 6);
    machine(NULL);
    queues[3].running = 1;
    check(placed_from(3) == 0 && placed_from(5) == 5);
}

static void what_is_no_shape_is_refused(void)
{
    static const char *const texts[] = {
        "",
        "core",
        "core/",
        "core/0",
        "core%0",
        "core/2000",
        "core0.1.2",
        "core/2,",
        "core/2 ",
        "mill/2",
        "core0.1.2.3.4.5.6.7.8",
        "speed512",
        "speed1024.1024",
        "speed1024.0",
        "speed1025",
        "kind/4",
        "node/4",
        "node/4,distance10.21",
        "node/4,distance10.9:21.10",
        "node/4,distance11.21:21.10",
        "node/4,distance10.256:21.10",
        "threads0",
        "threads1001",
        "threads1.1.1.1.1.1.1.1",
        "cold1.2",
        "cold1.2.3.4",
        "cold1.2.9999999999",
        "demand,what",
        "core/2,cache/1",
        "core/2,kind0.1.1.1.1.1.1.1,speed1024:9",
        "cache/8,node/4,distance10.21:21.10",
        "speed1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1024",
        "speed1024.16.15.14.13.12.11.10.9.8.7.6.5.4.3.2.1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!shape_read(texts[i], CPUS, &shape, &model))
            fprintf(stderr, "%s: not refused\n", texts[i]);
        check(shape_read(texts[i], CPUS, &shape, &model));
    }
    check(shape_read("core/9", 9, &shape, &model));
    check(!shape_read("core/8", 9, &shape, &model));
    check(!shape_read("core%512/1,cache%512/8", 1024, &shape, &model));
    check(shape.cpu[3].sibling == 515 && shape.cpu[515].sibling == 3);
}

int main(void)
{
    without_a_shape_all_cpus_are_alike();
    what_the_text_says_is_told();
    the_best_idle_cpu_is_taken();
    what_is_no_shape_is_refused();
    return 0;
}
