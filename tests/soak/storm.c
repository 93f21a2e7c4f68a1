/* SPDX-License-Identifier: MIT */

/*
 * Stress test of the kernel, for `./schedlab dev soak`. Round after round, workers fork, kill,
 * switch the policy, change files and fill the disk, driven by a seed. After each round all of
 * their processes and files must be gone; a line of figures reports what remains. A failed check
 * ends the machine with status 1.
 */

#include "policies/policy.h"
#include "tests/guest/check.h"

#define USAGE       "storm SEED SECONDS WORKERS STEPS POLICY..."
#define WORKERS_MAX 64
#define FAMILY_MAX  12
#define CHEAP_CALLS 1000

/* Counts of the workers' acts since the beginning. Each worker writes to a separate row. */
struct deeds {
    int64_t calls;
    int64_t forks;
    int64_t kills;
    int64_t switches;
    int64_t full_disks;
    int64_t slowest_end; /* ns from kill() until wait() returned */
};

static struct deeds *deeds; /* of all workers, shared between them */
static struct deeds *mine;
static int64_t end; /* end of the storm, in ns since boot */
static struct random numbers;
static char **policies;
static int policy_count;
static char block[4096];

#define call(expression) (mine->calls++, (expression))

static int number_below(int64_t limit)
{
    return (int)random_below(&numbers, (uint64_t)limit);
}

static bool is_over(void)
{
    return clock_ns() >= end;
}

static int storm_fork(void)
{
    mine->forks++;
    return call(test_fork());
}

static void fork_a_family(void)
{
    int count = 1 + number_below(FAMILY_MAX);
    for (int i = 0; i < count; i++) {
        if (storm_fork() == 0)
            exit(0);
    }
    for (int i = 0; i < count; i++) {
        int status;
        check(call(wait(&status)) > 0 && status == 0);
    }
}

/* A victim's loop until it is killed. It does not touch `mine`, which belongs to its parent. */
_Noreturn static void live_until_killed(int method, const int ends[2])
{
    char name[24];
    snprintf(name, sizeof(name), "v%d", getpid());
    for (;;) {
        switch (method) {
        case 0:
            spin(1000);
            break;
        case 1:
            sleep(1000000);
            break;
        case 2:
            read(ends[0], block, sizeof(block));
            break;
        case 3: {
            int file = open(name, OPEN_BOTH | OPEN_CREATE | OPEN_TRUNCATE);
            write(file, block, sizeof(block));
            close(file);
            unlink(name);
            break;
        }
        case 4:
            if (fork() == 0)
                exit(0);
            wait(NULL);
            break;
        default:
            sbrk(4096);
            sbrk(-4096);
        }
    }
}

static void fork_and_kill(void)
{
    int ends[2];
    int status;
    char name[24];
    check(call(pipe(ends)) == 0);
    int method = number_below(6);
    int pid = storm_fork();
    if (pid == 0)
        live_until_killed(method, ends);
    if (number_below(2))
        spin(number_below(100000));
    else
        call(sleep(number_below(2)));
    int64_t killed = clock_ns();
    check(call(kill(pid)) == 0);
    check(call(wait(&status)) == pid && status == -1);
    int64_t took = clock_ns() - killed;
    if (took > mine->slowest_end)
        mine->slowest_end = took;
    mine->kills++;
    call(close(ends[0]));
    call(close(ends[1]));
    snprintf(name, sizeof(name), "v%d", pid);
    call(unlink(name));
}

static void switch_policy(void)
{
    check(call(setpolicy(policies[number_below(policy_count)])) == 0);
    mine->switches++;
}

/* Another worker may have filled the disk: then the write is short. */
static void change_a_file(void)
{
    char name[24];
    int pieces = 1 + number_below(8);
    snprintf(name, sizeof(name), "f%d", getpid());
    for (int i = 0; i < pieces; i++) {
        int file = call(open(name, OPEN_BOTH | OPEN_CREATE | (i ? 0 : OPEN_TRUNCATE)));
        if (file < 0) {
            check(last_error() == ENOSPC);
            break;
        }
        call(write(file, block, 1 + number_below(sizeof(block))));
        call(close(file));
    }
    if (call(unlink(name)) < 0)
        check(last_error() == ENOENT);
}

/* Several workers may fill the disk at once, which may take minutes. */
static void fill_the_disk(void)
{
    char name[24];
    snprintf(name, sizeof(name), "d%d", getpid());
    int file = call(open(name, OPEN_BOTH | OPEN_CREATE));
    if (file < 0) {
        check(last_error() == ENOSPC);
        return;
    }
    int64_t written = 1;
    while (written > 0 && !is_over())
        written = call(write(file, block, sizeof(block)));
    if (written <= 0) {
        check(last_error() == ENOSPC || last_error() == EFBIG);
        mine->full_disks += last_error() == ENOSPC;
    }
    call(close(file));
    check(call(unlink(name)) == 0);
}

static void ask_for_the_clock(void)
{
    check(call(clock_ns()) > 0);
}

static void ask_for_the_ticks(void)
{
    check(call(uptime()) >= 0);
}

static void ask_who_one_is(void)
{
    check(call(getpid()) > 0);
}

static void copy_a_descriptor(void)
{
    check(call(close(call(dup(0)))) == 0);
}

static void look_for_a_file(void)
{
    check_error(call(open("/none", OPEN_READ)), ENOENT);
}

static void use_a_wrong_descriptor(void)
{
    check_error(call(read(-1, block, 1)), EBADF);
}

static void send_a_byte(void)
{
    int ends[2];
    check(call(pipe(ends)) == 0);
    check(call(write(ends[1], block, 1)) == 1 && call(read(ends[0], block, 1)) == 1);
    check(call(close(ends[0])) == 0 && call(close(ends[1])) == 0);
}

static void change_the_heap(void)
{
    check(call(sbrk(4096)) != SYSTEM_FAILED && call(sbrk(-4096)) != SYSTEM_FAILED);
}

static void give_way(void)
{
    check(call(yield()) == 0);
}

/* Never below the default: two computing victims could starve their killers. */
static void change_ones_priority(void)
{
    int pid = call(getpid());
    check(call(setpriority(pid, number_below(PRIORITY_DEFAULT))) == 0);
    check(call(setpriority(pid, PRIORITY_DEFAULT)) == 0);
}

/* Hundreds of calls take no longer than one of the other acts, so they dominate the count. */
static void make_cheap_calls(void)
{
    static void (*const calls[])(void) = {
        ask_for_the_clock, ask_for_the_ticks,      ask_who_one_is, copy_a_descriptor,
        look_for_a_file,   use_a_wrong_descriptor, send_a_byte,    change_the_heap,
        give_way,          change_ones_priority,
    };
    for (int i = 0; i < CHEAP_CALLS; i++)
        calls[number_below(sizeof(calls) / sizeof(calls[0]))]();
}

_Noreturn static void work(uint64_t seed, int64_t steps)
{
    /* Filling the disk takes as long as hundreds of other acts. */
    static void (*const acts[])(void) = {fork_a_family, fork_and_kill, switch_policy, change_a_file,
                                         make_cheap_calls};
    numbers.state = seed;
    for (int64_t i = 0; i < steps && !is_over(); i++)
        acts[number_below(sizeof(acts) / sizeof(acts[0]))]();
    if (number_below(8) == 0)
        fill_the_disk();
    exit(0);
}

/* Orphans of victims end without help. */
static void wait_until_alone(int processes)
{
    for (int i = 0; i < 1000 && getpinfo(NULL, 0) > processes; i++)
        sleep(1);
    check(getpinfo(NULL, 0) == processes);
}

static void run_round(uint64_t seed, int64_t workers, int64_t steps)
{
    for (int64_t i = 0; i < workers; i++) {
        mine = &deeds[i];
        if (storm_fork() == 0)
            work(seed << 16 | (uint64_t)i, steps);
    }
    for (int64_t i = 0; i < workers; i++) {
        int status;
        check(wait(&status) > 0 && status == 0);
    }
}

static struct deeds sum_deeds(void)
{
    struct deeds sum = {0};
    for (int i = 0; i < WORKERS_MAX; i++) {
        sum.calls += deeds[i].calls;
        sum.forks += deeds[i].forks;
        sum.kills += deeds[i].kills;
        sum.switches += deeds[i].switches;
        sum.full_disks += deeds[i].full_disks;
        if (deeds[i].slowest_end > sum.slowest_end)
            sum.slowest_end = deeds[i].slowest_end;
    }
    return sum;
}

static void report(int64_t rounds)
{
    struct deeds sum = sum_deeds();
    struct system_stats stats;
    check(getstats(&stats) == 0);
    printf("soak rounds=%ld system_calls=%ld forks=%ld kills=%ld switches=%ld full_disks=%ld"
           " slowest_end_us=%ld free_pages=%lu guest_processes=%u\n",
           rounds, sum.calls, sum.forks, sum.kills, sum.switches, sum.full_disks,
           sum.slowest_end / 1000, stats.free_pages, stats.processes);
}

int main(int argc, char *argv[])
{
    if (argc < 6)
        usage(USAGE);
    int64_t seed = number_argument("storm", argv[1], 0, INT32_MAX);
    int64_t seconds = number_argument("storm", argv[2], 1, INT32_MAX);
    int64_t workers = number_argument("storm", argv[3], 1, WORKERS_MAX);
    int64_t steps = number_argument("storm", argv[4], 1, INT32_MAX);
    policies = argv + 5;
    policy_count = argc - 5;
    test_name = "storm";
    deeds = shared_memory(WORKERS_MAX * sizeof(*deeds));
    check(deeds != SYSTEM_FAILED);
    check(mkdir("/soak") == 0 && chdir("/soak") == 0);

    int processes = getpinfo(NULL, 0);
    end = clock_ns() + seconds * 1000000000;
    for (int64_t round = 1; !is_over(); round++) {
        run_round((uint64_t)(seed + round), workers, steps);
        check(setpolicy(policies[0]) == 0);
        wait_until_alone(processes);
        report(round);
    }
    printf("ok storm\n");
    return 0;
}
