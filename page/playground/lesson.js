// SPDX-License-Identifier: MIT
//
// A lesson: a question to predict, a task, and expectations that the edited policy must meet.

import { element, setText } from "../../python/schedlab/monitor/page/elements.js";
import { allWaits } from "../../python/schedlab/monitor/page/finished.js";
import { METRICS } from "../../python/schedlab/monitor/page/modules/metrics.js";
import { isNarrow } from "./panes.js";
import { duration } from "../../python/schedlab/monitor/page/words.js";

const STORAGE_KEY = "schedlab-playground-lessons";
const TEXTS = ["name", "title", "base", "settings", "workload", "question", "because", "task"];
const VALUES = { run_ns: "runs", waiting_ns: "waits in all", longest_wait_ns: "waits at once" };
const CHARACTERS_MOST = 20_000;

/**
 * @typedef {{process?: string, value?: string, metric?: string, most?: number, least?: number}} Expectation of the
 * processes of a name, or of a metric
 * @typedef {{name: string, title: string, base: string, edit?: string[], settings: string, workload: string, tick_us: number,
 *     span_ms: number, cpus?: number, seed?: number, text: string[], question: string, answers: string[], right: number, because: string,
 *     task: string, expectations: Expectation[]}} Lesson `edit`: a text of the base's source, and what the lesson
 * begins with instead
 */

/** @param {string} text of a file @returns {Lesson} Throws an error that names what is wrong. */
export function readLesson(text) {
    if (text.length > CHARACTERS_MOST) throw new Error(`A lesson has at most ${CHARACTERS_MOST.toLocaleString("en")} characters; shorten it.`);
    const lesson = parsed(text);
    const wrong = TEXTS.find((name) => typeof lesson[name] !== "string")
        ?? ["text", "answers"].find((name) => !isTexts(lesson[name]))
        ?? ["tick_us", "span_ms", "right"].find((name) => !Number.isFinite(lesson[name]))
        ?? ["cpus", "seed"].find((name) => name in lesson && !Number.isInteger(lesson[name]));
    if (wrong) throw new Error(`lesson: ${wrong} is missing or has another type; docs/playground.md describes the format`);
    if ("edit" in lesson && !(isTexts(lesson.edit) && lesson.edit.length === 2)) throw new Error("lesson: edit is not two texts: what it replaces in the policy's source, and by what");
    const bad = (lesson.expectations ?? [null]).find((expectation) => !isExpectation(expectation));
    if (bad !== undefined) throw new Error("lesson: an expectation needs a metric, or a process and a value, and most or least");
    return lesson;
}

function parsed(text) {
    try {
        return JSON.parse(text);
    } catch (error) {
        throw new Error(`lesson: not valid JSON; correct it: ${error.message}`);
    }
}

/** @param {Lesson} lesson @param {Record<string, string>} policies the shipped sources @returns {string} its first source */
export function sourceOf({ base, edit }, policies) {
    if (!Object.hasOwn(policies, base)) throw new Error(`lesson: base: there is no policy ${base}; choose one of ${Object.keys(policies).join(", ")}`);
    if (edit && !policies[base].includes(edit[0])) throw new Error(`lesson: edit: the source of ${base} has no such text; copy the text from it`);
    return edit ? policies[base].replace(edit[0], () => edit[1]) : policies[base];
}

const isTexts = (list) => Array.isArray(list) && list.length > 0 && list.every((entry) => typeof entry === "string");

function isExpectation(expectation) {
    const isKnown = METRICS.some(({ key }) => key === expectation?.metric) || (typeof expectation?.process === "string" && expectation.value in VALUES);
    return isKnown && (Number.isFinite(expectation.most) || Number.isFinite(expectation.least));
}

/**
 * @param {Expectation} expectation @param {any} frame of the whole run @param {import("./runs.js").Run[]} runs
 * @param {Map<number, string>} names of processes
 * @returns {{words: string, value: number | null, isMet: boolean}}
 */
export function judged({ process, value: field, metric, most, least }, frame, runs, names) {
    const value = process ? valueOf(field, (pid) => names.get(pid) === process, frame, runs) : frame.metrics[metric];
    const { title, format } = process ? { title: `${process} ${VALUES[field]}`, format: duration } : METRICS.find(({ key }) => key === metric);
    const bounds = [most !== undefined && `at most ${format(most)}`, least !== undefined && `at least ${format(least)}`].filter(Boolean);
    const isMet = typeof value === "number" && value <= (most ?? Infinity) && value >= (least ?? -Infinity);
    return { words: `${title} ${bounds.join(" and ")}: ${format(value)}`, value, isMet };
}

function valueOf(field, hasName, frame, runs) {
    if (field === "run_ns") return runs.reduce((sum, { pid, begin, end }) => sum + (hasName(pid) ? end - begin : 0), 0);
    const waits = allWaits(runs, frame).filter(({ pid }) => hasName(pid)).map(({ waited }) => waited);
    if (!waits.length) return null;
    return field === "waiting_ns" ? waits.reduce((sum, wait) => sum + wait, 0) : Math.max(...waits);
}

export class LessonPane {
    /** @type {Lesson | null} */
    lesson = null;
    /** False if the source comes from a link and was not changed: then no progress is kept. */
    keeps = true;

    constructor() {
        this.element = element("section", { className: "lesson-pane", hidden: true, "aria-label": "Text of the lesson" });
        this.verdicts = element("ul", { className: "lesson-verdicts", "aria-live": "polite" });
        this.done = element("p", { className: "better", role: "status" });
    }

    /** @param {Lesson | null} lesson */
    show(lesson) {
        this.lesson = lesson;
        this.element.hidden = !lesson;
        this.clear();
        if (!lesson) return;
        const because = element("p", { hidden: true });
        const answers = lesson.answers.map((text, at) => {
            const choice = element("input", { type: "radio", name: "prediction" });
            choice.addEventListener("change", () => {
                because.hidden = false;
                setText(because, `${at === lesson.right ? "Yes" : `No: ${lesson.answers[lesson.right]}`}. ${lesson.because}`);
            });
            return element("label", {}, choice, ` ${text}`);
        });
        this.element.replaceChildren(foldable(lesson.title, ...lesson.text.map((text) => element("p", { textContent: text })),
            element("fieldset", {}, element("legend", { textContent: `Predict: ${lesson.question}` }), ...answers, because),
            element("p", {}, element("b", { textContent: "Task. " }), lesson.task)), this.done);
    }

    clear() {
        this.verdicts.replaceChildren();
        this.#setDone(false);
    }

    #setDone(isDone) {
        const wasDone = this.lesson && doneLessons().includes(this.lesson.name);
        setText(this.done, isDone ? "Done: all expectations are met." : wasDone ? "You have done this lesson before." : "");
    }

    /** Checks a run against the lesson's expectations. @returns {boolean} true if all are met */
    check(frame, runs, names) {
        if (!this.lesson) return false;
        const verdicts = this.lesson.expectations.map((expectation) => judged(expectation, frame, runs, names));
        this.verdicts.replaceChildren(...verdicts.map(({ words, isMet }) =>
            element("li", { className: isMet ? "better" : "worse", textContent: `${isMet ? "Met" : "Not met"}: ${words}` })));
        const isDone = verdicts.every(({ isMet }) => isMet);
        this.#setDone(isDone);
        if (isDone && this.keeps) localStorage.setItem(STORAGE_KEY, JSON.stringify([...new Set([...doneLessons(), this.lesson.name])]));
        return isDone;
    }
}

/** @param {string} title @param {...Node} text @returns {HTMLElement} folded on a telephone, where it would fill the screen */
export function foldable(title, ...text) {
    return element("details", { open: !isNarrow() }, element("summary", {}, element("h2", { textContent: title })), ...text);
}

/** @returns {string[]} names of the lessons that were met in this browser */
export function doneLessons() {
    try {
        const names = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
        return isTexts(names) ? names : [];
    } catch {
        return [];
    }
}
