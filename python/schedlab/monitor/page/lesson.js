// SPDX-License-Identifier: MIT
//
// Plays a lesson. The machine runs until an event and pauses, and a text explains what to look at; then comes
// a question, or an action. It needs only requests that any source of frames supports: pause, resume, pace,
// step, seek, policy, tunable, start. docs/monitor.md defines a lesson's file.

import { ask } from "./connection.js";
import { button, element, setText } from "./elements.js";
import { setLecture } from "./lecture.js";
import { starvingSince } from "./starvation.js";
import { stateOf, subscribe } from "./store.js";
import { duration } from "./words.js";

const SYSTEM = "a";
const PACE = 0.1;
const STARTED_MAX_NS = 100e6; // a machine that is further on starts again
const WITHIN_NS = 60e9; // of the system's time: the limit for the event of a step
const NEAR_NS = 100e3; // an action at a moment takes the scheduler some microseconds
const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

/** @typedef {{text: string, until?: any, ask?: any, act?: any}} Step as in docs/monitor.md */

let playing = null;

/**
 * Starts a lesson, if none is being played. @param {HTMLElement} place @param {any} lesson null: there is
 * none
 */
export function playLesson(place, lesson) {
    if (playing || !lesson) return;
    playing = new Player(place, lesson);
    playing.play();
}

class Player {
    constructor(place, lesson) {
        this.place = place;
        this.lesson = lesson;
        this.state = stateOf(SYSTEM);
        /** For tests: the expected answer of each question, and the picked process. */
        this.answers = [];
        this.title = element("p", { className: "lesson-title" });
        this.text = element("p", { className: "lesson-text", role: "status" });
        this.line = element("div", { className: "lesson-line" });
        place.replaceChildren(this.title, this.text, this.line);
        place.hidden = false;
        place.lesson = this;
    }

    async play() {
        setLecture(true, false);
        const { steps, title } = this.lesson;
        try {
            await this.#begin();
            for (const [at, step] of steps.entries()) {
                setText(this.title, `${title} · ${at + 1} of ${steps.length}`);
                await this.#step(step);
            }
            this.#say("The lesson is finished. The machine continues; try anything on the page.");
        } catch (error) {
            this.#say(`The lesson cannot continue: ${error.message}`);
        }
        this.place.dataset.ended = "true";
        this.line.replaceChildren(button("close", "Close the lesson", () => {
            this.place.hidden = true;
        }, "Close"));
    }

    async #begin() {
        // A machine that is still starting has frames, too, but ignores requests.
        const isReady = () => this.state.frame && this.state.frame.life !== "starting";
        await this.#when(isReady);
        if (this.state.frame.now_ns > STARTED_MAX_NS && this.state.can("setup")) await ask("restart");
        await this.#when(() => isReady() && (this.state.frame.now_ns <= STARTED_MAX_NS || !this.state.can("setup")));
        if (!this.state.frame.paused) await ask("pause");
        await ask("pace", { speed: this.lesson.pace ?? PACE });
    }

    /** @param {Step} step */
    async #step({ until, act, text, ask: question }) {
        if (act) await this.#act(act);
        if (until) await this.#goOn(until);
        this.#say(text);
        if (question) await this.#ask(question);
        await new Promise((resolve) => {
            const next = button("step", "Go to the next step", resolve, "Next");
            delete next.dataset.tip; // it would cover the text
            this.line.append(next);
        });
        this.line.replaceChildren();
    }

    #say(text) {
        setText(this.text, text);
    }

    async #act({ policy, tunable, value, start, pace }) {
        if (policy) await ask("policy", { policy });
        if (tunable) await ask("tunable", { name: tunable, value });
        if (start) await ask("start", { workload: start });
        if (pace !== undefined) await ask("pace", { speed: pace });
    }

    /** Runs the machine until a time, or until an event. */
    async #goOn(until) {
        const begin = this.state.frame.now_ns;
        const time = until.time === undefined ? Infinity : nanoseconds(until.time);
        if (time <= begin) return;
        const last = { begin, decision: this.state.decisions.items.at(-1)?.number ?? 0 };
        this.#say("…");
        await ask("resume");
        let moment = time;
        const event_ns = await this.#when(() => {
            moment = Math.max(begin, Math.min(time, this.#happened(until, last) ?? Infinity));
            return this.state.frame.now_ns >= moment;
        });
        await ask("pause");
        if (!event_ns) throw new Error(`${until.event} did not occur within ${duration(WITHIN_NS)} of machine time`);
        // A frame may be some milliseconds late; a question is about one moment.
        if (this.state.frame.now_ns > moment && this.state.can("seek")) {
            // The answer may come before the frame that shows the whole state. The picture until then is
            // later, by less than NEAR_NS.
            const { generation } = this.state;
            const hasRestarted = () => this.state.generation !== generation;
            await ask("seek", { time_ns: moment });
            await this.#when(() => hasRestarted() && Math.abs(this.state.frame.now_ns - moment) < NEAR_NS);
        }
        await this.#when(() => this.state.frame.paused);
    }

    // Returns when the event happened; undefined: not yet, or unknown.
    #happened({ event, of }, { begin, decision }) {
        const { story, decisions, marks } = this.state;
        const ours = ({ pid }) => !of || this.state.nameOf(pid) === of;
        const later = ({ time_ns: time }) => time > begin;
        if (event === "demotion" || event === "boost") {
            return story.events.find((levelEvent) => levelEvent.kind === event && later(levelEvent) && (event === "boost" || ours(levelEvent)))?.seen_ns;
        }
        if (event === "choice") return decisions.items.find((choice) => choice.number > decision && ours(choice))?.time_ns;
        if (event === "starvation") return [...starvingSince(this.state)].find(([pid]) => ours({ pid }))?.[1];
        return marks.items.find((mark) => mark.kind === event && later(mark) && ours(mark))?.time_ns;
    }

    /** Asks which process is next, and shows the machine's answer. */
    async #ask({ question, options, answer, because }) {
        const given = await new Promise((resolve) => {
            const choices = options.map((name) => {
                const choice = button("", `Answer: ${name}`, () => resolve(name), name);
                delete choice.dataset.tip;
                return choice;
            });
            this.line.replaceChildren(element("span", { className: "lesson-said", textContent: question }), ...choices);
        });
        const number = this.state.decisions.items.at(-1)?.number ?? 0;
        await ask("step", { kind: "decision" });
        await this.#when(() => (this.state.decisions.items.at(-1)?.number ?? 0) > number);
        const { name } = this.state.decisions.items.find((decision) => decision.number > number);
        this.answers.push({ answer, picked: name });
        const answerLabel = element("span", { className: `lesson-said ${given === name ? "good" : "failed"}` });
        answerLabel.textContent = given === name ? `Yes: ${name}.` : `No: ${name}.`;
        this.line.replaceChildren(answerLabel);
        this.#say(because);
    }

    /** Waits until a condition holds; false: the system's time exceeded the limit. */
    #when(isSo) {
        const begin = this.state.frame?.now_ns ?? 0;
        return new Promise((resolve) => {
            const end = subscribe(SYSTEM, ({ frame }) => {
                const so = isSo();
                if (!so && (frame?.now_ns ?? 0) - begin < WITHIN_NS) return;
                queueMicrotask(() => end());
                resolve(Boolean(so));
            });
        });
    }
}

/** @param {string} text such as "120ms" */
function nanoseconds(text) {
    const [, number, unit] = /^([\d.]+) ?(ns|us|ms|s)$/.exec(text) ?? [];
    return Math.round(Number(number) * UNITS[unit]);
}
