// SPDX-License-Identifier: MIT
//
// Finds starving processes: they have waited without a run for longer than 50 ticks for each process that
// runs or waits at their CPU. With turns of a few ticks, each would have had ten turns by then.

const TICKS = 50;
const STANDARD_TICK_NS = 10e6; // where a machine has no ticks

/**
 * @param {import("./store.js").SystemState} state
 * @returns {Map<number, number>} by PID: how long it has waited, ns; the longest wait first
 */
export function starving(state) {
    return new Map(longWaits(state).map(({ pid, waits }) => [pid, waits]));
}

/** @returns {Map<number, number>} by PID: when it began to starve, if its queue had its present length */
export function starvingSince(state) {
    return new Map(longWaits(state).map(({ pid, waits, limit }) => [pid, Math.floor(state.frame.now_ns - waits + limit) + 1]));
}

function longWaits({ frame, info }) {
    const { pid, state, wait_now_ns: waits, cpu, own: isMonitor } = frame.processes;
    const limit = TICKS * (info?.tick_ns || STANDARD_TICK_NS);
    const shared = frame.shared_queue;
    const starvingPids = [];
    for (let at = 0; at < pid.length; at++) {
        if (state[at] !== 0 || isMonitor[at]) continue;
        const queue = frame.cpus[shared ? 0 : cpu[at]]?.queue.length ?? 0;
        const runs = shared ? frame.cpus.length : 1;
        const most = limit * Math.max(2, (queue + runs) / runs);
        if (waits[at] > most) starvingPids.push({ pid: pid[at], waits: waits[at], limit: most });
    }
    return starvingPids.sort((one, other) => other.waits - one.waits);
}
