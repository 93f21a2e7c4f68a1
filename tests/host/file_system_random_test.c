/* SPDX-License-Identifier: MIT */

/* Random calls of several processes at once, against a simple model of what should come of them. */
#include "file_system_model.h"

/* blocks: of the disk; few: it gets full, and calls may fail for that. */
static void run_workers(uint64_t seed, int workers, uint32_t calls, uint32_t blocks)
{
    static struct worker worker[WORKERS_MAX];
    char *found[WORKERS_MAX];

    random_seed(seed);
    disk_make(blocks, 256, 64 + random_below(64));
    check(machine_boot() == 0);
    run_session(make_shared, NULL);
    for (int i = 0; i < workers; i++) {
        worker_init(&worker[i], i, calls, false);
        worker[i].may_fill = blocks < 1000;
        spawn_session(worker_body, &worker[i]);
    }
    machine_run();
    check_nothing_leaks();
    check_disk();
    for (int mounts = 0; mounts < 2; mounts++) {
        find_all(found);
        for (int i = 0; i < workers; i++) {
            char *expected = model_dump(&worker[i].model);
            if (strcmp(expected, found[i]) != 0)
                fprintf(stderr, "seed %llu: worker %c expects\n%sfound\n%s",
                        (unsigned long long)seed, worker[i].letter, expected, found[i]);
            check(strcmp(expected, found[i]) == 0);
            free(expected);
        }
        for (int i = 0; i < WORKERS_MAX; i++)
            free(found[i]);
        check(machine_boot() == 0);
        check_disk();
    }
    for (int i = 0; i < workers; i++)
        worker_end(&worker[i]);
}

static void test_one_process(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        run_workers(seed, 1, 400, 1600);
}

static void test_many_processes(void)
{
    conduct.shuffle = true;
    conduct.preempt = 8;
    conduct.immediate = 5;
    conduct.spurious = 40;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        conduct.total_pages = seed % 3 == 0 ? 0 : 1024;
        run_workers(seed, 2 + (int)(seed % 5), 300, 1600);
    }
}

static void test_full_disk(void)
{
    for (uint64_t seed = 1; seed <= 15; seed++)
        run_workers(seed, 2 + (int)(seed % 5), 300, 230);
}

int main(void)
{
    run_test(test_one_process);
    run_test(test_many_processes);
    run_test(test_full_disk);
    return 0;
}
