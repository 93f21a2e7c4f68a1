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

/** What a record says. */
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
});
