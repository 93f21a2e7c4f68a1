// SPDX-License-Identifier: MIT
//
// Marks on a time line: a line through all lanes, and above them as many labels as fit. Marks of the user's
// actions have priority over their consequences.

import { tokens } from "../colours.js";
import { fitted, font, letterScale, widthOf } from "./paint.js";

const SIGNS = {
    boost: "▲", policy: "◆", tunable: "◇", attribute: "△", killed: "✕", lost: "⚠",
    started: "▸", ended: "▪", begin: "⊢", end: "⊣", note: "•", remark: "»",
};
const ORDER = ["policy", "boost", "lost", "tunable", "attribute", "killed", "started", "remark", "note", "begin", "end", "ended"];
const COLOURS = { policy: "accent", boost: "good", tunable: "accent", attribute: "accent", lost: "failed", killed: "bad" };
const LABEL_MOST = 190; // pixels
const LINES_MOST = 400;

/** @returns {string} a mark's sign before its text */
export function signOf(kind) {
    return SIGNS[kind] ?? SIGNS.note;
}

/**
 * Draws the marks of a range.
 * @param {CanvasRenderingContext2D} context
 * @param {{time_ns: number, kind: string, text: string}[]} marks
 * @param {import("./run_painter.js").Span} span
 * @param {{top: number, rows: number, rowHeight: number, bottom: number}} place of labels and lines
 * @returns {{text: string, x: number}[]} the labels that fit
 */
export function paintMarks(context, marks, span, { top, rows, rowHeight, bottom }) {
    const scale = (span.right - span.left) / (span.end - span.begin);
    const seen = marks
        .filter(({ time_ns }) => time_ns >= span.begin && time_ns <= span.end)
        .slice(-LINES_MOST)
        .sort((one, other) => rank(one) - rank(other) || other.time_ns - one.time_ns);
    context.font = font(11, 600);
    context.textBaseline = "middle";
    const taken = Array.from({ length: rows }, () => []);
    const labels = [];
    for (const mark of seen) {
        const x = span.left + (mark.time_ns - span.begin) * scale;
        const colour = tokens()[COLOURS[mark.kind] ?? "soft"];
        const label = placed(context, mark, x, span.right, taken);
        paintLine(context, x, label ? top + label.row * rowHeight : top + rows * rowHeight, bottom, colour, Boolean(label));
        if (!label) continue;
        paintLabel(context, label, top + label.row * rowHeight, rowHeight, colour);
        labels.push({ text: label.text, x });
    }
    return labels;
}

function rank({ kind }) {
    const place = ORDER.indexOf(kind);
    return place < 0 ? ORDER.length : place;
}

function placed(context, mark, x, right, taken) {
    const fullText = `${signOf(mark.kind)} ${mark.text}`;
    for (let row = 0; row < taken.length; row++) {
        const text = fitted(context, fullText, LABEL_MOST * letterScale());
        const width = widthOf(context, text) + 10;
        const from = x + width <= right ? x : x - width; // at the right edge it is before its line
        const until = from + width;
        if (taken[row].some(([begin, end]) => from < end && until > begin)) continue;
        taken[row].push([from, until]);
        return { text, x: from, row, width };
    }
    return null;
}

function paintLine(context, x, top, bottom, colour, strong) {
    context.save();
    context.strokeStyle = colour;
    context.globalAlpha = strong ? 0.9 : 0.35;
    context.lineWidth = strong ? 1.25 : 1;
    context.setLineDash(strong ? [] : [2, 3]);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.restore();
}

function paintLabel(context, { text, x, width }, y, height, colour) {
    context.fillStyle = tokens().raised;
    context.globalAlpha = 0.85;
    context.fillRect(x, y, width, height - 1);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.fillText(text, x + 4, y + height / 2);
}
