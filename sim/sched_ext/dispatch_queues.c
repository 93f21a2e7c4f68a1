/* SPDX-License-Identifier: MIT */

/* Dispatch queues (DSQs), and how tasks reach them. */

#include "sim/sched_ext/state.h"

static uint32_t hash_of(uint64_t id)
{
    return (uint32_t)(id * 0x9e3779b97f4a7c15ull >> 32) % QUEUE_HASHES;
}

static bool is_local(const struct sched_ext *ext, uint32_t queue)
{
    return queue < ext->cpu_count;
}

enum dispatch_callback present_callback(const struct sched_ext *ext)
{
    if (ext->nested == 0)
        return DISPATCH_BY_KERNEL;
    switch (ext->running_op) {
    case OP_select_cpu:
        return DISPATCH_BY_SELECT_CPU;
    case OP_enqueue:
        return DISPATCH_BY_ENQUEUE;
    case OP_dispatch:
        return DISPATCH_BY_DISPATCH;
    default:
        return DISPATCH_BY_OTHER;
    }
}

enum dispatch_callback calling_callback(const struct sched_ext *ext)
{
    return ext->nested > 0 ? present_callback(ext) : DISPATCH_BY_OTHER;
}

void begin_queues(struct sched_ext *ext)
{
    for (uint32_t i = 0; i < QUEUE_HASHES; i++)
        ext->queue_hash[i] = NONE;
    for (uint32_t i = 0; i <= ext->cpu_count; i++)
        ext->queues[i] = (struct dispatch_queue){
            .id = i < ext->cpu_count ? SCX_DSQ_LOCAL : SCX_DSQ_GLOBAL,
            .first = NONE,
            .last = NONE,
            .is_used = true,
        };
    ext->queue_count = ext->cpu_count + 1;
    ext->queue_free = NONE;
}

static uint32_t find_user_queue(const struct sched_ext *ext, uint64_t id)
{
    uint32_t queue = ext->queue_hash[hash_of(id)];
    while (queue != NONE && ext->queues[queue].id != id)
        queue = ext->queues[queue].chain;
    return queue;
}

uint32_t find_queue(const struct sched_ext *ext, uint64_t id, uint32_t cpu)
{
    if (id == SCX_DSQ_LOCAL)
        return cpu;
    if (id == SCX_DSQ_GLOBAL)
        return global_queue(ext);
    if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON) {
        uint64_t named = id & SCX_DSQ_LOCAL_CPU_MASK;
        return named < ext->cpu_count ? (uint32_t)named : NONE;
    }
    return find_user_queue(ext, id);
}

uint32_t find_queue_for_dispatch(struct sched_ext *ext, uint64_t id, uint32_t slot, uint32_t cpu)
{
    uint32_t queue = find_queue(ext, id, cpu);
    if (queue != NONE)
        return queue;
    if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON)
        scx_error(ext, "CPU %u in SCX_DSQ_LOCAL_ON does not exist", (uint32_t)id);
    else
        scx_error(ext, "DSQ %#llx does not exist; %.15s[%d] was dispatched to it",
                  (unsigned long long)id, task_struct_of(ext, slot)->comm,
                  task_struct_of(ext, slot)->pid);
    return global_queue(ext);
}

int32_t create_queue(struct sched_ext *ext, uint64_t id)
{
    uint32_t queue = ext->queue_free;
    if (id & SCX_DSQ_FLAG_BUILTIN)
        return -LINUX_EINVAL;
    if (find_user_queue(ext, id) != NONE)
        return -LINUX_EEXIST;
    if (queue != NONE)
        ext->queue_free = ext->queues[queue].chain;
    else if (ext->queue_count < ext->cpu_count + 1 + DISPATCH_QUEUES_MAX)
        queue = ext->queue_count++;
    else
        return -LINUX_ENOMEM;
    ext->queues[queue] = (struct dispatch_queue){
        .id = id,
        .first = NONE,
        .last = NONE,
        .chain = ext->queue_hash[hash_of(id)],
        .is_used = true,
    };
    ext->queue_hash[hash_of(id)] = queue;
    return 0;
}

void destroy_queue(struct sched_ext *ext, uint64_t id)
{
    uint32_t *link = &ext->queue_hash[hash_of(id)];
    while (*link != NONE && ext->queues[*link].id != id)
        link = &ext->queues[*link].chain;
    uint32_t queue = *link;
    if (queue == NONE)
        return;
    if (ext->queues[queue].count > 0) {
        scx_error(ext, "DSQ %#llx is destroyed while it has %u tasks", (unsigned long long)id,
                  ext->queues[queue].count);
        return;
    }
    *link = ext->queues[queue].chain;
    ext->queues[queue].is_used = false;
    ext->queues[queue].chain = ext->queue_free;
    ext->queue_free = queue;
}

/* ---- the order within a queue ---- */

static bool runs_before(const struct sched_ext *ext, uint32_t slot, uint32_t other)
{
    uint64_t time = task_struct_of(ext, slot)->scx.dsq_vtime;
    return (int64_t)(time - task_struct_of(ext, other)->scx.dsq_vtime) < 0;
}

/* Returns the task of the queue that precedes the new task, or NONE. */
static uint32_t predecessor(const struct sched_ext *ext, const struct dispatch_queue *queue,
                            uint32_t slot, uint64_t flags)
{
    uint32_t previous = queue->last;
    if (flags & SCX_ENQ_DSQ_PRIQ) {
        while (previous != NONE && runs_before(ext, slot, previous))
            previous = ext->tasks[previous].previous;
        return previous;
    }
    return flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT) ? NONE : previous;
}

static void link_task(struct sched_ext *ext, uint32_t number, uint32_t slot, uint32_t previous)
{
    struct dispatch_queue *queue = &ext->queues[number];
    struct ext_task *task = &ext->tasks[slot];
    task->queue = number;
    task->enqueued_at = ++ext->enqueued;
    task->previous = previous;
    task->next = previous == NONE ? queue->first : ext->tasks[previous].next;
    if (previous == NONE)
        queue->first = slot;
    else
        ext->tasks[previous].next = slot;
    if (task->next == NONE)
        queue->last = slot;
    else
        ext->tasks[task->next].previous = slot;
    queue->count++;
}

/* Refuses an order that the queue does not have. */
static uint64_t check_order(struct sched_ext *ext, struct dispatch_queue *queue, uint64_t flags)
{
    bool by_vtime = flags & SCX_ENQ_DSQ_PRIQ;
    if (by_vtime && queue->id & SCX_DSQ_FLAG_BUILTIN) {
        scx_error(ext, "a built-in DSQ cannot be in the order of virtual times");
        return flags & ~(uint64_t)SCX_ENQ_DSQ_PRIQ;
    }
    if (queue->count > 0 && by_vtime != queue->by_vtime)
        scx_error(ext, "DSQ %#llx has tasks in the order of %s already",
                  (unsigned long long)queue->id, queue->by_vtime ? "virtual times" : "arrival");
    queue->by_vtime = by_vtime;
    return flags;
}

/* Lets the CPU of a local queue pick again if the new task should run now. */
static void notify_local_cpu(struct sched_ext *ext, uint32_t cpu, uint32_t slot, uint64_t flags)
{
    uint32_t current = running_task(ext, cpu);
    bool preempts =
        flags & SCX_ENQ_PREEMPT && current != NONE && current != slot && ext->tasks[current].exists;
    if (preempts)
        task_struct_of(ext, current)->scx.slice = 0;
    if (!ext->cpus[cpu].in_balance && (preempts || current == NONE))
        ext_resched(ext, cpu);
}

void dispatch_enqueue(struct sched_ext *ext, uint32_t number, uint32_t slot, uint64_t flags)
{
    struct dispatch_queue *queue = &ext->queues[number];
    struct sched_ext_entity *entity = &task_struct_of(ext, slot)->scx;
    if (ext->tasks[slot].queue != NONE) {
        scx_error(ext, "%.15s[%d] is dispatched while it is in a DSQ",
                  task_struct_of(ext, slot)->comm, task_struct_of(ext, slot)->pid);
        return;
    }
    flags = check_order(ext, queue, flags);
    link_task(ext, number, slot, predecessor(ext, queue, slot, flags));
    entity->dsq_flags = flags & SCX_ENQ_DSQ_PRIQ ? SCX_TASK_DSQ_ON_PRIQ : 0;
    entity->ddsp_dsq_id = SCX_DSQ_INVALID;
    entity->ddsp_enq_flags = 0;
    ext->tasks[slot].in_custody = false;
    ext_record_place(ext, slot, is_local(ext, number) ? SCX_DSQ_LOCAL_ON | number : queue->id);
    if (is_local(ext, number))
        notify_local_cpu(ext, number, slot, flags);
}

void dispatch_dequeue(struct sched_ext *ext, uint32_t slot)
{
    struct ext_task *task = &ext->tasks[slot];
    if (task->queue == NONE)
        return;
    struct dispatch_queue *queue = &ext->queues[task->queue];
    if (task->previous == NONE)
        queue->first = task->next;
    else
        ext->tasks[task->previous].next = task->next;
    if (task->next == NONE)
        queue->last = task->previous;
    else
        ext->tasks[task->next].previous = task->previous;
    task->queue = task->next = task->previous = NONE;
    queue->count--;
}

/* ---- dispatching ---- */

void dispatch_to_queue(struct sched_ext *ext, uint32_t queue, uint32_t slot, uint64_t flags)
{
    if (is_local(ext, queue) && !cpu_is_online(ext, queue) && task_has_cpu(ext, slot, queue)) {
        queue = global_queue(ext);
    } else if (is_local(ext, queue) && cpu_of_task(ext, slot) != queue) {
        if (!task_allows(ext, slot, queue)) {
            scx_error(ext, "SCX_DSQ_LOCAL[_ON] target CPU %u not allowed for %.15s[%d]", queue,
                      task_struct_of(ext, slot)->comm, task_struct_of(ext, slot)->pid);
            queue = global_queue(ext);
        } else {
            ext_change_cpu(ext, slot, queue);
        }
    }
    dispatch_enqueue(ext, queue, slot, flags);
}

void direct_dispatch(struct sched_ext *ext, uint32_t slot, uint64_t flags)
{
    struct sched_ext_entity *entity = &task_struct_of(ext, slot)->scx;
    uint32_t queue =
        find_queue_for_dispatch(ext, entity->ddsp_dsq_id, slot, cpu_of_task(ext, slot));
    dispatch_to_queue(ext, queue, slot, entity->ddsp_enq_flags | flags);
}

bool consume_queue(struct sched_ext *ext, uint32_t cpu, uint32_t number)
{
    uint32_t slot = ext->queues[number].first;
    while (slot != NONE && !task_allows(ext, slot, cpu))
        slot = ext->tasks[slot].next;
    if (slot == NONE)
        return false;
    dispatch_dequeue(ext, slot);
    if (cpu_of_task(ext, slot) != cpu)
        ext_change_cpu(ext, slot, cpu);
    ext->tasks[slot].placed_by = present_callback(ext);
    dispatch_enqueue(ext, cpu, slot, 0);
    return true;
}

/* Marks a task for a direct dispatch. */
static void mark_direct(struct sched_ext *ext, uint32_t slot, uint64_t queue_id, uint64_t flags)
{
    struct sched_ext_entity *entity = &task_struct_of(ext, slot)->scx;
    if (slot != ext->direct_task)
        scx_error(ext, "%.15s[%d] is dispatched directly, but the operation is for another task",
                  task_struct_of(ext, slot)->comm, task_struct_of(ext, slot)->pid);
    else if (entity->ddsp_dsq_id != SCX_DSQ_INVALID)
        scx_error(ext, "%.15s[%d] is dispatched directly twice", task_struct_of(ext, slot)->comm,
                  task_struct_of(ext, slot)->pid);
    else {
        entity->ddsp_dsq_id = queue_id;
        entity->ddsp_enq_flags = flags;
        ext->tasks[slot].placed_by = present_callback(ext);
    }
}

/* A task without a slice runs until the next tick. */
static void give_least_slice(struct sched_ext *ext, struct sched_ext_entity *entity)
{
    entity->slice = 1;
    if (!ext->sliceless && ext->nested > 0)
        ext->sliceless = (uint32_t)ext->running_op + 1;
}

void request_dispatch(struct sched_ext *ext, uint32_t slot, uint64_t queue_id, uint64_t slice,
                      uint64_t flags)
{
    struct sched_ext_entity *entity = &task_struct_of(ext, slot)->scx;
    if (slice)
        entity->slice = slice;
    else if (!entity->slice)
        give_least_slice(ext, entity);
    if (ext->direct_task != NONE) {
        mark_direct(ext, slot, queue_id, flags);
    } else if (ext->dispatching == NONE) {
        scx_error(ext, "tasks can be dispatched only in select_cpu(), enqueue() and dispatch()");
    } else if (ext->request_count >= ext->batch) {
        scx_error(ext, "one dispatch() dispatches more than %u tasks", ext->batch);
    } else {
        ext->requests[ext->request_count++] = (struct dispatch_request){
            .slot = slot,
            .queue_id = queue_id,
            .flags = flags,
            .sequence = ext->tasks[slot].sequence,
        };
    }
}

/* A task that was dequeued since its request, or that is dispatched twice, is skipped. */
void flush_requests(struct sched_ext *ext)
{
    for (uint32_t i = 0; i < ext->request_count; i++) {
        const struct dispatch_request *request = &ext->requests[i];
        struct ext_task *task = &ext->tasks[request->slot];
        if (!task->in_custody || task->sequence != request->sequence || !task->is_queued)
            continue;
        uint32_t queue =
            find_queue_for_dispatch(ext, request->queue_id, request->slot, ext->dispatching);
        task->placed_by = DISPATCH_BY_DISPATCH;
        dispatch_to_queue(ext, queue, request->slot, request->flags);
    }
    ext->dispatched += ext->request_count;
    ext->request_count = 0;
}
