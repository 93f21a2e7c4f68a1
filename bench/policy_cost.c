/* SPDX-License-Identifier: MIT */

/*
 * Measures the policies' cost, in instructions: a program without a kernel, for Spike in machine
 * mode. For each policy and preset and each number of tasks it prints
 *
 *     bench enqueue+pick POLICY TASKS INSTRUCTIONS
 *     bench enqueue+pick-worst POLICY TASKS INSTRUCTIONS
 *     bench pick POLICY TASKS INSTRUCTIONS
 *     bench enqueue POLICY TASKS INSTRUCTIONS
 *     bench dequeue POLICY TASKS INSTRUCTIONS
 *     bench change POLICY TASKS INSTRUCTIONS
 *
 * the mean over many turns, and the most expensive one. A turn is pick(), ticks until the policy
 * ends it, stopped(), and enqueue(); pick() and enqueue() count. A change gives a queued task
 * another priority and weight, and other tickets: dequeue(), changed() and enqueue(). The same
 * program gives the same numbers on any host.
 */

#include "policies/registry.h"
#include "policies/support/hooks.h"

#define TASKS_MAX 4096
#define TURNS_MIN 2048
#define CHANGES   512
#define SHUFFLE   2654435761u /* odd: multiples visit all tasks if their number is a power of 2 */
#define TICKS_MAX 64          /* of a turn, for policies that never end it */
#define TICK_NS   10000000ull

static const uint32_t task_counts[] = {8, 64, 512, 4096};

/* The host interface of Spike: it reads tohost, and answers in fromhost. */
__attribute__((section(".tohost"), aligned(64))) volatile uint64_t tohost;
__attribute__((section(".tohost"), aligned(64))) volatile uint64_t fromhost;

enum { HOST_WRITE = 64 };

__asm__(".section .text.start, \"ax\"\n"
        ".globl _start\n"
        "_start:\n"
        "    csrr t0, mhartid\n"
        "1:  bnez t0, 1b\n"
        "    la t0, trap\n"
        "    csrw mtvec, t0\n"
        "    la sp, stack_top\n"
        "    call main\n"
        "    j power_off\n"
        "    .balign 4\n"
        "trap:\n"
        "    la sp, stack_top\n"
        "    li a0, 3\n"
        "    j power_off\n"
        ".text\n");

_Noreturn void power_off(int status);
int main(void);

_Noreturn void power_off(int status)
{
    for (;;)
        tohost = (uint64_t)status << 1 | 1;
}

/* The compiler may call these. */
void *memset(void *memory, int byte, size_t size);
void *memcpy(void *restrict to, const void *restrict from, size_t size);

void *memset(void *memory, int byte, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)memory)[i] = (unsigned char)byte;
    return memory;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}

static void host_write(const char *text, size_t length)
{
    static volatile uint64_t call[8] __attribute__((aligned(64)));
    call[0] = HOST_WRITE;
    call[1] = 1;
    call[2] = (uint64_t)text;
    call[3] = length;
    __asm__ volatile("fence" ::: "memory");
    tohost = (uint64_t)call;
    while (fromhost == 0)
        continue;
    fromhost = 0;
}

static char line[256];
static size_t line_length;

static void put_text(const char *text)
{
    while (*text != '\0' && line_length < sizeof(line))
        line[line_length++] = *text++;
}

static void put_number(uint64_t number)
{
    char digits[24];
    size_t first = sizeof(digits) - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    put_text(digits + first);
}

static void put_result(const char *name, const struct policy_choice *choice, uint32_t tasks,
                       uint64_t instructions)
{
    line_length = 0;
    put_text("bench ");
    put_text(name);
    put_text(" ");
    put_text(choice->policy->name);
    put_text(choice->preset ? ":" : "");
    put_text(choice->preset ? choice->preset->name : "");
    put_text(" ");
    put_number(tasks);
    put_text(" ");
    put_number(instructions);
    put_text("\n");
    host_write(line, line_length);
}

static _Noreturn void fail(const struct policy *policy, const char *what)
{
    line_length = 0;
    put_text("policy_cost: ");
    put_text(policy->name);
    put_text(": ");
    put_text(what);
    put_text("\n");
    host_write(line, line_length);
    power_off(1);
}

static struct scheduler scheduler;
static struct run_queue queue;
static struct task tasks[TASKS_MAX];
static uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
static uint64_t queue_state[POLICY_QUEUE_BYTES / 8];
static uint64_t task_states[TASKS_MAX][POLICY_TASK_BYTES / 8];

/* One CPU with `count` queued tasks of all priorities, tickets and weights. */
static void build(const struct policy_choice *choice, uint32_t count)
{
    const struct policy *policy = choice->policy;
    memset(scheduler_state, 0, sizeof(scheduler_state));
    memset(queue_state, 0, sizeof(queue_state));
    memset(task_states, 0, sizeof(task_states));
    scheduler =
        (struct scheduler){.cpus = 1, .tick_ns = TICK_NS, .seed = 1, .state = scheduler_state};
    policy_set_defaults(&scheduler, choice);
    policy_init_scheduler(policy, &scheduler);
    (void)policy_wants_shared_queue(policy, &scheduler);
    scheduler.queues = 1;
    scheduler.queue[0] = &queue;
    queue = (struct run_queue){.scheduler = &scheduler, .state = queue_state};
    policy_init_queue(policy, &queue);
    for (uint32_t i = 0; i < count; i++) {
        tasks[i] = (struct task){.pid = (int32_t)i + 1,
                                 .slot = i,
                                 .priority = (int32_t)(i % (PRIORITY_LOWEST + 1)),
                                 .tickets = 1 + i % 100,
                                 .weight = 1 + i % WEIGHT_MAX,
                                 .state = task_states[i]};
        policy_init_task(policy, &scheduler, &tasks[i], NULL);
        policy->enqueue(&queue, &tasks[i], ENQUEUE_NEW);
        queue.queued++;
    }
}

static uint64_t instructions(void)
{
    uint64_t count;
    __asm__ volatile("rdinstret %0" : "=r"(count)::"memory");
    return count;
}

/* Runs the task's turn, from the pick until it ends. */
static enum enqueue_reason run(const struct policy *policy, task_t *task)
{
    enum tick_verdict verdict = TICK_CONTINUE;
    for (int i = 0; i < TICKS_MAX && verdict == TICK_CONTINUE; i++) {
        queue.now += TICK_NS;
        task->run_time += TICK_NS;
        verdict = policy->tick(&queue, task);
    }
    queue.running--;
    policy_stop(policy, &queue, task, STOP_RUNNABLE);
    return verdict == TICK_CONTINUE ? ENQUEUE_PREEMPTED : ENQUEUE_EXPIRED;
}

/* Instructions, including those of the calls. */
struct turn_cost {
    uint64_t pick;
    uint64_t enqueue;
};

static struct turn_cost turn(const struct policy *policy)
{
    uint64_t start = instructions();
    task_t *task = policy->pick(&queue, 0);
    uint64_t picked = instructions() - start;
    if (!task)
        fail(policy, "picks nobody, though tasks are queued");
    queue.queued--;
    queue.running++;
    task->picked_since = queue.now;
    task->selections++;
    enum enqueue_reason reason = run(policy, task);
    task->queued_since = queue.now;
    start = instructions();
    policy->enqueue(&queue, task, reason);
    uint64_t enqueued = instructions() - start;
    queue.queued++;
    return (struct turn_cost){.pick = picked, .enqueue = enqueued};
}

static void put_mean(const char *name, const struct policy_choice *choice, uint32_t count,
                     uint64_t total, uint64_t times)
{
    put_result(name, choice, count, (total + times / 2) / times);
}

static void measure_turns(const struct policy_choice *choice, uint32_t count)
{
    uint64_t turns = 2 * count > TURNS_MIN ? 2 * count : TURNS_MIN;
    struct turn_cost total = {0};
    uint64_t worst = 0;
    for (uint32_t i = 0; i < 2 * count; i++)
        turn(choice->policy);
    for (uint64_t i = 0; i < turns; i++) {
        struct turn_cost cost = turn(choice->policy);
        total.pick += cost.pick;
        total.enqueue += cost.enqueue;
        worst = cost.pick + cost.enqueue > worst ? cost.pick + cost.enqueue : worst;
    }
    put_mean("enqueue+pick", choice, count, total.pick + total.enqueue, turns);
    put_result("enqueue+pick-worst", choice, count, worst);
    put_mean("pick", choice, count, total.pick, turns);
    put_mean("enqueue", choice, count, total.enqueue, turns);
}

static uint64_t dequeue(const struct policy *policy, task_t *task)
{
    uint64_t start = instructions();
    policy->dequeue(&queue, task);
    uint64_t cost = instructions() - start;
    queue.queued--;
    return cost;
}

/* Queues the task again with other attributes. */
static uint64_t requeue(const struct policy *policy, task_t *task)
{
    task->priority = (task->priority + 3) % (PRIORITY_LOWEST + 1);
    task->tickets = 1 + (task->tickets + 30) % 100;
    task->weight = 1 + (task->weight + 3) % WEIGHT_MAX;
    uint64_t start = instructions();
    if (policy->changed)
        policy->changed(&queue, task);
    policy->enqueue(&queue, task, ENQUEUE_MOVED);
    uint64_t cost = instructions() - start;
    queue.queued++;
    return cost;
}

static void measure_changes(const struct policy_choice *choice, uint32_t count)
{
    uint64_t dequeued = 0;
    uint64_t requeued = 0;
    for (uint32_t i = 0; i < CHANGES; i++) {
        task_t *task = &tasks[i * SHUFFLE % count];
        dequeued += dequeue(choice->policy, task);
        requeued += requeue(choice->policy, task);
    }
    put_mean("dequeue", choice, count, dequeued, CHANGES);
    put_mean("change", choice, count, dequeued + requeued, CHANGES);
}

static void measure(const struct policy_choice *choice, uint32_t count)
{
    build(choice, count);
    measure_turns(choice, count);
    measure_changes(choice, count);
}

static void measure_all(const struct policy_choice *choice)
{
    for (size_t i = 0; i < sizeof(task_counts) / sizeof(task_counts[0]); i++)
        measure(choice, task_counts[i]);
}

int main(void)
{
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        struct policy_choice choice = {.policy = policies[i]};
        const char *flaw = policy_flaw(choice.policy);
        if (flaw)
            fail(choice.policy, flaw);
        if (i < policies_count)
            measure_all(&choice);
        for (uint32_t j = 0; j < policies[i]->preset_count; j++) {
            choice.preset = &policies[i]->presets[j];
            measure_all(&choice);
        }
    }
    return 0;
}
