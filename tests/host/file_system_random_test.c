/* SPDX-License-Identifier: MIT */

/* Random calls of several concurrent processes, compared with a simple model. */
#include "file_system_model.h"

/* blocks: size of the disk; a small disk fills up, so that calls may fail. */
static void run_workers(uint64_t seed, int workers, uint32_t calls, uint32_t blocks)
{
    static struct worker worker[WORKERS_MAX];
    char *match[WORKERS_MAX];

    random_seed(seed);
    freed_blocks_max = seed % 3 == 0 ? 1024 : 3; /* a truncation needs several operations */
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
    check_settled_disk();
    for (int mounts = 0; mounts < 2; mounts++) {
        find_all(match);
        for (int i = 0; i < workers; i++) {
            char *expected = model_dump(&worker[i].model);
            if (strcmp(expected, match[i]) != 0)
                fprintf(stderr, "seed %llu: worker %c expects\n%sfound\n%s",
                        (unsigned long long)seed, worker[i].letter, expected, match[i]);
            check(strcmp(expected, match[i]) == 0);
            free(expected);
        }
        for (int i = 0; i < WORKERS_MAX; i++)
            free(match[i]);
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
    conduct.interleave = 8;
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

/* ---- one file, truncated by one process while others write to it ---- */

enum { TRUNCATIONS = 5, WRITE_BYTES = 3000, WRITES = 60 };

static void write_file(void *letter)
{
    uint8_t data[WRITE_BYTES];
    memset(data, *(char *)letter, sizeof(data));
    int64_t file = do_open("/shared/file", OPEN_CREATE | OPEN_WRITE);
    for (int i = 0; i < WRITES; i++) {
        int64_t result = do_write(file, data, sizeof(data));
        check(result == WRITE_BYTES || result == -EINVAL); /* its offset is now beyond the end */
        if (result == WRITE_BYTES)
            continue;
        do_close(file);
        file = do_open("/shared/file", OPEN_CREATE | OPEN_WRITE);
    }
}

static void truncate_file(void *unused)
{
    (void)unused;
    for (int i = 0; i < TRUNCATIONS; i++) {
        int64_t file = do_open("/shared/file", OPEN_CREATE | OPEN_WRITE | OPEN_TRUNCATE);
        check(file == 0);
        for (int done = 0; done < 40; done++) {
            uint8_t data[BLOCK_BYTES];
            memset(data, 't', sizeof(data));
            int64_t result = do_write(file, data, sizeof(data));
            check(result == BLOCK_BYTES || result == -EINVAL);
        }
        do_close(file);
    }
}

static void unlink_file(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        do_unlink("/shared/file");
        do_mkdir("/shared/x"); /* takes time */
        do_unlink("/shared/x");
    }
    do_close(do_open("/shared/file", OPEN_CREATE));
}

/* Each readable byte was written by one of the processes. */
static void read_file(void *unused)
{
    static uint8_t data[WRITE_BYTES * WRITES + 40 * BLOCK_BYTES];
    (void)unused;
    int64_t n = do_read(do_open("/shared/file", OPEN_READ), data, sizeof(data));
    check(n >= 0);
    for (int64_t i = 0; i < n; i++)
        check(data[i] == 'a' || data[i] == 'b' || data[i] == 't');
}

static void test_truncation_beside_writes(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        random_seed(seed);
        freed_blocks_max = 1 + random_below(3);
        disk_make(600, 96, 64);
        check(machine_boot() == 0);
        run_session(make_shared, NULL);
        spawn_session(write_file, "a");
        spawn_session(write_file, "b");
        spawn_session(truncate_file, NULL);
        if (seed % 2)
            spawn_session(unlink_file, NULL);
        machine_run();
        run_session(read_file, NULL);
        check_nothing_leaks();
        check_settled_disk();
    }
}

static void test_same_names(void)
{
    static int calls = 200;

    for (uint64_t seed = 1; seed <= 30; seed++) {
        random_seed(seed);
        disk_make(600, 96, 64);
        check(machine_boot() == 0);
        for (int i = 0; i < 6; i++)
            spawn_session(quarrel, &calls);
        machine_run();
        check_nothing_leaks();
        check_settled_disk();
    }
}

int main(void)
{
    run_test(test_one_process);
    run_test(test_many_processes);
    run_test(test_full_disk);
    run_test(test_truncation_beside_writes);
    run_test(test_same_names);
    return 0;
}
