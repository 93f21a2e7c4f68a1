// SPDX-License-Identifier: MIT
//
// Derives a policy's levels from runs: when a process was demoted, when a boost happened, and how long each
// process has run at its level. The policy declares which level is higher (level_order), and whether it
// boosts.

const EVENTS_MAX = 500;
const PROCESSES_MAX = 8192;
const BLOCKED = 1;

/**
 * `time_ns`: of a demotion, the end of the previous run; of a boost, the first run of a process that rose
 * without having been blocked. `seen_ns`: the start of the run that revealed it.
 * @typedef {{time_ns: number, seen_ns: number, kind: "demotion" | "boost", pid: number, from: number, to:
 * number, cpu: number}} LevelEvent
 * @typedef {{begin: number, end: number, level: number, how: number, ran: number}} Last its last run; `ran`:
 * at
 *     this level, in the runs before it
 */

export class LevelStory {
    /** @type {Map<number, Last>} by PID */
    #last = new Map();
    #policy = "";
    #boosted = -Infinity;

    constructor() {
        /** @type {LevelEvent[]} the oldest first */
        this.events = [];
    }

    clear() {
        this.#last.clear();
        this.events.length = 0;
        this.#boosted = -Infinity;
    }

    /** @param {any} frame the next one @param {any} rule its policy's description */
    take({ timeline, marks, levels, policy }, rule) {
        if (policy !== this.#policy) this.#last.clear();
        this.#policy = policy;
        if (!levels) return;
        const declared = { rises: rule?.level_order === "highest first", boosts: Boolean(rule?.boost) };
        // If a new attribute changed a level, the policy did not choose it.
        const given = marks.filter(({ kind }) => kind === "attribute");
        const runs = timeline.runs.toSorted((one, other) => one[2] - other[2]);
        for (const run of runs) if (run[4] >= 0) this.#takeRun(run, declared, given);
        while (this.#last.size > PROCESSES_MAX) this.#last.delete(this.#last.keys().next().value);
        if (this.events.length > EVENTS_MAX * 1.25) this.events.splice(0, this.events.length - EVENTS_MAX);
    }

    /**
     * Returns how long a process has run at its level, since it came to the level or was boosted, including
     * its unfinished run.
     * @param {number} pid @returns {{level: number, ran: number} | null} null: not known
     */
    atLevel(pid) {
        const last = this.#last.get(pid);
        return last ? { level: last.level, ran: last.ran + last.end - last.begin } : null;
    }

    #takeRun([cpu, pid, begin, end, level, how], { rises, boosts }, given) {
        const last = this.#last.get(pid);
        if (last && begin < last.begin) return;
        if (last && begin === last.begin && level === last.level) {
            Object.assign(last, { end, how });
            return;
        }
        this.#last.delete(pid); // keeps the order of last runs
        this.#last.set(pid, { begin, end, level, how, ran: this.#ranBefore(last, level, begin) });
        if (!last || last.level === level) return;
        if (given.some((mark) => mark.pid === pid && mark.time_ns > last.begin && mark.time_ns <= begin)) return;
        const event = { pid, cpu, from: last.level, to: level, seen_ns: begin };
        const sank = rises ? level < last.level : level > last.level;
        if (sank) this.events.push({ ...event, kind: "demotion", time_ns: last.end });
        else if (boosts && last.how !== BLOCKED && last.end > this.#boosted) {
            // Processes that wait now rise at their next run: the same boost raised them.
            this.#boosted = begin;
            this.events.push({ ...event, kind: "boost", time_ns: begin });
            this.#last.get(pid).ran = 0;
        }
    }

    #ranBefore(last, level, begin) {
        if (!last || last.level !== level) return 0;
        const boosted = this.#boosted > last.begin && this.#boosted <= begin;
        return boosted ? 0 : last.ran + last.end - last.begin;
    }
}
