// SPDX-License-Identifier: MIT
//
// Demotions and boosts on a time line. A demotion is an arrow from the old to the new level, in the lane
// where the process ran. A boost is a mark through all lanes.

import { tokens } from "../colours.js";
import { font, letterScale, widthOf } from "./paint.js";

const SEEN_MOST = 300;
const ROW_LEAST = 7; // pixels
const HEAD = 4; // half the width of an arrow's head

/** @param {import("../store.js").SystemState} state @returns {any[]} boosts as marks */
export function boostMarks({ story }) {
    const boosts = story.events.filter(({ kind }) => kind === "boost");
    return boosts.map(({ time_ns, pid }) => ({ time_ns, kind: "boost", text: "boost: all to the top level", pid }));
}

/**
 * Draws the demotions of a range.
 * @param {CanvasRenderingContext2D} context @param {import("../level_story.js").LevelEvent[]} events
 * @param {import("./run_painter.js").Span} span @param {import("./lanes.js").Lanes} lanes
 * @param {number} top where the lanes begin
 * @returns {string[]} the labels that fit
 */
export function paintLevelEvents(context, events, span, lanes, top) {
    const scale = (span.right - span.left) / (span.end - span.begin);
    const seen = events.filter(({ kind, time_ns }) =>
        kind === "demotion" && time_ns >= span.begin && time_ns <= span.end).slice(-SEEN_MOST);
    const labels = [];
    const free = new Map();
    context.save();
    context.beginPath();
    context.rect(span.left, top, span.right - span.left, lanes.height);
    context.clip();
    context.font = font(11, 650);
    context.textBaseline = "middle";
    for (const { time_ns, cpu, from, to } of seen) {
        const rows = [lanes.rowOf(from), lanes.rowOf(to)];
        if (rows[0] < 0 || rows[1] < 0 || lanes.rowHeight < ROW_LEAST) continue;
        const x = span.left + (time_ns - span.begin) * scale;
        const [y, below] = rows.map((row) => top + lanes.top(cpu) + (row + 0.5) * lanes.rowHeight);
        paintArrow(context, x, y, below);
        const text = `demoted to ${to}`;
        const width = widthOf(context, text) + 10;
        if (x < (free.get(cpu) ?? -Infinity) || lanes.rowHeight < 11) continue;
        free.set(cpu, x + width);
        // In the row that the process leaves, the space after it is free.
        paintLabel(context, text, x + HEAD + 3, y, width);
        labels.push(text);
    }
    context.restore();
    return labels;
}

function paintArrow(context, x, y, below) {
    context.strokeStyle = context.fillStyle = tokens().bad;
    context.lineWidth = 2 * letterScale();
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, below - HEAD);
    context.stroke();
    context.beginPath();
    context.moveTo(x - HEAD, below - HEAD);
    context.lineTo(x + HEAD, below - HEAD);
    context.lineTo(x, below + HEAD);
    context.fill();
}

function paintLabel(context, text, x, y, width) {
    const height = 13 * letterScale();
    context.globalAlpha = 0.88;
    context.fillStyle = tokens().raised;
    context.fillRect(x - 2, y - height / 2, width - 6, height);
    context.globalAlpha = 1;
    context.fillStyle = tokens().bad;
    context.fillText(text, x, y);
}
