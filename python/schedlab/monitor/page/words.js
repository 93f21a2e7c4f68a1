// SPDX-License-Identifier: MIT
//
// Numbers and times for display, like base/display/numbers.py for Python: tests/numbers/cases.json tests both
// with one table of cases.

const integerFormat = new Intl.NumberFormat("en");
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const NOTHING = "–";

export const STATES = ["runnable", "running", "blocked"];
/** As enum BlockReason of the trace. */
export const REASONS = ["", "sleep", "child", "pipe", "console", "disk", "lock", "journal", "exit", "other"];

const isNothing = (value) => value === null || value === undefined;

/**
 * With commas between thousands, and this many decimals; a value in the middle of two becomes the even one.
 * @param {number} value @param {number} digits @returns {string}
 */
export function fixed(value, digits) {
    const halves = value * 2 ** (digits + 1); // odd for a value in the middle, which is a multiple of 2 ** -(digits + 1)
    const down = value - Math.sign(value) / (2 * 10 ** digits);
    const isOdd = (text) => Number(text.at(-1)) % 2 === 1;
    const rounded = value.toFixed(digits);
    const isMiddle = Number.isInteger(halves) && halves % 2 !== 0;
    const [before, ...after] = (isMiddle && isOdd(rounded) ? down.toFixed(digits) : rounded).split(".");
    return [before.replace(/\B(?=(\d{3})+$)/g, ","), ...after].join(".");
}

/** @param {number} value @returns {string} such as 4,096 */
export function count(value) {
    return integerFormat.format(Math.round(value));
}

/** @param {number | null} value @returns {string} of three significant digits, such as 12.3 */
export function threeDigits(value) {
    if (isNothing(value)) return NOTHING;
    const size = Math.abs(value);
    if (size >= 99.95 || size === 0) return fixed(value, 0);
    return fixed(value, size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : 4);
}

/** @param {number | null} value @returns {string} such as 0.987 */
export function formatIndex(value) {
    return isNothing(value) ? NOTHING : fixed(value, 3);
}

/** @param {number | null} part 0 to 1 @param {number} [digits] else 2 below 10 %, 1 above @returns {string} such as 12.5 % */
export function percent(part, digits) {
    if (isNothing(part)) return NOTHING;
    return `${fixed(100 * part, digits ?? (100 * Math.abs(part) >= 9.95 ? 1 : 2))} %`;
}

/** @param {number | null} ns @returns {string} such as 12.3 ms, of three digits; –: not known */
export function duration(ns) {
    if (isNothing(ns)) return NOTHING;
    // A value that would be rounded up to 1000 of a unit is shown as 1 of the next.
    const unit = UNITS.find(([size]) => Math.abs(ns) >= 0.9995 * size);
    return unit ? `${threeDigits(ns / unit[0])} ${unit[1]}` : `${fixed(ns, 0)} ns`;
}

/** @param {number | null} perSecond @returns {string} such as 12.3 /s */
export function rate(perSecond) {
    return isNothing(perSecond) ? NOTHING : `${threeDigits(perSecond)} /s`;
}

/** @param {number} ns @param {number} [digits] @returns {string} a moment: seconds, to the millisecond unless said */
export function moment(ns, digits = 3) {
    return `${fixed(ns / 1e9, digits)} s`;
}

/** @param {number} ns @param {number} [digits] @returns {string} such as 1,234.567 ms, to the microsecond unless said */
export function milliseconds(ns, digits = 3) {
    return `${fixed(ns / 1e6, digits)} ms`;
}

/** @param {number} speed of a system's time, relative to real time @returns {string} such as 0.25× */
export function formatSpeed(speed) {
    if (speed === 0) return "0×";
    const digits = speed >= 10 ? 0 : speed >= 1 ? 1 : Math.min(6, 1 - Math.floor(Math.log10(speed)));
    return `${fixed(speed, digits)}×`;
}
