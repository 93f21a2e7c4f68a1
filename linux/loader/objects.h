/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_OBJECTS_H
#define LINUX_LOADER_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "linux/bpf/shared.h"
#include "observer.h"
#include "text.h"

#include "policies/registry.h"

/*
 * BPF objects: the observer's, whose maps all share; the object that describes threads while no
 * policy is active; and each policy's. A policy's object is loaded when it is first needed, and
 * then stays: to switch is to attach and to detach.
 *
 * The kernel's verifier may take many seconds for an object. So a separate thread loads it, which
 * has a reserved share of a CPU. The main thread continues serving, no policy can delay the next
 * one, and the load starves no task. Nothing here is pinned: when this process ends, the kernel
 * undoes everything.
 */

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct bpf_program;
struct ring_buffer;

/* Shared by all policies. */
struct shared_objects {
    const char *folder; /* of the objects */
    struct bpf_object *observer;
    struct bpf_object *tasks;
    struct bpf_link *describe_tasks;
    int attributes; /* a map */
    enum detail detail;
};

enum load_state {
    NOT_LOADED,
    LOADING, /* the loading thread has the object, and no other accesses it */
    LOADED,
};

struct policy_object {
    const struct policy *policy;
    const char *name; /* of its file */
    const struct shared_objects *shared;
    struct bpf_object *object;
    struct bpf_map *operations;
    struct bpf_link *attached; /* null: not active */
    struct bpf_link *describe_tasks;
    struct ring_buffer *requests;
    int settings;
    int shape;
    int exit_info;
    int control_groups;
    int attribute_changed; /* programs */
    int group_changed;
    enum load_state state;
    pthread_t thread;
    atomic_bool thread_is_done;
    atomic_bool interrupted;
    int thread_done;     /* an eventfd, readable once the thread is done */
    int load_error;      /* 0, or a negative errno */
    struct text problem; /* of the last failed load */
};

/* Sets how libbpf's messages are handled; must be called first. */
void objects_init(void);

/* Loads observer.bpf.o and tasks.bpf.o, and starts the observer. Returns 0, or a negative errno
 * after a message. */
int shared_objects_load(struct shared_objects *shared, const char *folder, enum detail detail);
void shared_objects_close(struct shared_objects *shared);

/* Begins to load; `thread_done` becomes readable when policy_object_finish_load() may be called. */
int policy_object_begin_load(struct policy_object *object);
/* Returns 0, or a negative errno; `problem` then contains the reason. */
int policy_object_finish_load(struct policy_object *object);
/* Interrupts a load. Must be called repeatedly until the thread is done; the load then ends with
 * an error. */
void policy_object_interrupt_load(struct policy_object *object);

/* Switches to the policy, on a machine of this shape. Returns 0, or a negative errno with the
 * fair class active. */
int policy_object_attach(struct policy_object *object, const struct host_settings *settings,
                         const struct machine_shape *shape);
/* Returns to the fair class. */
void policy_object_detach(struct policy_object *object);
void policy_object_close(struct policy_object *object);

/* Returns false if the kernel has not ended the policy; else fills in how it did. */
bool policy_object_has_exited(const struct policy_object *object, struct host_exit *exit);

/* Receives the policy's requests through `handle`; *descriptor becomes readable when there is
 * one. */
typedef int (*handle_request)(void *context, void *data, size_t size);
int policy_object_watch(struct policy_object *object, handle_request handle, void *context,
                        int *descriptor);

/* Handles all pending requests of the policy. */
void policy_object_consume(struct policy_object *object);

/* Sets an attribute through a policy that has the thread as a task. Returns 0 or a negative
 * errno. */
int policy_object_set_attribute(const struct policy_object *object, int32_t pid, uint32_t kind,
                                int64_t value);
/* Sets a field of a group of the policy; the value must be allowed. Returns 0 or a negative
 * errno. */
int policy_object_set_group(const struct policy_object *object, uint32_t group, uint32_t field,
                            int64_t value);
/* Returns false if no control group has that number. */
bool policy_object_control_group(const struct policy_object *object, uint32_t number,
                                 struct control_group *group);

#endif
