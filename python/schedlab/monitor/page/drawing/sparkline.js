// SPDX-License-Identifier: MIT
//
// A small line of a metric's recent values. It is drawn here and not by a charts library, because a dozen of
// them are drawn five times a second, each in a fraction of a millisecond.

import { tokens } from "../colours.js";

const MARGIN = 3;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{time: number, value: number | null, policy: string}[]} points in the order of time
 * @param {string} colour
 * @returns {{least: number, most: number} | null} of the values; null: there are none
 */
export function drawSparkline(canvas, points, colour) {
    const { context, width, height } = sharp(canvas);
    context.clearRect(0, 0, width, height);
    const known = points.filter(({ value }) => value !== null && value !== undefined);
    if (!known.length) return null;
    const least = Math.min(...known.map(({ value }) => value));
    const most = Math.max(...known.map(({ value }) => value));
    const from = points[0].time;
    const length = Math.max(1, points.at(-1).time - from);
    // Small changes must look small: the axis spans at least a tenth of the value.
    const range = Math.max(most - least, Math.abs(most) * 0.1, 1e-9);
    const middle = (most + least) / 2;
    const x = (time) => ((time - from) / length) * (width - 2 * MARGIN) + MARGIN;
    const y = (value) => height / 2 - ((value - middle) / range) * (height - 2 * MARGIN);
    drawSwitches(context, points, x, height);
    context.strokeStyle = colour;
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    context.beginPath();
    let pen = false;
    for (const { time, value } of points) {
        if (value === null || value === undefined) pen = false;
        else if (pen) context.lineTo(x(time), y(value));
        else context.moveTo(x(time), y(value));
        pen = value !== null && value !== undefined;
    }
    context.stroke();
    const last = known.at(-1);
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x(last.time), y(last.value), 2.5, 0, 2 * Math.PI);
    context.fill();
    return { least, most };
}

/** Draws where the policy was switched. */
function drawSwitches(context, points, x, height) {
    context.fillStyle = tokens().accent;
    for (let at = 1; at < points.length; at++) {
        if (points[at].policy !== points[at - 1].policy) context.fillRect(x(points[at].time), 0, 1, height);
    }
}

function sharp(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { context, width, height };
}
