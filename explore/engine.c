/* SPDX-License-Identifier: MIT */

/*
 * The explored machine and its operations, compiled for one policy (POLICY) with sanitizers; the
 * policy's source precedes this file.
 *
 * It uses the mechanism that all hosts share (policies/support/). sim/checked/ checks each call of
 * a hook.
 */

#include "explore/engine/continuation.h"

void machine_drain(void)
{
    struct member *queued[TASKS_MOST];
    if (setup.acting)
        return;
    machine_close();
    if (changes_cpus)
        check_going_on();
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *member = &machine.tasks[i];
        if (member->place != PLACE_FREE && member->known)
            policy->time_slice(&machine.scheduler, &member->task);
    }
    print_act("     then all queued tasks are taken out:");
    drain(queued);
    print_act("\n");
    machine_open();
}

uint32_t machine_task_bytes(void)
{
    return task_state_bytes(&machine.scheduler);
}

/* ---- begin ---- */

static bool closed[TASKS_MOST];

static void set_closed(uint32_t task, bool requested)
{
    if (closed[task] == requested)
        return;
    closed[task] = requested;
    if (requested)
        ASAN_POISON_MEMORY_REGION(machine.task_state[task].words, machine_task_bytes());
    else
        ASAN_UNPOISON_MEMORY_REGION(machine.task_state[task].words, machine_task_bytes());
}

void machine_open(void)
{
    for (uint32_t i = 0; i < setup.tasks; i++)
        set_closed(i, false);
}

void machine_close(void)
{
    for (uint32_t i = 0; i < setup.tasks; i++)
        set_closed(i, machine.tasks[i].place == PLACE_FREE);
}

static void close_gaps(void)
{
    const uint32_t bytes = machine_task_bytes();
    for (uint32_t i = 0; i < TASKS_MOST; i++)
        ASAN_POISON_MEMORY_REGION((char *)machine.task_state[i].words + bytes,
                                  sizeof(machine.task_state[i]) - bytes);
    for (uint32_t i = 0; i < QUEUES_MOST; i++)
        ASAN_POISON_MEMORY_REGION(machine.queue_state[i].gap, GAP);
    ASAN_POISON_MEMORY_REGION(machine.scheduler_state.gap, GAP);
}

static bool set_tunables(const char *text)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t index;
        int64_t value;
        enum policy_error error = tunable_parse(choice.policy, text, length, &index, &value);
        if (error != POLICY_OK) {
            fprintf(stderr, "%.*s: %s\n", (int)length, text, policy_error_text(error));
            return false;
        }
        tunable_set(&machine.scheduler, choice.policy, index, value);
        text += length + (text[length] == ',');
    }
    return true;
}

static void begin_structures(void)
{
    struct scheduler *scheduler = &machine.scheduler;
    machine.now = has_time() ? BEGIN_NS : 0;
    scheduler->cpus = setup.queues;
    scheduler->tick_ns = TICK_NS;
    scheduler->seed = 1;
    scheduler->state = machine.scheduler_state.words;
    if (attributes >> ATTRIBUTE_TASKGROUP & 1) {
        scheduler->groups = changes_groups ? GROUPS_EXPLORED : GROUPS_EXPLORED - 1;
        for (uint32_t i = 0; i < scheduler->groups; i++)
            scheduler->group[i] = (struct share_group){.weight = GROUP_WEIGHT_DEFAULT,
                                                       .period = GROUP_PERIOD_DEFAULT};
    }
    for (uint32_t i = 0; i < setup.queues; i++) {
        cpu_set_add(&alone[i], i);
        machine.queues[i].state = machine.queue_state[i].words;
        scheduler->queue[i] = &machine.queues[i];
    }
    for (uint32_t i = 0; i < setup.tasks; i++)
        machine.tasks[i].task.state = machine.task_state[i].words;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length) {
        bool begins = at == list || at[-1] == ',';
        if (begins && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

/* Parses the names of the host's fields that the policy reads, such as `group`. */
static void read_words(const char *words)
{
    static const char *const texts[NAMED_COUNT] = {
        "now", "run_time", "counted", "queued_since", "picked_since", "selections", "pid", "slot",
    };
    for (uint32_t i = 0; i < NAMED_COUNT; i++)
        named |= (uint32_t)has_word(words, texts[i]) << i;
#define READ_ATTRIBUTE(kind, field, ...)                                                           \
    attributes |= (uint32_t)has_word(words, #field) << ATTRIBUTE_##kind;
    ATTRIBUTES(READ_ATTRIBUTE)
    changes_cpus = has_word(words, "cpus") && setup.queues > 1;
    changes_groups = has_word(words, "groups") && (attributes >> ATTRIBUTE_TASKGROUP & 1);
}

bool machine_begin(const struct setup *requested)
{
    setup = *requested;
    read_words(setup.words);
    enum policy_error error = policy_choose(setup.policy, strlen(setup.policy), &choice);
    if (error != POLICY_OK) {
        fprintf(stderr, "%s: %s\n", setup.policy, policy_error_text(error));
        return false;
    }
    watched_setup = (struct simulator_setup){
        .policy = setup.policy, .tunables = setup.tunables, .cpus = setup.queues};
    watch_setup(&watched_setup);
    begin_structures();
    policy_set_defaults(&machine.scheduler, &choice);
    if (!set_tunables(setup.tunables))
        return false;
    watched = (struct watched){
        .scheduler = &machine.scheduler,
        .queues = machine.queues,
        .tasks = (const unsigned char *)machine.tasks,
        .task_bytes = sizeof(machine.tasks[0]),
        .task_count = setup.tasks,
        .is_queued = is_queued,
    };
    close_gaps();
    begin_policy();
    watch_machine(&watched);
    make_plain();
    return true;
}
