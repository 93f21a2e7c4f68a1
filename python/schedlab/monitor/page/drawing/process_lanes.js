// SPDX-License-Identifier: MIT
//
// A row for each process, below the rows of the CPUs: a bar while it runs, a pale one while it waits for a
// CPU, a line while it is blocked. A starving process has a frame.

import { colourOf, tokens } from "../colours.js";
import { duration, REASONS } from "../elements.js";
import { starving } from "../starvation.js";
import { fillOf, fitted, font, widthOf } from "./paint.js";
import { named } from "./run_finder.js";

const ROW = 17; // pixels
const GAP = 4;
const HEAD = 8; // between the CPUs and the processes
const MOST = 64;
const LEAST_SHARE = 0.001; // of a process that is blocked most of the time
const BLOCKED = 2;
const WAITS_ALPHA = 0.3;

export class ProcessLanes {
    #seen = new Set();
    #epoch = -1;
    #scale = 1;
    #starving = new Map();

    constructor() {
        this.names = (_pid) => "";
        /** @type {number[]} PIDs, from the top */
        this.pids = [];
        /** Everything except time that the rows depend on. */
        this.key = "";
    }

    /** @param {import("../store.js").SystemState} state @param {number} scale of the letters @returns {number} pixels of all rows */
    take(state, scale) {
        const { processes } = state.frame;
        if (state.epoch !== this.#epoch) this.#seen.clear();
        this.#epoch = state.epoch;
        this.#scale = scale;
        const { pid, own: isMonitor, share, state: is, reason } = processes;
        for (let at = 0; at < pid.length; at++) {
            const takesPart = is[at] !== BLOCKED || (share[at] >= LEAST_SHARE && REASONS[reason[at]] !== "child");
            if (!isMonitor[at] && takesPart) this.#seen.add(pid[at]);
        }
        for (const seenPid of this.#seen) if (state.row(seenPid) < 0) this.#seen.delete(seenPid);
        this.names = (namedPid) => state.nameOf(namedPid);
        this.pids = [...this.#seen].sort((one, other) => one - other).slice(0, MOST);
        this.key = this.pids.join();
        this.#starving = starving(state);
        return this.pids.length ? HEAD + this.pids.length * this.#row : 0;
    }

    get #row() {
        return (ROW + GAP) * this.#scale;
    }

    /** @param {CanvasRenderingContext2D} context @param {import("../store.js").SystemState} state @param {import("./run_painter.js").Span} span @param {number} top */
    paint(context, state, span, top) {
        const rows = new Map(this.pids.map((pid, row) => [pid, top + HEAD + row * this.#row]));
        const place = { ...span, scale: (span.right - span.left) / (span.end - span.begin), height: ROW * this.#scale };
        context.fillStyle = tokens().line;
        const until = xOf(place, state.frame.now_ns);
        for (const y of rows.values()) context.fillRect(span.left, y + place.height / 2, Math.max(0, until - span.left), 1);
        for (const track of state.runs) paintTrack(context, track, rows, place, state.selected);
        this.#paintWaits(context, state, rows, place);
        context.globalAlpha = 1;
    }

    /** What waits now. */
    #paintWaits(context, { frame, selected }, rows, place) {
        const { wait_now_ns: waits, pid } = frame.processes;
        for (let at = 0; at < pid.length; at++) {
            const y = rows.get(pid[at]);
            if (y === undefined || !waits[at]) continue;
            const begin = frame.now_ns - waits[at];
            paintWait(context, pid[at], begin, frame.now_ns, y, place, selected);
            if (this.#starving.has(pid[at])) this.#paintAlarm(context, begin, frame.now_ns, y, place);
        }
    }

    #paintAlarm(context, begin, now, y, place) {
        const { failed, raised } = tokens();
        const x = xOf(place, begin);
        const width = xOf(place, now) - x;
        context.globalAlpha = 1;
        context.strokeStyle = failed;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(2, width - 2), place.height - 2);
        context.font = font(11, 700);
        const text = fitted(context, `starving: waiting for ${duration(now - begin)}`, width - 12);
        if (!text) return;
        context.fillStyle = raised;
        context.fillRect(x + 5, y + 2, widthOf(context, text) + 6, place.height - 4);
        context.fillStyle = failed;
        context.fillText(text, x + 8, y + place.height / 2);
    }

    /** @param {CanvasRenderingContext2D} context @param {number} top @param {number} left where rows begin @param {boolean} narrow */
    paintNames(context, top, left, narrow) {
        context.font = font(11, 600);
        context.textBaseline = "middle";
        this.pids.forEach((pid, row) => {
            const y = top + HEAD + row * this.#row + (ROW * this.#scale) / 2;
            context.fillStyle = colourOf(pid);
            context.fillRect(4, y - 4, 8, 8);
            context.fillStyle = this.#starving.has(pid) ? tokens().failed : tokens().ink;
            const name = this.names(pid);
            context.fillText(fitted(context, narrow ? `${pid}` : `${pid} ${name}`, left - 18) || `${pid}`, 16, y);
        });
    }

    /**
     * Finds the item at a place. @param {import("../store.js").SystemState} state @param {number} below
     * pixels below the CPUs @param {number} time
     */
    find(state, below, time) {
        const pid = this.pids[Math.floor((below - HEAD) / this.#row)];
        if (!pid) return null;
        const waits = this.#starving.get(pid);
        const lines = ["bar: running; pale: waiting for a CPU; line: blocked"];
        if (waits) lines.unshift(`starving: waiting for ${duration(waits)}`);
        const tip = { title: named(state, pid), lines, pid, place: null };
        if (state.info?.no_blame !== "" || time > state.frame.now_ns || runsAt(state, pid, time)) return tip;
        lines.push("press: the panel Waiting, explained shows why it did not run");
        return { ...tip, waits_ns: Math.round(time) };
    }
}

function runsAt({ runs }, process, time) {
    return runs.some((track) => {
        const at = track.firstAfter(time);
        return at < track.length && track.begin[at] <= time && track.pid[at] === process;
    });
}

function xOf({ left, right, begin, scale }, time) {
    return Math.max(left, Math.min(right, left + (time - begin) * scale));
}

function paintTrack(context, track, rows, place, selected) {
    const { begin, end, pid, waited, length } = track;
    for (let at = track.firstAfter(place.begin); at < length; at++) {
        if (begin[at] - waited[at] >= place.end) continue;
        const y = rows.get(pid[at]);
        if (y === undefined) continue;
        if (waited[at] > 0) paintWait(context, pid[at], begin[at] - waited[at], begin[at], y, place, selected);
        const x = xOf(place, begin[at]);
        context.globalAlpha = selected && selected !== pid[at] ? 0.3 : 1;
        context.fillStyle = fillOf(context, pid[at]);
        context.fillRect(x, y, Math.max(0.7, xOf(place, end[at]) - x), place.height);
    }
}

function paintWait(context, pid, begin, end, y, place, selected) {
    const x = xOf(place, begin);
    context.globalAlpha = selected && selected !== pid ? WAITS_ALPHA / 3 : WAITS_ALPHA;
    context.fillStyle = colourOf(pid);
    context.fillRect(x, y + place.height * 0.2, xOf(place, end) - x, place.height * 0.6);
}
