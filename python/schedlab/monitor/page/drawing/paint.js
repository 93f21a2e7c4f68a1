// SPDX-License-Identifier: MIT
//
// Painting functions that all drawings share: the processes' colours with their patterns, hatching, texts
// that fit a width, and the shapes for how a run ended.

import { colourOf, inkOn, onTheme, patternOf, tokens } from "../colours.js";

const TILE = 8; // CSS pixels of a pattern's tile
const HATCH = 6;
const LECTURE = 1.2; // times larger letters, in a lecture
const WIDTHS_MAX = 4000;

/** @type {Map<string, CanvasPattern>} */
const patterns = new Map();
/** @type {Map<string, number>} */
const widths = new Map();
let letters = 0;
onTheme(() => patterns.clear());
window.addEventListener("resize", lettersChanged);

/**
 * The page's letters have another size, or the page is on another screen, which may have another pixel ratio.
 */
export function lettersChanged() {
    letters = 0;
    patterns.clear();
}

/** What comes after a run: 0 continues, 1 blocked, 2 preempted, 3 yielded, 4 ended. */
export const ENDINGS = ["goes on", "blocked", "preempted", "yielded", "ended"];

/**
 * A fill for a process: its colour with its pattern.
 * @param {CanvasRenderingContext2D} context @param {number} pid
 * @returns {string | CanvasPattern}
 */
export function fillOf(context, pid) {
    const colour = colourOf(pid);
    const pattern = patternOf(pid);
    if (pattern === "plain" || pid <= 0) return colour;
    const lines = inkOn(colour) === "#ffffff" ? "rgb(255 255 255 / 38%)" : "rgb(0 0 0 / 30%)";
    return tile(context, `${colour} ${pattern}`, TILE, (drawn) => {
        drawn.fillStyle = colour;
        drawn.fillRect(0, 0, TILE, TILE);
        drawn.fillStyle = drawn.strokeStyle = lines;
        drawPattern(drawn, pattern);
    });
}

/** Returns diagonal lines, for a problem: a CPU that idles while a process waits. */
export function hatching(context, colour) {
    return tile(context, `hatching ${colour}`, HATCH, (drawn) => {
        drawn.fillStyle = colour;
        drawn.globalAlpha = 0.16;
        drawn.fillRect(0, 0, HATCH, HATCH);
        drawn.globalAlpha = 1;
        drawn.strokeStyle = colour;
        drawn.lineWidth = 1.5;
        stroke(drawn, [[-1, 1, 1, -1], [-1, HATCH + 1, HATCH + 1, -1], [HATCH - 1, HATCH + 1, HATCH + 1, HATCH - 1]]);
    });
}

/**
 * Returns the part of a text that fits, in the present font.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} room pixels
 * @returns {string} "": not even its beginning fits
 */
export function fitted(context, text, room) {
    if (widthOf(context, text) <= room) return text;
    const letterWidth = widthOf(context, text) / text.length;
    const characters = Math.floor(room / letterWidth) - 1;
    return characters >= 3 ? `${text.slice(0, characters)}…` : "";
}

/** @param {CanvasRenderingContext2D} context @param {string} text @returns {number} pixels */
export function widthOf(context, text) {
    const key = `${context.font} ${text}`;
    let width = widths.get(key);
    if (width === undefined) {
        if (widths.size > WIDTHS_MAX) widths.clear();
        width = context.measureText(text).width;
        widths.set(key, width);
    }
    return width;
}

/**
 * Draws how a run ended, by shape: a dot (blocked), a wedge that cuts in (preempted), an arrow down
 * (yielded), a cross (ended).
 * @param {CanvasRenderingContext2D} context @param {number} how @param {number} x its right edge
 * @param {number} y its middle @param {number} size pixels
 */
export function drawEnding(context, how, x, y, size) {
    const half = size / 2;
    context.beginPath();
    if (how === 1) {
        context.arc(x - half, y, half * 0.9, 0, 2 * Math.PI);
        context.fill();
    } else if (how === 2) {
        polygon(context, [x, y - half, x, y + half, x - size, y]);
    } else if (how === 3) {
        polygon(context, [x - size, y - half * 0.7, x, y - half * 0.7, x - half, y + half]);
    } else if (how === 4) {
        context.lineWidth = Math.max(1.5, size / 4);
        stroke(context, [[x - size, y - half, x, y + half], [x - size, y + half, x, y - half]]);
    }
}

/** Returns a font of the page, in CSS pixels that scale with its letters. */
export function font(pixels, weight = 400, family = tokens().sans) {
    return `${weight} ${(pixels * letterScale()).toFixed(1)}px ${family || "sans-serif"}`;
}

/** Returns the size of the page's letters, relative to 16 pixels. */
export function letterScale() {
    letters ||= Math.min(1.5, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1);
    return document.body.dataset.lecture === "on" ? letters * LECTURE : letters;
}

function polygon(context, [x, y, ...rest]) {
    context.moveTo(x, y);
    for (let at = 0; at < rest.length; at += 2) context.lineTo(rest[at], rest[at + 1]);
    context.closePath();
    context.fill();
}

function stroke(context, lines) {
    context.beginPath();
    for (const [x, y, toX, toY] of lines) {
        context.moveTo(x, y);
        context.lineTo(toX, toY);
    }
    context.stroke();
}

function drawPattern(context, name) {
    if (name === "stripes") {
        context.lineWidth = 2;
        stroke(context, [[-1, 1, 1, -1], [-1, TILE + 1, TILE + 1, -1], [TILE - 1, TILE + 1, TILE + 1, TILE - 1]]);
    } else if (name === "dots") {
        for (const at of [2, 6]) {
            context.beginPath();
            context.arc(at, at, 1.2, 0, 2 * Math.PI);
            context.fill();
        }
    } else {
        context.fillRect(0, 0, TILE, 1);
        context.fillRect(0, 0, 1, TILE);
    }
}

function tile(context, key, size, draw) {
    const ratio = window.devicePixelRatio || 1;
    const known = patterns.get(key);
    if (known) return known;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.round(size * ratio);
    const drawn = canvas.getContext("2d");
    drawn.scale(canvas.width / size, canvas.height / size);
    draw(drawn);
    const pattern = context.createPattern(canvas, "repeat");
    pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    patterns.set(key, pattern);
    return pattern;
}
