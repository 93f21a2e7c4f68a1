/* SPDX-License-Identifier: MIT */

/* Tests which texts name a policy, a preset or a tunable, and which are refused. */

#include <string.h>

#include "../../policies/support/registry.c"
#include "check.h"

static void nothing_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)queue, (void)task, (void)reason;
}

static void nothing_dequeue(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
}

static task_t *nothing_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)queue, (void)cpu;
    return NULL;
}

static enum tick_verdict nothing_tick(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_CONTINUE;
}

static uint64_t nothing_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 1;
}

#define REQUIRED_HOOKS                                                                             \
    .enqueue = nothing_enqueue, .dequeue = nothing_dequeue, .pick = nothing_pick,                  \
    .tick = nothing_tick, .time_slice = nothing_time_slice

static const struct tunable long_tunables[] = {
    {"slice", "ticks", 1, 10, 100},
    {"offset", "ticks", INT64_MIN, 0, INT64_MAX},
};

static const struct preset long_presets[] = {
    {"quick", "short slices", {{"slice", 2}}},
    {"odd", "both", {{"offset", -7}, {"slice", 99}}},
};

static const struct policy policy_plain = {
    .name = "plain", .meaning = "no tunables", .source = "none", .order = "any", REQUIRED_HOOKS};

static const struct policy policy_long = {
    .name = "long",
    .meaning = "some tunables",
    .source = "none",
    .order = "any",
    .tunables = long_tunables,
    .tunable_count = 2,
    .presets = long_presets,
    .preset_count = 2,
    .by_number = "odd",
    REQUIRED_HOOKS,
};

static const struct tunable study_tunables[] = {{"depth", "how deep", 0, 3, 9}};
static const struct preset study_presets[] = {
    {"deep", "as deep as can be", {{"depth", 9}}},
    {"flat", "not deep", {{"depth", 0}}},
};

/* The presets of `long`. */
static const struct policy policy_study_long = {
    .name = "long",
    .meaning = "presets with an algorithm of their own",
    .source = "none",
    .order = "any",
    .tunables = study_tunables,
    .tunable_count = 1,
    .presets = study_presets,
    .preset_count = 2,
    REQUIRED_HOOKS,
};

const struct policy *const policies[] = {&policy_plain, &policy_long, &policy_study_long};
const uint32_t policies_count = 2;
const uint32_t policy_sources_count = 3;

static enum policy_error choose(const char *text, struct policy_choice *choice)
{
    return policy_choose(text, strlen(text), choice);
}

static void names_choose_policies_and_presets(void)
{
    struct policy_choice choice = {NULL, NULL};
    check(choose("plain", &choice) == POLICY_OK);
    check(choice.policy == &policy_plain && choice.preset == NULL);
    check(choose("long", &choice) == POLICY_OK);
    check(choice.policy == &policy_long && choice.preset == NULL);
    check(choose("long:odd", &choice) == POLICY_OK);
    check(choice.policy == &policy_long && choice.preset == &long_presets[1]);
    check(choose("0", &choice) == POLICY_OK && choice.policy == &policy_plain);
    check(choose("1:quick", &choice) == POLICY_OK && choice.preset == &long_presets[0]);
    check(choose("1", &choice) == POLICY_OK && choice.preset == &long_presets[1]);
    check(choose("0", &choice) == POLICY_OK && choice.preset == NULL);
    check(policy_choose("long:quicker", 10, &choice) == POLICY_OK);
    check(policy_number(&policy_plain) == 0 && policy_number(&policy_long) == 1);
}

static void a_source_of_presets_is_chosen_like_others(void)
{
    struct policy_choice choice = {NULL, NULL};
    check(choose("long:deep", &choice) == POLICY_OK);
    check(choice.policy == &policy_study_long && choice.preset == &study_presets[0]);
    check(policy_default(&choice, 0) == 9);
    check(choose("1:flat", &choice) == POLICY_OK);
    check(choice.policy == &policy_study_long && choice.preset == &study_presets[1]);
    check(choose("2", &choice) == POLICY_ERROR_POLICY); /* it has no separate number */
    check(choose("plain:deep", &choice) == POLICY_ERROR_PRESET);
    check(policy_number(&policy_study_long) == 1 && policy_source(&policy_study_long) == 2);
    check(policy_next_source(&policy_long) == &policy_study_long);
    check(!policy_next_source(&policy_study_long) && !policy_next_source(&policy_plain));
    check(!policy_flaw(&policy_study_long));
}

static void wrong_names_change_nothing(void)
{
    static const struct {
        const char *text;
        enum policy_error error;
    } wrong[] = {
        {"", POLICY_ERROR_POLICY},
        {"lon", POLICY_ERROR_POLICY},
        {"longer", POLICY_ERROR_POLICY},
        {"Long", POLICY_ERROR_POLICY},
        {":", POLICY_ERROR_POLICY},
        {":quick", POLICY_ERROR_POLICY},
        {"2", POLICY_ERROR_POLICY},
        {"-1", POLICY_ERROR_POLICY},
        {"1x", POLICY_ERROR_POLICY},
        {"99999999999999999999", POLICY_ERROR_POLICY},
        {"long:", POLICY_ERROR_PRESET},
        {"long:quic", POLICY_ERROR_PRESET},
        {"long:quicker", POLICY_ERROR_PRESET},
        {"long:quick:odd", POLICY_ERROR_PRESET},
        {"plain:quick", POLICY_ERROR_PRESET},
        {"long\n", POLICY_ERROR_POLICY},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct policy_choice choice = {&policy_plain, &long_presets[0]};
        check(choose(wrong[i].text, &choice) == wrong[i].error);
        check(choice.policy == &policy_plain && choice.preset == &long_presets[0]);
    }
}

static void presets_give_values(void)
{
    struct scheduler scheduler;
    memset(&scheduler, 0xff, sizeof(scheduler));
    struct policy_choice choice = {&policy_long, NULL};
    policy_set_defaults(&scheduler, &choice);
    check(scheduler.tunable[0] == 10 && scheduler.tunable[1] == 0);
    for (uint32_t i = 2; i < POLICY_TUNABLES_MAX; i++)
        check(scheduler.tunable[i] == 0);

    choice.preset = &long_presets[0];
    policy_set_defaults(&scheduler, &choice);
    check(scheduler.tunable[0] == 2 && scheduler.tunable[1] == 0);
    choice.preset = &long_presets[1];
    policy_set_defaults(&scheduler, &choice);
    check(scheduler.tunable[0] == 99 && scheduler.tunable[1] == -7);
}

static void tunables_keep_their_range(void)
{
    struct scheduler scheduler = {.tunable = {10, 5}};
    check(tunable_find(&policy_long, "slice", 5) == 0);
    check(tunable_find(&policy_long, "offset", 6) == 1);
    check(tunable_find(&policy_long, "slice", 4) == NO_TUNABLE);
    check(tunable_set(&scheduler, &policy_long, 0, 100) == POLICY_OK);
    check(scheduler.tunable[0] == 100);
    check(tunable_set(&scheduler, &policy_long, 0, 0) == POLICY_ERROR_RANGE);
    check(tunable_set(&scheduler, &policy_long, 0, 101) == POLICY_ERROR_RANGE);
    check(tunable_set(&scheduler, &policy_long, 2, 1) == POLICY_ERROR_TUNABLE);
    check(tunable_set(&scheduler, &policy_long, NO_TUNABLE, 1) == POLICY_ERROR_TUNABLE);
    check(scheduler.tunable[0] == 100 && scheduler.tunable[1] == 5);
}

static void settings_are_parsed_whole(void)
{
    static const struct {
        const char *text;
        enum policy_error error;
        uint32_t index;
        int64_t value;
    } cases[] = {
        {"slice=7", POLICY_OK, 0, 7},
        {"slice 7", POLICY_OK, 0, 7},
        {"slice=007", POLICY_OK, 0, 7},
        {"offset=-12", POLICY_OK, 1, -12},
        {"offset=-9223372036854775808", POLICY_OK, 1, INT64_MIN},
        {"offset=9223372036854775807", POLICY_OK, 1, INT64_MAX},
        {"offset=9223372036854775808", POLICY_ERROR_TEXT, 9, 9},
        {"offset=-9223372036854775809", POLICY_ERROR_TEXT, 9, 9},
        {"offset=92233720368547758070", POLICY_ERROR_TEXT, 9, 9},
        {"slice=0", POLICY_ERROR_RANGE, 9, 9},
        {"slice=101", POLICY_ERROR_RANGE, 9, 9},
        {"slices=7", POLICY_ERROR_TUNABLE, 9, 9},
        {"=7", POLICY_ERROR_TUNABLE, 9, 9},
        {"slice", POLICY_ERROR_TEXT, 9, 9},
        {"slice=", POLICY_ERROR_TEXT, 9, 9},
        {"slice=-", POLICY_ERROR_TEXT, 9, 9},
        {"slice=+7", POLICY_ERROR_TEXT, 9, 9},
        {"slice=7 ", POLICY_ERROR_TEXT, 9, 9},
        {"slice= 7", POLICY_ERROR_TEXT, 9, 9},
        {"slice=0x7", POLICY_ERROR_TEXT, 9, 9},
        {"", POLICY_ERROR_TEXT, 9, 9},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t index = 9;
        int64_t value = 9;
        enum policy_error error =
            tunable_parse(&policy_long, cases[i].text, strlen(cases[i].text), &index, &value);
        check(error == cases[i].error && index == cases[i].index && value == cases[i].value);
    }
    for (int error = POLICY_OK; error <= POLICY_ERROR_RANGE; error++)
        check(strcmp(policy_error_text((enum policy_error)error), "unknown error") != 0);
}

static void flaws_are_found(void)
{
    check(!policy_flaw(&policy_plain) && !policy_flaw(&policy_long));

    struct policy policy = policy_long;
    policy.pick = NULL;
    check(policy_flaw(&policy));
    policy = policy_long;
    policy.name = "7";
    check(policy_flaw(&policy));
    policy.name = "Long";
    check(policy_flaw(&policy));

    struct tunable tunables[] = {long_tunables[0], long_tunables[1]};
    policy = policy_long;
    policy.tunables = tunables;
    check(!policy_flaw(&policy));
    tunables[0].standard = 0;
    check(policy_flaw(&policy));
    tunables[0] = long_tunables[1];
    check(policy_flaw(&policy));

    struct preset presets[] = {long_presets[0], long_presets[1]};
    policy = policy_long;
    policy.presets = presets;
    check(!policy_flaw(&policy));
    presets[1].name = "quick";
    check(policy_flaw(&policy));
    presets[1] = long_presets[1];
    presets[1].values[1].value = 1000;
    check(policy_flaw(&policy));
    presets[1].values[1] = (struct preset_value){"unknown", 1};
    check(policy_flaw(&policy));
}

/*
 * The displayed facts of a policy are its own statements, so these must be complete and consistent.
 */
static void words_are_whole(void)
{
    struct policy policy = policy_long;
    policy.order = NULL;
    check(policy_flaw(&policy));
    policy.order = "any";
    policy.levels = "of no order";
    check(policy_flaw(&policy));
    policy.level_order = LEVELS_LOWEST_FIRST;
    check(!policy_flaw(&policy));
    policy.levels = NULL;
    check(policy_flaw(&policy));
    policy.level_order = LEVELS_NONE;
    policy.remark = "next in turn";
    check(!policy_flaw(&policy));
    policy.remark_kind = REMARK_TICKET;
    check(policy_flaw(&policy)); /* it does not name the ticket's target */
    policy.remark = "ticket {}";
    check(!policy_flaw(&policy));
    policy.remark_kind = REMARK_LEVEL;
    check(policy_flaw(&policy));
    policy.remark_kind = REMARK_NONE;
    check(policy_flaw(&policy));
    policy = policy_long;
    policy.boost = "boost";
    check(policy_flaw(&policy));
    policy.boost = "slice";
    check(!policy_flaw(&policy));
}

int main(void)
{
    run_test(names_choose_policies_and_presets);
    run_test(a_source_of_presets_is_chosen_like_others);
    run_test(wrong_names_change_nothing);
    run_test(presets_give_values);
    run_test(tunables_keep_their_range);
    run_test(settings_are_parsed_whole);
    run_test(flaws_are_found);
    run_test(words_are_whole);
    return 0;
}
