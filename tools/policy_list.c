/* SPDX-License-Identifier: MIT */

/*
 * policy_list: prints what the policies say of themselves, as JSON: names,
 * meanings, sources, tunables with their ranges, presets with all their values.
 */

#include <inttypes.h>
#include <stdio.h>

#include "policies/registry.h"

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

static void print_preset(const struct policy *policy, const struct preset *preset)
{
    struct policy_choice choice = {.policy = policy, .preset = preset};
    printf("{");
    print_field("name", preset->name);
    print_field("meaning", preset->meaning);
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
    printf("{");
    print_field("name", policy->name);
    print_field("meaning", policy->meaning);
    print_field("source", policy->source);
    print_tunables(policy);
    printf("\"presets\": [");
    for (uint32_t i = 0; i < policy->preset_count; i++) {
        printf("%s\n    ", i ? "," : "");
        print_preset(policy, &policy->presets[i]);
    }
    printf("]}");
}

int main(void)
{
    printf("[");
    for (uint32_t i = 0; i < policies_count; i++) {
        const char *flaw = policy_flaw(policies[i]);
        if (flaw) {
            fprintf(stderr, "policy_list: policy %s: %s\n", policies[i]->name, flaw);
            return 1;
        }
        printf("%s\n  ", i ? "," : "");
        print_policy(policies[i]);
    }
    printf("\n]\n");
    return 0;
}
