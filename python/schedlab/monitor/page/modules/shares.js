// SPDX-License-Identifier: MIT
//
// Tickets and shares: the part of the tickets (or weights) that each process holds, the part of the CPUs'
// time that it received, and how the latter converges to the ideal.

import { inkOn, onTheme, tokens } from "../colours.js";
import { button, count, element, moment, percent, setText } from "../elements.js";
import { select, stateOf } from "../store.js";
import { dress, swatch } from "../swatch.js";
import { letterScale } from "../drawing/paint.js";
import { lines, pies, placed } from "../drawing/share_charts.js";
import { colourOfRow, Convergence, OTHERS, shareRows } from "../drawing/share_rows.js";
import { Chart } from "../drawing/chart.js";

const GAP_MS = 400; // between two drawings
const SAMPLE_GAP_MS = 1000; // between two points of a line: drawing them all takes Vega 20 ms
const SAMPLES_MAX = 120;
const PIES_PART = 0.45; // of the panel's height
const LINES_PART = 0.46;
const LINES_LEAST = 110; // pixels
const LEAST_HIGH = 0.05; // the axis covers at least this share
const LABEL_GAP = 13; // pixels between two names at the right
const COLUMNS = { tickets: "Tickets", weight: "Weight", nice: "Weight", groups: "Weight", equal: "Parts" };
const HOLDINGS_TITLES = { tickets: "Tickets held", weight: "Weights", nice: "Weights", groups: "Weights in their groups", equal: "Equal parts" };

/**
 * A point of a line. `segment`: a change starts another line.
 * @typedef {{time: number, key: string, segment: number, share: number, ideal: number,
 *     colour: string, label: string}} Point
 */

/** @param {import("../panel.js").Panel} panel @param {string} system */
export function create(panel, system) {
    return new Shares(panel, system);
}

class Shares {
    #byGroup = false;
    #inWindow = false;
    #convergence = new Convergence();
    /** @type {Point[][]} by moment */
    #samples = [];
    #keys = [];
    #drawn_ms = -Infinity;
    #sampled_ms = -Infinity;
    #frame = -1;
    #epoch = -1;
    #size = "";
    #building = false;
    #linesAreDrawn = false;
    #chosen = "";
    #timer = 0;

    constructor(panel, system) {
        this.panel = panel;
        this.state = stateOf(system);
        this.groupButton = button("", "Combine processes of a group", () => this.#choose("group"), "Groups");
        const inWindow = "Shares in the sliding window, instead of since the last change";
        this.windowButton = button("", inWindow, () => this.#choose("window"), "Window");
        panel.tools.append(this.groupButton, this.windowButton);
        this.pieChart = new Chart(element("div", { className: "shares-pies", "aria-hidden": "true" }));
        this.lineChart = new Chart(element("div", { className: "shares-lines", "aria-hidden": "true" }));
        this.caption = element("p", { className: "drawing-notice" });
        this.list = element("table", { className: "shares-list" });
        panel.body.append(this.pieChart.place, this.lineChart.place, this.caption, this.list);
        onTheme(() => this.#rebuild());
        panel.draws(() => this.#take());
    }

    #choose(what) {
        if (what === "group") this.#byGroup = !this.#byGroup;
        else this.#inWindow = !this.#inWindow;
        this.groupButton.setAttribute("aria-pressed", String(this.#byGroup));
        this.windowButton.setAttribute("aria-pressed", String(this.#inWindow));
        this.#forget();
        this.#drawn_ms = this.#sampled_ms = -Infinity;
        this.#frame = -1;
        this.panel.redraw();
    }

    #forget() {
        this.#samples = [];
        this.#keys = [];
        this.#convergence = new Convergence();
    }

    #rebuild() {
        this.#size = "";
        this.#drawn_ms = -Infinity;
        this.panel.redraw();
    }

    #take() {
        const now = performance.now();
        clearTimeout(this.#timer);
        // The last frame before a pause must not be missed.
        if (now - this.#drawn_ms < GAP_MS) {
            this.#timer = setTimeout(() => this.panel.redraw(), GAP_MS);
            return;
        }
        this.#drawn_ms = now;
        const { frame, epoch } = this.state;
        if (epoch !== this.#epoch) this.#forget();
        this.#epoch = epoch;
        this.rows = shareRows(this.state, this.#byGroup, this.#keys);
        this.#keys = this.rows.map(({ key }) => key);
        if (frame.number !== this.#frame) this.#sample(frame, now);
        this.#frame = frame.number;
        this.#fillList(frame);
        this.#build().catch((error) => this.panel.fail(error.message));
    }

    #sample(frame, now) {
        const change = this.state.marks.items.findLast(({ kind }) => kind === "policy" || kind === "tunable");
        const since = this.#convergence.take(this.rows, `${frame.policy} ${change?.time_ns}`, frame.now_ns);
        const { segment } = this.#convergence;
        const changed = segment !== this.#samples.at(-1)?.[0]?.segment;
        if (!changed && now - this.#sampled_ms < SAMPLE_GAP_MS) return;
        this.#sampled_ms = now;
        this.#linesAreDrawn = false;
        const sample = this.rows
            .map((row) => ({
                time: frame.now_ns / 1e9, key: row.key, segment, ideal: row.ideal, colour: colourOfRow(row, tokens()),
                share: this.#inWindow ? row.share : since.get(row.key) ?? -1, label: row.label,
            }))
            .filter(({ share }) => share >= 0);
        this.#samples.push(sample);
        if (this.#samples.length > SAMPLES_MAX) this.#samples.splice(0, this.#samples.length - SAMPLES_MAX);
    }

    #isFaint({ pid }) {
        return !this.#byGroup && this.state.selected > 0 && pid !== this.state.selected;
    }

    /** Draws; a chart is created again when its size or the theme changes. */
    async #build() {
        const width = Math.floor(this.pieChart.place.clientWidth);
        if (this.#building || width < 80) return;
        const height = this.panel.body.clientHeight;
        const size = `${width} ${height} ${letterScale()}`;
        this.#building = true;
        try {
            if (size !== this.#size) {
                await this.pieChart.embed(pies(tokens(), width, PIES_PART * height, letterScale()));
                const room = Math.max(LINES_LEAST, LINES_PART * height);
                await this.lineChart.embed(lines(tokens(), width, room, letterScale()));
                this.#size = size;
                this.#linesAreDrawn = false;
            }
            await this.#draw();
            this.panel.fail("");
        } finally {
            this.#building = false;
        }
    }

    async #draw() {
        const slices = this.#slices();
        const title = HOLDINGS_TITLES[this.state.frame.shares_by] ?? HOLDINGS_TITLES.equal;
        await this.pieChart.update((view) => view.signal("held", title).data("slices", slices));
        const chosen = this.#byGroup || !this.state.selected ? "" : String(this.state.selected);
        if (!this.#linesAreDrawn || chosen !== this.#chosen) await this.#drawLines(chosen);
        this.panel.body.drawn = { ...this.panel.body.drawn, slices: slices.length };
    }

    /** @param {string} chosen the key of the selected process; the others are faint */
    async #drawLines(chosen) {
        this.#linesAreDrawn = true;
        this.#chosen = chosen;
        const began = performance.now();
        // With many lines, the combined others would flatten each line.
        const points = this.#samples.flat().filter(({ key }) => key !== OTHERS);
        const ends = this.#ends();
        await this.lineChart.update((view) => {
            const highest = Math.max(LEAST_HIGH, ...points.map(({ share, ideal }) => Math.max(share, ideal)));
            const most = Math.min(1, highest * 1.08);
            const gap = (LABEL_GAP * letterScale() * most) / Math.max(1, view.height());
            view.signal("from", points[0]?.time ?? 0).signal("until", points.at(-1)?.time ?? 1);
            view.signal("chosen", chosen).signal("most", most);
            view.data("points", points).data("ends", placed(ends, gap, most));
        });
        this.panel.body.drawn = {
            ...this.panel.body.drawn, points: points.length, samples: this.#samples.length, ends: ends.length,
            segment: this.#convergence.segment, cost_ms: performance.now() - began,
        };
    }

    #slices() {
        const slice = (row, kind, value, order) => {
            const colour = colourOfRow(row, tokens());
            const ink = colour.startsWith("#") && colour.length === 7 ? inkOn(colour) : tokens().ink;
            const short = row.pid ? (this.#byGroup ? row.label : String(row.pid)) : `+${row.count}`;
            return { kind, value: Math.max(0, value), order, colour, ink, short, faint: this.#isFaint(row) };
        };
        return this.rows.flatMap((row, order) => [
            slice(row, "held", row.held, order), slice(row, "received", row.share, order),
        ]);
    }

    #ends() {
        return (this.#samples.at(-1) ?? []).filter(({ key }) => key !== OTHERS);
    }

    /** Lists all numbers: the legend, and the text for screen readers. */
    #fillList({ shares_by: by, now_ns: now }) {
        const heads = [this.#byGroup ? "Group" : "Process", COLUMNS[by] ?? COLUMNS.equal, "Ideal", "Received", "Off"];
        const keys = `${heads.join()} ${this.#keys.join()}`;
        if (this.list.dataset.keys !== keys) {
            this.list.dataset.keys = keys;
            this.list.replaceChildren(
                element("thead", {}, element("tr", {}, ...heads.map((text, at) => headCell(text, at ? 1 : 2)))),
                element("tbody", {}, ...this.rows.map((row) => this.#listRow(row))));
        }
        this.rows.forEach((row, at) => {
            const shown = this.list.tBodies[0].rows[at];
            const ideal = row.ideal < 0 ? "–" : percent(row.ideal);
            const off = row.ideal < 0 ? "–" : signed(100 * (row.share - row.ideal));
            const texts = [count(row.held), ideal, percent(row.share), off];
            texts.forEach((text, column) => setText(shown.cells[column + 2], text));
            shown.classList.toggle("selected", this.#isOne(row) && row.pid === this.state.selected);
        });
        const since = `since the last change, ${moment(now - this.#convergence.since_ns, 1)} ago`;
        if (!this.rows.length) return setText(this.caption, "No process takes part now.");
        setText(this.caption, `Share ${this.#inWindow ? "in the sliding window" : since}; dashed: ideal share.`);
    }

    /** Returns true if it is one process, which can be selected. */
    #isOne({ pid }) {
        return pid > 0 && !this.#byGroup;
    }

    #listRow(row) {
        const mark = swatch();
        if (row.pid) dress(mark, row.pid);
        else mark.classList.add("others-swatch");
        const made = element("tr", {}, element("td", {}, mark), element("td", { textContent: row.label }),
            ...[0, 1, 2, 3].map(() => element("td", { className: "number" })));
        const choose = () => select(this.state.id, row.pid === this.state.selected ? 0 : row.pid);
        if (this.#isOne(row)) made.addEventListener("click", choose);
        return made;
    }
}

function headCell(text, colSpan) {
    return element("th", { textContent: text, scope: "col", colSpan });
}

/** @param {number} points @returns {string} percentage points with their sign */
function signed(points) {
    return `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)}`;
}
