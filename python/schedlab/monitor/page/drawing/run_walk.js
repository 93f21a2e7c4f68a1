// SPDX-License-Identifier: MIT
//
// Moves by keyboard from run to run, and keeps the present position.

import { indexOf } from "./run_finder.js";

/** @typedef {import("./run_finder.js").Place} Place */

export class RunWalk {
    /** @type {Place | null} the present run; null: none */
    place = null;

    /** @param {import("../store.js").SystemState} state */
    constructor(state) {
        this.state = state;
    }

    /** Its index in its CPU's track; -1: there is none, or the run was dropped. */
    get at() {
        return this.place ? indexOf(this.state, this.place) : -1;
    }

    /** @returns {number} of the run's process; 0: there is none */
    get pid() {
        return this.at < 0 ? 0 : this.state.runs[this.place.cpu].pid[this.at];
    }

    /**
     * Moves to the next or previous run; at first, to the run at a time.
     * @param {1 | -1} direction @param {number} time @returns {boolean} true if there is a present run now
     */
    step(direction, time) {
        const cpu = this.place?.cpu ?? 0;
        const known = this.at;
        const track = this.state.runs[cpu];
        return Boolean(track) && this.#stand(cpu, known >= 0 ? known + direction : track.firstAfter(time));
    }

    /** Moves to the same time on another CPU. @param {1 | -1} direction @returns {boolean} as step */
    change(direction) {
        const last = this.state.runs.length - 1;
        const cpu = Math.max(0, Math.min(last, this.place.cpu + direction));
        return this.#stand(cpu, this.state.runs[cpu].firstAfter(this.place.begin));
    }

    leave() {
        this.place = null;
    }

    #stand(cpu, at) {
        const track = this.state.runs[cpu];
        if (!track.length) return false;
        this.place = { cpu, begin: track.begin[Math.max(0, Math.min(track.length - 1, at))] };
        return true;
    }
}
