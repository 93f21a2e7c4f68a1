// SPDX-License-Identifier: MIT
//
// Where each CPU has its lane on a time line, and each level its row in the
// lane.

const ROWS_MOST = 16;
const ROOM = 300; // pixels of all rows together, if they are neither too low nor too high
const LANE_HEIGHTS = [12, 34]; // the least and the most, of a lane of one row
const LEVEL_HEIGHTS = [5, 21]; // of a level's row

export class Lanes {
    /**
     * @param {number} cpus @param {number[]} levels in the order of service; empty: the policy has none
     * @param {number} scale of the letters @param {number} [room] pixels that lanes must fill
     */
    constructor(cpus, levels, scale, room = 0) {
        this.cpus = cpus;
        this.levels = levels;
        const [least, most] = levels.length ? LEVEL_HEIGHTS : LANE_HEIGHTS;
        const laneHeight = ROOM / Math.max(1, cpus * Math.max(1, levels.length));
        this.rowHeight = Math.round(Math.min(most, Math.max(least, laneHeight)) * scale);
        this.laneHeight = this.rowHeight * Math.max(1, levels.length);
        this.gap = cpus > 16 ? 3 : 6;
        this.height = this.#sum();
        if (room) this.grow(room);
    }

    /** Makes rows higher, to reach this height. @param {number} height */
    grow(height) {
        const rows = this.cpus * Math.max(1, this.levels.length);
        const free = Math.floor((height - this.height) / Math.max(1, rows));
        if (free <= 0) return;
        this.rowHeight += free;
        this.laneHeight = this.rowHeight * Math.max(1, this.levels.length);
        this.height = this.#sum();
    }

    #sum() {
        return this.cpus * (this.laneHeight + this.gap) + this.gap;
    }

    /** @param {number} cpu @returns {number} pixels from the first lane's top */
    top(cpu) {
        return this.gap + cpu * (this.laneHeight + this.gap);
    }

    /** @param {number} y @returns {number} the nearest CPU */
    cpuAt(y) {
        return Math.max(0, Math.min(this.cpus - 1, Math.floor((y - this.gap / 2) / (this.laneHeight + this.gap))));
    }

    /** @param {number} level @returns {number} its row from the top of the lane; -1: all rows */
    rowOf(level) {
        return this.levels.indexOf(level);
    }
}

/** The levels that have been seen. */
export class LevelsSeen {
    #seen = new Set();
    #key = "";
    #history;

    /** @param {boolean} kept also from the time before the active policy */
    constructor(history) {
        this.#history = history;
    }

    /** @param {import("../store.js").SystemState} state @returns {number[]} in the order of service */
    take({ frame, epoch, runs }) {
        const key = this.#history ? String(epoch) : `${epoch} ${frame.policy}`;
        if (key !== this.#key) {
            this.#seen.clear();
            this.#key = key;
            if (this.#history) for (const track of runs) this.#addTrack(track);
        }
        if (frame.levels) {
            if (this.#history) for (const run of frame.timeline.runs) this.#seen.add(run[4]);
            for (const level of frame.processes.level) this.#seen.add(level);
            for (const { level, queue } of frame.cpus) {
                this.#seen.add(level);
                for (const waiting of queue) this.#seen.add(waiting[1]);
            }
        }
        this.#seen.delete(-1);
        const levels = [...this.#seen].sort((one, other) => one - other);
        if (!frame.levels_rise) return levels.slice(0, ROWS_MOST);
        // Processes are demoted through all of them, even through levels without any process so far.
        return [...Array((levels.at(-1) ?? -1) + 1).keys()].reverse().slice(0, ROWS_MOST);
    }

    #addTrack(track) {
        for (let at = 0; at < track.length; at++) this.#seen.add(track.level[at]);
    }
}
