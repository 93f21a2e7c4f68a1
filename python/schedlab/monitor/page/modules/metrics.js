// SPDX-License-Identifier: MIT
//
// The metrics over the sliding window, as numbers with their history in the last minutes; with several
// systems, next to the others' metrics.

import { tokens } from "../colours.js";
import { button, count, duration, element, percent, setText } from "../elements.js";
import { formatIndex, rate } from "../words.js";
import { allStates, stateOf, subscribe } from "../store.js";
import { drawSparkline } from "../drawing/sparkline.js";

const WINDOWS_S = [1, 5, 10, 60];
const POINTS_MOST = 600;
const SAME = 0.005; // as a fraction of a value: smaller differences count as none


/**
 * `better`: which direction is better; "": neither. The definitions are those of docs/metrics.md.
 * @typedef {{key: string, title: string, better: string, format: (value: number) => string, about: string}}
 * Metric
 * @type {Metric[]}
 */
export const METRICS = [
    {
        key: "response_ns", title: "Response", better: "less", format: duration,
        about: "From fork to first run: mean over processes that first ran in the window.",
    },
    {
        key: "turnaround_ns", title: "Turnaround", better: "less", format: duration,
        about: "From fork to exit: mean over processes that ended in the window.",
    },
    {
        key: "waiting_ns", title: "Waiting", better: "less", format: duration,
        about: "Time spent runnable and not running: mean.",
    },
    {
        key: "wakeup_median_ns", title: "Wake-up, median", better: "less", format: duration,
        about: "From a wake-up to the next run: half of all wake-ups took less.",
    },
    {
        key: "wakeup_p99_ns", title: "Wake-up, 99 %", better: "less", format: duration,
        about: "From a wake-up to the next run: 99 % took at most this time.",
    },
    {
        key: "wakeup_maximum_ns", title: "Wake-up, maximum", better: "less", format: duration,
        about: "The longest time from a wake-up to the next run.",
    },
    {
        key: "throughput_per_s", title: "Throughput", better: "more", format: rate,
        about: "Processes that ended, per second.",
    },
    {
        key: "fairness", title: "Fairness", better: "more", format: formatIndex,
        about: "Jain's index over share ÷ ideal share: 1 if all got their ideal shares, 1/n if one of n got everything.",
    },
    {
        key: "fairness_turnaround", title: "Fairness of turnaround", better: "more", format: formatIndex,
        about: "Jain's index over the turnaround of ended processes.",
    },
    {
        key: "overhead", title: "Overhead", better: "less", format: percent,
        about: "CPU time between leaving one process and entering the next ÷ (CPUs × window), without idle time.",
    },
    {
        key: "utilisation", title: "Utilisation", better: "", format: percent,
        about: "Share of the CPUs' time in which processes ran.",
    },
    {
        key: "switches_per_s", title: "Context switches", better: "", format: rate,
        about: "Switches from a process to another one, per second.",
    },
    {
        key: "migrations_per_s", title: "Migrations", better: "", format: rate,
        about: "Migrations of processes to another CPU, per second.",
    },
    {
        key: "idle_while_queued_ns", title: "Idle while queued", better: "less", format: duration,
        about: "CPU time spent idle while a process waited on another CPU.",
    },
];

/** @param {import("../panel.js").Panel} panel @param {string} system */
export function create(panel, system) {
    return new MetricsPanel(panel, system);
}

class MetricsPanel {
    constructor(panel, system) {
        this.panel = panel;
        this.state = stateOf(system);
        this.windows = WINDOWS_S.map((seconds) => this.#windowButton(seconds));
        const choice = element("div", { className: "metrics-windows", role: "group", "aria-label": "Window" },
            ...this.windows);
        this.cards = METRICS.map((metric) => createCard(metric));
        panel.tools.append(choice);
        panel.body.append(element("div", { className: "metrics-grid" }, ...this.cards.map((card) => card.element)));
        panel.draws(() => this.#draw());
        this.#followOthers();
    }

    /** Shows the other systems' metrics next to this system's. */
    #followOthers() {
        for (const { id } of allStates()) {
            if (id === this.state.id) continue;
            const end = subscribe(id, () => {
                if (this.drawn && !this.panel.element.isConnected) end();
                else this.#compare();
            });
        }
    }

    #windowButton(seconds) {
        const choose = () => this.panel.asks("window", { seconds });
        const made = button("", `Window of ${seconds} s`, choose, `${seconds} s`);
        made.dataset.seconds = String(seconds);
        return made;
    }

    #draw() {
        const { frame, series } = this.state;
        this.drawn = true;
        for (const made of this.windows) {
            made.setAttribute("aria-pressed", String(Number(made.dataset.seconds) * 1e9 === frame.metrics.window_ns));
        }
        const recent = series.items.slice(-POINTS_MOST);
        const colour = tokens().accent;
        for (const card of this.cards) {
            const { key, format } = card.metric;
            setText(card.value, format(frame.metrics[key]));
            const range = drawSparkline(card.line, pointsOf(recent, key), colour);
            setText(card.range, range ? `${format(range.least)} – ${format(range.most)}` : "none in the window");
            card.element.classList.toggle("warns", key === "idle_while_queued_ns" && frame.metrics[key] > 0);
        }
        this.#addExtra("wakeup_median_ns", `${count(frame.metrics.wakeups)} wake-ups`);
        this.#addExtra("throughput_per_s", `${count(frame.metrics.finished)} ended`);
        this.#compare();
        this.panel.body.drawn = { points: recent.length, values: this.cards.map(({ value }) => value.textContent) };
    }

    #addExtra(key, text) {
        setText(this.cards.find(({ metric }) => metric.key === key).extra, text);
    }

    #compare() {
        const others = allStates().filter(({ id, frame }) => frame && id !== this.state.id);
        if (!this.state.frame || !this.panel.visible) return;
        for (const { metric, compared } of this.cards) {
            const words = others.map((other) => comparison(metric, this.state.frame.metrics, other));
            setText(compared, words.map(({ text }) => text).join("\n"));
            compared.dataset.verdict = words[0]?.verdict ?? "";
        }
    }
}

function createCard(metric) {
    const made = {
        metric,
        value: element("span", { className: "metric-value", textContent: "–" }),
        extra: element("span", { className: "metric-extra" }),
        line: element("canvas", { className: "metric-line", "aria-hidden": "true" }),
        range: element("span", { className: "metric-range" }),
        compared: element("span", { className: "metric-compared" }),
    };
    const title = element("span", { className: "metric-title", textContent: metric.title, tabIndex: 0 });
    title.dataset.tip = metric.about;
    title.setAttribute("aria-description", metric.about);
    const figures = element("span", { className: "metric-figures" }, made.value, made.extra);
    const card = element("div", { className: "metric", data: { metric: metric.key } },
        title, figures, made.line, made.range, made.compared);
    return { ...made, element: card };
}

function pointsOf(series, key) {
    return series.map(({ time_ns: time, metrics, policy }) => ({ time, value: metrics[key], policy }));
}

/** Compares a metric with another system's, in a text with an arrow. */
function comparison({ key, better, format }, metrics, other) {
    const current = metrics[key];
    const theirs = other.frame.metrics[key];
    if (current === null || theirs === null) return { text: `${other.id}: ${format(theirs)}`, verdict: "" };
    const difference = theirs ? (current - theirs) / Math.abs(theirs) : current ? Infinity : 0;
    if (Math.abs(difference) < SAME) return { text: `= ${other.id}: ${format(theirs)}`, verdict: "same" };
    const arrow = difference > 0 ? "▲" : "▼";
    const size = Number.isFinite(difference) ? ` ${amount(difference)}` : "";
    const good = (difference < 0) === (better === "less");
    const words = better ? `${good ? "better" : "worse"} than` : "beside";
    const verdict = better && (good ? "good" : "bad");
    return { text: `${arrow}${size} ${words} ${other.id}: ${format(theirs)}`, verdict };
}

function amount(difference) {
    if (difference >= 1) return `${(1 + difference).toFixed(1)}×`;
    return `${difference > 0 ? "+" : "−"}${percent(Math.abs(difference), 0)}`;
}
