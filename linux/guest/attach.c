/* SPDX-License-Identifier: MIT */

/*
 * Runs a scheduler of sched_ext from a BPF object until a signal ends this program. The object
 * follows the program in its file: cat attach my.bpf.o > scx_my
 *
 * If the object has a section .data.log, it contains struct callback_log, which is printed at the
 * end.
 */

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callback_log.h"

#define MACHINE_BPF     247
#define MACHINE_AT      18 /* offset in an ELF header */
#define CONSTANT_PREFIX "__SCX_"

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "attach: %s failed\n", what);
    exit(1);
}

/* ---- the object in this program's file ---- */

static unsigned char *read_program(size_t *bytes)
{
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail("opening the program");
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *content = malloc(*bytes);
    if (!content || fread(content, 1, *bytes, file) != *bytes)
        fail("reading the program");
    fclose(file);
    return content;
}

static struct bpf_object *open_object(void)
{
    size_t bytes;
    unsigned char *content = read_program(&bytes);
    for (size_t i = 1; i + MACHINE_AT + 2 < bytes; i++) {
        uint16_t machine;
        memcpy(&machine, content + i + MACHINE_AT, sizeof(machine));
        if (memcmp(content + i, "\177ELF\2\1", 6) == 0 && machine == MACHINE_BPF) {
            struct bpf_object *object = bpf_object__open_mem(content + i, bytes - i, NULL);
            return object ? object : (fail("opening the object"), NULL);
        }
    }
    fail("finding an object in the program");
}

/* ---- constants ---- */

static bool find_in_type(const struct btf *kernel, const struct btf_type *type, const char *name,
                         uint64_t *value)
{
    for (int i = 0; i < btf_vlen(type); i++) {
        if (btf_is_enum(type)) {
            const struct btf_enum *member = btf_enum(type) + i;
            *value = (uint64_t)(int64_t)member->val;
            if (strcmp(btf__name_by_offset(kernel, member->name_off), name) == 0)
                return true;
        } else if (btf_is_enum64(type)) {
            const struct btf_enum64 *member = btf_enum64(type) + i;
            *value = btf_enum64_value(member);
            if (strcmp(btf__name_by_offset(kernel, member->name_off), name) == 0)
                return true;
        }
    }
    return false;
}

static uint64_t kernel_constant(const struct btf *kernel, const char *name)
{
    uint64_t value = 0;
    for (uint32_t id = 1; id < btf__type_cnt(kernel); id++) {
        const struct btf_type *type = btf__type_by_id(kernel, id);
        if ((btf_is_enum(type) || btf_is_enum64(type)) && find_in_type(kernel, type, name, &value))
            return value;
    }
    return 0;
}

/* Sets the variables that user space copies from the kernel's enumerations. */
static void set_constants(const struct bpf_object *object, const struct btf *kernel)
{
    const struct btf *btf = bpf_object__btf(object);
    int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
    const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
    struct bpf_map *map;
    bpf_object__for_each_map(map, object)
    {
        size_t bytes;
        unsigned char *content = bpf_map__initial_value(map, &bytes);
        if (!section || !content || !strstr(bpf_map__name(map), ".rodata"))
            continue;
        for (int i = 0; i < btf_vlen(section); i++) {
            const struct btf_var_secinfo *place = btf_var_secinfos(section) + i;
            const struct btf_type *variable = btf__type_by_id(btf, place->type);
            const char *name = btf__name_by_offset(btf, variable->name_off);
            uint64_t value;
            if (strncmp(name, CONSTANT_PREFIX, strlen(CONSTANT_PREFIX)) != 0)
                continue;
            value = kernel_constant(kernel, name + 2);
            memcpy(content + place->offset, &value, sizeof(value));
        }
    }
}

/* ---- the log ---- */

static void print_log(const struct bpf_object *object)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, object)
    {
        static struct callback_log log;
        const uint32_t first = 0;
        if (!strstr(bpf_map__name(map), ".data.log") ||
            bpf_map__lookup_elem(map, &first, sizeof(first), &log, sizeof(log), 0))
            continue;
        printf("attach: %u callbacks\n", log.count);
        for (uint32_t i = 0; i < log.count && i < CALLBACK_RECORDS; i++)
            printf("callback %llu %u %.*s %d\n", log.records[i].time_ns, log.records[i].cpu,
                   CALLBACK_NAME_BYTES, log.records[i].name, log.records[i].pid);
    }
}

/* ---- main ---- */

static struct bpf_link *attach(const struct bpf_object *object)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, object)
    {
        if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
            return bpf_map__attach_struct_ops(map);
    }
    return NULL;
}

int main(void)
{
    sigset_t ends;
    int signal_number;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct btf *kernel = btf__load_vmlinux_btf();
    struct bpf_object *object = open_object();
    if (!kernel)
        fail("reading the kernel's types");
    set_constants(object, kernel);
    if (bpf_object__load(object))
        fail("loading the object");
    struct bpf_link *link = attach(object);
    if (!link)
        fail("attaching the scheduler");
    puts("attach: attached");
    fflush(stdout);
    sigwait(&ends, &signal_number);
    print_log(object);
    fflush(stdout);
    bpf_link__destroy(link);
    return 0;
}
