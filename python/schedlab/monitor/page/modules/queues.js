// SPDX-License-Identifier: MIT
//
// The present run queues: the waiting processes of each CPU, in order or by level, and the running ones. Next
// to a waiting process is what its policy uses: its level, its tickets, its place.

import { onTheme, tokens, colourOf, inkOn, patternOf } from "../colours.js";
import { count, duration, percent } from "../elements.js";
import { allotmentLeft } from "../policy_values.js";
import { ruleOf, select, stateOf } from "../store.js";
import { LevelsSeen } from "../drawing/lanes.js";
import { Motion } from "../drawing/motion.js";
import { fillOf, fitted, font, letterScale, widthOf } from "../drawing/paint.js";
import { plan } from "../drawing/queue_plan.js";
import { ticketStrip } from "../drawing/ticket_strip.js";
import { named } from "../drawing/run_finder.js";
import { labelOf } from "../drawing/run_painter.js";
import { Scrolled } from "../drawing/scrolled.js";
import { Surface } from "../drawing/surface.js";

const LABEL_GAP_MS = 2000;
const SPOKEN_CPUS = 8;
const SLICES_MAX = 200;
const SHOWN_TICKS = 10; // how long a demotion or a boost is shown

const DRAWN = "Each queue is drawn in order of arrival, the first at the right.";

/** @param {import("../panel.js").Panel} panel @param {string} system */
export function create(panel, system) {
    return new Queues(panel, system);
}

class Queues {
    #levels = new LevelsSeen(false);
    #motion = new Motion();
    #plan = plan({ cpus: [], shared_queue: false }, { levels: [], draws: false }, 1, 1, 1);
    /** @type {Map<number, any>} the last decision of each CPU */
    #decisions = new Map();
    #decided = 0;
    /** @type {Map<string, number>} the longest remaining time seen, by policy and level */
    #slices = new Map();
    #epoch = -1;
    #frame = -1;
    #labelTime = -Infinity;
    #width = 0;

    constructor(panel, system) {
        this.panel = panel;
        this.state = stateOf(system);
        this.scrolled = new Scrolled(panel, "queues", true);
        this.canvas = this.scrolled.canvas;
        this.notice = document.createElement("p");
        this.notice.className = "drawing-notice";
        panel.body.append(this.scrolled.frame, this.notice);
        this.surface = new Surface(panel, this.canvas, (context, width, height, time) =>
            this.#paint(context, width, height, time));
        this.#listen();
        panel.draws(() => this.#take());
    }

    #listen() {
        const { element } = this.scrolled;
        onTheme(() => this.surface.invalidate());
        element.addEventListener("scroll", () => this.surface.invalidate());
        element.addEventListener("pointermove", (event) => this.#hover(event));
        element.addEventListener("pointerleave", () => this.scrolled.showTip(null, null));
        element.addEventListener("click", (event) => {
            const pid = this.#tileAt(this.scrolled.placeOf(event))?.pid ?? 0;
            select(this.state.id, pid === this.state.selected ? 0 : pid);
        });
    }

    #take() {
        const { frame, epoch, decisions } = this.state;
        if (epoch !== this.#epoch) {
            this.#decisions.clear();
            this.#slices.clear();
            this.#epoch = epoch;
            this.#decided = 0;
        }
        for (const decision of decisions.since(this.#decided)) this.#decisions.set(decision.cpu, decision);
        this.#decided = decisions.total;
        const levels = this.#levels.take(this.state);
        const width = this.canvas.clientWidth;
        this.#plan = plan(frame, this.#shown(levels), width, this.scrolled.room, letterScale());
        this.scrolled.resize(this.#plan.height, letterScale());
        const sized = width !== this.#width;
        if (frame.number !== this.#frame || sized) this.#motion.aim(this.#plan.tiles, performance.now(), sized);
        this.#frame = frame.number;
        this.#width = width;
        this.#describe();
        this.surface.invalidate();
    }

    /**
     * Returns the policy's levels, empty if it has none; and whether it draws one ticket among all waiting
     * processes.
     */
    #shown(levels) {
        const { frame } = this.state;
        const draws = ruleOf(frame.policy)?.remark_kind === "ticket" && !frame.levels;
        return { levels: frame.levels ? levels : [], draws };
    }

    #describe() {
        const { frame } = this.state;
        const waiting = frame.cpus.reduce((sum, { queue }) => sum + queue.length, 0);
        this.panel.note(`${count(waiting)} waiting`);
        const { order, levels } = ruleOf(frame.policy) ?? {};
        const words = [order, levels, DRAWN].filter(Boolean).join(" ");
        if (this.notice.textContent !== words) this.notice.textContent = words;
        this.canvas.drawn = {
            policy: frame.policy, cards: this.#plan.cards.length, tiles: this.#plan.tiles.length,
            more: this.#plan.cards.flatMap(({ shelves }) => shelves).reduce((sum, { more }) => sum + more, 0),
            shelves: this.#plan.cards[0]?.shelves.map(({ level }) => level) ?? [],
            waiting: this.#plan.tiles.filter(({ runs }) => !runs).map(({ pid }) => pid),
            running: this.#plan.tiles.filter(({ runs }) => runs).map(({ pid }) => pid),
            drawn: [...this.#decisions.values()].map(({ cpu, pid, remark }) => ({ cpu, pid, remark })),
        };
        if (performance.now() - this.#labelTime < LABEL_GAP_MS) return;
        this.#labelTime = performance.now();
        this.canvas.setAttribute("aria-label", this.#inWords());
    }

    /** Describes the queues for screen readers. */
    #inWords() {
        const { frame } = this.state;
        const words = frame.cpus.slice(0, SPOKEN_CPUS).map((cpu, number) => {
            const runs = cpu.running ? `runs ${named(this.state, cpu.running)}` : "is idle";
            const waits = cpu.queue.slice(0, 5).map(([pid]) => named(this.state, pid)).join(", ");
            const more = cpu.queue.length > 5 ? ` and ${cpu.queue.length - 5} more` : "";
            return `CPU ${number} ${runs}; ${waits ? `waiting: ${waits}${more}` : "none waits"}.`;
        });
        return words.join(" ");
    }

    #paint(context, width, height, wall_ms) {
        if (!this.state.frame) return false;
        context.clearRect(0, 0, width, height);
        context.save();
        context.translate(0, -this.scrolled.offset);
        const from = this.scrolled.offset;
        const seen = ({ y, height: tall }) => y + tall >= from && y <= from + height;
        for (const card of this.#plan.cards) if (seen(card)) this.#paintCard(context, card);
        for (const tile of this.#motion.now(wall_ms)) if (seen(tile)) this.#paintTile(context, tile);
        context.restore();
        return this.#motion.moves(wall_ms);
    }

    // --- cards -----------------------------------------------------------------------------------

    #paintCard(context, card) {
        const { ink, soft, line, sunken } = tokens();
        const scale = letterScale();
        context.fillStyle = sunken;
        context.beginPath();
        context.roundRect(card.x, card.y, card.width, card.height, 7);
        context.fill();
        context.textBaseline = "middle";
        context.fillStyle = ink;
        context.font = font(12, 650);
        context.fillText(card.title, card.x + 10, card.y + 12 * scale);
        this.#paintBoost(context, card.x + 18 + widthOf(context, card.title), card.y + 12 * scale);
        context.fillStyle = soft;
        context.font = font(11);
        const cpu = this.state.frame.cpus[card.cpu];
        this.#right(context, cpu ? `${percent(cpu.busy, 0)} busy` : "", card.x + card.width - 10, card.y + 12 * scale);
        for (const shelf of card.shelves) this.#paintShelf(context, shelf, line, soft);
        if (card.strip) this.#paintStrip(context, card);
        if (card.seat) this.#paintSeat(context, card, line, soft);
        this.#paintFoot(context, card, soft);
    }

    /** Shows a boost on the levels for some ticks. */
    #paintBoost(context, x, y) {
        const boost = this.state.story.events.findLast(({ kind }) => kind === "boost");
        if (!boost || this.state.frame.now_ns - boost.time_ns > SHOWN_TICKS * this.state.info.tick_ns) return;
        context.fillStyle = tokens().good;
        context.fillText("▲ boost: all to the top level", x, y);
    }

    /** Returns true if it was demoted recently. */
    #sank(pid) {
        const since = this.state.frame.now_ns - SHOWN_TICKS * this.state.info.tick_ns;
        const event = this.state.story.events.findLast((levelEvent) => levelEvent.pid === pid);
        return event?.kind === "demotion" && event.time_ns >= since;
    }

    #paintShelf(context, { x, y, width, height, more, label }, line, soft) {
        context.fillStyle = line;
        context.fillRect(x, y + height - 2, width, 1.5);
        context.fillStyle = soft;
        context.font = font(11, 600);
        if (label) context.fillText(label, x - 14 * letterScale(), y + height / 2);
        context.font = font(11);
        if (more) context.fillText(`+${count(more)}`, x, y + height / 2);
    }

    #paintSeat(context, { seat, shelves, cpu }, line, soft) {
        const running = this.state.frame.cpus[cpu]?.running;
        context.strokeStyle = running ? line : soft;
        context.lineWidth = 1.5;
        context.setLineDash(running ? [] : [4, 4]);
        context.beginPath();
        context.roundRect(seat.x - 1, seat.y - 1, seat.width + 2, seat.height + 2, 7);
        context.stroke();
        context.setLineDash([]);
        context.fillStyle = soft;
        context.font = font(11);
        const left = seat.x + (seat.width - widthOf(context, "idle")) / 2;
        if (!running) context.fillText("idle", left, seat.y + seat.height / 2);
        if (!shelves.length) return;
        const x = seat.x - 15 * letterScale();
        const y = seat.y + seat.height / 2;
        context.beginPath();
        context.moveTo(x - 4, y - 6);
        context.lineTo(x + 4, y);
        context.lineTo(x - 4, y + 6);
        context.strokeStyle = soft;
        context.stroke();
    }

    /** Shows why the CPU runs its process. */
    #paintFoot(context, { foot, cpu }, soft) {
        const { running, level } = this.state.frame.cpus[cpu] ?? {};
        const decision = this.#decisions.get(cpu);
        if (!running || decision?.pid !== running) return;
        context.fillStyle = soft;
        context.font = font(11);
        const left = allotmentLeft(this.state, running, level);
        const text = `${named(this.state, running)}: ${decision.text}`;
        context.fillText(fitted(context, left ? `${left} · ${text}` : text, foot.width), foot.x, foot.y + foot.height / 2);
    }

    /** Shows the tickets of the last draw, and a pointer to the drawn one. */
    #paintStrip(context, { strip, cpu }) {
        const decision = this.#decisions.get(Math.max(0, cpu));
        if (!decision) return;
        const { parts, drawn } = this.#ticketParts(decision);
        const total = parts.reduce((sum, [, tickets]) => sum + tickets, 0) || 1;
        const top = strip.y + strip.height * 0.34;
        const height = strip.height * 0.5;
        let x = strip.x;
        for (const [pid, tickets] of parts) {
            const width = (strip.width * tickets) / total;
            const won = pid === decision.pid;
            context.globalAlpha = won ? 1 : 0.45;
            context.fillStyle = pid ? colourOf(pid) : tokens().line;
            context.fillRect(x, won ? top - 2 : top, Math.max(1, width - 1.5), won ? height + 4 : height);
            context.globalAlpha = 1;
            context.fillStyle = won ? inkOn(colourOf(pid)) : tokens().ink;
            this.#paintTicketText(context, pid ? String(tickets) : "others", x, top + height / 2, width);
            x += width;
        }
        this.#paintPointer(context, strip.x + (strip.width * drawn) / total, top);
    }

    #ticketParts({ pid, candidates, waited, text }) {
        const { processes } = this.state.frame;
        const row = this.state.row(pid);
        const chances = candidates.find(([candidate]) => candidate === pid)?.[1] ?? (row < 0 ? 1 : processes.tickets[row]);
        const others = candidates.filter(([candidate]) => candidate !== pid);
        const winner = [pid, Math.max(1, chances)];
        const mean = others.reduce((sum, part) => sum + part[1], winner[1]) / (others.length + 1);
        const more = waited - others.length;
        // The annotation's number may count parts of tickets; its text has the ticket.
        const ticket = Number(/[\d,]+/.exec(text)?.[0].replaceAll(",", "") ?? NaN);
        return ticketStrip(winner, others, more > 0 ? more * mean : 0, ticket);
    }

    #paintTicketText(context, text, x, middle, room) {
        context.font = font(10.5, 600);
        if (widthOf(context, text) + 6 <= room) context.fillText(text, x + 4, middle);
    }

    #paintPointer(context, x, top) {
        context.fillStyle = tokens().ink;
        context.beginPath();
        context.moveTo(x - 6, top - 12);
        context.lineTo(x + 6, top - 12);
        context.lineTo(x, top - 3);
        context.fill();
    }

    // --- tiles -----------------------------------------------------------------------------------

    #paintTile(context, tile) {
        const { selected } = this.state;
        context.globalAlpha = tile.alpha * (selected && selected !== tile.pid ? 0.35 : 1);
        context.fillStyle = fillOf(context, tile.pid);
        context.beginPath();
        context.roundRect(tile.x, tile.y, tile.width, tile.height, Math.min(5, tile.width / 4));
        context.fill();
        if (selected === tile.pid) {
            context.strokeStyle = tokens().ink;
            context.lineWidth = 2.5;
            context.stroke();
        }
        if (tile.runs) this.#paintRunning(context, tile);
        else this.#paintWaiting(context, tile);
        context.globalAlpha = 1;
    }

    #paintWaiting(context, tile) {
        context.font = font(tile.height < 22 ? 10 : 11.5, 600);
        const by = this.#byWhat(tile.pid);
        const margin = tile.width < 30 ? 2 : 4;
        const text = labelOf(context, tile.pid, this.state.nameOf(tile.pid), tile.width - 2 * margin, true);
        const both = by && widthOf(context, `${text} ${by}`) + 12 <= tile.width;
        const x = tile.width < 30 ? tile.x + (tile.width - widthOf(context, text)) / 2 : tile.x + margin;
        if (text) this.#paintText(context, tile.pid, text, x, tile.y + tile.height / 2);
        const right = tile.x + tile.width - widthOf(context, by) - 5;
        if (both) this.#paintText(context, tile.pid, by, right, tile.y + tile.height / 2);
    }

    /** Returns the attribute that determines shares (tickets, a weight or a nice value), in short. */
    #byWhat(pid) {
        const { shares_by: by, processes } = this.state.frame;
        const row = this.state.row(pid);
        if (this.#sank(pid)) return "▼";
        if (row < 0 || by === "equal") return "";
        if (by === "nice") return `nice ${processes.nice[row]}`;
        return by === "tickets" ? `${processes.tickets[row]}t` : `×${processes.weight[row]}`;
    }

    #paintRunning(context, tile) {
        const { pid, x, y, width, height } = tile;
        context.font = font(height < 40 ? 11 : 12.5, 650);
        const text = labelOf(context, pid, this.state.nameOf(pid), width - 12);
        if (text) this.#paintText(context, pid, text, x + 6, y + height * 0.32);
        const { part, left } = this.#sliceLeft(tile);
        if (part < 0) return;
        context.font = font(10);
        const words = tile.level < 0 ? left : `level ${tile.level} · ${left}`;
        const small = widthOf(context, words) > width - 10 ? left : words;
        if (height > 40) this.#paintText(context, pid, small, x + 6, y + height * 0.66);
        context.fillStyle = inkOn(colourOf(pid));
        context.globalAlpha *= 0.3;
        context.fillRect(x + 6, y + height - 7, width - 12, 3.5);
        context.globalAlpha /= 0.3;
        context.fillRect(x + 6, y + height - 7, (width - 12) * part, 3.5);
    }

    /** Returns the time left before preemption, relative to the longest seen at this level. */
    #sliceLeft({ pid, level }) {
        const { frame } = this.state;
        const row = this.state.row(pid);
        const left = row < 0 ? -1 : frame.processes.slice_left_ns[row];
        if (left < 0) return { part: -1, left: "" };
        const key = `${frame.policy} ${level} ${frame.shares_by === "weight" ? pid : ""}`;
        if (this.#slices.size > SLICES_MAX) this.#slices.clear();
        this.#slices.set(key, Math.max(left, this.#slices.get(key) ?? 1));
        return { part: left / this.#slices.get(key), left: `${duration(left)} left` };
    }

    /** Puts a plain background behind letters on a pattern. */
    #paintText(context, pid, text, x, y) {
        if (patternOf(pid) !== "plain") {
            const size = parseFloat(context.font.split(" ")[1]);
            context.fillStyle = colourOf(pid);
            context.fillRect(x - 2, y - size * 0.65, widthOf(context, text) + 4, size * 1.3);
        }
        context.fillStyle = inkOn(colourOf(pid));
        context.fillText(text, x, y + 0.5);
    }

    #right(context, text, x, y) {
        context.fillText(text, x - widthOf(context, text), y);
    }

    // --- pointer ---------------------------------------------------------------------------------

    #tileAt({ x, y }) {
        const below = y + this.scrolled.offset;
        return this.#plan.tiles.find((tile) =>
            x >= tile.x && x <= tile.x + tile.width && below >= tile.y && below <= tile.y + tile.height);
    }

    #hover(event) {
        const place = this.scrolled.placeOf(event);
        const tile = this.#tileAt(place);
        this.scrolled.element.style.cursor = tile ? "pointer" : "";
        this.scrolled.showTip(tile ? this.#tileTip(tile) : null, place);
    }

    #tileTip({ pid, cpu, level, since, runs }) {
        const { frame } = this.state;
        const long = duration(Math.max(0, frame.now_ns - since));
        const lines = [`${runs ? "runs on" : "waits at"} CPU ${cpu} for ${long}`];
        if (level >= 0) lines.push(`level ${level}`);
        const row = this.state.row(pid);
        if (row >= 0 && frame.shares_by === "tickets") lines.push(`${frame.processes.tickets[row]} tickets`);
        if (row >= 0 && frame.shares_by === "weight") lines.push(`weight ${frame.processes.weight[row]}`);
        return { title: named(this.state, pid), lines };
    }
}
