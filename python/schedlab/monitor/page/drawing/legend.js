// SPDX-License-Identifier: MIT
//
// Explains the shapes and the backgrounds of a time line.

import { onTheme, tokens } from "../colours.js";
import { element } from "../elements.js";
import { drawEnding, ENDINGS } from "./paint.js";

const SIZE = 24; // pixels of a shape's canvas, which is shown at half its size
const SHAPES = [2, 1, 3, 4];
const GROUNDS = [
    ["legend-waits", "waits for a CPU"], ["legend-idle", "idle"],
    ["legend-queued", "idle while a process waits on another CPU"],
];

/** @returns {HTMLElement} */
export function legend() {
    const shapes = SHAPES.map((how) => element("span", {}, shape(how), ENDINGS[how]));
    const grounds = GROUNDS.map(([name, text]) => element("span", {}, element("i", { className: name }), text));
    return element("div", { className: "drawing-legend" }, ...shapes, ...grounds);
}

function shape(how) {
    const sign = element("canvas", { width: SIZE, height: SIZE, className: "legend-sign" });
    const context = sign.getContext("2d");
    const draw = () => {
        context.clearRect(0, 0, SIZE, SIZE);
        context.fillStyle = context.strokeStyle = tokens().ink;
        drawEnding(context, how, SIZE - 4, SIZE / 2, SIZE - 9);
    };
    draw();
    onTheme(draw);
    return sign;
}
