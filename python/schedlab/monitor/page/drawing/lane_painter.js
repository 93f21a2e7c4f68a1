// SPDX-License-Identifier: MIT
//
// The background of a CPU's lane, and its name: idle is pale, idle while a process waits on another CPU is
// hatched.

import { tokens } from "../colours.js";
import { font, hatching, letterScale } from "./paint.js";
import { view } from "./view.js";

/**
 * @param {CanvasRenderingContext2D} context @param {import("../store.js").SystemState} state
 * @param {import("./lanes.js").Lanes} lanes @param {import("./run_painter.js").Span} span
 * @param {number} cpu @param {number} y its lane's top
 */
export function paintGround(context, state, { laneHeight, levels, rowHeight }, span, cpu, y) {
    const scale = (span.right - span.left) / (span.end - span.begin);
    const x = (time) => Math.max(span.left, Math.min(span.right, span.left + (time - span.begin) * scale));
    const from = x(view.first);
    const width = x(state.frame.now_ns) - from;
    if (width <= 0) return;
    context.fillStyle = tokens().sunken;
    context.fillRect(from, y, width, laneHeight);
    context.fillStyle = tokens().line;
    for (let row = 1; row < levels.length && rowHeight > 5; row++) {
        context.fillRect(from, y + row * rowHeight - 1, width, 1);
    }
    const idle = state.idleWhileQueued[cpu];
    if (!idle) return;
    context.fillStyle = hatching(context, tokens().bad);
    for (let at = idle.firstAfter(span.begin); at < idle.length && idle.begin[at] < span.end; at++) {
        context.fillRect(x(idle.begin[at]), y, Math.max(1, x(idle.end[at]) - x(idle.begin[at])), laneHeight);
    }
}

/**
 * Draws a CPU's name, and the numbers of its levels.
 * @param {CanvasRenderingContext2D} context @param {import("./lanes.js").Lanes} lanes @param {number} cpu
 * @param {number} y its lane's top @param {number} left where lanes begin @param {boolean} narrow
 */
export function paintName(context, { laneHeight, levels, rowHeight }, cpu, y, left, narrow) {
    context.fillStyle = tokens().ink;
    context.font = font(laneHeight < 13 * letterScale() ? 9.5 : 11.5, 600);
    const middle = levels.length ? y + Math.min(laneHeight / 2, 8 * letterScale()) : y + laneHeight / 2;
    context.fillText(narrow ? `${cpu}` : `CPU ${cpu}`, 4, middle);
    if (!levels.length || rowHeight < 9) return;
    context.fillStyle = tokens().soft;
    context.font = font(Math.min(10.5, rowHeight / letterScale()));
    context.textAlign = "right";
    levels.forEach((level, row) => context.fillText(`${level}`, left - 6, y + (row + 0.5) * rowHeight));
    context.textAlign = "left";
}
