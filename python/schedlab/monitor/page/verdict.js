// SPDX-License-Identifier: MIT
//
// Compares several systems: first the metrics that differ most, and which system does better; then one table
// of the processes that all systems have, with a column for each system.

import { element, setText } from "./elements.js";
import { METRICS } from "./modules/metrics.js";
import { allStates, select, subscribe } from "./store.js";
import { dress, swatch } from "./swatch.js";
import { duration, percent } from "./words.js";

const GAP_MS = 400;
const FIGURES = 3;
const SMALL = 960; // pixels of a window; in a smaller one a press opens the table
const LEAST = 0.05; // as a fraction of a metric: smaller differences are not reported
const ROWS = 12;
const BLOCKED = 2;
const LEAST_SHARE = 0.001; // of a process that is blocked now
const COLUMNS = [
    ["Waited", ({ waiting_ns: values }, at) => duration(values[at])],
    ["Ran", ({ run_ns: values }, at) => duration(values[at])],
    ["Share", ({ share }, at) => percent(share[at])],
    ["Picked", ({ selections }, at) => String(selections[at])],
];

/** @param {HTMLElement} place @returns {{show: (systems: string[]) => void}} */
export function createVerdict(place) {
    const figures = element("p", { className: "verdict-figures", role: "status" });
    const table = element("table", { className: "verdict-table" });
    const details = element("details", { open: innerWidth > SMALL }, element("summary", { textContent: "Processes" }), table);
    place.append(figures, details);
    let ends = [];
    let drawn_ms = -Infinity;
    let timer = 0;

    function draw() {
        clearTimeout(timer);
        const wait = drawn_ms + GAP_MS - performance.now();
        if (wait > 0) {
            timer = setTimeout(draw, wait);
            return;
        }
        drawn_ms = performance.now();
        const states = allStates().filter(({ frame }) => frame);
        if (states.length < 2) return;
        figures.replaceChildren(...figuresOf(states));
        fill(table, states);
    }

    table.addEventListener("click", (event) => {
        const pid = Number(event.target.closest("tr")?.dataset.of ?? 0);
        if (pid) for (const { id } of allStates()) select(id, pid);
    });
    return {
        show(systems) {
            for (const end of ends) end();
            place.hidden = systems.length < 2;
            ends = place.hidden ? [] : systems.map((system) => subscribe(system, draw));
        },
    };
}

/** Returns the metrics that differ most. */
function figuresOf(states) {
    const differences = METRICS.filter(({ better }) => better).map((metric) => {
        const values = states.map(({ frame }) => frame.metrics[metric.key]);
        return { metric, values, spread: spreadOf(values) };
    });
    const differ = ({ metric, values }) => new Set(values.map((value) => metric.format(value))).size > 1;
    const notable = differences.filter((difference) => difference.spread >= LEAST && differ(difference));
    notable.sort((one, other) => other.spread - one.spread);
    if (!notable.length) return ["No metric differs by more than 5 % so far."];
    return notable.slice(0, FIGURES).map((difference) => figure(difference, states));
}

/** Returns the spread of values: 0 to 1. */
function spreadOf(values) {
    if (values.some((value) => value === null)) return -1;
    const most = Math.max(...values);
    return most > 0 ? (most - Math.min(...values)) / most : 0;
}

function figure({ metric, values }, states) {
    const best = metric.better === "less" ? Math.min(...values) : Math.max(...values);
    const parts = states.flatMap(({ id, frame }, at) => [
        at ? " against " : "",
        element("b", { className: values[at] === best ? "good" : "", textContent: metric.format(values[at]) }),
        ` ${id} ${frame.policy}`,
    ]);
    const made = element("span", { className: "verdict-figure" }, `${metric.title} `, ...parts);
    made.dataset.tip = metric.about;
    return made;
}

function fill(table, states) {
    const [first] = states;
    const { pid, name, own: isMonitor, share, state } = first.frame.processes;
    const places = [...pid.keys()].filter((at) =>
        !isMonitor[at] && (state[at] !== BLOCKED || share[at] >= LEAST_SHARE) && states.every((view) => view.row(pid[at]) >= 0));
    const rows = places.slice(0, ROWS);
    const key = `${states.map(({ id }) => id)} ${rows.map((at) => `${pid[at]} ${name[at]}`)}`;
    if (table.dataset.key !== key) {
        table.dataset.key = key;
        table.replaceChildren(head(states), element("tbody", {}, ...rows.map((at) => row(pid[at], name[at], states))));
    }
    rows.forEach((at, place) => {
        const cells = table.tBodies[0].rows[place].cells;
        let cell = 1;
        for (const [, words] of COLUMNS) {
            for (const view of states) setText(cells[cell++], words(view.frame.processes, view.row(pid[at])));
        }
    });
}

function head(states) {
    const titles = COLUMNS.map(([title]) => element("th", { scope: "colgroup", colSpan: states.length, textContent: title }));
    const letters = COLUMNS.flatMap(() => states.map(({ id }) => element("th", { scope: "col", textContent: id })));
    return element("thead", {},
        element("tr", {}, element("th", { rowSpan: 2, scope: "col", textContent: "Process" }), ...titles),
        element("tr", {}, ...letters));
}

function row(pid, name, states) {
    const mark = swatch();
    dress(mark, pid);
    const cells = COLUMNS.flatMap(() => states.map(() => element("td")));
    return element("tr", { data: { of: String(pid) } }, element("th", { scope: "row" }, mark, ` ${name} ${pid}`), ...cells);
}
