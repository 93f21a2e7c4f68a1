// SPDX-License-Identifier: MIT
//
// The time line: the runs of processes on each CPU. It has a lane for each CPU; under a policy with levels,
// each level has a row in the lane. All systems show the same range of time (drawing/view.js).

import { onTheme, tokens } from "../colours.js";
import { announce, button, count, duration, element, moment, setIcon, setText } from "../elements.js";
import { allStates, select, stateOf } from "../store.js";
import { paintAxis, ticksOf } from "../drawing/axis.js";
import { followKeys, followPointer, ZOOM } from "../drawing/gestures.js";
import { paintGround, paintName } from "../drawing/lane_painter.js";
import { Lanes, LevelsSeen } from "../drawing/lanes.js";
import { boostMarks, paintLevelEvents } from "../drawing/level_marks.js";
import { paintMarks } from "../drawing/mark_painter.js";
import { font, letterScale } from "../drawing/paint.js";
import { Layer } from "../drawing/layer.js";
import { legend } from "../drawing/legend.js";
import { ProcessLanes } from "../drawing/process_lanes.js";
import { findAt, markAt, runAt } from "../drawing/run_finder.js";
import { RunPainter } from "../drawing/run_painter.js";
import { RunTable } from "../drawing/run_table.js";
import { RunWalk } from "../drawing/run_walk.js";
import { Scrolled } from "../drawing/scrolled.js";
import { Surface } from "../drawing/surface.js";
import { traceButtons } from "../drawing/trace_buttons.js";
import { view } from "../drawing/view.js";

const AXIS_HEIGHT = 22;
const MARK_HEIGHT = 17;
const MARK_ROWS = 2;
const TICK_GAP = 92; // pixels between two ticks, about
const LABEL_GAP_MS = 2000;
const THIN_REPORTED = 20; // merged runs, beyond this number, are reported
const REST_MS = 150; // after a move, until names are moved into the view
const GUTTER = 78; // pixels, for the CPUs' names
const GUTTER_NARROW = 38;
const KEYS =
    "Arrows pan (with Shift by half), + and − zoom, 0 shows all, L follows the present, P freezes the drawing; " +
    "N and B go to the next run and back, Enter selects its process. Drag to pan; the wheel zooms after a " +
    "click, or with Ctrl.";

/** @param {import("../panel.js").Panel} panel @param {string} system */
export function create(panel, system) {
    return new Timeline(panel, system);
}

class Timeline {
    #painter = new RunPainter();
    #layer = new Layer();
    #restTimer = 0;
    #levels = new LevelsSeen(true);
    #lanes = new Lanes(0, [], 1);
    #processes = new ProcessLanes();
    #span = { left: 0, right: 1, begin: 0, end: 1 };
    /** @type {{x: number, y: number} | null} the pointer, in pixels of the canvas */
    #pointer = null;
    #walk;
    #labelTime = -Infinity;
    #shown = false;
    #fitted = 0;

    constructor(panel, system) {
        this.panel = panel;
        this.state = stateOf(system);
        this.#walk = new RunWalk(this.state);
        this.#build();
        this.surface = new Surface(panel, this.canvas, (context, width, height) =>
            this.#paint(context, width, height));
        this.#listen();
        panel.draws(() => this.#take());
    }

    #build() {
        this.live = button("", "Live: follow now (L)", () => view.follow(), "● Live");
        const toggle = () => (view.live ? view.freeze() : view.follow());
        this.stop = button("pause", "Freeze the drawing, not the machine (P)", toggle);
        this.tableButton = button("", "The visible runs as a table", () => this.#toggleTable(), "Table");
        this.panel.tools.append(
            this.live, this.stop,
            button("", "Zoom out (−)", () => view.zoom(ZOOM), "−"),
            button("", "Zoom in (+)", () => view.zoom(1 / ZOOM), "+"),
            button("", "Show the whole recorded time (0)", () => view.fit(), "Fit"),
            this.tableButton, ...traceButtons(this.panel, this.state),
        );
        this.scrolled = new Scrolled(this.panel, "timeline", false);
        this.canvas = this.scrolled.canvas;
        this.scroll = this.scrolled.element;
        this.scroll.setAttribute("role", "application");
        this.scroll.setAttribute("aria-label", `Time line. ${KEYS}`);
        this.notice = element("p", { className: "drawing-notice" });
        this.table = new RunTable(this.state);
        const foot = element("div", { className: "timeline-foot" }, legend(), this.notice);
        this.panel.body.append(this.scrolled.frame, foot, this.table.element);
    }

    #listen() {
        const end = view.subscribe(() => {
            this.#shown ||= this.panel.element.isConnected;
            if (this.#shown && !this.panel.element.isConnected) this.#leaveView(end);
            else this.#changed();
        });
        onTheme(() => {
            this.#layer.forget();
            this.surface.invalidate();
        });
        this.scroll.addEventListener("scroll", () => this.surface.invalidate());
        followPointer(this.scroll, view, {
            span: () => this.#span,
            hover: (event) => this.#hover(event),
            press: (event) => this.#press(event),
        });
        followKeys(this.scroll, view, (key) => this.#key(key));
    }

    /** Handles the end of its system. */
    #leaveView(end) {
        end();
        if (!allStates().includes(this.state)) view.forget(this.state.id);
        this.surface.end();
    }

    /** Takes over a new frame. */
    #take() {
        const { frame, runs } = this.state;
        const firsts = runs.filter((track) => track.length).map((track) => track.begin[0]);
        view.report(this.state.id, frame.now_ns, Math.min(frame.now_ns, ...firsts));
        this.#fitRecording(Math.min(frame.now_ns, ...firsts));
        this.#layOut();
        this.#changed();
    }

    /** A recording fills the window. @param {number} first time of the oldest run */
    #fitRecording(first) {
        const end_ns = this.state.info?.end_ns ?? 0;
        if (this.#fitted === end_ns) return;
        this.#fitted = end_ns;
        if (end_ns) view.fitAll(end_ns - first);
    }

    #changed() {
        this.live.setAttribute("aria-pressed", String(view.live));
        setIcon(this.stop, view.live ? "pause" : "play");
        this.surface.invalidate();
    }

    #layOut() {
        const { frame } = this.state;
        const scale = letterScale();
        const rows = this.#processes.take(this.state, scale);
        const room = this.scrolled.roomOf(scale) - this.#top() - rows;
        this.#lanes = new Lanes(frame.cpus.length, this.#levels.take(this.state), scale, room);
        const height = view.agree(this.state.id, this.#lanes.height + rows);
        this.#lanes.grow(height - rows);
        this.scrolled.resize(this.#top() + height, scale);
    }

    /** Pixels above the first lane. */
    #top() {
        return Math.round((AXIS_HEIGHT + MARK_ROWS * MARK_HEIGHT) * letterScale());
    }

    #toggleTable() {
        this.table.toggle();
        this.tableButton.setAttribute("aria-pressed", String(this.table.shown));
        this.surface.invalidate();
    }

    #paint(context, width, height) {
        if (!this.state.frame) return;
        const { begin, end } = view.range();
        const scale = letterScale();
        const narrow = width < 520;
        const left = Math.round((narrow ? GUTTER_NARROW : GUTTER) * scale);
        this.#span = { left, right: width, ...onPixels(begin, end, width - left) };
        context.clearRect(0, 0, width, height);
        const ticks = ticksOf(begin, end, (width - left) / (TICK_GAP * scale));
        paintAxis(context, ticks, this.#span, AXIS_HEIGHT * scale, height);
        this.#paintLanes(context, height, narrow);
        const place = { top: AXIS_HEIGHT * scale, rows: MARK_ROWS, rowHeight: MARK_HEIGHT * scale, bottom: height };
        this.labels = paintMarks(context, [...this.state.marks.items, ...boostMarks(this.state)], this.#span, place);
        this.#paintNow(context, height);
        this.#paintFocus(context);
        this.#report();
        this.#label();
    }

    #paintLanes(context, height, narrow) {
        const top = this.#top();
        const { frame, selected, epoch } = this.state;
        const { cpus, levels, rowHeight } = this.#lanes;
        const request = {
            span: this.#span, top, height: height - top, live: view.live, frame: frame.number, now: frame.now_ns,
            key: [this.scrolled.offset, cpus, levels, rowHeight, selected, epoch, this.#processes.key].join(" "),
        };
        this.#layer.paint(context, request, (layer, span, home) => this.#paintRuns(layer, span, home, height - top));
        this.#putNamesRight();
        context.save();
        context.beginPath();
        context.rect(0, top, this.#span.left, height - top);
        context.clip();
        context.textBaseline = "middle";
        const from = top - this.scrolled.offset;
        for (const cpu of this.#cpusSeen(height - top)) {
            paintName(context, this.#lanes, cpu, from + this.#lanes.top(cpu), this.#span.left, narrow);
        }
        this.#processes.paintNames(context, from + this.#lanes.height, this.#span.left, narrow);
        context.restore();
        this.drawnEvents = paintLevelEvents(context, this.state.story.events, this.#span, this.#lanes, from);
    }

    /** @param {number} height pixels of visible lanes @returns {number[]} */
    #cpusSeen(height) {
        const first = this.#lanes.cpuAt(this.scrolled.offset);
        const last = this.#lanes.cpuAt(this.scrolled.offset + height);
        return this.#lanes.cpus ? Array.from({ length: last - first + 1 }, (_, at) => first + at) : [];
    }

    /** After a pan, moves names into the view. */
    #putNamesRight() {
        clearTimeout(this.#restTimer);
        if (view.live || !this.#layer.moved(this.#span.begin)) return;
        this.#restTimer = setTimeout(() => {
            this.#layer.forget();
            this.surface.invalidate();
        }, REST_MS);
    }

    #paintRuns(context, span, home, height) {
        const lanes = this.#lanes;
        const top = (cpu) => lanes.top(cpu) - this.scrolled.offset;
        const cpus = this.#cpusSeen(height);
        this.#painter.begin();
        for (const cpu of cpus) paintGround(context, this.state, lanes, span, cpu, top(cpu));
        for (const cpu of cpus) {
            const track = this.state.runs[cpu];
            if (track) this.#painter.add(track, span, lanes, top(cpu));
        }
        context.font = font(Math.min(12, Math.max(9, lanes.rowHeight / letterScale() - 3)), 550);
        context.textBaseline = "middle";
        this.#painter.paint(context, this.state.selected, home, (pid) => this.state.nameOf(pid));
        this.#processes.paint(context, this.state, span, lanes.height - this.scrolled.offset);
    }

    #paintNow(context, height) {
        const x = this.#x(this.state.frame.now_ns);
        if (x < this.#span.left || x > this.#span.right) return;
        context.fillStyle = tokens().strongLine;
        context.fillRect(x, AXIS_HEIGHT * letterScale() - 4, 1, height);
    }

    #paintFocus(context) {
        const { at, place } = this.#walk;
        if (at < 0) return;
        const { begin, end } = this.state.runs[place.cpu];
        const y = this.#top() - this.scrolled.offset + this.#lanes.top(place.cpu);
        const x = this.#x(begin[at]);
        context.strokeStyle = tokens().ink;
        context.lineWidth = 2;
        context.strokeRect(x - 2, y - 2, Math.max(4, this.#x(end[at]) - x) + 4, this.#lanes.laneHeight + 4);
    }

    #x(time) {
        const { left, right, begin, end } = this.#span;
        return left + ((time - begin) * (right - left)) / (end - begin);
    }

    /** Exposes the visible content, for tests and for the notice below. */
    #report() {
        const { bars, thin } = this.#painter;
        const { begin, end } = view.range();
        const { frame } = this.state;
        this.canvas.drawn = {
            begin, end, left: this.#span.left, bars, thin, live: view.live, lanes: this.#lanes.cpus, levels: this.#lanes.levels,
            labels: this.labels.map(({ text }) => text), demotions: this.drawnEvents, processes: this.#processes.pids, focus: this.#walk.place, selected: this.state.selected,
        };
        const notes = [];
        if (!view.live) notes.push(`Frozen; the machine is ${duration(Math.max(0, frame.now_ns - end))} ahead.`);
        if (thin > THIN_REPORTED) notes.push("Runs narrower than two pixels are merged: columns show how their time was shared.");
        const { thinned } = frame.timeline;
        if (thinned) notes.push(`${count(thinned)} recent short runs were merged.`);
        setText(this.notice, notes.join(" "));
        this.panel.note(`${duration(view.span)} seen`);
        if (this.table.shown) this.table.fill(begin, end);
    }

    #label() {
        if (performance.now() - this.#labelTime < LABEL_GAP_MS) return;
        this.#labelTime = performance.now();
        const { begin, end, bars, thin, lanes } = this.canvas.drawn;
        const when = `from ${moment(Math.max(0, begin), 6)} to ${moment(end, 6)}`;
        const label = `${lanes} CPUs ${when}: ${bars + thin} runs. The table has them as text.`;
        this.canvas.setAttribute("aria-label", label);
    }

    // --- pointer and keys ------------------------------------------------------------------------

    #hover(event) {
        this.#pointer = event && this.scrolled.placeOf(event);
        const tip = this.#pointer && this.#findTip();
        this.scrolled.showTip(tip, this.#pointer);
        this.scroll.style.cursor = tip?.pid ? "pointer" : "grab";
    }

    #findTip() {
        const { left, right, begin, end } = this.#span;
        const { x, y } = this.#pointer;
        if (x < left) return null;
        const pixel = (end - begin) / (right - left);
        const time = begin + (x - left) * pixel;
        if (y < this.#top()) return markAt(this.state, time, pixel);
        const below = y - this.#top() + this.scrolled.offset - this.#lanes.height;
        if (below >= 0) return this.#processes.find(this.state, below, time);
        return findAt(this.state, this.#lanes.cpuAt(y - this.#top() + this.scrolled.offset), time, pixel);
    }

    #press(event) {
        this.#hover(event);
        const { pid = 0, waits_ns: at = null } = this.#findTip() ?? {};
        select(this.state.id, pid === this.state.selected && at === null ? 0 : pid, at);
    }

    #key(key) {
        const middle = () => view.range().begin + view.span / 2;
        const acts = {
            n: () => this.#walk.step(1, middle()) && this.#showWalk(),
            b: () => this.#walk.step(-1, middle()) && this.#showWalk(),
            Enter: () => this.#walk.pid && select(this.state.id, this.#walk.pid),
        };
        if (this.#walk.place || this.state.selected) acts.Escape = () => this.#leave();
        if (this.#walk.place) {
            acts.ArrowUp = () => this.#walk.change(-1) && this.#showWalk();
            acts.ArrowDown = () => this.#walk.change(1) && this.#showWalk();
        }
        acts[key]?.();
        return key in acts;
    }

    /** Scrolls to the keyboard's present run, and describes it. */
    #showWalk() {
        const { at, place } = this.#walk;
        const { begin, end } = this.state.runs[place.cpu];
        const range = view.range();
        const middle = begin[at] - view.span / 2;
        if (begin[at] < range.begin || end[at] > range.end) view.show(middle, middle + view.span);
        else if (view.live) view.freeze();
        this.#scrollTo(place.cpu);
        this.#span = { ...this.#span, ...view.range() };
        const run = runAt(this.state, place.cpu, at);
        const y = this.#top() - this.scrolled.offset + this.#lanes.top(place.cpu) + this.#lanes.laneHeight;
        this.scrolled.showTip(run, { x: this.#x(begin[at]), y });
        announce(`${run.title}: ${run.lines.join(", ")}`);
        this.surface.invalidate();
    }

    #scrollTo(cpu) {
        const top = this.#lanes.top(cpu);
        const room = this.canvas.clientHeight - this.#top() - this.#lanes.laneHeight;
        if (top < this.scrolled.offset) this.scroll.scrollTop = top - this.#lanes.gap;
        else if (top > this.scrolled.offset + room) this.scroll.scrollTop = top - room + this.#lanes.gap;
    }

    #leave() {
        if (this.#walk.place) this.#walk.leave();
        else select(this.state.id, 0);
        this.scrolled.showTip(null, null);
        this.surface.invalidate();
    }
}

/** Returns the range aligned to whole pixels, so that moving content stays sharp, and can be copied. */
function onPixels(begin, end, width) {
    const pixel = (end - begin) / (width * (window.devicePixelRatio || 1));
    const from = Math.round(begin / pixel) * pixel;
    return { begin: from, end: from + (end - begin) };
}
