// SPDX-License-Identifier: MIT

// The machine of the schedlab kernel on Spike's library: the command line.

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot_arguments.h"
#include "machine.h"
#include "memory.h"

static constexpr char USAGE[] =
    "usage: schedlab-spike [OPTION]... KERNEL\n"
    "Runs schedlab's kernel on the harts of Spike's library.\n"
    "\n"
    "  --harts=N         1 to 256 (1)\n"
    "  --memory=MIB      (512)\n"
    "  --isa=TEXT        the instruction set\n"
    "  --arguments=TEXT  the kernel's boot arguments; trace=FILE among them is the one file that "
    "it may write\n"
    "  --disk=FILE       the initial ramdisk; writes of the kernel are discarded\n"
    "  --turn=N          instructions of a hart in a round, a multiple of 100; also the clock's "
    "step in ns (500)\n"
    "  --turn=spike      as in Spike's program: 5000 instructions, and a trap ends a hart's turn\n"
    "  --interleave=SEED harts alternate within each round after some instructions, in an order "
    "that the seed draws\n"
    "  --hold-by=SEED    holds harts for a while at random moments within a turn\n"
    "  --keep-holds=FILE records these holds (spike/holds.h)\n"
    "  --holds=FILE      holds harts only at these recorded moments\n"
    "  --keep-disk=FILE  writes the disk's content at the end\n"
    "  --branch-at=NS    at this time of the kernel, the machine continues in branches\n"
    "  --branch=FOLDER   one branch: FOLDER/commands are the kernel's commands; console.log, the\n"
    "                    trace and status are written there. May be repeated\n"
    "  --jobs=N          branches that run at the same time (1)\n"
    "  --pace=X          with input: nanoseconds of the machine per nanosecond of real time; 0: as "
    "fast as possible (0)\n"
    "  --keep-typed=FILE records the input, each part with the kernel's time in ns\n"
    "  --typed=FILE      repeats recorded input at its times; standard input is not read, and time "
    "is not paced\n"
    "  --tree            writes the device tree that the kernel gets, and ends\n"
    "\n"
    "Ends with the kernel's status; 2: wrong usage; 103: deadlock, all CPUs sleep.\n";

struct options {
    size_t harts = 1;
    size_t memory_mib = 512;
    const char *isa = nullptr;
    const char *arguments = "";
    const char *disk = nullptr;
    struct turn turn = {500, false};
    std::optional<interleaving> order;
    std::optional<holds> held;
    const char *keep_holds = nullptr;
    const char *keep_disk = nullptr;
    std::optional<uint64_t> branch_at;
    std::vector<std::string> branch_folders;
    size_t jobs = 1;
    double pace = 0;
    const char *keep_typed = "";
    const char *typed = nullptr;
    bool tree = false;
    const char *kernel = nullptr;
};

struct wrong_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename number>
static void take_number(const char *option, const char *text, number least, number most,
                        number &value)
{
    const char *end = text + strlen(text);
    auto [rest, error] = std::from_chars(text, end, value);
    if (error != std::errc() || rest != end || !(value >= least && value <= most))
        throw wrong_usage(std::string(option) + text + ": not a number, or out of range");
}

static const char *value_of(const char *argument, const char *option)
{
    size_t length = strlen(option);
    return strncmp(argument, option, length) == 0 ? argument + length : nullptr;
}

static void take_turn(const char *text, struct turn &turn)
{
    turn = {5000, strcmp(text, "spike") == 0};
    if (turn.trap_ends_it)
        return;
    take_number<uint64_t>("--turn=", text, 100, 1000000, turn.instructions);
    if (turn.instructions % sim_t::INSNS_PER_RTC_TICK)
        throw wrong_usage("--turn: not a multiple of 100");
}

static void take(options &options, const char *argument)
{
    const char *text;
    if ((text = value_of(argument, "--harts=")))
        take_number<size_t>("--harts=", text, 1, HARTS_MAX, options.harts);
    else if ((text = value_of(argument, "--memory=")))
        take_number<size_t>("--memory=", text, 1, 1 << 20, options.memory_mib);
    else if ((text = value_of(argument, "--isa=")))
        options.isa = text;
    else if ((text = value_of(argument, "--arguments=")))
        options.arguments = text;
    else if ((text = value_of(argument, "--disk=")))
        options.disk = text;
    else if ((text = value_of(argument, "--turn=")))
        take_turn(text, options.turn);
    else if ((text = value_of(argument, "--interleave="))) {
        uint64_t seed;
        take_number<uint64_t>("--interleave=", text, 0, UINT64_MAX, seed);
        options.order.emplace(seed);
    } else if ((text = value_of(argument, "--hold-by="))) {
        uint64_t seed;
        take_number<uint64_t>("--hold-by=", text, 0, UINT64_MAX, seed);
        options.held.emplace(seed);
    } else if ((text = value_of(argument, "--holds=")))
        options.held = holds::of_file(text);
    else if ((text = value_of(argument, "--keep-holds=")))
        options.keep_holds = text;
    else if ((text = value_of(argument, "--keep-disk=")))
        options.keep_disk = text;
    else if ((text = value_of(argument, "--branch-at="))) {
        uint64_t ns;
        take_number<uint64_t>("--branch-at=", text, 0, INT64_MAX, ns);
        options.branch_at = ns;
    } else if ((text = value_of(argument, "--branch=")))
        options.branch_folders.push_back(text);
    else if ((text = value_of(argument, "--jobs=")))
        take_number<size_t>("--jobs=", text, 1, 1024, options.jobs);
    else if ((text = value_of(argument, "--pace=")))
        take_number<double>("--pace=", text, 0, 1e6, options.pace);
    else if ((text = value_of(argument, "--keep-typed=")))
        options.keep_typed = text;
    else if ((text = value_of(argument, "--typed=")))
        options.typed = text;
    else if (strcmp(argument, "--tree") == 0)
        options.tree = true;
    else if (argument[0] == '-' || options.kernel)
        throw wrong_usage(std::string(argument) + ": unknown option, or a second kernel");
    else
        options.kernel = argument;
}

// Returns true if a user may type.
static bool is_live(const options &options)
{
    return !options.typed && console_is_live();
}

static options read_options(int count, char *arguments[])
{
    options options;
    for (int i = 1; i < count; i++)
        take(options, arguments[i]);
    if (!options.kernel)
        throw wrong_usage("KERNEL: missing; name a kernel");
    if (options.branch_at.has_value() == options.branch_folders.empty())
        throw wrong_usage("--branch-at and --branch: give both");
    if (options.held && (options.order || options.branch_at || options.turn.trap_ends_it))
        throw wrong_usage(
            "--hold-by, --holds: cannot be combined with --interleave, --turn=spike or "
            "--branch");
    if (options.keep_holds && !options.held)
        throw wrong_usage("--keep-holds: works only with --hold-by or --holds");
    if (options.keep_disk && !options.disk)
        throw wrong_usage("--keep-disk: works only with --disk");
    if (options.branch_at && is_live(options))
        throw wrong_usage("--branch: the console must not be interactive; redirect standard input");
    return options;
}

static int must_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        throw std::runtime_error(std::string(path) + ": " + strerror(errno));
    return file;
}

// The library aborts the process by an assertion for any other file.
static void check_kernel(const char *path)
{
    static constexpr unsigned char MAGIC[] = {0x7f, 'E', 'L', 'F', 2}; // of 64 bits
    static constexpr size_t MACHINE = 18;
    static constexpr unsigned char RISCV = 243;
    unsigned char match[MACHINE + 1] = {};
    int file = must_open(path);
    ssize_t count = read(file, match, sizeof(match));
    close(file);
    if (count != sizeof(match) || memcmp(match, MAGIC, sizeof(MAGIC)) != 0 ||
        match[MACHINE] != RISCV)
        throw std::runtime_error(std::string(path) + ": not a 64-bit RISC-V program");
}

// Places the disk so that it ends a page before the memory does, as in Spike itself.
static void lay_disk(const char *path, flat_memory &memory, cfg_t &configuration)
{
    struct stat state;
    int file = must_open(path);
    if (fstat(file, &state) < 0 || static_cast<reg_t>(state.st_size) + 4096 > memory.size())
        throw std::runtime_error(std::string(path) + ": does not fit into the memory");
    reg_t end = memory.size() - 4096;
    reg_t start = end - static_cast<reg_t>(state.st_size);
    memory.lay(start, file, static_cast<reg_t>(state.st_size));
    configuration.initrd_bounds = {DRAM_BASE + start, DRAM_BASE + end};
    close(file);
}

static void keep_disk(const char *path, flat_memory &memory, const cfg_t &configuration)
{
    auto [begin, end] = configuration.initrd_bounds;
    FILE *file = fopen(path, "we");
    if (!file || fwrite(memory.contents(begin - DRAM_BASE), end - begin, 1, file) != 1 ||
        fclose(file) != 0)
        throw std::runtime_error(std::string(path) + ": " + strerror(errno));
}

static int run(const options &options)
{
    static cfg_t configuration;
    static flat_memory memory(options.memory_mib << 20);

    configuration.bootargs = options.arguments;
    if (options.isa)
        configuration.isa = options.isa;
    configuration.mem_layout = {mem_cfg_t(DRAM_BASE, memory.size())};
    configuration.pmpregions = 1; // all that the kernel uses; the library checks each at each
                                  // access
    configuration.hartids.clear();
    for (size_t i = 0; i < options.harts; i++)
        configuration.hartids.push_back(i);
    if (options.disk)
        lay_disk(options.disk, memory, configuration);
    check_kernel(options.kernel);

    machine_parts parts = {configuration,
                           memory,
                           options.kernel,
                           options.turn,
                           options.order,
                           boot_argument(options.arguments, "trace"),
                           {},
                           options.keep_typed,
                           {},
                           {},
                           options.held};
    if (options.keep_holds)
        parts.holds->keep_in(options.keep_holds);
    if (is_live(options))
        parts.console.emplace(options.pace);
    if (options.typed)
        parts.typed_before = read_typed(options.typed);
    if (options.branch_at)
        parts.futures.emplace(*options.branch_at, options.jobs, options.branch_folders, parts.file);
    // Never destroyed: the process ends with it.
    auto *complete = new machine(parts);
    if (options.tree) {
        const std::string &tree = complete->device_tree();
        return fwrite(tree.data(), tree.size(), 1, stdout) == 1 && fflush(stdout) == 0 ? 0 : 1;
    }
    int status = complete->run_to_end();
    if (options.keep_disk)
        keep_disk(options.keep_disk, memory, configuration);
    return status;
}

int main(int count, char *arguments[])
{
    if (count == 2 && strcmp(arguments[1], "--help") == 0) {
        fputs(USAGE, stdout);
        return 0;
    }
    try {
        return run(read_options(count, arguments));
    } catch (const wrong_usage &error) {
        fprintf(stderr, "schedlab-spike: %s; see --help\n", error.what());
        return 2;
    } catch (const std::exception &error) {
        fprintf(stderr, "schedlab-spike: %s\n", error.what());
        return 1;
    }
}
