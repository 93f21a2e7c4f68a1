/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_KERNEL_FUNCTIONS_H
#define SIM_SCHED_EXT_KERNEL_FUNCTIONS_H

/*
 * What the simulated kernel offers to a sched_ext scheduler. The loader (schedlab.sched_ext) reads
 * these lists too, so each entry is one X(...) with literal arguments.
 *
 * Kernel versions are written as major * 100 + minor. `first` and `last` name the versions between
 * which a kernel has the entry. The supported profiles are 6.12, 6.18 and 7.1.
 */
#define KERNEL_6_12  612
#define KERNEL_6_18  618
#define KERNEL_7_1   701
#define KERNEL_LATER 9999

/* X(name, number, first, last): the callbacks of struct sched_ext_ops. Numbers are dense. */
#define SCHEDULER_OPS(X)                                                                           \
    X(select_cpu, 0, 612, 9999)                                                                    \
    X(enqueue, 1, 612, 9999)                                                                       \
    X(dequeue, 2, 612, 9999)                                                                       \
    X(dispatch, 3, 612, 9999)                                                                      \
    X(tick, 4, 612, 9999)                                                                          \
    X(runnable, 5, 612, 9999)                                                                      \
    X(running, 6, 612, 9999)                                                                       \
    X(stopping, 7, 612, 9999)                                                                      \
    X(quiescent, 8, 612, 9999)                                                                     \
    X(yield, 9, 612, 9999)                                                                         \
    X(core_sched_before, 10, 612, 9999)                                                            \
    X(set_weight, 11, 612, 9999)                                                                   \
    X(set_cpumask, 12, 612, 9999)                                                                  \
    X(update_idle, 13, 612, 9999)                                                                  \
    X(cpu_acquire, 14, 612, 9999)                                                                  \
    X(cpu_release, 15, 612, 9999)                                                                  \
    X(init_task, 16, 612, 9999)                                                                    \
    X(exit_task, 17, 612, 9999)                                                                    \
    X(enable, 18, 612, 9999)                                                                       \
    X(disable, 19, 612, 9999)                                                                      \
    X(dump, 20, 612, 9999)                                                                         \
    X(dump_cpu, 21, 612, 9999)                                                                     \
    X(dump_task, 22, 612, 9999)                                                                    \
    X(cgroup_init, 23, 612, 9999)                                                                  \
    X(cgroup_exit, 24, 612, 9999)                                                                  \
    X(cgroup_prep_move, 25, 612, 9999)                                                             \
    X(cgroup_move, 26, 612, 9999)                                                                  \
    X(cgroup_cancel_move, 27, 612, 9999)                                                           \
    X(cgroup_set_weight, 28, 612, 9999)                                                            \
    X(cgroup_set_bandwidth, 29, 617, 9999)                                                         \
    X(cgroup_set_idle, 30, 619, 9999)                                                              \
    X(cpu_online, 31, 612, 9999)                                                                   \
    X(cpu_offline, 32, 612, 9999)                                                                  \
    X(init, 33, 612, 9999)                                                                         \
    X(exit, 34, 612, 9999)

/*
 * X(name, number, first, last): kernel functions that programs call (kfuncs). An image calls them
 * by number. A name is the program's name without its last ___ and what follows it, as in
 * libbpf: scx_bpf_dsq_insert___v2___compat is scx_bpf_dsq_insert___v2.
 */
#define KERNEL_FUNCTIONS(X)                                                                        \
    /* dispatch queues */                                                                          \
    X(scx_bpf_create_dsq, 1, 612, 9999)                                                            \
    X(scx_bpf_destroy_dsq, 2, 612, 9999)                                                           \
    X(scx_bpf_dsq_insert, 3, 613, 9999)                                                            \
    X(scx_bpf_dsq_insert_vtime, 4, 613, 9999)                                                      \
    X(scx_bpf_dsq_insert___v2, 5, 619, 9999)                                                       \
    X(__scx_bpf_dsq_insert_vtime, 6, 619, 9999)                                                    \
    X(scx_bpf_dsq_move_to_local, 7, 613, 9999)                                                     \
    X(scx_bpf_dsq_move_to_local___v2, 8, 701, 9999)                                                \
    X(scx_bpf_dsq_move, 9, 613, 9999)                                                              \
    X(scx_bpf_dsq_move_vtime, 10, 613, 9999)                                                       \
    X(scx_bpf_dsq_move_set_slice, 11, 613, 9999)                                                   \
    X(scx_bpf_dsq_move_set_vtime, 12, 613, 9999)                                                   \
    X(scx_bpf_dsq_nr_queued, 13, 612, 9999)                                                        \
    X(scx_bpf_dsq_peek, 14, 619, 9999)                                                             \
    X(scx_bpf_dsq_reenq, 15, 701, 9999)                                                            \
    X(scx_bpf_dispatch_nr_slots, 16, 612, 9999)                                                    \
    X(scx_bpf_dispatch_cancel, 17, 612, 9999)                                                      \
    X(scx_bpf_reenqueue_local, 18, 612, 9999)                                                      \
    X(scx_bpf_reenqueue_local___v2, 19, 619, 9999)                                                 \
    X(scx_bpf_dispatch, 20, 612, 616)                                                              \
    X(scx_bpf_dispatch_vtime, 21, 612, 616)                                                        \
    X(scx_bpf_consume, 22, 612, 616)                                                               \
    X(scx_bpf_dispatch_from_dsq, 23, 612, 616)                                                     \
    X(scx_bpf_dispatch_vtime_from_dsq, 24, 612, 616)                                               \
    X(scx_bpf_dispatch_from_dsq_set_slice, 25, 612, 616)                                           \
    X(scx_bpf_dispatch_from_dsq_set_vtime, 26, 612, 616)                                           \
    X(bpf_iter_scx_dsq_new, 27, 612, 9999)                                                         \
    X(bpf_iter_scx_dsq_next, 28, 612, 9999)                                                        \
    X(bpf_iter_scx_dsq_destroy, 29, 612, 9999)                                                     \
    /* CPUs */                                                                                     \
    X(scx_bpf_select_cpu_dfl, 40, 612, 9999)                                                       \
    X(scx_bpf_select_cpu_and, 41, 616, 9999)                                                       \
    X(__scx_bpf_select_cpu_and, 42, 619, 9999)                                                     \
    X(scx_bpf_kick_cpu, 43, 612, 9999)                                                             \
    X(scx_bpf_nr_cpu_ids, 44, 612, 9999)                                                           \
    X(scx_bpf_nr_node_ids, 45, 615, 9999)                                                          \
    X(scx_bpf_cpu_node, 46, 615, 9999)                                                             \
    X(scx_bpf_get_possible_cpumask, 47, 612, 9999)                                                 \
    X(scx_bpf_get_online_cpumask, 48, 612, 9999)                                                   \
    X(scx_bpf_put_cpumask, 49, 612, 9999)                                                          \
    X(scx_bpf_get_idle_cpumask, 50, 612, 9999)                                                     \
    X(scx_bpf_get_idle_cpumask_node, 51, 615, 9999)                                                \
    X(scx_bpf_get_idle_smtmask, 52, 612, 9999)                                                     \
    X(scx_bpf_get_idle_smtmask_node, 53, 615, 9999)                                                \
    X(scx_bpf_put_idle_cpumask, 54, 612, 9999)                                                     \
    X(scx_bpf_test_and_clear_cpu_idle, 55, 612, 9999)                                              \
    X(scx_bpf_pick_idle_cpu, 56, 612, 9999)                                                        \
    X(scx_bpf_pick_idle_cpu_node, 57, 615, 9999)                                                   \
    X(scx_bpf_pick_any_cpu, 58, 612, 9999)                                                         \
    X(scx_bpf_pick_any_cpu_node, 59, 615, 9999)                                                    \
    X(scx_bpf_cpu_rq, 60, 612, 700)                                                                \
    X(scx_bpf_cpu_curr, 61, 618, 9999)                                                             \
    X(scx_bpf_locked_rq, 62, 618, 9999)                                                            \
    X(scx_bpf_cpuperf_cap, 63, 612, 9999)                                                          \
    X(scx_bpf_cpuperf_cur, 64, 612, 9999)                                                          \
    X(scx_bpf_cpuperf_set, 65, 612, 9999)                                                          \
    /* tasks */                                                                                    \
    X(scx_bpf_task_running, 70, 612, 9999)                                                         \
    X(scx_bpf_task_cpu, 71, 612, 9999)                                                             \
    X(scx_bpf_task_cgroup, 72, 612, 9999)                                                          \
    X(scx_bpf_task_set_slice, 73, 619, 9999)                                                       \
    X(scx_bpf_task_set_dsq_vtime, 74, 619, 9999)                                                   \
    X(bpf_task_from_pid, 75, 612, 9999)                                                            \
    X(bpf_task_from_vpid, 76, 614, 9999)                                                           \
    X(bpf_task_acquire, 77, 612, 9999)                                                             \
    X(bpf_task_release, 78, 612, 9999)                                                             \
    /* time, messages, counters */                                                                 \
    X(scx_bpf_now, 80, 614, 9999)                                                                  \
    X(scx_bpf_error_bstr, 81, 612, 9999)                                                           \
    X(scx_bpf_exit_bstr, 82, 612, 9999)                                                            \
    X(scx_bpf_dump_bstr, 83, 612, 9999)                                                            \
    X(scx_bpf_events, 84, 615, 9999)                                                               \
    /* CPU masks */                                                                                \
    X(bpf_cpumask_create, 100, 612, 9999)                                                          \
    X(bpf_cpumask_acquire, 101, 612, 9999)                                                         \
    X(bpf_cpumask_release, 102, 612, 9999)                                                         \
    X(bpf_cpumask_first, 103, 612, 9999)                                                           \
    X(bpf_cpumask_first_and, 104, 612, 9999)                                                       \
    X(bpf_cpumask_first_zero, 105, 612, 9999)                                                      \
    X(bpf_cpumask_set_cpu, 106, 612, 9999)                                                         \
    X(bpf_cpumask_clear_cpu, 107, 612, 9999)                                                       \
    X(bpf_cpumask_test_cpu, 108, 612, 9999)                                                        \
    X(bpf_cpumask_test_and_set_cpu, 109, 612, 9999)                                                \
    X(bpf_cpumask_test_and_clear_cpu, 110, 612, 9999)                                              \
    X(bpf_cpumask_setall, 111, 612, 9999)                                                          \
    X(bpf_cpumask_clear, 112, 612, 9999)                                                           \
    X(bpf_cpumask_and, 113, 612, 9999)                                                             \
    X(bpf_cpumask_or, 114, 612, 9999)                                                              \
    X(bpf_cpumask_xor, 115, 612, 9999)                                                             \
    X(bpf_cpumask_equal, 116, 612, 9999)                                                           \
    X(bpf_cpumask_intersects, 117, 612, 9999)                                                      \
    X(bpf_cpumask_subset, 118, 612, 9999)                                                          \
    X(bpf_cpumask_empty, 119, 612, 9999)                                                           \
    X(bpf_cpumask_full, 120, 612, 9999)                                                            \
    X(bpf_cpumask_copy, 121, 612, 9999)                                                            \
    X(bpf_cpumask_weight, 122, 612, 9999)                                                          \
    X(bpf_cpumask_any_distribute, 123, 612, 9999)                                                  \
    X(bpf_cpumask_any_and_distribute, 124, 612, 9999)                                              \
    X(bpf_cpumask_populate, 125, 615, 9999)                                                        \
    /* iterators */                                                                                \
    X(bpf_iter_num_new, 140, 612, 9999)                                                            \
    X(bpf_iter_num_next, 141, 612, 9999)                                                           \
    X(bpf_iter_num_destroy, 142, 612, 9999)                                                        \
    X(bpf_iter_bits_new, 143, 612, 9999)                                                           \
    X(bpf_iter_bits_next, 144, 612, 9999)                                                          \
    X(bpf_iter_bits_destroy, 145, 612, 9999)                                                       \
    X(bpf_iter_css_new, 146, 612, 9999)                                                            \
    X(bpf_iter_css_next, 147, 612, 9999)                                                           \
    X(bpf_iter_css_destroy, 148, 612, 9999)                                                        \
    /* control groups */                                                                           \
    X(bpf_cgroup_acquire, 160, 612, 9999)                                                          \
    X(bpf_cgroup_release, 161, 612, 9999)                                                          \
    X(bpf_cgroup_ancestor, 162, 612, 9999)                                                         \
    X(bpf_cgroup_from_id, 163, 612, 9999)                                                          \
    /* locks and critical sections */                                                              \
    X(bpf_rcu_read_lock, 170, 612, 9999)                                                           \
    X(bpf_rcu_read_unlock, 171, 612, 9999)                                                         \
    X(bpf_preempt_disable, 172, 612, 9999)                                                         \
    X(bpf_preempt_enable, 173, 612, 9999)                                                          \
    X(bpf_local_irq_save, 174, 614, 9999)                                                          \
    X(bpf_local_irq_restore, 175, 614, 9999)                                                       \
    X(bpf_res_spin_lock, 176, 615, 9999)                                                           \
    X(bpf_res_spin_unlock, 177, 615, 9999)                                                         \
    X(bpf_res_spin_lock_irqsave, 178, 615, 9999)                                                   \
    X(bpf_res_spin_unlock_irqrestore, 179, 615, 9999)                                              \
    /* objects, trees, lists */                                                                    \
    X(bpf_obj_new_impl, 190, 612, 9999)                                                            \
    X(bpf_obj_drop_impl, 191, 612, 9999)                                                           \
    X(bpf_refcount_acquire_impl, 192, 612, 9999)                                                   \
    X(bpf_rbtree_add_impl, 193, 612, 9999)                                                         \
    X(bpf_rbtree_first, 194, 612, 9999)                                                            \
    X(bpf_rbtree_remove, 195, 612, 9999)                                                           \
    X(bpf_rbtree_root, 196, 616, 9999)                                                             \
    X(bpf_rbtree_left, 197, 616, 9999)                                                             \
    X(bpf_rbtree_right, 198, 616, 9999)                                                            \
    X(bpf_list_push_front_impl, 199, 612, 9999)                                                    \
    X(bpf_list_push_back_impl, 200, 612, 9999)                                                     \
    X(bpf_list_pop_front, 201, 612, 9999)                                                          \
    X(bpf_list_pop_back, 202, 612, 9999)                                                           \
    X(bpf_list_front, 203, 616, 9999)                                                              \
    X(bpf_list_back, 204, 616, 9999)                                                               \
    X(bpf_rdonly_cast, 205, 612, 9999)                                                             \
    X(bpf_cast_to_kern_ctx, 206, 612, 9999)                                                        \
    /* arenas */                                                                                   \
    X(bpf_arena_alloc_pages, 210, 612, 9999)                                                       \
    X(bpf_arena_free_pages, 211, 612, 9999)                                                        \
    X(bpf_arena_reserve_pages, 212, 617, 9999)
#define KERNEL_FUNCTION_NUMBERS 256 /* every number is below this */

/*
 * X(name, offset, size, first, last): variables of the kernel, one copy per CPU. CPU c's copy is at
 * KERNEL_VARIABLE_STRIDE * c + offset of REGION_VARIABLES.
 */
#define KERNEL_VARIABLES(X)                                                                        \
    X(sd_llc_id, 0, 8, 612, 9999)                                                                  \
    X(sd_llc_size, 8, 8, 612, 9999)                                                                \
    X(cpufreq_cpu_data, 16, 8, 612, 9999)                                                          \
    X(__preempt_count, 24, 8, 612, 9999)                                                           \
    X(runqueues, 64, 4032, 612, 9999)
#define KERNEL_VARIABLE_STRIDE 4096

/* X(name, number): helper functions that the engine has, with Linux's numbers. */
#define HELPER_FUNCTIONS(X)                                                                        \
    X(map_lookup_elem, 1)                                                                          \
    X(map_update_elem, 2)                                                                          \
    X(map_delete_elem, 3)                                                                          \
    X(probe_read, 4)                                                                               \
    X(ktime_get_ns, 5)                                                                             \
    X(trace_printk, 6)                                                                             \
    X(get_prandom_u32, 7)                                                                          \
    X(get_smp_processor_id, 8)                                                                     \
    X(get_current_pid_tgid, 14)                                                                    \
    X(get_current_comm, 16)                                                                        \
    X(perf_event_read, 22)                                                                         \
    X(perf_event_output, 25)                                                                       \
    X(get_current_task, 35)                                                                        \
    X(get_numa_node_id, 42)                                                                        \
    X(probe_read_str, 45)                                                                          \
    X(perf_event_read_value, 55)                                                                   \
    X(map_push_elem, 87)                                                                           \
    X(map_pop_elem, 88)                                                                            \
    X(map_peek_elem, 89)                                                                           \
    X(spin_lock, 93)                                                                               \
    X(spin_unlock, 94)                                                                             \
    X(probe_read_user, 112)                                                                        \
    X(probe_read_kernel, 113)                                                                      \
    X(probe_read_user_str, 114)                                                                    \
    X(probe_read_kernel_str, 115)                                                                  \
    X(jiffies64, 118)                                                                              \
    X(ktime_get_boot_ns, 125)                                                                      \
    X(ringbuf_output, 130)                                                                         \
    X(ringbuf_reserve, 131)                                                                        \
    X(ringbuf_submit, 132)                                                                         \
    X(ringbuf_discard, 133)                                                                        \
    X(ringbuf_query, 134)                                                                          \
    X(per_cpu_ptr, 153)                                                                            \
    X(this_cpu_ptr, 154)                                                                           \
    X(task_storage_get, 156)                                                                       \
    X(task_storage_delete, 157)                                                                    \
    X(get_current_task_btf, 158)                                                                   \
    X(ktime_get_coarse_ns, 160)                                                                    \
    X(for_each_map_elem, 164)                                                                      \
    X(snprintf, 165)                                                                               \
    X(timer_init, 169)                                                                             \
    X(timer_set_callback, 170)                                                                     \
    X(timer_start, 171)                                                                            \
    X(timer_cancel, 172)                                                                           \
    X(task_pt_regs, 175)                                                                           \
    X(trace_vprintk, 177)                                                                          \
    X(loop, 181)                                                                                   \
    X(strncmp, 182)                                                                                \
    X(kptr_xchg, 194)                                                                              \
    X(map_lookup_percpu_elem, 195)                                                                 \
    X(ringbuf_reserve_dynptr, 198)                                                                 \
    X(ringbuf_submit_dynptr, 199)                                                                  \
    X(ringbuf_discard_dynptr, 200)                                                                 \
    X(dynptr_write, 202)                                                                           \
    X(ktime_get_tai_ns, 208)                                                                       \
    X(cgrp_storage_get, 210)                                                                       \
    X(cgrp_storage_delete, 211)
#define HELPER_NUMBERS 256 /* every number is below this */

/* X(name, number): map types that the engine has, with Linux's numbers. */
#define MAP_TYPES(X)                                                                               \
    X(HASH, 1)                                                                                     \
    X(ARRAY, 2)                                                                                    \
    X(PERF_EVENT_ARRAY, 4)                                                                         \
    X(PERCPU_HASH, 5)                                                                              \
    X(PERCPU_ARRAY, 6)                                                                             \
    X(LRU_HASH, 9)                                                                                 \
    X(LRU_PERCPU_HASH, 10)                                                                         \
    X(ARRAY_OF_MAPS, 12)                                                                           \
    X(HASH_OF_MAPS, 13)                                                                            \
    X(QUEUE, 22)                                                                                   \
    X(STACK, 23)                                                                                   \
    X(RINGBUF, 27)                                                                                 \
    X(TASK_STORAGE, 29)                                                                            \
    X(USER_RINGBUF, 31)                                                                            \
    X(CGRP_STORAGE, 32)                                                                            \
    X(ARENA, 33)

#endif
