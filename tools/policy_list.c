/* SPDX-License-Identifier: MIT */

/*
 * policy_list: prints the policies' descriptions as JSON: names, meanings, sources, texts about
 * their queues, levels and annotations, tunables with their ranges, and presets with all their
 * values. It also prints the attribute that determines shares under the policy and each of its
 * presets. A preset's tunables, and the effect of priorities under it, are those of its source.
 */

#include <inttypes.h>
#include <stdio.h>

#include "policies/registry.h"
#include "policies/support/hooks.h"

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void print_field(const char *name, const char *text)
{
    printf("\"%s\": ", name);
    print_text(text);
    printf(", ");
}

static void print_tunables(const struct policy *policy)
{
    printf("\"tunables\": [");
    for (uint32_t i = 0; i < policy->tunable_count; i++) {
        const struct tunable *tunable = &policy->tunables[i];
        printf("%s\n    {", i ? "," : "");
        print_field("name", tunable->name);
        print_field("meaning", tunable->meaning);
        printf("\"minimum\": %" PRId64 ", \"default\": %" PRId64 ", \"maximum\": %" PRId64 "}",
               tunable->minimum, tunable->standard, tunable->maximum);
    }
    printf("], ");
}

/* For a machine with one CPU that has no history. */
static const char *shares_by(const struct policy_choice *choice)
{
    uint64_t state[POLICY_SCHEDULER_BYTES / 8] = {0};
    struct scheduler scheduler = {.cpus = 1, .queues = 1, .tick_ns = 1000000, .state = state};
    policy_set_defaults(&scheduler, choice);
    policy_init_scheduler(choice->policy, &scheduler);
    switch (policy_shares_by(choice->policy, &scheduler)) {
    case SHARES_EQUAL:
        return "equal";
    case SHARES_BY_TICKETS:
        return "tickets";
    case SHARES_BY_WEIGHT:
        return "weight";
    case SHARES_BY_NICE:
        return "nice";
    case SHARES_BY_GROUPS:
        return "groups";
    case SHARES_BY_CURRENCIES:
        return "currencies";
    }
    return "unknown";
}

static void print_reads(const struct policy *policy)
{
    if (policy->reads)
        print_field("reads", policy->reads);
}

static const char *priorities(const struct policy *policy)
{
    static const char *const rules[] = {
        [PRIORITIES_NONE] = "none",
        [PRIORITIES_WAIT] = "wait",
        [PRIORITIES_PREEMPT] = "preempt",
    };
    return rules[policy->priorities];
}

static void print_words(const struct policy *policy)
{
    static const char *const level_orders[] = {
        [LEVELS_NONE] = "none",
        [LEVELS_LOWEST_FIRST] = "lowest first",
        [LEVELS_HIGHEST_FIRST] = "highest first",
    };
    static const char *const remark_kinds[] = {
        [REMARK_NONE] = "none",
        [REMARK_LEVEL] = "level",
        [REMARK_TICKET] = "ticket",
        [REMARK_TIME] = "time",
    };
    static const char *const costs[] = {
        [COST_UNSAID] = "unsaid",
        [COST_CONSTANT] = "constant",
        [COST_LOGARITHMIC] = "logarithmic",
    };
    print_field("order", policy->order);
    print_field("levels", policy->levels ? policy->levels : "");
    print_field("remark", policy->remark ? policy->remark : "");
    print_field("boost", policy->boost ? policy->boost : "");
    print_field("level_order", level_orders[policy->level_order]);
    print_field("remark_kind", remark_kinds[policy->remark_kind]);
    print_field("priorities", priorities(policy));
    print_field("cost", costs[policy->cost]);
}

static void print_preset(const struct policy *policy, const struct preset *preset)
{
    struct policy_choice choice = {.policy = policy, .preset = preset};
    printf("{");
    print_field("name", preset->name);
    print_field("meaning", preset->meaning);
    print_field("shares_by", shares_by(&choice));
    print_field("priorities", priorities(policy));
    print_reads(policy);
    print_tunables(policy);
    printf("\"values\": {");
    for (uint32_t i = 0; i < policy->tunable_count; i++) {
        printf("%s", i ? ", " : "");
        print_text(policy->tunables[i].name);
        printf(": %" PRId64, policy_default(&choice, i));
    }
    printf("}}");
}

static void print_policy(const struct policy *policy)
{
    struct policy_choice choice = {.policy = policy};
    printf("{\"number\": %" PRIu32 ", ", policy_number(policy));
    print_field("name", policy->name);
    print_field("meaning", policy->meaning);
    print_field("source", policy->source);
    print_field("shares_by", shares_by(&choice));
    print_words(policy);
    print_reads(policy);
    print_tunables(policy);
    printf("\"presets\": [");
    const char *before = "\n    ";
    for (const struct policy *source = policy; source; source = policy_next_source(source)) {
        for (uint32_t i = 0; i < source->preset_count; i++) {
            printf("%s", before);
            print_preset(source, &source->presets[i]);
            before = ",\n    ";
        }
    }
    printf("]}");
}

int main(void)
{
    printf("[");
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        const char *flaw = policy_flaw(policies[i]);
        if (flaw) {
            fprintf(stderr, "policy_list: %s.c: %s\n", policy_files[i], flaw);
            return 1;
        }
    }
    for (uint32_t i = 0; i < policies_count; i++) {
        printf("%s\n  ", i ? "," : "");
        print_policy(policies[i]);
    }
    printf("\n]\n");
    return 0;
}
