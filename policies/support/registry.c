/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

#include "policies/registry.h"

const char *policy_error_text(enum policy_error error)
{
    switch (error) {
    case POLICY_OK:
        return "no error";
    case POLICY_ERROR_TEXT:
        return "not of the form NAME=VALUE with a whole number";
    case POLICY_ERROR_POLICY:
        return "no such policy";
    case POLICY_ERROR_PRESET:
        return "the policy has no such preset";
    case POLICY_ERROR_TUNABLE:
        return "the policy has no such tunable";
    case POLICY_ERROR_RANGE:
        return "the value is out of the tunable's range";
    }
    return "unknown error";
}

/* Returns true if `text` of `length` bytes is the whole of `name`. */
static bool same_name(const char *name, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '\0' || name[i] != text[i])
            return false;
    }
    return name[length] == '\0';
}

static size_t name_length(const char *name)
{
    size_t length = 0;
    while (name[length] != '\0')
        length++;
    return length;
}

const struct policy *policy_find(const char *name, size_t length)
{
    for (uint32_t i = 0; i < policies_count; i++) {
        if (same_name(policies[i]->name, name, length))
            return policies[i];
    }
    return NULL;
}

const struct preset *preset_find(const struct policy *policy, const char *name, size_t length)
{
    for (uint32_t i = 0; i < policy->preset_count; i++) {
        if (same_name(policy->presets[i].name, name, length))
            return &policy->presets[i];
    }
    return NULL;
}

uint32_t tunable_find(const struct policy *policy, const char *name, size_t length)
{
    for (uint32_t i = 0; i < policy->tunable_count; i++) {
        if (same_name(policy->tunables[i].name, name, length))
            return i;
    }
    return NO_TUNABLE;
}

uint32_t policy_source(const struct policy *source)
{
    uint32_t place = 0;
    while (place < policy_sources_count && policies[place] != source)
        place++;
    return place;
}

static bool have_same_name(const struct policy *policy, const struct policy *other)
{
    return same_name(policy->name, other->name, name_length(other->name));
}

uint32_t policy_number(const struct policy *policy)
{
    uint32_t number = 0;
    while (number < policies_count && !have_same_name(policies[number], policy))
        number++;
    return number;
}

const struct policy *policy_next_source(const struct policy *source)
{
    for (uint32_t place = policy_source(source) + 1; place < policy_sources_count; place++) {
        if (have_same_name(policies[place], source))
            return policies[place];
    }
    return NULL;
}

/* Reads an optional minus sign and decimal digits. Returns false for other text, or if the
 * number is too large. */
static bool parse_number(const char *text, size_t length, int64_t *number)
{
    bool negative = length > 0 && text[0] == '-';
    size_t first = negative ? 1 : 0;
    int64_t value = 0; /* kept negative: INT64_MIN has no positive counterpart */
    if (first == length)
        return false;
    for (size_t i = first; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        int64_t digit = text[i] - '0';
        if (value < (INT64_MIN + digit) / 10)
            return false;
        value = value * 10 - digit;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *number = negative ? value : -value;
    return true;
}

/* Searches all sources of the policy and sets *policy to the source with the preset. Returns
 * null if there is none. */
static const struct preset *find_preset(const struct policy **policy, const char *name,
                                        size_t length)
{
    for (const struct policy *source = *policy; source; source = policy_next_source(source)) {
        const struct preset *preset = preset_find(source, name, length);
        if (preset) {
            *policy = source;
            return preset;
        }
    }
    return NULL;
}

enum policy_error policy_choose(const char *text, size_t length, struct policy_choice *choice)
{
    size_t name_end = 0;
    while (name_end < length && text[name_end] != ':')
        name_end++;

    const struct policy *policy = policy_find(text, name_end);
    const struct preset *preset = NULL;
    int64_t number;
    if (!policy && parse_number(text, name_end, &number) && number >= 0 &&
        number < policies_count) {
        policy = policies[number];
        if (policy->by_number)
            preset = preset_find(policy, policy->by_number, name_length(policy->by_number));
    }
    if (!policy)
        return POLICY_ERROR_POLICY;

    if (name_end < length) {
        preset = find_preset(&policy, text + name_end + 1, length - name_end - 1);
        if (!preset)
            return POLICY_ERROR_PRESET;
    }
    choice->policy = policy;
    choice->preset = preset;
    return POLICY_OK;
}

int64_t policy_default(const struct policy_choice *choice, uint32_t index)
{
    const struct tunable *tunable = &choice->policy->tunables[index];
    const struct preset *preset = choice->preset;
    for (uint32_t i = 0; preset && i < POLICY_TUNABLES_MAX && preset->values[i].tunable; i++) {
        const char *name = preset->values[i].tunable;
        if (same_name(tunable->name, name, name_length(name)))
            return preset->values[i].value;
    }
    return tunable->standard;
}

void policy_set_defaults(scheduler_t *scheduler, const struct policy_choice *choice)
{
    for (uint32_t i = 0; i < POLICY_TUNABLES_MAX; i++) {
        bool used = i < choice->policy->tunable_count;
        scheduler->tunable[i] = used ? policy_default(choice, i) : 0;
    }
}

static bool in_range(const struct tunable *tunable, int64_t value)
{
    return value >= tunable->minimum && value <= tunable->maximum;
}

enum policy_error tunable_set(scheduler_t *scheduler, const struct policy *policy, uint32_t index,
                              int64_t value)
{
    if (index >= policy->tunable_count)
        return POLICY_ERROR_TUNABLE;
    if (!in_range(&policy->tunables[index], value))
        return POLICY_ERROR_RANGE;
    scheduler->tunable[index] = value;
    return POLICY_OK;
}

enum policy_error tunable_parse(const struct policy *policy, const char *text, size_t length,
                                uint32_t *index, int64_t *value)
{
    size_t name_end = 0;
    while (name_end < length && text[name_end] != '=' && text[name_end] != ' ')
        name_end++;

    int64_t number;
    if (name_end == length || !parse_number(text + name_end + 1, length - name_end - 1, &number))
        return POLICY_ERROR_TEXT;
    uint32_t match = tunable_find(policy, text, name_end);
    if (match == NO_TUNABLE)
        return POLICY_ERROR_TUNABLE;
    if (!in_range(&policy->tunables[match], number))
        return POLICY_ERROR_RANGE;
    *index = match;
    *value = number;
    return POLICY_OK;
}

/* Returns true if the name starts with a letter and has only lower-case letters, digits, '-' or
 * '_' within. So no name looks like a number. */
static bool is_name(const char *name)
{
    if (!name || name[0] < 'a' || name[0] > 'z')
        return false;
    for (size_t i = 0; name[i] != '\0'; i++) {
        bool letter = name[i] >= 'a' && name[i] <= 'z';
        bool digit = name[i] >= '0' && name[i] <= '9';
        if (!letter && !digit && name[i] != '-' && name[i] != '_')
            return false;
    }
    return true;
}

static const char *tunables_flaw(const struct policy *policy)
{
    if (policy->tunable_count > POLICY_TUNABLES_MAX)
        return "too many tunables";
    for (uint32_t i = 0; i < policy->tunable_count; i++) {
        const struct tunable *tunable = &policy->tunables[i];
        if (!is_name(tunable->name) || !tunable->meaning)
            return "a tunable lacks its name or meaning";
        if (!in_range(tunable, tunable->standard))
            return "a tunable's default is out of its range";
        if (tunable_find(policy, tunable->name, name_length(tunable->name)) != i)
            return "two tunables have one name";
    }
    return NULL;
}

static const char *preset_flaw(const struct policy *policy, const struct preset *preset)
{
    if (!is_name(preset->name) || !preset->meaning)
        return "a preset lacks its name or meaning";
    for (const struct policy *other = policy; other; other = policy_next_source(other)) {
        const struct preset *match = preset_find(other, preset->name, name_length(preset->name));
        if (match && match != preset)
            return "two presets have one name";
    }
    for (uint32_t i = 0; i < POLICY_TUNABLES_MAX && preset->values[i].tunable; i++) {
        const struct preset_value *value = &preset->values[i];
        uint32_t index = tunable_find(policy, value->tunable, name_length(value->tunable));
        if (index == NO_TUNABLE)
            return "a preset sets an unknown tunable";
        if (!in_range(&policy->tunables[index], value->value))
            return "a preset's value is out of the tunable's range";
    }
    return NULL;
}

static bool has_slot(const char *sentence)
{
    while (*sentence && !(sentence[0] == '{' && sentence[1] == '}'))
        sentence++;
    return *sentence != '\0';
}

/* Returns what is wrong with the policy's texts for display, or null. */
static const char *words_flaw(const struct policy *policy)
{
    if (!policy->order)
        return "it does not say in which order its queue is served";
    if ((policy->level_order != LEVELS_NONE) != (policy->levels != NULL))
        return "levels have a sentence that says what they are, and an order; or neither";
    if ((policy->remark_kind != REMARK_NONE) != (policy->remark && has_slot(policy->remark)))
        return "a remark has a kind, and a sentence with {} where it goes; or neither";
    if (policy->remark_kind == REMARK_LEVEL && policy->level_order == LEVELS_NONE)
        return "its remark is a level, and it has no levels";
    if (policy->boost &&
        tunable_find(policy, policy->boost, name_length(policy->boost)) == NO_TUNABLE)
        return "no tunable says how often all are lifted";
    return NULL;
}

/* Returns what is wrong with the parts that every policy must have, or null. */
static const char *required_flaw(const struct policy *policy)
{
    const struct {
        bool is_present;
        const char *flaw;
    } required[] = {
        {policy->name, "it has no .name"},
        {is_name(policy->name), "its .name is not of a-z, 0-9, - and _, a letter first"},
        {policy->meaning, "it has no .meaning: a line that says what it does"},
        {policy->source, "it has no .source: the algorithm's author and year"},
        {policy->enqueue, "it has no .enqueue: the hook is required"},
        {policy->dequeue, "it has no .dequeue: the hook is required"},
        {policy->pick, "it has no .pick: the hook is required"},
        {policy->tick, "it has no .tick: the hook is required"},
        {policy->time_slice, "it has no .time_slice: the hook is required"},
    };
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        if (!required[i].is_present)
            return required[i].flaw;
    }
    return NULL;
}

const char *policy_flaw(const struct policy *policy)
{
    const char *flaw = required_flaw(policy);
    if (flaw)
        return flaw;
    bool is_study = policy_source(policy) >= policies_count;
    if (is_study && policy_source(policy) < policy_sources_count &&
        (policy_number(policy) == policies_count || policy->preset_count == 0))
        return "a source of presets has no preset, or bears no policy's name";
    flaw = words_flaw(policy);
    if (!flaw)
        flaw = tunables_flaw(policy);
    for (uint32_t i = 0; !flaw && i < policy->preset_count; i++)
        flaw = preset_flaw(policy, &policy->presets[i]);
    return flaw;
}
