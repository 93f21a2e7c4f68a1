/* SPDX-License-Identifier: MIT */

/* Writes trace blocks to a file through a simulated host that may write less or fail. */

#include <setjmp.h>

#include "device_stubs.h"

#include "kernel/device/boot_arguments.c"
#include "kernel/device/host_file.c"

static char name_opened[FILE_NAME_BYTES];
static int64_t open_result;
static char written[10000];
static size_t written_bytes;
static int64_t answer; /* limits a write to this many bytes, or an error */
static bool call_under_way, is_open;
static int64_t call_result;
static jmp_buf after_power_off;

void host_call_start(enum host_call_number number, const uint64_t arguments[5])
{
    check(!call_under_way);
    call_under_way = true;
    if (number == HOST_OPEN_AT) {
        check((int64_t)arguments[0] == -100 && arguments[3] == 01101 && arguments[4] == 0644);
        check(arguments[2] == strlen((const char *)arguments[1]) + 1);
        strcpy(name_opened, (const char *)arguments[1]);
        call_result = open_result;
        is_open = open_result >= 0;
        return;
    }
    check(number == HOST_WRITE && is_open && (int64_t)arguments[0] == open_result);
    call_result = answer;
    if (answer > (int64_t)arguments[2])
        call_result = (int64_t)arguments[2];
    if (call_result > 0) {
        memcpy(written + written_bytes, (const void *)arguments[1], (size_t)call_result);
        written_bytes += (size_t)call_result;
    }
}

bool host_call_done(int64_t *result)
{
    if (!call_under_way || random_below(3) > 0)
        return false;
    call_under_way = false;
    *result = call_result;
    return true;
}

_Noreturn void machine_power_off(int status)
{
    check(status == MACHINE_FAILED);
    longjmp(after_power_off, 1);
}

static void start_file(const char *arguments)
{
    snprintf(machine.boot_arguments, sizeof machine.boot_arguments, "%s", arguments);
    machine.has_host_interface = true;
    written_bytes = 0;
    call_under_way = false;
    open_result = 5;
}

static enum trace_device_state write_block(const void *block, size_t bytes)
{
    enum trace_device_state state;
    host_file.start(block, bytes);
    do
        state = host_file.poll();
    while (state == TRACE_DEVICE_BUSY);
    return state;
}

static void test_no_trace(void)
{
    start_file("tick=1ms");
    check(!host_file.init() && !call_under_way);
    start_file("trace=x");
    machine.has_host_interface = false;
    check(!host_file.init());
}

static void test_not_opened(void)
{
    start_file("trace=a/b");
    open_result = -13;
    if (setjmp(after_power_off) == 0) {
        host_file.init();
        check(false);
    }
    check(strcmp(name_opened, "a/b") == 0);
}

static void test_blocks(void)
{
    static char block[3000];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)random_below(256);

    static const int64_t most[] = {100000, 3000, 2999, 1024, 7};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        start_file("trace=trace.bin");
        check(host_file.init());
        answer = most[i];
        check(write_block(block, sizeof block) == TRACE_DEVICE_DONE);
        check(write_block(block, 100) == TRACE_DEVICE_DONE);
        check(written_bytes == sizeof block + 100);
        check(memcmp(written, block, sizeof block) == 0);
        check(memcmp(written + sizeof block, block, 100) == 0);
    }
}

static void test_lost_blocks(void)
{
    static const int64_t errors[] = {0, -1, -28, INT64_MIN};
    static const char block[64];
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        start_file("trace=trace.bin");
        check(host_file.init());
        answer = errors[i];
        unsigned before = notes;
        check(write_block(block, sizeof block) == TRACE_DEVICE_FAILED && notes == before + 1);
    }
}

int main(void)
{
    run_test(test_no_trace);
    run_test(test_not_opened);
    run_test(test_blocks);
    run_test(test_lost_blocks);
    return 0;
}
