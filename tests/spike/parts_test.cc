// SPDX-License-Identifier: MIT

// Tests the parts of the Spike driver that do not need Spike. Exit status 0 is a pass.

#include "spike/boot_arguments.h"
#include "spike/hart_set.h"
#include "spike/host_calls.h"
#include "spike/typed.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#define check(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim);                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void boot_arguments_are_read_as_the_kernel_does()
{
    check(boot_argument("", "trace") == "");
    check(boot_argument("trace=a.bin", "trace") == "a.bin");
    check(boot_argument("  x trace=a  y=1 ", "trace") == "a");
    check(boot_argument("trace=a trace=b", "trace") == "b");
    check(boot_argument("trace", "trace") == "");
    check(boot_argument("traces=a", "trace") == "");
    check(boot_argument("run=\"a trace=b\"", "trace") == "");
    check(boot_argument("run=\"a b\"trace=c", "trace") == "c");
    check(boot_argument("trace=\"a b", "trace") == "a b");
}

static void a_set_of_harts_is_in_order()
{
    hart_set set;
    check(set.is_empty() && set.first(0) == HARTS_MAX);
    for (size_t hart : {255, 0, 64, 63, 130})
        set.add(hart);
    std::vector<size_t> match;
    for (size_t i = set.first(0); i < HARTS_MAX; i = set.first(i + 1))
        match.push_back(i);
    check((match == std::vector<size_t>{0, 63, 64, 130, 255}));
    set.remove(64);
    check(!set.has(64) && set.has(63) && set.first(64) == 130);
}

static char memory[4096];

static char *translate(uint64_t address, uint64_t bytes)
{
    return address <= sizeof(memory) && bytes <= sizeof(memory) - address ? memory + address
                                                                          : nullptr;
}

// Returns the kernel's result of a system call; its name, if any, is at address 1024.
static int64_t result_of(host_calls &calls, std::vector<uint64_t> words)
{
    uint64_t tohost = 512, fromhost = 0;
    memset(memory + tohost, 0, 64);
    memcpy(memory + tohost, words.data(), 8 * words.size());
    calls.serve(&tohost, &fromhost);
    check(tohost == 0 && fromhost == 1 && !calls.ended());
    int64_t result;
    memcpy(&result, memory + 512, sizeof(result));
    return result;
}

static int64_t result_of_open(host_calls &calls, const char *name)
{
    strcpy(memory + 1024, name);
    return result_of(calls,
                     {56, static_cast<uint64_t>(-100), 1024, strlen(name) + 1, O_RDWR, 0644});
}

static void the_kernel_reaches_one_file()
{
    host_calls calls(translate, "allowed");
    int64_t file = result_of_open(calls, "allowed");
    check(file >= 3);
    check(result_of_open(calls, "other") == -EACCES);
    check(result_of_open(calls, "./allowed") == -EACCES);
    check(result_of_open(calls, "/etc/passwd") == -EACCES);
    check(result_of(calls, {56, 0, sizeof(memory) - 2, 8}) == -EACCES);
    strcpy(memory + 2048, "four");
    check(result_of(calls, {64, static_cast<uint64_t>(file), 2048, 4}) == 4);
    check(result_of(calls, {64, static_cast<uint64_t>(file), 2048, sizeof(memory)}) == -EFAULT);
    for (uint64_t descriptor : {0, 2, 4, 5, 6, 7, 8, 9})
        check(result_of(calls, {64, descriptor, 2048, 4}) == -EBADF);
    check(result_of(calls, {63, static_cast<uint64_t>(file), 2048, 4}) == -ENOSYS);
    char match[8] = "";
    int again = open("allowed", O_RDONLY);
    check(read(again, match, sizeof(match)) == 4 && strcmp(match, "four") == 0);
    check(access("other", F_OK) != 0);
    close(again);
    unlink("allowed");
}

static void without_a_file_there_is_none()
{
    host_calls calls(translate, "");
    check(result_of_open(calls, "") == -EACCES);
    check(result_of(calls, {64, 3, 2048, 4}) == -EBADF);
    host_calls failed(translate, "no/such/folder");
    check(result_of_open(failed, "no/such/folder") == -ENOENT);
}

static void the_end_has_a_status()
{
    host_calls calls(translate, "");
    uint64_t tohost = 0, fromhost = 0;
    calls.serve(&tohost, &fromhost);
    check(!calls.ended() && fromhost == 0);
    tohost = 101 << 1 | 1;
    calls.serve(&tohost, &fromhost);
    check(calls.ended() == 101);
}

static void write_text(const char *text)
{
    FILE *file = fopen("typed", "wb");
    check(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void what_was_typed_is_read_as_it_was_kept()
{
    std::string all;
    for (int code = 1; code < 256; code++)
        all += static_cast<char>(code);
    all += '\0';
    std::vector<typed> list = {{7, " a\\\n "}, {8, all}, {UINT64_MAX, ""}};
    {
        typed_file file("typed");
        for (const typed &input : list)
            file.add(input);
    }
    std::vector<typed> match = read_typed("typed");
    check(match.size() == list.size());
    for (size_t i = 0; i < list.size(); i++)
        check(match[i].at_ns == list[i].at_ns && match[i].text == list[i].text);
    write_text("1 a\n2\n3 \\x5cb\n");
    match = read_typed("typed");
    check(match.size() == 3 && match[1].text.empty() && match[2].text == "\\b");
}

static std::string complaint_of(const char *text)
{
    write_text(text);
    try {
        read_typed("typed");
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

static void what_nobody_kept_is_refused()
{
    for (const char *text :
         {"5 a\n5 b\n", "5 a\n4 b\n", "5 a\nb\n", "5 a\n6 \n", "5 a\n\n", "5 a\n6 \\x0\n",
          "5 a\n6 \\x0g\n", "5 a\n6 \\\n", "5 a\n6 \\n\n", "5 a\n6 \t\n", "5 a\n-6 b\n",
          "5 a\n99999999999999999999 b\n", "5 a\n 6 b\n", "5 a\n6 \xff\n"})
        check(complaint_of(text).starts_with("typed, line 2: invalid line"));
    check(complaint_of("") == "");
    unlink("typed");
    bool is_refused = false;
    try {
        read_typed("typed");
    } catch (const std::exception &) {
        is_refused = true;
    }
    check(is_refused);
}

int main()
{
    what_was_typed_is_read_as_it_was_kept();
    what_nobody_kept_is_refused();
    boot_arguments_are_read_as_the_kernel_does();
    a_set_of_harts_is_in_order();
    the_kernel_reaches_one_file();
    without_a_file_there_is_none();
    the_end_has_a_status();
}
