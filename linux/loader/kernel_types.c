/* SPDX-License-Identifier: MIT */

#include "kernel_types.h"

#include <bpf/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool has_tracepoint(const struct btf *kernel, const char *name)
{
    char type[64];
    snprintf(type, sizeof(type), "btf_trace_%s", name);
    return btf__find_by_name_kind(kernel, type, BTF_KIND_TYPEDEF) > 0;
}

bool has_function(const struct btf *kernel, const char *name)
{
    return btf__find_by_name_kind(kernel, name, BTF_KIND_FUNC) > 0;
}

bool has_callback(const struct btf *kernel, const char *name)
{
    int id = btf__find_by_name_kind(kernel, "sched_ext_ops", BTF_KIND_STRUCT);
    const struct btf_type *type = id > 0 ? btf__type_by_id(kernel, (uint32_t)id) : NULL;
    for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
        if (strcmp(btf__name_by_offset(kernel, btf_members(type)[i].name_off), name) == 0)
            return true;
    }
    return false;
}
