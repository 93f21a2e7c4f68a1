// SPDX-License-Identifier: MIT
//
// The ticks of a time axis, and their labels.

import { tokens } from "../colours.js";
import { moment } from "../elements.js";
import { font, widthOf } from "./paint.js";

const UNITS = [
    { name: "s", ns: 1e9, base: Infinity },
    { name: "ms", ns: 1e6, base: 1e9 },
    { name: "µs", ns: 1e3, base: 1e6 },
    { name: "ns", ns: 1, base: 1e3 },
];

/**
 * Returns ticks at round times. If they are so close that full times would be long, the common part is given
 * once (`base`), and the ticks show their distance from it.
 * @param {number} begin @param {number} end ns @param {number} most about how many
 * @returns {{step: number, base: string, ticks: {time: number, label: string}[]}}
 */
export function ticksOf(begin, end, most) {
    const step = roundStep((end - begin) / Math.max(1, most));
    const unit = UNITS.find(({ ns }) => step >= ns / 10) ?? UNITS[3];
    const origin = unit.base === Infinity ? 0 : Math.floor(Math.max(0, begin) / unit.base) * unit.base;
    const digits = step < unit.ns ? 1 : 0;
    const ticks = [];
    for (let number = Math.max(0, Math.ceil(begin / step)); number * step <= end; number++) {
        const time = number * step;
        ticks.push({ time, label: `${origin ? "+" : ""}${((time - origin) / unit.ns).toFixed(digits)} ${unit.name}` });
    }
    return { step, base: origin ? baseLabel(origin, unit.base) : "", ticks };
}

/** @param {number} least @returns {number} the next of 1, 2, 5, 10, 20 … */
function roundStep(least) {
    const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

function baseLabel(origin, base) {
    return moment(origin, base >= 1e6 ? 3 : 6);
}

/**
 * Draws the labels of an axis at the top of a drawing, and a line down from each tick.
 * @param {CanvasRenderingContext2D} context
 * @param {{base: string, ticks: {time: number, label: string}[]}} ticks
 * @param {import("./run_painter.js").Span} span @param {number} height of the axis @param {number} bottom
 */
export function paintAxis(context, { base, ticks }, span, height, bottom) {
    const scale = (span.right - span.left) / (span.end - span.begin);
    const middle = height / 2 - 1;
    context.textBaseline = "middle";
    context.font = font(11, 650);
    const free = base ? 4 + widthOf(context, base) + 8 : 4;
    context.fillStyle = tokens().soft;
    if (base) context.fillText(base, 4, middle);
    context.font = font(11);
    for (const { time, label } of ticks) {
        const x = span.left + (time - span.begin) * scale;
        context.fillStyle = tokens().line;
        context.fillRect(x, height - 4, 1, bottom - height + 4);
        context.fillStyle = tokens().soft;
        const fits = x + 4 > free && x + 4 + widthOf(context, label) <= span.right;
        if (fits) context.fillText(label, x + 4, middle);
    }
}
