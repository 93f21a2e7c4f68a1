/* SPDX-License-Identifier: MIT */

/*
 * Tests the trace file of the Linux host: the records at the end of each CPU, full memory, write
 * errors, and that a CPU's clock never goes back.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

#include "linux/loader/text.c"
#include "linux/loader/trace_file.c"
#include "linux/loader/trusted_path.c"

#define READ_MAX 100000
#define NO_LIMIT (1ull << 40)

static char path[] = "/tmp/schedlab-trace-file-XXXXXX";
static struct trace_header read_header;
static struct trace_record got[READ_MAX];

static const struct trace_header header = {
    .magic = TRACE_MAGIC,
    .version = TRACE_VERSION,
    .header_bytes = sizeof(struct trace_header),
    .record_bytes = sizeof(struct trace_record),
    .cpus = 2,
    .tick_ns = 4000000,
    .cycles_per_second = 1000000000,
};

/* Returns the number of records in the file, and copies them to `got`. */
static size_t read_file(void)
{
    FILE *file = fopen(path, "rb");
    check(file);
    check(fread(&read_header, sizeof(read_header), 1, file) == 1);
    size_t count = fread(got, sizeof(got[0]), READ_MAX, file);
    check(fgetc(file) == EOF);
    fclose(file);
    return count;
}

static void take(struct trace_file *file, uint16_t cpu, uint16_t kind, uint64_t time,
                 uint64_t second)
{
    static uint32_t sequence;
    struct trace_record record = {
        .time = time, .sequence = sequence++, .kind = kind, .cpu = cpu, .second = second};
    trace_file_take(file, &record);
}

static void test_each_cpu_has_a_beginning_and_an_end(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    take(&file, 0, TRACE_START, 100, 100);
    take(&file, 0, TRACE_YIELD, 110, 0);
    trace_file_flush(&file);
    check(read_file() == 2);
    take(&file, 0, TRACE_YIELD, 120, 0);
    check(trace_file_finish(&file, 130, 3, 0) == 0);
    check(read_file() == 6 && read_header.cpus == 2 && trace_file_records(&file) == 6);
    check(got[3].kind == TRACE_END && got[3].cpu == 0 && got[3].sequence == 3);
    check(got[3].second == 4 && got[3].time == 130);
    /* CPU 1 sent nothing. */
    check(got[4].kind == TRACE_START && got[4].cpu == 1 && got[4].sequence == 4);
    check(got[5].kind == TRACE_END && got[5].cpu == 1 && got[5].second == 2);
}

static void test_a_cpu_that_comes_later_is_in_the_header(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    take(&file, 3, TRACE_START, 100, 100);
    check(trace_file_finish(&file, 130, 1, 0) == 0);
    check(read_file() == 8 && read_header.cpus == 4);
}

static void test_time_does_not_go_back(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    take(&file, 0, TRACE_START, 100, 100);
    take(&file, 1, TRACE_START, 50, 50);
    take(&file, 0, TRACE_SCHEDULER_ENTER, 90, 95);
    take(&file, 0, TRACE_TUNABLE, 101, 7); /* its `second` is not a time */
    take(&file, 1, TRACE_YIELD, 60, 0);
    check(trace_file_finish(&file, 80, 5, 0) == 0);
    check(read_file() == 7);
    check(got[2].time == 100 && got[2].second == 100);
    check(got[3].time == 101 && got[3].second == 7);
    check(got[1].time == 50 && got[4].time == 60);
    check(got[5].time == 101 && got[6].time == 80);
}

static void test_memory_has_an_end_and_what_was_lost_is_told(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, 5 * sizeof(struct trace_record), true) == 0);
    for (int i = 0; i < 8; i++)
        take(&file, 0, i ? TRACE_YIELD : TRACE_START, 100, 100);
    trace_file_flush(&file);
    check(read_file() == 0);
    check(trace_file_finish(&file, 130, 8, 10) == 0);
    /* five, LOST and END of CPU 0, START and END of CPU 1 */
    check(read_file() == 9 && file.dropped == 3);
    check(got[5].kind == TRACE_LOST && got[5].second == 3 + 10);
    check(got[6].kind == TRACE_END && got[6].second == 7);
}

/* Records until the end of the server are also written. */
static void test_a_file_at_its_limit_and_a_full_disk_are_told(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, 3 * sizeof(struct trace_record), false) == 0);
    take(&file, 0, TRACE_START, 100, 100);
    take(&file, 1, TRACE_START, 100, 100);
    check(trace_file_problem(&file) == TRACE_GOES_ON);
    take(&file, 0, TRACE_YIELD, 110, 0);
    check(trace_file_problem(&file) == TRACE_LIMIT_REACHED);
    take(&file, 0, TRACE_YIELD, 120, 0);
    check(trace_file_finish(&file, 130, 4, 0) == 0);
    check(read_file() == 6 && file.dropped == 0);
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    check(trace_file_problem(&file) == TRACE_GOES_ON);
    file.reserve = UINT64_MAX;
    check(trace_file_problem(&file) == TRACE_DISK_FULL);
    trace_file_abandon(&file);
}

static void test_memory_that_is_nearly_full_is_told(void)
{
    struct trace_file file;
    check(trace_file_open(&file, path, &header, 16 * sizeof(struct trace_record), true) == 0);
    for (int i = 0; i < 14; i++) {
        check(trace_file_problem(&file) == TRACE_GOES_ON);
        take(&file, 0, i ? TRACE_YIELD : TRACE_START, 100, 100);
    }
    check(trace_file_problem(&file) == TRACE_LIMIT_REACHED);
    trace_file_abandon(&file);
}

static void test_more_than_a_chunk(void)
{
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        struct trace_file file;
        check(trace_file_open(&file, path, &header, NO_LIMIT, in_memory) == 0);
        for (uint32_t i = 0; i < 2 * CHUNK_RECORDS + 5; i++)
            take(&file, 0, i ? TRACE_YIELD : TRACE_START, i, 0);
        check(trace_file_finish(&file, 1 << 20, 0, 0) == 0);
        check(read_file() == 2 * CHUNK_RECORDS + 5 + 3);
        for (uint32_t i = 0; i < 2 * CHUNK_RECORDS + 5; i++)
            check(got[i].time == i);
    }
}

/* A pipe without a reader: records that fit are there, and finishing still works. */
static void test_a_reader_that_stalls(void)
{
    static char bytes[1 << 20];
    struct trace_file file;
    int hurry[2];
    unlink(path);
    check(mkfifo(path, 0600) == 0 && pipe(hurry) == 0);
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == -ENXIO); /* without a reader */
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0 && file.is_stream);
    file.hurry = hurry[0];
    check(write(hurry[1], "!", 1) == 1);
    for (uint32_t i = 0; i < CHUNK_RECORDS; i++)
        take(&file, 0, i ? TRACE_YIELD : TRACE_START, i, 0);
    check(trace_file_finish(&file, 1 << 20, 0, 0) == -EAGAIN);
    check(file.dropped >= CHUNK_RECORDS);
    ssize_t size = read(reader, bytes, sizeof(bytes));
    check(size > (ssize_t)sizeof(header) && memcmp(bytes, &header, sizeof(header)) == 0);
    close(reader);
    unlink(path);
}

static void test_a_pipe_that_is_read(void)
{
    struct trace_file file;
    struct trace_record record;
    unlink(path);
    check(mkfifo(path, 0600) == 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    check(read(reader, &read_header, sizeof(read_header)) == (ssize_t)sizeof(read_header));
    take(&file, 0, TRACE_START, 7, 7);
    trace_file_flush(&file);
    check(read(reader, &record, sizeof(record)) == (ssize_t)sizeof(record) && record.time == 7);
    check(trace_file_finish(&file, 8, 0, 0) == 0);
    close(reader);
    unlink(path);
}

static void test_a_file_that_cannot_grow(void)
{
    struct rlimit before;
    struct trace_file file;
    check(getrlimit(RLIMIT_FSIZE, &before) == 0);
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    check(trace_file_open(&file, path, &header, NO_LIMIT, false) == 0);
    check(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (uint32_t i = 0; i < CHUNK_RECORDS + 5; i++)
        take(&file, 0, i ? TRACE_YIELD : TRACE_START, i, 0);
    check(trace_file_finish(&file, 1 << 20, 0, 0) == -EFBIG);
    check(file.dropped >= CHUNK_RECORDS);
    check(setrlimit(RLIMIT_FSIZE, &before) == 0);
    check(trace_file_open(&file, "/nowhere/trace", &header, NO_LIMIT, false) == -ENOENT);
}

int main(void)
{
    int descriptor = mkstemp(path);
    check(descriptor >= 0);
    close(descriptor);
    run_test(test_each_cpu_has_a_beginning_and_an_end);
    run_test(test_a_cpu_that_comes_later_is_in_the_header);
    run_test(test_time_does_not_go_back);
    run_test(test_memory_has_an_end_and_what_was_lost_is_told);
    run_test(test_a_file_at_its_limit_and_a_full_disk_are_told);
    run_test(test_memory_that_is_nearly_full_is_told);
    run_test(test_more_than_a_chunk);
    run_test(test_a_file_that_cannot_grow);
    run_test(test_a_pipe_that_is_read);
    run_test(test_a_reader_that_stalls);
    unlink(path);
    return 0;
}
