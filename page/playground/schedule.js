// SPDX-License-Identifier: MIT
//
// Two schedules below each other on one time axis: the edited policy's and the original's. The first decision
// that differs is marked in both.

import { onTheme, tokens } from "../../python/schedlab/monitor/page/colours.js";
import { paintAxis, ticksOf } from "../../python/schedlab/monitor/page/drawing/axis.js";
import { followKeys, followPointer } from "../../python/schedlab/monitor/page/drawing/gestures.js";
import { Lanes } from "../../python/schedlab/monitor/page/drawing/lanes.js";
import { font, letterScale } from "../../python/schedlab/monitor/page/drawing/paint.js";
import { RunPainter } from "../../python/schedlab/monitor/page/drawing/run_painter.js";
import { Surface } from "../../python/schedlab/monitor/page/drawing/surface.js";
import { element } from "../../python/schedlab/monitor/page/elements.js";
import { Track } from "../../python/schedlab/monitor/page/store.js";
import { duration, moment } from "../../python/schedlab/monitor/page/words.js";

const AXIS = 20; // pixels
const TITLE = 18;
const LEFT = 44;
const RUNS_MOST = 20_000;
const SPAN_LEAST = 1000; // ns
const STALE_ALPHA = 0.35;

/**
 * @typedef {{title: string, tracks: Track[], names: Map<number, string>, levels: number[], isStale: boolean}} Drawn
 * one schedule
 */

/** @param {import("./runs.js").Run[]} runs @param {any} frame @param {number} cpus @returns {Drawn} */
export function drawn(title, runs, frame, cpus) {
    const tracks = Array.from({ length: cpus }, () => new Track(RUNS_MOST));
    for (const { cpu, begin, end, pid, level, how, waited } of runs) tracks[cpu].add(begin, end, pid, level, how, waited);
    const names = new Map();
    for (const { pid, name } of frame.decisions) names.set(pid, name);
    for (const { pid, text, kind } of frame.marks) {
        if (kind === "ended") names.set(pid, text.replace(/ \d+: .*$/, ""));
    }
    frame.processes.pid.forEach((pid, at) => names.set(pid, frame.processes.name[at]));
    const seen = frame.levels ? [...new Set(runs.map(({ level }) => level))].filter((level) => level >= 0).sort((a, b) => a - b) : [];
    return { title, tracks, names, levels: frame.levels_rise ? seen.reverse() : seen, isStale: false };
}

export class Schedules {
    visible = true;
    /** @type {Drawn[]} */
    #all = [];
    #begin = 0;
    #end = 1;
    #most = 1;
    /** @type {number | null} */
    #difference = null;
    /** @type {number[]} when the selected line ran, ns */
    #moments = [];
    #at = 0;
    #painter = new RunPainter();

    /**
     * @param {(time: number, pid: number, system: number) => void} choose a run was pressed
     * @param {(text: string) => void} show describes what is under the pointer
     */
    constructor(choose, show) {
        this.choose = choose;
        this.show = show;
        const label = "Schedules: the edited policy above the original. Arrows move, plus and minus zoom, 0 shows all. Full stop and comma: the next and the previous run. Enter: why it ran.";
        this.canvas = element("canvas", { className: "schedule-canvas", tabIndex: 0, role: "img", "aria-label": label });
        this.element = element("div", { className: "schedule" }, this.canvas);
        this.surface = new Surface(this, this.canvas, (...place) => this.#paint(...place));
        onTheme(() => this.surface.invalidate());
        const view = this.#view();
        followPointer(this.canvas, view, {
            span: () => ({ left: LEFT, right: this.canvas.clientWidth }),
            hover: (event) => this.show(event ? this.#described(event) : ""),
            press: (event) => this.#press(event),
        });
        const keys = { ".": () => this.#step(1), ",": () => this.#step(-1), Enter: () => this.#chooseAt() };
        followKeys(this.canvas, view, (key) => {
            keys[key]?.();
            return key in keys;
        });
    }

    /** @param {Drawn[]} all @param {number} end ns @param {number | null} difference of both, ns */
    set(all, end, difference) {
        const wasAll = this.#begin === 0 && this.#end === this.#most;
        this.#all = all;
        this.#most = Math.max(end, SPAN_LEAST);
        if (wasAll || this.#begin >= this.#most) [this.#begin, this.#end] = [0, this.#most];
        this.#difference = difference;
        this.#moments = [];
        this.canvas.style.height = `${this.#layout().height}px`;
        this.surface.invalidate();
    }

    /** Greys schedules that are older than the source. @param {boolean[]} areStale each */
    markStale(areStale) {
        this.#all.forEach((drawn, at) => Object.assign(drawn, { isStale: areStale[at] }));
        this.surface.invalidate();
    }

    /** Marks when a line of the policy ran. @param {number[]} moments ns */
    markMoments(moments) {
        this.#moments = moments;
        this.surface.invalidate();
    }

    /** Shows and marks a moment. @param {number} time ns */
    goTo(time) {
        this.#at = time;
        if (time < this.#begin || time > this.#end) this.#move(time - this.#begin - this.#span / 2);
        this.surface.invalidate();
    }

    get at() {
        return Math.round(this.#at);
    }

    get #span() {
        return this.#end - this.#begin;
    }

    #move(by) {
        const span = this.#span;
        this.#begin = Math.min(Math.max(0, this.#begin + by), Math.max(0, this.#most - span));
        this.#end = this.#begin + span;
        this.surface.invalidate();
    }

    // What drawing/gestures.js moves.
    #view() {
        const span = () => this.#span;
        return {
            get span() {
                return span();
            },
            pan: (by) => this.#move(by),
            zoom: (factor, place = 0.5) => {
                const span = Math.min(Math.max(SPAN_LEAST, this.#span * factor), this.#most);
                this.#begin += (this.#span - span) * place;
                this.#end = this.#begin + span;
                this.#move(0);
            },
            fit: () => {
                [this.#begin, this.#end] = [0, this.#most];
                this.surface.invalidate();
            },
            show: (begin) => this.#move(begin - this.#begin),
            follow: () => this.#move(this.#most),
            freeze() {},
            first: 0, live: false,
        };
    }

    #layout() {
        const scale = letterScale();
        let top = AXIS;
        const places = this.#all.map(({ tracks, levels }) => {
            const lanes = new Lanes(tracks.length, levels, scale);
            const place = { lanes, top: top + TITLE };
            top = place.top + lanes.height;
            return place;
        });
        return { places, height: Math.max(top, AXIS + 60) };
    }

    #paint(context, width, height) {
        const { places } = this.#layout();
        const span = { left: LEFT, right: width, begin: this.#begin, end: this.#end };
        context.clearRect(0, 0, width, height);
        paintAxis(context, ticksOf(span.begin, span.end, (width - LEFT) / 90), span, AXIS, height);
        this.#all.forEach((track, at) => this.#paintOne(context, track, places[at], span));
        const ink = tokens();
        for (const time of this.#moments) this.#line(context, time, span, height, ink.accent, 1);
        if (this.#at) this.#line(context, this.#at, span, height, ink.ink, 1);
        if (this.#difference !== null) this.#line(context, this.#difference, span, height, ink.failed, 2);
    }

    #paintOne(context, { title, tracks, names, isStale }, { lanes, top }, span) {
        context.save();
        context.fillStyle = tokens().ink;
        context.font = font(12, 650);
        context.textBaseline = "middle";
        context.fillText(isStale ? `${title} – before the last change` : title, 4, top - TITLE / 2);
        context.font = font(11);
        context.fillStyle = tokens().soft;
        tracks.forEach((_, cpu) => context.fillText(`CPU ${cpu}`, 2, top + lanes.top(cpu) + lanes.laneHeight / 2));
        context.beginPath();
        context.rect(LEFT, top - TITLE, span.right - LEFT, lanes.height + TITLE);
        context.clip();
        context.globalAlpha = isStale ? STALE_ALPHA : 1;
        this.#painter.begin();
        tracks.forEach((track, cpu) => this.#painter.add(track, span, lanes, top + lanes.top(cpu)));
        this.#painter.paint(context, 0, LEFT, (pid) => names.get(pid) ?? "");
        context.restore();
    }

    #line(context, time, span, height, colour, width) {
        if (time < span.begin || time > span.end) return;
        const x = span.left + ((time - span.begin) * (span.right - span.left)) / (span.end - span.begin);
        context.fillStyle = colour;
        context.fillRect(Math.round(x), AXIS, width, height - AXIS);
    }

    #findRun({ offsetX, offsetY }) {
        const { places } = this.#layout();
        const time = this.#begin + ((offsetX - LEFT) * this.#span) / (this.canvas.clientWidth - LEFT);
        const system = places.findLastIndex(({ top }) => offsetY >= top);
        if (system < 0 || offsetX < LEFT) return null;
        const { lanes, top } = places[system];
        const cpu = lanes.cpuAt(offsetY - top);
        const track = this.#all[system].tracks[cpu];
        const at = track.firstAfter(time);
        const isRun = at < track.length && track.begin[at] <= time;
        return { system, cpu, time, track, at: isRun ? at : -1 };
    }

    #described(event) {
        const run = this.#findRun(event);
        return run ? this.#words(run) : "";
    }

    #words({ system, cpu, time, track, at }) {
        if (at < 0) return `${moment(time, 6)}: CPU ${cpu} is idle`;
        const pid = track.pid[at];
        const level = track.level[at] < 0 ? "" : `, level ${track.level[at]}`;
        const name = this.#all[system].names.get(pid) ?? "";
        return `${name} ${pid} ran on CPU ${cpu} from ${moment(track.begin[at], 6)} for ${duration(track.end[at] - track.begin[at])}, after waiting ${duration(track.waited[at])}${level}`;
    }

    // The runs of the edited policy, in the order of their begins.
    #runs() {
        const runs = (this.#all[0]?.tracks ?? []).flatMap((track, cpu) =>
            Array.from({ length: track.length }, (_, at) => ({ system: 0, cpu, time: track.begin[at], track, at })));
        return runs.sort((one, other) => one.time - other.time || one.cpu - other.cpu);
    }

    #step(by) {
        const runs = this.#runs();
        const next = by > 0 ? runs.find(({ time }) => time > this.#at) : runs.findLast(({ time }) => time < this.#at);
        if (!next) return;
        this.goTo(next.time);
        this.show(this.#words(next));
    }

    #chooseAt() {
        const run = this.#runs().find(({ time }) => time >= this.#at);
        if (run) this.choose(run.time, run.track.pid[run.at], 0);
    }

    #press(event) {
        const run = this.#findRun(event);
        if (!run || run.at < 0) return;
        this.goTo(run.track.begin[run.at]);
        this.choose(run.track.begin[run.at], run.track.pid[run.at], run.system);
    }
}
