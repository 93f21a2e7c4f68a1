/* SPDX-License-Identifier: MIT */

/*
 * Runs a workload file (abi/workload_file.h) with processes, as the simulator does by itself. Each
 * process does the steps of one program. docs/simulator.md defines the steps, docs/workloads.md the
 * differences here.
 */

#include "abi/cpu_list.h"
#include "workloads/api/host.h"
#include "workloads/api/loader.h"
#include "workloads/api/workload.h"

#define MILLISECOND_NS 1000000u
#define PIECE_NS       1000000000u /* of computing: no product overflows */
#define LOOK_NS        20000 /* how often a process that computes until a time checks the clock */

#define TIME_MAX (INT64_MAX / 4)

/* Shared by all processes. */
struct board {
    int root;        /* PID of the first process */
    int *players;    /* by program: the process that was forked last to run it; 0: none */
    int64_t *timers; /* by shared timer: its last expiry; 0: not used yet */
};

static struct workload_file_contents workload;
static struct board *board;
static uint64_t speed; /* iterations of workload_burn() in a millisecond */
static int64_t begin;  /* clock time of the machine's time 0 */

/* This process. */
static uint32_t program;
static uint32_t next_step; /* of its program */
static uint64_t rounds[WORKLOAD_LOOPS_MAX];
static int64_t born;                        /* if it has timers */
static int64_t timers[WORKLOAD_TIMERS_MAX]; /* the last expiry of each */

/* Prints that `what` failed, and why. A failure of its first process makes the whole workload
 * fail. */
static _Noreturn void fail(const char *what)
{
    host_complain(what);
    host_kill(board->root);
    host_exit(1);
}

static const char *text_at(uint32_t place)
{
    return workload.characters + place;
}

/* ---- preparations of a process ---- */

static bool program_has(uint32_t which, enum workload_step_kind kind)
{
    const struct workload_file_program *of = &workload.programs[which];
    for (uint32_t i = 0; i < of->count; i++) {
        if (workload.steps[of->first + i].kind == kind)
            return true;
    }
    return false;
}

static bool names_player(const struct workload_step *step)
{
    return step->kind == STEP_KILL ||
           ((step->kind == STEP_ATTRIBUTE || step->kind == STEP_AFFINITY) &&
            step->target != WORKLOAD_SELF);
}

/* Returns true if any step refers to the latest process of a program. */
static bool players_matter(void)
{
    for (uint32_t i = 0; i < workload.header->step_count; i++) {
        if (names_player(&workload.steps[i]))
            return true;
    }
    return false;
}

/* ---- players ---- */

static bool with_players; /* a step of the workload needs them */

/* Both parent and child do it, in any order: PIDs grow, so the last one forked remains. */
static void note_player(uint32_t which, int pid)
{
    int *player = &board->players[which];
    int noted = __atomic_load_n(player, __ATOMIC_SEQ_CST);
    while (noted < pid && !__atomic_compare_exchange_n(player, &noted, pid, false, __ATOMIC_SEQ_CST,
                                                       __ATOMIC_SEQ_CST))
        ;
}

static int player_of(uint32_t which)
{
    return __atomic_load_n(&board->players[which], __ATOMIC_SEQ_CST);
}

/* Makes the process run the program from its beginning. */
static void begin_program(uint32_t which)
{
    program = which;
    next_step = 0;
    for (int i = 0; i < WORKLOAD_LOOPS_MAX; i++)
        rounds[i] = 0;
    host_set_name(text_at(workload.programs[which].name));
}

/* ---- steps ---- */

static void compute(uint64_t time)
{
    for (; time > PIECE_NS; time -= PIECE_NS)
        workload_burn(PIECE_NS / MILLISECOND_NS * speed);
    workload_burn(time * speed / MILLISECOND_NS);
}

static void compute_until(int64_t time)
{
    int64_t left;
    while ((left = time - workload_nanoseconds()) > 0)
        compute((uint64_t)(left < LOOK_NS ? left : LOOK_NS));
}

/* Converts a time of the file to the clock. */
static int64_t clock_time(uint64_t time)
{
    return begin + (int64_t)time;
}

/* Returns the next expiry after a period that starts at `last`. */
static int64_t later(int64_t last, uint64_t period)
{
    return period < (uint64_t)(TIME_MAX - last) ? last + (int64_t)period : TIME_MAX;
}

static void mark_job(const struct workload_step *step)
{
    int64_t release = later(timers[step->detail], step->value);
    int64_t now = step->target == 0 ? workload_nanoseconds() : 0;
    if (release < now)
        release = now;
    if (step->target == JOB_NONE)
        release = 0;
    host_mark(MARK_JOB, (uint64_t)release);
}

static void await_timer(const struct workload_step *step)
{
    int64_t *due = &timers[step->detail];
    bool absolute = step->target == 1;
    *due = later(*due, step->value);
    if (!host_sleep_until(*due) && !absolute)
        *due = workload_nanoseconds();
}

/* Several may reach it at once: each gets a separate period. */
static void await_shared_timer(const struct workload_step *step)
{
    int64_t *timer = &board->timers[step->target];
    bool absolute = step->detail == 1;
    int64_t now = workload_nanoseconds();
    int64_t last = __atomic_load_n(timer, __ATOMIC_SEQ_CST);
    int64_t due;
    do {
        due = later(last ? last : born, step->value);
        if (due < now && !absolute)
            due = now;
    } while (
        !__atomic_compare_exchange_n(timer, &last, due, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    host_sleep_until(due);
}

static void begin_timers(int64_t now)
{
    born = now;
    for (int i = 0; i < WORKLOAD_TIMERS_MAX; i++)
        timers[i] = now;
}

/* Returns the child's PID, or 0 in the child. */
static int fork_player(uint32_t which)
{
    bool timed = program_has(which, STEP_TIMER) || program_has(which, STEP_SHARED_TIMER) ||
                 program_has(which, STEP_JOB);
    int64_t now = timed ? workload_nanoseconds() : 0;
    int pid = host_fork();
    if (pid < 0)
        fail("fork");
    if (with_players)
        note_player(which, pid ? pid : host_process());
    if (pid > 0)
        return pid;
    begin_timers(now);
    begin_program(which);
    return 0;
}

static void take(const struct workload_step *step)
{
    int64_t released = step->value > 0 ? (int64_t)step->value - 1 : RELEASE_NONE;
    if (!host_channel_take(step->target, released, step->detail))
        fail("take");
}

static void meet(const struct workload_step *step)
{
    if (!host_channel_meet(step->target, step->value))
        fail("meet");
}

static void give(const struct workload_step *step)
{
    bool to_all = step->value == 0;
    uint64_t count = to_all ? INT64_MAX : step->value;
    bool lost = to_all || step->detail == 1;
    if (!host_channel_give(step->target, count, lost ? GIVE_WAITING : GIVE_KEEP))
        fail("give");
}

static void set_affinity(int process, const char *list)
{
    uint64_t cpus[CPU_LIST_WORDS];
    if (!cpu_list_read(list, cpus) || !host_set_affinity(process, cpus))
        fail(list);
}

/* `process`: 0 is this one. */
static void set_attribute_of(int process, const struct workload_step *step)
{
    if (step->kind == STEP_AFFINITY)
        set_affinity(process, text_at(workload.texts[step->value]));
    else if (!host_set_attribute(process, (enum attribute_kind)step->detail, step->value))
        fail("an attribute");
}

static void set_attribute(const struct workload_step *step)
{
    int process = step->target == WORKLOAD_SELF ? 0 : player_of(step->target);
    if (process != 0 || step->target == WORKLOAD_SELF)
        set_attribute_of(process, step);
}

/* ---- arrivals ---- */

/* Returns the number of the program's first steps that set something of the process itself. */
static uint32_t count_first_attributes(uint32_t which)
{
    const struct workload_step *steps = workload.steps + workload.programs[which].first;
    uint32_t count = 0;
    while ((steps[count].kind == STEP_ATTRIBUTE || steps[count].kind == STEP_AFFINITY) &&
           steps[count].target == WORKLOAD_SELF)
        count++;
    return count;
}

static bool is_inherited(const struct workload_step *step)
{
    return step->kind == STEP_ATTRIBUTE && step->detail != ATTRIBUTE_RUNTIME &&
           step->detail != ATTRIBUTE_DEADLINE && step->detail != ATTRIBUTE_PERIOD;
}

/* Sets those of the program's first attributes that a child inherits, or the others. */
static void give_first_attributes(uint32_t which, int process, bool inherited)
{
    const struct workload_step *steps = workload.steps + workload.programs[which].first;
    uint32_t count = count_first_attributes(which);
    for (uint32_t i = 0; i < count; i++) {
        if (is_inherited(&steps[i]) == inherited)
            set_attribute_of(process, &steps[i]);
    }
}

static void report_late(int64_t late)
{
    if (late > 0)
        workload_tell("late", late);
}

static void deliver(uint32_t channel, int64_t late)
{
    if (!host_channel_give(channel, 1, GIVE_KEEP))
        fail("deliver");
    report_late(late);
}

/* The child must have its attributes when the policy first sees it. So this process, which the
 * policy does not see if the host supports that, sets them on itself before the fork. */
static void arrive_player(const struct workload_step *step)
{
    static bool has_started;
    if (!has_started)
        host_begin_arrivals();
    has_started = true;
    int64_t time = clock_time(step->value);
    host_sleep_until(time);
    if (step->detail == ARRIVE_SELF)
        return;
    if (step->detail == ARRIVE_THING) {
        deliver(step->target, workload_nanoseconds() - time);
        return;
    }
    give_first_attributes(step->target, 0, true);
    int64_t late = workload_nanoseconds() - time;
    int child = fork_player(step->target);
    if (child == 0) {
        next_step = count_first_attributes(step->target);
        return;
    }
    give_first_attributes(step->target, child, false);
    report_late(late);
}

static void end_player(uint32_t which)
{
    int process = player_of(which);
    if (process > 0)
        host_kill(process);
}

static void set_policy(const char *text)
{
    if (!host_set_policy(text))
        fail(text);
}

static void set_tunable(const char *text)
{
    if (!host_set_tunable(text))
        fail(text);
}

static void wait_for_child(bool all)
{
    int status;
    while (host_wait(&status) >= 0 && all)
        ;
}

static void act(const struct workload_step *step)
{
    switch (step->kind) {
    case STEP_RUN:
        compute(step->value);
        break;
    case STEP_RUN_UNTIL:
        compute_until(clock_time(step->value));
        break;
    case STEP_SLEEP:
        host_sleep_ns((int64_t)step->value);
        break;
    case STEP_SLEEP_TICKS:
        host_sleep_ticks(step->value);
        break;
    case STEP_SLEEP_UNTIL:
        host_sleep_until(clock_time(step->value));
        break;
    case STEP_TIMER:
        await_timer(step);
        break;
    case STEP_SHARED_TIMER:
        await_shared_timer(step);
        break;
    case STEP_JOB:
        mark_job(step);
        break;
    case STEP_YIELD:
        workload_yield();
        break;
    case STEP_FORK:
        fork_player(step->target);
        break;
    case STEP_ARRIVE:
        arrive_player(step);
        break;
    case STEP_WAIT:
        wait_for_child(step->detail == 1);
        break;
    case STEP_TAKE:
        take(step);
        break;
    case STEP_GIVE:
        give(step);
        break;
    case STEP_MEET:
        meet(step);
        break;
    case STEP_ATTRIBUTE:
    case STEP_AFFINITY:
        set_attribute(step);
        break;
    case STEP_SETGROUP:
        if (!host_set_group(step->target, step->detail, step->value))
            fail("setgroup");
        break;
    case STEP_KILL:
        end_player(step->target);
        break;
    case STEP_MARK:
        if (step->detail == MARK_BEGIN && host_process() != board->root)
            host_mark(MARK_BEGIN, (uint64_t)board->root);
        else
            host_mark((enum mark_kind)step->detail, step->value);
        break;
    case STEP_SET_POLICY:
        set_policy(text_at(workload.texts[step->target]));
        break;
    case STEP_SET_TUNABLE:
        set_tunable(text_at(workload.texts[step->target]));
        break;
    case STEP_HOTPLUG:
        fail("CPUs cannot go offline or online");
        break;
    case STEP_EXIT:
        host_exit((int)step->value);
    }
}

/* Returns the next step, following loops. */
static const struct workload_step *take_step(void)
{
    const struct workload_step *steps = workload.steps + workload.programs[program].first;
    const struct workload_step *step = &steps[next_step++];
    while (step->kind == STEP_LOOP) {
        bool again = step->value == 0 || ++rounds[step->detail] < step->value;
        if (!again)
            rounds[step->detail] = 0;
        else
            next_step = step->target;
        step = &steps[next_step++];
    }
    return step;
}

/* ---- start ---- */

static uint64_t count_shared_timers(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < workload.header->step_count; i++) {
        const struct workload_step *step = &workload.steps[i];
        if (step->kind == STEP_SHARED_TIMER && step->target >= count)
            count = step->target + 1ull;
    }
    return count;
}

/* Its arrays lie after it. */
static void make_board(void)
{
    uint64_t timer_bytes = count_shared_timers() * sizeof(*board->timers);
    uint64_t player_bytes = workload.header->program_count * sizeof(*board->players);
    board = host_shared_memory(sizeof(*board) + timer_bytes + player_bytes);
    if (!board)
        host_fail("memory for what processes share");
    board->timers = (int64_t *)(board + 1);
    board->players = (int *)((char *)board->timers + timer_bytes);
    board->root = host_process();
    with_players = players_matter();
    note_player(0, board->root);
}

static void make_channels(const char *caller, const char *path)
{
    uint32_t count = workload.header->channel_count;
    if (count > CHANNELS_MAX)
        workload_wrong_usage(caller, path, "it has more than 128 channels");
    if (count > 0 && !host_channels_make(count))
        host_fail("channels");
    for (uint32_t i = 0; i < count; i++) {
        if (workload.channels[i] > 0 && !host_channel_give(i, workload.channels[i], GIVE_KEEP))
            host_fail("channels");
    }
}

/* The workload's time begins with a tick, like the simulator's. */
static void begin_time(const char *caller, const char *path)
{
    uint64_t tick = host_tick_ns();
    if (workload.header->tick_ns != tick)
        workload_wrong_usage(caller, path, "it was compiled for another tick than this machine's");
    speed = host_burn_speed();
    host_sleep_ticks(1);
    begin = workload_nanoseconds() / (int64_t)tick * (int64_t)tick;
    begin_timers(begin);
}

int main(int argc, char *argv[])
{
    const char *path = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    if (path)
        argv[1] = argv[0];
    workload_init(path ? argc - 1 : argc, path ? argv + 1 : argv,
                  "`play FILE` acts out a workload file of schedlab-sim --compile.", NULL, 0);
    if (!path)
        workload_wrong_usage(argv[0], "FILE", "name a workload file");
    host_begin_family();
    workload = workload_load(argv[0], path);
    make_board();
    make_channels(argv[0], path);
    begin_time(argv[0], path);
    begin_program(0);
    for (;;)
        act(take_step());
}
