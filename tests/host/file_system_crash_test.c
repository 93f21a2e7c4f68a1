/* SPDX-License-Identifier: MIT */

/*
 * Cuts the power at each disk event in a session of random calls. After a crash, the disk holds all
 * writes that a flush has confirmed. Of the other writes, it holds any, in any order, complete or
 * torn. The kernel's code then mounts the disk. The disk must be consistent, and must hold, for
 * each process, the state after some number of its calls: at least the calls that had returned.
 * usage: file_system_crash_test [long]
 */
#include "file_system_model.h"

/* Random outcomes of each cut, in addition to the three regular ones. */
enum { RANDOM_OUTCOMES = 2, REGULAR_OUTCOMES = 3 };

static struct worker worker[WORKERS_MAX];
static int workers;
static uint64_t images_checked;
static bool all_seeds; /* false: a few of them */

/* A recorded session: the initial disk, and the writes to it. */
struct history {
    uint8_t *before;
    struct disk_write_note *writes;
    size_t write_count;
    struct disk_flush_note *flushes;
    size_t flush_count;
    uint64_t events;
};

static size_t disk_size(void)
{
    return (size_t)disk.blocks * BLOCK_BYTES;
}

static void start_recording(struct history *history)
{
    disk_forget_history();
    disk.recording = true;
    history->before = malloc(disk_size());
    memcpy(history->before, disk.bytes, disk_size());
}

static void stop_recording(struct history *history)
{
    history->writes = disk.writes;
    history->write_count = disk.write_count;
    history->flushes = disk.flushes;
    history->flush_count = disk.flush_count;
    history->events = disk.events;
    disk.writes = NULL;
    disk.flushes = NULL;
    disk.write_count = disk.flush_count = 0;
    disk.recording = false;
}

static void forget_history(struct history *history)
{
    for (size_t i = 0; i < history->write_count; i++)
        free(history->writes[i].data);
    free(history->writes);
    free(history->flushes);
    free(history->before);
}

/* Returns the last event whose preceding writes are on the medium if power fails at `cut`. */
static uint64_t durable_until(const struct history *history, uint64_t cut)
{
    uint64_t until = 0;
    for (size_t i = 0; i < history->flush_count; i++) {
        const struct disk_flush_note *flush = &history->flushes[i];
        if (flush->ended <= cut && flush->generation > until)
            until = flush->generation;
    }
    return until;
}

static void apply(const struct disk_write_note *write)
{
    memcpy(disk.bytes + (size_t)write->block * BLOCK_BYTES, write->data, BLOCK_BYTES);
}

static void apply_torn(const struct disk_write_note *write)
{
    enum { SECTOR_BYTES = 512 };
    for (size_t at = 0; at < BLOCK_BYTES; at += SECTOR_BYTES) {
        if (random_chance(2))
            memcpy(disk.bytes + (size_t)write->block * BLOCK_BYTES + at, write->data + at,
                   SECTOR_BYTES);
    }
}

static int compare_ended(const void *a, const void *b)
{
    const struct disk_write_note *first = *(struct disk_write_note *const *)a;
    const struct disk_write_note *second = *(struct disk_write_note *const *)b;
    return first->ended < second->ended ? -1 : first->ended > second->ended;
}

/*
 * Splits the writes requested so far into confirmed writes, in order of completion, and open
 * writes.
 */
static void split_writes(const struct history *history, uint64_t cut,
                         struct disk_write_note **confirmed, size_t *confirmed_count,
                         struct disk_write_note **open, size_t *open_count)
{
    uint64_t until = durable_until(history, cut);
    *confirmed_count = *open_count = 0;
    for (size_t i = 0; i < history->write_count; i++) {
        struct disk_write_note *write = &history->writes[i];
        if (write->generation > cut)
            continue;
        if (write->ended < until)
            confirmed[(*confirmed_count)++] = write;
        else
            open[(*open_count)++] = write;
    }
    qsort(confirmed, *confirmed_count, sizeof(*confirmed), compare_ended);
}

static void shuffle(struct disk_write_note **writes, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below((uint32_t)i);
        struct disk_write_note *swapped = writes[i - 1];
        writes[i - 1] = writes[other];
        writes[other] = swapped;
    }
}

/*
 * Sets the disk's content after a power cut. Outcome 0: no open writes; 1: the completed ones; 2:
 * all; others: a random choice.
 */
static void make_crashed_disk(const struct history *history, uint64_t cut, int outcome)
{
    struct disk_write_note **confirmed = calloc(history->write_count + 1, sizeof(*confirmed));
    struct disk_write_note **open = calloc(history->write_count + 1, sizeof(*open));
    size_t confirmed_count;
    size_t open_count;

    memcpy(disk.bytes, history->before, disk_size());
    split_writes(history, cut, confirmed, &confirmed_count, open, &open_count);
    for (size_t i = 0; i < confirmed_count; i++)
        apply(confirmed[i]);
    if (outcome >= REGULAR_OUTCOMES)
        shuffle(open, open_count);
    for (size_t i = 0; i < open_count; i++) {
        if (outcome == 2 || (outcome == 1 && open[i]->ended <= cut))
            apply(open[i]);
        else if (outcome >= REGULAR_OUTCOMES && random_chance(8))
            apply_torn(open[i]);
        else if (outcome >= REGULAR_OUTCOMES && !random_chance(4))
            apply(open[i]);
    }
    free(confirmed);
    free(open);
}

/* Returns whether the disk may hold this state of the worker's files if power failed at `cut`. */
static bool is_expected(const struct worker *owner, uint64_t cut, const char *match)
{
    uint32_t returned = 0;
    uint32_t began = 0;
    for (uint32_t i = 1; i <= owner->call; i++) {
        if (owner->times[i].returned <= cut)
            returned = i;
        if (owner->times[i].began <= cut)
            began = i;
    }
    const char *last = NULL; /* the state after the last call that returned */
    for (size_t i = 0; i < owner->candidate_count; i++) {
        const struct candidate *candidate = &owner->candidates[i];
        if (candidate->call <= returned)
            last = candidate->dump;
        else if (candidate->call <= began && strcmp(candidate->dump, match) == 0)
            return true;
    }
    return strcmp(last, match) == 0;
}

/* Checks the content of the mounted disk. */
static void check_mounted(uint64_t cut, int outcome)
{
    char *match[WORKERS_MAX];

    images_checked++;
    check_settled_disk();
    if (workers == 0)
        return;
    find_all(match);
    for (int i = 0; i < workers; i++) {
        if (is_expected(&worker[i], cut, match[i]))
            continue;
        fprintf(stderr, "power cut at event %llu, outcome %d: worker %c has\n%s",
                (unsigned long long)cut, outcome, worker[i].letter, match[i]);
        exit(1);
    }
    for (int i = 0; i < WORKERS_MAX; i++)
        free(match[i]);
}

/* Mounts the disk, sometimes with another power cut during the mount. */
static void check_crashed_disk(uint64_t cut, int outcome)
{
    struct history recovery;

    check_disk(); /* the checker replays the journal itself */
    bool again = random_chance(3);
    if (again)
        start_recording(&recovery);
    check(machine_boot() == 0);
    if (!again) {
        check_mounted(cut, outcome);
        return;
    }
    stop_recording(&recovery);
    uint64_t second_cut = random_below((uint32_t)recovery.events + 1);
    make_crashed_disk(&recovery, second_cut, (int)random_below(REGULAR_OUTCOMES + 1));
    check(machine_boot() == 0);
    check_mounted(cut, outcome);
    forget_history(&recovery);
}

static void record_session(struct history *history, int count, uint32_t calls)
{
    workers = count;
    disk_make(600, 96, 64);
    check(machine_boot() == 0);
    run_session(make_shared, NULL);
    start_recording(history);
    for (int i = 0; i < workers; i++) {
        worker_init(&worker[i], i, calls, true);
        spawn_session(worker_body, &worker[i]);
    }
    machine_run();
    stop_recording(history);
    check_nothing_leaks();
}

/* every: cuts at one in `every` events. */
static void cut_power(const struct history *history, uint32_t every)
{
    for (uint64_t cut = 0; cut <= history->events; cut += 1 + random_below(2 * every - 1)) {
        for (int outcome = 0; outcome < REGULAR_OUTCOMES + RANDOM_OUTCOMES; outcome++) {
            make_crashed_disk(history, cut, outcome);
            check_crashed_disk(cut, outcome);
        }
    }
}

static void crash_session(uint64_t seed, int count, uint32_t calls, uint32_t every)
{
    struct history history;

    random_seed(seed);
    freed_blocks_max = seed % 3 == 0 ? 1024 : 3; /* a truncation needs several operations */
    record_session(&history, count, calls);
    cut_power(&history, every);
    forget_history(&history);
    for (int i = 0; i < workers; i++)
        worker_end(&worker[i]);
}

/* Several processes use the same names; the result must be consistent. */
static void crash_quarrel(uint64_t seed)
{
    static int calls = 40;
    struct history history;

    random_seed(seed);
    freed_blocks_max = 2;
    workers = 0;
    disk_make(400, 96, 64);
    check(machine_boot() == 0);
    start_recording(&history);
    for (int i = 0; i < 6; i++)
        spawn_session(quarrel, &calls);
    machine_run();
    stop_recording(&history);
    cut_power(&history, 8);
    forget_history(&history);
}

static void test_crash_at_each_event(void)
{
    conduct.shuffle = false;
    crash_session(1, 1, 60, 1);
}

static void test_crash_with_reordering(void)
{
    conduct.shuffle = true;
    conduct.immediate = 6;
    for (uint64_t seed = 2; seed <= (all_seeds ? 4 : 2); seed++)
        crash_session(seed, 1, 150, 10);
}

static void test_crash_with_many_processes(void)
{
    conduct.shuffle = true;
    conduct.preempt = 6;
    conduct.spurious = 40;
    for (uint64_t seed = 5; seed <= (all_seeds ? 8 : 5); seed++)
        crash_session(seed, 4, 60, 12);
}

static void test_crash_with_same_names(void)
{
    for (uint64_t seed = 9; seed <= (all_seeds ? 12 : 9); seed++)
        crash_quarrel(seed);
}

int main(int argc, char *argv[])
{
    all_seeds = argc > 1 && strcmp(argv[1], "long") == 0;
    run_test(test_crash_at_each_event);
    run_test(test_crash_with_reordering);
    run_test(test_crash_with_many_processes);
    run_test(test_crash_with_same_names);
    printf("%llu disks recovered\n", (unsigned long long)images_checked);
    return 0;
}
