// SPDX-License-Identifier: MIT
//
// The values of the policy's state at a decision: of each queued task and of the queue.

import { button, element } from "../../python/schedlab/monitor/page/elements.js";
import { milliseconds, moment } from "../../python/schedlab/monitor/page/words.js";

const VALUES_MOST = 4; // of one field after a line
const CHARACTERS_MOST = 100;
const ADDRESS = /^0x/; // not a task
const NUMBER = /^-?\d+$/;
const MEMBER = /\bu?int64_t ([\w, ]+);(?:[ \t]*\/\*([^*]*)\*\/)?/g;
const TIME_NAME = /(?:^|_)(?:ns|time|runtime|at|now|since|until|deadline|end)$/;
const TIME_COMMENT = /^\s*when\b|\b(?:ns|nanoseconds|time|run_time|runtime)\b/;
const SHORT_NS = 1000; // shown in this unit

/** @param {string[]} sources in C @returns {Set<string>} the members of structures that are times in ns, by their names or comments */
export function timesIn(sources) {
    const members = sources.flatMap((source) => [...source.matchAll(MEMBER)]);
    return new Set(members.flatMap(([, names, comment = ""]) =>
        names.split(", ").filter((name) => TIME_NAME.test(name) || TIME_COMMENT.test(comment))));
}

/** @param {string} value of the member @param {string} path @param {Set<string>} times @returns {string} with a unit, if it is a time */
function withUnit(value, path, times) {
    const ns = Number(value);
    if (!times.has(lastName(path)) || ns === 0) return value;
    return Math.abs(ns) < SHORT_NS ? `${value} ns` : milliseconds(ns);
}

const lastName = (path) => path.split(/\.|->/).at(-1);

/** @param {import("./runner.js").Load} load @returns {string} its member; that of the interface's structure begins as in C */
const memberOf = ({ kind, isState, path }) => (isState ? path : `${kind}->${path}`);

/** @param {import("./runner.js").Load} load @param {Map<number, string>} names of processes @returns {string} what contains the value */
function ownerOf({ kind, pid }, names) {
    return kind === "task" ? `${names.get(pid) ?? "pid"} ${pid}` : kind;
}

/**
 * @param {import("./runner.js").Load[]} loads @param {(number | null)[]} lines of the loads
 * @param {Map<number, string>} names of processes @param {Set<string>} times of timesIn()
 * @returns {Map<number, string>} what each line read, in words
 */
export function inLines(loads, lines, names, times) {
    /** @type {Map<number, Map<string, Set<string>>>} values by line and field */
    const all = new Map();
    loads.forEach((load, at) => {
        const line = lines[at];
        if (!line || ADDRESS.test(load.value)) return;
        if (!all.has(line)) all.set(line, new Map());
        const fields = all.get(line);
        if (!fields.has(load.path)) fields.set(load.path, new Set());
        const owner = load.kind === "queue" || load.kind === "scheduler" ? "" : `${ownerOf(load, names)}: `;
        fields.get(load.path).add(`${owner}${withUnit(load.value, load.path, times)}`);
    });
    return new Map([...all].map(([line, fields]) => [line, short([...fields].map(fieldWords).join("; "))]));
}

function fieldWords([path, values]) {
    const first = [...values].slice(0, VALUES_MOST);
    return `${path} = ${first.join(", ")}${values.size > first.length ? ", …" : ""}`;
}

const short = (text) => (text.length > CHARACTERS_MOST ? `${text.slice(0, CHARACTERS_MOST - 1)}…` : text);

export class ValuesPane {
    /** @param {() => void} cleared @param {() => void} closed by the user */
    constructor(cleared, closed) {
        Object.assign(this, { cleared, closed });
        this.element = element("section", { className: "values", hidden: true, tabIndex: 0, "aria-label": "Values at the decision" });
        /** The call whose values are fetched. */
        this.awaited = null;
    }

    clear() {
        this.awaited = null;
        this.element.hidden = true;
        this.cleared();
    }

    #close() {
        this.clear();
        this.closed();
    }

    /** @param {import("./runner.js").Call} call whose values are fetched now */
    wait(call) {
        this.awaited = call;
        this.element.hidden = false;
        this.element.replaceChildren(element("p", { textContent: "Repeating the run up to this decision …" }));
    }

    /**
     * @param {import("./runner.js").Call} call @param {import("./runner.js").Observed} observed
     * @param {Map<number, string>} names of processes @param {Set<string>} times of timesIn()
     * @returns {boolean} false: another call is awaited
     */
    show(call, { loads, tasks, queue }, names, times) {
        if (call !== this.awaited) return false;
        const read = (kind, index) => new Map(loads.filter((load) => load.kind === kind && load.index === index).reverse().map((load) => [memberOf(load), load.value]));
        const rows = tasks.map(({ pid, index, fields, changed }) => {
            const members = read("task", index);
            const interfaces = [...members].filter(([path, value]) => path.includes("->") && NUMBER.test(value));
            return { title: `${names.get(pid) ?? "process"} ${pid}`, fields: { ...Object.fromEntries(interfaces), ...fields }, changed, isRead: (path) => members.has(path) };
        });
        const parts = [table("queued task", rows, times)];
        if (queue && Object.keys(queue.fields).length) {
            parts.push(table("queue", [{ title: `queue ${queue.index}`, ...queue, isRead: (path) => read("queue", queue.index).has(path) }], times));
        }
        this.element.replaceChildren(
            element("h2", { textContent: `State when ${call.hook}() was called, at ${moment(call.time, 6)} on CPU ${call.cpu}` }),
            element("p", { textContent: "Marked: the call read it. An arrow: the call changed it." }), ...parts,
            button("close", "Close the values", () => this.#close()));
        return true;
    }
}

/** @returns {string} the last name of a path, unless other paths have the same */
function shortest(path, paths) {
    return paths.filter((other) => lastName(other) === lastName(path)).length > 1 ? path : lastName(path);
}

/** A table of states, one per row; fields that are 0 everywhere and were not read are left out. */
function table(title, rows, times) {
    const paths = [...new Set(rows.flatMap(({ fields }) => Object.keys(fields)))].filter((path) =>
        rows.some(({ fields, changed, isRead }) => fields[path] !== "0" || path in changed || isRead(path)));
    const heads = [element("th", { scope: "col", textContent: title }), ...paths.map((path) => element("th", { scope: "col", title: path, textContent: shortest(path, paths) }))];
    const body = rows.map(({ title: name, fields, changed, isRead }) => element("tr", {},
        element("th", { scope: "row", textContent: name }),
        ...paths.map((path) => {
            const all = path in changed ? [fields[path], changed[path]] : [fields[path]];
            const [raw, words] = [all, all.map((value) => withUnit(value, path, times))].map((parts) => parts.join(" → "));
            return element("td", raw === words ? {} : { title: `${raw} ns` }, isRead(path) ? element("mark", { textContent: words }) : words);
        })));
    return element("div", { className: "wide-table" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
}
