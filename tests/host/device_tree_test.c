/* SPDX-License-Identifier: MIT */

/*
 * Tests the reader of device trees: trees of the real machines and an unusual one, compiled by dtc;
 * trees that must be refused; and many damaged trees, in memory of their exact size. Also tests
 * boot arguments.
 */

#include <unistd.h>

#include "device_stubs.h"

#include "kernel/device/boot_arguments.c"
#include "kernel/device/device_tree.c"
#include "kernel/device/device_tree_format.c"

#define MUTATIONS 100000

#pragma clang diagnostic ignored "-Wc23-extensions" /* #embed */
static const char qemu_virt_source[] = {
#embed "device_trees/qemu-virt.dts"
    , 0};
static const char spike_source[] = {
#embed "device_trees/spike.dts"
    , 0};
static const char unusual_source[] = {
#embed "device_trees/unusual.dts"
    , 0};

struct blob {
    uint8_t *data; /* of exact size, so that AddressSanitizer detects reads beyond it */
    size_t bytes;
};

static struct blob blob_copy(const void *data, size_t bytes)
{
    struct blob blob = {malloc(bytes), bytes};
    check(blob.data);
    memcpy(blob.data, data, bytes);
    return blob;
}

static struct blob compile(const char *source)
{
    static uint8_t output[1 << 17];
    char path[] = "/tmp/device_tree_test.XXXXXX";
    char command[100];

    int file = mkstemp(path);
    size_t length = strlen(source);
    check(file >= 0 && write(file, source, length) == (ssize_t)length && close(file) == 0);
    snprintf(command, sizeof command, "dtc -q -I dts -O dtb %s", path);
    FILE *pipe = popen(command, "r");
    check(pipe);
    size_t bytes = fread(output, 1, sizeof output, pipe);
    check(pclose(pipe) == 0 && bytes < sizeof output);
    unlink(path);
    return blob_copy(output, bytes);
}

static int read_source(const char *source)
{
    struct blob blob = compile(source);
    int error = device_tree_read(blob.data, &machine);
    free(blob.data);
    return error;
}

static bool is_range(struct device_range range, uint64_t start, uint64_t bytes)
{
    return range.start == start && range.bytes == bytes;
}

/* ---- the machines ---- */

static void test_qemu_virt(void)
{
    check(read_source(qemu_virt_source) == 0);
    check(machine.cpus == 4);
    for (uint32_t cpu = 0; cpu < 4; cpu++) {
        check(machine.hart[cpu] == cpu);
        check(machine.interrupt_context[cpu] == 2 * cpu + 1);
    }
    check(is_range(machine.memory, 0x80000000, 0x20000000));
    check(is_range(machine.initial_ramdisk, 0x88000000, 0x10000));
    check(machine.timebase_hz == 10000000 && machine.has_supervisor_timer);
    check(is_range(machine.clint, 0x2000000, 0x10000));
    check(is_range(machine.interrupt_controller, 0xc000000, 0x600000));
    check(is_range(machine.console, 0x10000000, 0x100) && machine.console_interrupt == 10);
    check(machine.virtio_count == 8);
    for (uint32_t slot = 0; slot < 8; slot++) {
        uint32_t interrupt = machine.virtio_interrupt[slot];
        check(interrupt >= 1 && interrupt <= 8);
        check(is_range(machine.virtio[slot], 0x10000000 + 0x1000 * interrupt, 0x1000));
    }
    check(is_range(machine.power, 0x100000, 0x1000));
    check(!machine.has_host_interface);
    check(strcmp(machine.boot_arguments, "tick=1ms disk_read=1us") == 0);
}

static void test_spike(void)
{
    check(read_source(spike_source) == 0);
    check(machine.cpus == 4);
    for (uint32_t cpu = 0; cpu < 4; cpu++)
        check(machine.hart[cpu] == cpu && machine.interrupt_context[cpu] == 2 * cpu + 1);
    check(is_range(machine.memory, 0x80000000, 0x20000000));
    check(is_range(machine.initial_ramdisk, 0x9fffc8f0, 10000));
    check(machine.timebase_hz == 10000000 && machine.has_supervisor_timer);
    check(is_range(machine.clint, 0x2000000, 0xc0000));
    check(is_range(machine.interrupt_controller, 0xc000000, 0x1000000));
    check(is_range(machine.console, 0x10000000, 0x100) && machine.console_interrupt == 1);
    check(machine.virtio_count == 0 && machine.power.bytes == 0 && machine.has_host_interface);
    check(strcmp(machine.boot_arguments, "trace=a.bin") == 0);
}

static void test_unusual(void)
{
    check(read_source(unusual_source) == 0);
    check(machine.cpus == 2 && machine.hart[0] == 2 && machine.hart[1] == 3);
    check(machine.interrupt_context[0] == 3 && machine.interrupt_context[1] == 5);
    check(machine.has_supervisor_timer && machine.timebase_hz == 1000000);
    check(is_range(machine.memory, 0x80000000, 0x20000000));
    check(is_range(machine.initial_ramdisk, 0x90000800, 0x10000));
    check(is_range(machine.console, 0x10001000, 0x100) && machine.console_interrupt == 33);
    check(!machine.has_host_interface && machine.clint.bytes == 0);
    char value[16];
    check(boot_argument_text("name", value, sizeof value) && strcmp(value, "two words") == 0);
}

/* ---- small trees ---- */

#define TREE(cells, memory, cpus, chosen)                                                          \
    "/dts-v1/; / { #address-cells = <" cells ">; #size-cells = <2>;"                               \
    "memory@80000000 { device_type = \"memory\"; reg = <" memory ">; };"                           \
    "cpus { #address-cells = <1>; #size-cells = <0>; " cpus " };"                                  \
    "chosen { " chosen " }; };"

#define MEMORY     "0 0x80000000 0 0x8000000"
#define TIMEBASE   "timebase-frequency = <10000000>; "
#define CPU(n, is) "cpu@" #n " { device_type = \"cpu\"; reg = <" #n ">; riscv,isa = \"" is "\"; };"

static void test_timer_needs_all_cpus(void)
{
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i_sstc"), "")) == 0);
    check(machine.has_supervisor_timer);
    check(machine.interrupt_context[0] == INTERRUPT_CONTEXT_NONE);
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i_sstc") CPU(1, "rv64i"), "")) == 0);
    check(!machine.has_supervisor_timer);
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i_sstcx"), "")) == 0);
    check(!machine.has_supervisor_timer);
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i_sstc_svinval"), "")) == 0);
    check(machine.has_supervisor_timer);
}

static void test_refused(void)
{
    unsigned before = notes;
    check(read_source(TREE("2", MEMORY, TIMEBASE, "")) == -EINVAL);
    check(read_source(TREE("2", MEMORY, CPU(0, "rv64i"), "")) == -EINVAL);
    check(read_source(TREE("2", "0 0", TIMEBASE CPU(0, "rv64i"), "")) == -EINVAL);
    check(read_source(TREE("3", MEMORY, TIMEBASE CPU(0, "rv64i"), "")) == -EINVAL);
    check(read_source(TREE("2", MEMORY,
                           TIMEBASE CPU(0, "rv64i") "again { device_type = \"cpu\"; "
                                                    "reg = <0>; };",
                           "")) == -EINVAL);
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), "bootargs = <1 2>;")) == -EINVAL);
    check(notes == before + 6);
}

static void test_memory_out_of_reach(void)
{
    /* all bits set, and the end of the last byte that the kernel maps */
    check(read_source(TREE("2", "0xffffffff 0xfffff000 0 0x2000", TIMEBASE CPU(0, "rv64i"), "")) ==
          -EINVAL);
    check(read_source(TREE("2", "0x1f 0xfffff000 0 0x1000", TIMEBASE CPU(0, "rv64i"), "")) == 0);
    check(read_source(TREE("2", "0x1f 0xfffff000 0 0x1001", TIMEBASE CPU(0, "rv64i"), "")) ==
          -EINVAL);
}

static void test_ramdisk_outside_of_memory(void)
{
#define RAMDISK(start, end) "linux,initrd-start = <" start ">; linux,initrd-end = <" end ">;"
    static const char *const bad[] = {
        TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), RAMDISK("0x7ffff000", "0x80001000")),
        TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), RAMDISK("0x87fff000", "0x88000001")),
        TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), RAMDISK("0x80002000", "0x80001000")),
        TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), "linux,initrd-start = <0x80001000>;"),
        TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"), RAMDISK("0 0 0x80001000", "0x80002000")),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check(read_source(bad[i]) == 0 && machine.initial_ramdisk.bytes == 0);
    check(read_source(TREE("2", MEMORY, TIMEBASE CPU(0, "rv64i"),
                           RAMDISK("0x87fff000", "0x88000000"))) == 0);
    check(is_range(machine.initial_ramdisk, 0x87fff000, 0x1000));
}

/* Makes a tree of `count` CPUs, the last CPU first. */
static char *source_of_cpus(int cpus)
{
    char *source = malloc(60000);
    check(source);
    int length =
        sprintf(source, "/dts-v1/; / { #address-cells = <2>; #size-cells = <2>;"
                        "memory@80000000 { device_type = \"memory\"; reg = <" MEMORY ">; };"
                        "cpus { #address-cells = <1>; #size-cells = <0>; " TIMEBASE);
    for (int i = cpus - 1; i >= 0; i--)
        length += sprintf(source + length,
                          "cpu@%x { device_type = \"cpu\"; reg = <%d>; c%d: controller {"
                          "compatible = \"riscv,cpu-intc\"; #interrupt-cells = <1>; }; };",
                          i, i, i);
    length += sprintf(source + length, "}; plic@c000000 { compatible = \"riscv,plic0\";"
                                       "reg = <0 0xc000000 0 0x600000>; interrupts-extended = <");
    for (int i = 0; i < cpus; i++)
        length += sprintf(source + length, "&c%d 11 &c%d 9 ", i, i);
    sprintf(source + length, ">; }; };");
    return source;
}

static void test_all_cpus(void)
{
    char *source = source_of_cpus(CPUS_MAX);
    check(read_source(source) == 0 && machine.cpus == CPUS_MAX);
    for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++)
        check(machine.hart[cpu] == cpu && machine.interrupt_context[cpu] == 2 * cpu + 1);
    free(source);

    source = source_of_cpus(CPUS_MAX + 2); /* two CPUs more than the kernel supports */
    unsigned before = notes;
    check(read_source(source) == 0 && machine.cpus == CPUS_MAX && notes == before + 2);
    free(source);
}

/* ---- damage ---- */

static void put_cell(uint8_t *at, uint32_t cell)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(cell >> (24 - 8 * i));
}

static void damage_once(struct blob *blob)
{
    static const uint32_t cells[] = {0, 1,  2,  3,          4,          5,          7,
                                     8, 9,  39, 40,         0x7fffffff, 0x80000000, 0xfffffffc,
                                     5, 10, 64, 0xffffffff, 0xfffffffe, 0x01000000, 0x1f};
    uint32_t at = random_below((uint32_t)blob->bytes - 4);

    switch (random_below(5)) {
    case 0:
        blob->data[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        blob->data[at] = (uint8_t)random_below(256);
        break;
    case 2: /* a special number, often in the header */
        at = random_below(4) == 0 ? 4 * random_below(10) : at & ~3u;
        put_cell(blob->data + at, cells[random_below(sizeof cells / sizeof cells[0])]);
        break;
    case 3: /* a slightly different token or length */
        at &= ~3u;
        put_cell(blob->data + at, cell_at(blob->data + at) + random_below(33) - 16);
        break;
    case 4: { /* a part of another place */
        uint32_t from = random_below((uint32_t)blob->bytes) & ~3u;
        uint32_t to = at & ~3u;
        uint32_t room = (uint32_t)blob->bytes - (from > to ? from : to);
        memmove(blob->data + to, blob->data + from, random_below(room < 200 ? room : 200));
        break;
    }
    }
}

static struct blob damaged(const struct blob *complete)
{
    size_t bytes =
        random_below(8) == 0 ? 44 + random_below((uint32_t)complete->bytes - 44) : complete->bytes;
    struct blob blob = blob_copy(complete->data, bytes);
    for (uint32_t i = 1 + random_below(8); i > 0; i--)
        damage_once(&blob);
    put_cell(blob.data, TREE_MAGIC); /* the boot loader sets the header's place and size */
    put_cell(blob.data + 4, (uint32_t)blob.bytes);
    return blob;
}

static void check_machine(void)
{
    check(machine.cpus >= 1 && machine.cpus <= CPUS_MAX);
    for (uint32_t cpu = 1; cpu < machine.cpus; cpu++)
        check(machine.hart[cpu - 1] < machine.hart[cpu]);
    check(machine.hart[machine.cpus - 1] < CPUS_MAX);
    check(is_reachable(&machine.memory) && machine.timebase_hz > 0);
    check(machine.virtio_count <= VIRTIO_SLOTS_MAX);
    for (uint32_t slot = 0; slot < machine.virtio_count; slot++)
        check(is_reachable(&machine.virtio[slot]) &&
              machine.virtio_interrupt[slot] < INTERRUPT_SOURCES);
    check(machine.console_interrupt < INTERRUPT_SOURCES);
    check(memchr(machine.boot_arguments, 0, sizeof machine.boot_arguments));
    struct device_range ramdisk = machine.initial_ramdisk;
    check(ramdisk.bytes == 0 ||
          (ramdisk.start >= machine.memory.start && ramdisk.bytes <= machine.memory.bytes &&
           ramdisk.start - machine.memory.start <= machine.memory.bytes - ramdisk.bytes));
}

static void test_damaged(void)
{
    const struct blob complete[] = {compile(qemu_virt_source), compile(spike_source),
                                    compile(unusual_source)};
    unsigned accepted = 0;

    for (int i = 0; i < MUTATIONS; i++) {
        struct blob blob = damaged(&complete[i % 3]);
        int error = device_tree_read(blob.data, &machine);
        check(error == 0 || error == -EINVAL);
        if (error == 0) {
            accepted++;
            check_machine();
            char value[sizeof machine.boot_arguments];
            boot_argument_text("disk_read", value, sizeof value);
        }
        free(blob.data);
    }
    for (int i = 0; i < 3; i++)
        free(complete[i].data);
    check(accepted > MUTATIONS / 10 && accepted < MUTATIONS * 9 / 10); /* both ends occurred */
}

/* Trees are cut at every length: the reader never reads beyond the end, and accepts no cut tree. */
static void test_cut_short(void)
{
    static const char *const sources[] = {qemu_virt_source, spike_source, unusual_source};
    for (int i = 0; i < 3; i++) {
        struct blob complete = compile(sources[i]);
        for (size_t bytes = 40; bytes < complete.bytes; bytes += 4) {
            struct blob blob = blob_copy(complete.data, bytes);
            put_cell(blob.data + 4, (uint32_t)bytes);
            check(device_tree_read(blob.data, &machine) == -EINVAL);
            free(blob.data);
        }
        free(complete.data);
    }
}

static void test_header(void)
{
    struct blob blob = compile(spike_source);
    put_cell(blob.data + 20, 16);
    check(device_tree_read(blob.data, &machine) == -EINVAL);
    put_cell(blob.data + 20, 18); /* newer, but readable as 16 */
    check(device_tree_read(blob.data, &machine) == 0);
    put_cell(blob.data + 24, 18);
    check(device_tree_read(blob.data, &machine) == -EINVAL);
    put_cell(blob.data, 0);
    check(device_tree_read(blob.data, &machine) == -EINVAL);
    free(blob.data);
}

/* ---- boot arguments ---- */

static void set_arguments(const char *text)
{
    snprintf(machine.boot_arguments, sizeof machine.boot_arguments, "%s", text);
}

static bool argument_is(const char *name, const char *expected)
{
    char value[16];
    return boot_argument_text(name, value, sizeof value) && strcmp(value, expected) == 0;
}

static void read_name(void)
{
    char value[16];
    boot_argument_text("name", value, sizeof value);
}

static void test_argument_text(void)
{
    char value[16] = "unchanged";

    set_arguments("  first=1 init=\"/sh -c x\" empty= flag first=2 dash-name=a=b  last=z");
    check(argument_is("first", "2")); /* the last one counts */
    check(argument_is("init", "/sh -c x"));
    check(argument_is("empty", "") && argument_is("flag", ""));
    check(argument_is("dash-name", "a=b") && argument_is("last", "z"));
    check(!boot_argument_text("fir", value, sizeof value));
    check(!boot_argument_text("firsts", value, sizeof value));
    check(!boot_argument_text("-c", value, sizeof value)); /* inside a value */
    check(!boot_argument_text("", value, sizeof value));
    check(strcmp(value, "unchanged") == 0);

    set_arguments("open=\"no end");
    check(argument_is("open", "no end"));
    set_arguments("name=123456789012345");
    check(argument_is("name", "123456789012345"));
    set_arguments("name=1234567890123456");
    check(panics(read_name));
    set_arguments("=x \"\" ==");
    check(!boot_argument_text("x", value, sizeof value));
    set_arguments("");
    check(!boot_argument_text("x", value, sizeof value));
}

static void read_number(void)
{
    boot_argument_number("n", 7);
}

static void test_argument_number(void)
{
    static const struct {
        const char *text;
        uint64_t number;
    } good[] = {
        {"n=0", 0},
        {"n=42", 42},
        {"n=42ns", 42},
        {"n=80us", 80000},
        {"n=10ms", 10000000},
        {"n=3s", 3000000000},
        {"n=18446744073709551615", UINT64_MAX},
        {"n=18446744073s", 18446744073000000000u},
        {"n=1 ms", 1},
        {"m=1", 7},
    };
    static const char *const bad[] = {
        "n=18446744073709551616",
        "n=18446744074s",
        "n=",
        "n",
        "n=ms",
        "n=-1",
        "n=1h",
        "n=1.5ms",
        "n=1msx",
        "n=\"1 ms\"",
        "n=00000000000000000000000000000001", /* longer than any number */
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        set_arguments(good[i].text);
        check(boot_argument_number("n", 7) == good[i].number);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set_arguments(bad[i]);
        check(panics(read_number));
    }
}

int main(void)
{
    run_test(test_qemu_virt);
    run_test(test_spike);
    run_test(test_unusual);
    run_test(test_timer_needs_all_cpus);
    run_test(test_refused);
    run_test(test_memory_out_of_reach);
    run_test(test_ramdisk_outside_of_memory);
    run_test(test_all_cpus);
    run_test(test_header);
    run_test(test_cut_short);
    run_test(test_damaged);
    run_test(test_argument_text);
    run_test(test_argument_number);
    return 0;
}
