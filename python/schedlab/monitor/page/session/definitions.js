// SPDX-License-Identifier: MIT
//
// Made of the headers in abi/ by ./schedlab dev docs trace-format.

export const MAGIC = "SCHEDLAB";
export const VERSION = 1;
export const HEADER_BYTES = 64;

/** Where each field begins, in bytes. */
export const HEADER = Object.freeze({
    magic: 0,
    version: 8,
    header_bytes: 12,
    record_bytes: 16,
    cpus: 20,
    tick_ns: 24,
    cycles_per_second: 32,
    seed: 40,
    reserved: 48,
});
export const RECORD_BYTES = 32;

/** Where each field begins, in bytes. */
export const RECORD = Object.freeze({
    time: 0,
    sequence: 8,
    process: 12,
    kind: 16,
    cpu: 18,
    first: 20,
    second: 24,
});

/** Kinds of records. */
export const Kind = Object.freeze({
    START: 1,
    END: 2,
    LOST: 3,
    FORK: 4,
    EXEC: 5,
    TEXT: 6,
    EXIT: 7,
    WAKEUP: 8,
    BLOCK: 9,
    SWITCH: 10,
    YIELD: 11,
    PREEMPT: 12,
    MIGRATE: 13,
    POLICY: 14,
    TUNABLE: 15,
    ATTRIBUTE: 16,
    SCHEDULER_ENTER: 17,
    SCHEDULER_EXIT: 18,
    DECISION: 19,
    MARK: 20,
    FOUND: 21,
    QUEUED: 22,
    TASK_GROUP: 23,
    SAID: 24,
    AFFINITY: 25,
    DISPATCH: 26,
    KICK: 27,
});

/** Where each field of a workload file begins, in bytes. */
export const WORKLOAD = Object.freeze({
    magic: 0,
    version: 8,
    header_bytes: 12,
    bytes: 16,
    checksum: 24,
    tick_ns: 32,
    program_count: 40,
    step_count: 44,
    channel_count: 48,
    text_count: 52,
    text_bytes: 56,
    reserved: 60,
});
export const WORKLOAD_MAGIC = "SCLDWORK";
export const WORKLOAD_VERSION = 2;
export const WORKLOAD_LOOPS_MAX = 8;
export const WORKLOAD_MARK_NAME = 5;

/** What is written, and the step: its kind, detail, target and value. */
export const WORKLOAD_FORMS = Object.freeze([
    ["run <value:time>", [0, 0, 0, 0]],
    ["run until <value:time>", [1, 0, 0, 0]],
    ["sleep <value:ticks>", [3, 0, 0, 0]],
    ["sleep <value:time>", [2, 0, 0, 0]],
    ["sleep until <value:time>", [4, 0, 0, 0]],
    ["timer <detail:own> <value:time>", [5, 0, 0, 0]],
    ["timer <detail:own> <value:time> absolute", [5, 0, 1, 0]],
    ["timer <target:timer> <value:time>", [19, 0, 0, 0]],
    ["timer <target:timer> <value:time> absolute", [19, 1, 0, 0]],
    ["job none", [21, 0, 2, 0]],
    ["job <detail:own> <value:time>", [21, 0, 0, 0]],
    ["job <detail:own> <value:time> absolute", [21, 0, 1, 0]],
    ["yield", [6, 0, 0, 0]],
    ["fork <target:program>", [7, 0, 0, 0]],
    ["arrive <value:time>", [23, 2, 0, 0]],
    ["arrive <target:program> <value:time>", [23, 0, 0, 0]],
    ["deliver <target:channel> <value:time>", [23, 1, 0, 0]],
    ["kill <target:program>", [17, 0, 0, 0]],
    ["wait", [8, 0, 0, 0]],
    ["wait all", [8, 1, 0, 0]],
    ["take <target:channel>", [9, 0, 0, 0]],
    ["take <target:channel> releasing <value:channel>+1", [9, 0, 0, 0]],
    ["lock <target:channel>", [9, 1, 0, 0]],
    ["lock <target:channel> ceiling <detail:level>+2", [9, 0, 0, 0]],
    ["give <target:channel>", [10, 0, 0, 1]],
    ["give <target:channel> all", [10, 0, 0, 0]],
    ["give <target:channel> waiting", [10, 1, 0, 1]],
    ["give <target:channel> <value:count>", [10, 0, 0, 0]],
    ["meet <target:channel> <value:count>", [18, 0, 0, 0]],
    ["priority <value:number>", [11, 1, 4294967295, 0]],
    ["priority <value:number> <target:program>", [11, 1, 4294967295, 0]],
    ["tickets <value:number>", [11, 2, 4294967295, 0]],
    ["tickets <value:number> <target:program>", [11, 2, 4294967295, 0]],
    ["weight <value:number>", [11, 3, 4294967295, 0]],
    ["weight <value:number> <target:program>", [11, 3, 4294967295, 0]],
    ["nice <value:signed>", [11, 4, 4294967295, 0]],
    ["nice <value:signed> <target:program>", [11, 4, 4294967295, 0]],
    ["slice <value:span>", [11, 5, 4294967295, 0]],
    ["slice <value:span> <target:program>", [11, 5, 4294967295, 0]],
    ["runtime <value:span>", [11, 6, 4294967295, 0]],
    ["runtime <value:span> <target:program>", [11, 6, 4294967295, 0]],
    ["deadline <value:span>", [11, 7, 4294967295, 0]],
    ["deadline <value:span> <target:program>", [11, 7, 4294967295, 0]],
    ["period <value:span>", [11, 8, 4294967295, 0]],
    ["period <value:span> <target:program>", [11, 8, 4294967295, 0]],
    ["taskgroup <value:number>", [11, 9, 4294967295, 0]],
    ["taskgroup <value:number> <target:program>", [11, 9, 4294967295, 0]],
    ["cpus <value:text>", [22, 0, 4294967295, 0]],
    ["cpus <value:text> <target:program>", [22, 0, 4294967295, 0]],
    ["setgroup <target:number> parent <value:number>", [20, 1, 0, 0]],
    ["setgroup <target:number> weight <value:number>", [20, 2, 0, 0]],
    ["setgroup <target:number> quota <value:span>", [20, 3, 0, 0]],
    ["setgroup <target:number> period <value:span>", [20, 4, 0, 0]],
    ["online <target:number>", [24, 1, 0, 0]],
    ["offline <target:number>", [24, 0, 0, 0]],
    ["group <value:label>", [12, 3, 0, 0]],
    ["mark begin", [12, 1, 0, 0]],
    ["mark end", [12, 2, 0, 0]],
    ["mark note <value:number>", [12, 4, 0, 0]],
    ["window <value:time>", [12, 6, 0, 0]],
    ["policy <target:text>", [13, 0, 0, 0]],
    ["set <target:text>", [14, 0, 0, 0]],
    ["loop", [15, 0, 0, 0]],
    ["loop <value:count>", [15, 0, 0, 0]],
    ["exit", [16, 0, 0, 0]],
    ["exit <value:number>", [16, 0, 0, 0]],
]);
