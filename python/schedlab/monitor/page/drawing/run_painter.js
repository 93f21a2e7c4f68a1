// SPDX-License-Identifier: MIT
//
// Draws runs on CPUs. Wide runs are bars. Runs thinner than a pixel or two are summed up in columns, where
// each process's height is proportional to its time.
//
// Rectangles of one colour are drawn together: changing the fill costs more than a rectangle.

import { colourOf, inkOn, patternOf } from "../colours.js";
import { drawEnding, fillOf, fitted, widthOf } from "./paint.js";

const BAR_LEAST = 1.6; // pixels
const COLUMN = 2; // pixels
const PATTERN_LEAST = 7;
const LABEL_LEAST = 22;
const ENDING_LEAST = 12;
const LABEL_HEIGHT = 10;
const OTHERS_ALPHA = 0.28; // of unselected runs

/** @typedef {{left: number, right: number, begin: number, end: number}} Span pixels, and their times */

export class RunPainter {
    /** @type {Map<number, {bars: number[], columns: number[]}>} by PID, four numbers a rectangle */
    #batches = new Map();
    /** @type {{x: number, y: number, width: number, height: number, pid: number, how: number}[]} */
    #texts = [];
    // The present column: this much of its time belongs to this process in this row.
    #pids = [];
    #rows = [];
    #times = [];
    #column = -1;

    /** Discards everything drawn before. */
    begin() {
        for (const batch of this.#batches.values()) batch.bars.length = batch.columns.length = 0;
        if (this.#batches.size > 500) this.#batches.clear();
        this.#texts.length = 0;
        /** The numbers of runs drawn as bars, and summed up. */
        this.bars = 0;
        this.thin = 0;
    }

    /**
     * Takes the runs of one CPU.
     * @param {import("../store.js").Track} track @param {Span} span
     * @param {import("./lanes.js").Lanes} lanes @param {number} top of the CPU's lane
     */
    add(track, span, lanes, top) {
        const scale = (span.right - span.left) / (span.end - span.begin);
        const columnTime = COLUMN / scale;
        const { begin, end, pid, level, how, length } = track;
        for (let at = track.firstAfter(span.begin); at < length && begin[at] < span.end; at++) {
            const row = lanes.rowOf(level[at]);
            const width = (end[at] - begin[at]) * scale;
            if (width < BAR_LEAST) {
                this.#addThin(begin[at], end[at], pid[at], row, columnTime, span, scale, lanes, top);
                continue;
            }
            const x = span.left + (Math.max(begin[at], span.begin) - span.begin) * scale;
            const right = span.left + (Math.min(end[at], span.end) - span.begin) * scale;
            this.#addBar(x, right, pid[at], row, how[at], end[at] <= span.end, lanes, top);
        }
        this.#flush(columnTime, span, scale, lanes, top);
    }

    /**
     * Draws all added runs.
     * @param {CanvasRenderingContext2D} context @param {number} selected PID; 0: none
     * @param {number} home the first pixel where names are visible
     * @param {(pid: number) => string} nameOf
     */
    paint(context, selected, home, nameOf) {
        for (const [pid, { bars, columns }] of this.#batches) {
            if (!bars.length && !columns.length) continue;
            context.globalAlpha = selected && pid !== selected ? OTHERS_ALPHA : 1;
            context.fillStyle = colourOf(pid);
            fillAll(context, columns, 0);
            if (patternOf(pid) === "plain") {
                fillAll(context, bars, 0);
            } else {
                fillAll(context, bars, 0, PATTERN_LEAST);
                context.fillStyle = fillOf(context, pid);
                fillAll(context, bars, PATTERN_LEAST);
            }
        }
        for (const text of this.#texts) {
            context.globalAlpha = selected && text.pid !== selected ? OTHERS_ALPHA * 2 : 1;
            paintText(context, text, home, nameOf);
        }
        context.globalAlpha = 1;
    }

    #batch(pid) {
        let batch = this.#batches.get(pid);
        if (!batch) {
            batch = { bars: [], columns: [] };
            this.#batches.set(pid, batch);
        }
        return batch;
    }

    #addBar(x, right, pid, row, how, isWide, { rowHeight, laneHeight }, top) {
        const y = row < 0 ? top : top + row * rowHeight;
        const height = row < 0 ? laneHeight : rowHeight - (rowHeight > 6 ? 1 : 0);
        // A fine gap separates two runs of one process.
        const width = right - x > 3 ? right - x - 0.75 : right - x;
        this.#batch(pid).bars.push(x, y, width, height);
        this.bars += 1;
        if (width >= LABEL_LEAST || (width >= ENDING_LEAST && how)) {
            this.#texts.push({ x, y, width, height, pid, how: isWide ? how : 0 });
        }
    }

    #addThin(begin, end, pid, row, columnTime, span, scale, lanes, top) {
        this.thin += 1;
        // By time and not by place, so that columns do not change while the view moves.
        const first = Math.floor(begin / columnTime);
        const last = Math.floor(end / columnTime);
        for (let column = first; column <= last; column++) {
            const from = Math.max(begin, column * columnTime);
            const until = Math.min(end, (column + 1) * columnTime);
            if (column !== this.#column) this.#flush(columnTime, span, scale, lanes, top);
            this.#column = column;
            if (until > from) this.#addTime(pid, row, until - from);
        }
    }

    #addTime(pid, row, time) {
        for (let at = 0; at < this.#pids.length; at++) {
            if (this.#pids[at] === pid && this.#rows[at] === row) {
                this.#times[at] += time;
                return;
            }
        }
        this.#pids.push(pid);
        this.#rows.push(row);
        this.#times.push(time);
    }

    /** Draws the column: each row filled from below. */
    #flush(columnTime, span, scale, lanes, top) {
        const count = this.#pids.length;
        if (!count) return;
        const x = Math.max(span.left, span.left + (this.#column * columnTime - span.begin) * scale);
        const right = Math.min(span.right, span.left + ((this.#column + 1) * columnTime - span.begin) * scale);
        const filled = new Float64Array(lanes.levels.length + 1);
        for (let at = 0; at < count; at++) {
            const row = this.#rows[at];
            const full = row < 0 ? lanes.laneHeight : lanes.rowHeight - (lanes.rowHeight > 6 ? 1 : 0);
            const bottom = row < 0 ? top + full : top + row * lanes.rowHeight + full;
            const height = (full * this.#times[at]) / columnTime;
            filled[row + 1] += height;
            this.#batch(this.#pids[at]).columns.push(x, bottom - filled[row + 1], right - x, height);
        }
        this.#pids.length = this.#rows.length = this.#times.length = 0;
    }
}

function fillAll(context, rectangles, least, below = Infinity) {
    for (let at = 0; at < rectangles.length; at += 4) {
        const width = rectangles[at + 2];
        if (width >= least && width < below) {
            context.fillRect(rectangles[at], rectangles[at + 1], width, rectangles[at + 3]);
        }
    }
}

function paintText(context, { x: begin, y, width: barWidth, height, pid, how }, home, nameOf) {
    const x = begin < home && begin + barWidth > home + LABEL_LEAST ? home : begin;
    const width = begin + barWidth - x;
    const colour = colourOf(pid);
    context.fillStyle = context.strokeStyle = inkOn(colour);
    const size = Math.min(8, height * 0.55);
    const ending = how && width >= ENDING_LEAST && size >= 4 ? size + 4 : 0;
    if (ending) drawEnding(context, how, x + width - 2, y + height / 2, size);
    if (height < LABEL_HEIGHT) return;
    const text = labelOf(context, pid, nameOf(pid), width - ending - 6);
    if (!text) return;
    if (patternOf(pid) !== "plain") {
        context.fillStyle = colour;
        context.fillRect(x + 2, y + 1, widthOf(context, text) + 4, height - 2);
        context.fillStyle = inkOn(colour);
    }
    context.fillText(text, x + 4, y + height / 2 + 0.5);
}

/**
 * Returns name and PID, or the name, or the PID; "" if not even that fits.
 * @param {CanvasRenderingContext2D} context @param {number} pid @param {string} name
 * @param {number} room pixels @param {boolean} [exact] prefers the PID to a name that others may have
 */
export function labelOf(context, pid, name, room, exact = false) {
    const number = String(pid);
    const label = name ? `${name} ${number}` : number;
    if (widthOf(context, label) <= room) return label;
    if (exact) return widthOf(context, number) <= room ? number : "";
    if (widthOf(context, name) <= room) return name;
    if (widthOf(context, number) > room) return "";
    return (name.length > 4 && room > 5 * widthOf(context, number) && fitted(context, name, room)) || number;
}
