// SPDX-License-Identifier: MIT
//
// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export const STATES = ["runnable", "running", "blocked"];
/** As enum BlockReason of the trace. */
export const REASONS = ["", "sleep", "child", "pipe", "console", "disk", "lock", "journal", "exit", "other"];

/** @param {number} value @returns {string} such as 4,096 */
export function count(value) {
    return whole.format(Math.round(value));
}

/** @param {number} part 0 to 1 @param {number} [digits] @returns {string} such as 12.5 % */
export function percent(part, digits = 1) {
    return `${(100 * part).toFixed(digits)} %`;
}

/** @param {number | null} ns @returns {string} such as 12.3 ms, of three digits; –: not known */
export function duration(ns) {
    if (ns === null || ns === undefined) return "–";
    if (ns === 0) return "0";
    const [size, unit] = UNITS.find(([each]) => Math.abs(ns) >= each) ?? UNITS[3];
    const value = ns / size;
    const digits = unit === "ns" || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return `${digits ? value.toFixed(digits) : count(value)} ${unit}`;
}

/** @param {number} ns @returns {string} a moment: seconds to the millisecond */
export function moment(ns) {
    return `${(ns / 1e9).toFixed(3)} s`;
}

/** @param {number} speed of a system's time, compared with ours @returns {string} such as 0.25× */
export function times(speed) {
    if (speed === 0) return "0×";
    const digits = speed >= 10 ? 0 : speed >= 1 ? 1 : Math.min(6, 1 - Math.floor(Math.log10(speed)));
    return `${speed >= 1000 ? count(speed) : speed.toFixed(digits)}×`;
}
