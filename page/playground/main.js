// SPDX-License-Identifier: MIT
//
// The playground: a policy's source on the left, its schedule and that of another policy on the right. Each
// change compiles the source and runs both again.

import { setTheme, isDark } from "../../python/schedlab/monitor/page/colours.js";
import { announce, button, element, policySelect, setText } from "../../python/schedlab/monitor/page/elements.js";
import { asCatalogue, sharesBy } from "../../python/schedlab/monitor/page/session/catalogue.js";
import { duration, moment } from "../../python/schedlab/monitor/page/words.js";
import { areEqual, changes, firstDifference, inWords, runsOf, worstWaits } from "./compare.js";
import { Editor } from "./editor.js";
import { doneLessons, LessonPane, readLesson } from "./lesson.js";
import { linkOf, stateOf } from "./link.js";
import { drawn, Schedules } from "./schedule.js";
import { SettingsPane } from "./settings.js";
import { Requests } from "./workers.js";

const PAUSE_MS = 250; // between the last key and compiling
const COMPILE_MS = 120_000;
const RUN_MS = 20_000;
const NEAR_NS = 2000; // between a decision and the begin of its run
const EDITED = "Yours";

/** @typedef {import("./link.js").State} State */

class Playground {
    #timer = 0;
    #requestNumber = 0;
    /** The last compiled source. @type {{source: string, module: Uint8Array} | null} */
    #compiled = null;
    /** The last two runs of different sources, the latest first. @type {{source: string, frame: any}[]} */
    #edits = [];
    /** True if an unchanged source is compiled, too. */
    #isRequested = false;

    constructor(data, modules) {
        this.data = data;
        this.policies = data.catalogue.map(asCatalogue);
        this.compiler = new Requests("compiler.js", "The compiler", COMPILE_MS, null, (progress) => this.#showProgress(progress));
        this.runner = new Requests("runner.js", "The run", RUN_MS, modules);
        this.module = modules.module;
        this.state = element("p", { className: "state", role: "status" });
        this.pointer = element("p", { className: "under-pointer" });
        this.findings = element("div", { className: "findings" });
        this.schedules = new Schedules((...run) => this.#explain(...run), (text) => setText(this.pointer, text));
        const body = element("div", { className: "editor-body", id: "editor", role: "tabpanel" });
        this.editor = new Editor(body, data.interface, () => this.#changed(), (line) => this.#markMoments(line));
        this.settings = new SettingsPane(data, this.policies, () => this.#changed(0));
        this.lesson = new LessonPane();
        this.#lay(body);
    }

    #lay(body) {
        const text = element("textarea", { className: "workload-text", spellcheck: false, "aria-label": "The workload, in words" });
        const load = element("div", { className: "editor-body", id: "workload", hidden: true, role: "tabpanel" }, text);
        text.addEventListener("input", () => {
            this.settings.state.workload = "";
            this.settings.state.text = text.value;
            this.#changed();
        });
        this.workload = text;
        const machine = element("div", { className: "editor-body", id: "machine", hidden: true, role: "tabpanel" }, this.settings.element);
        const panes = { "policy.c": body, workload: load, settings: machine };
        const tabs = Object.entries(panes).map(([title, pane], at) => {
            const tab = element("button", { type: "button", role: "tab", textContent: title, "aria-controls": pane.id, "aria-selected": String(at === 0) });
            tab.addEventListener("click", () => {
                for (const choice of Object.values(panes)) choice.hidden = choice !== pane;
                for (const choice of tabs) choice.setAttribute("aria-selected", String(choice === tab));
            });
            return tab;
        });
        const list = element("div", { className: "editor-tabs", role: "tablist", "aria-label": "What to edit" }, ...tabs);
        document.querySelector("#source").append(this.lesson.element, list, body, load, machine);
        document.querySelector("#result").append(this.state, this.schedules.element, this.pointer, this.findings);
        // Presets have no separate source.
        this.base = policySelect(this.policies.map((policy) => ({ ...policy, presets: {} })), "Policy to edit");
        this.against = policySelect(this.policies, "Compared with");
        this.base.addEventListener("change", () => this.#choose(this.base.value));
        this.against.addEventListener("change", () => {
            this.settings.state.against = this.against.value;
            this.#changed(0);
        });
        const choice = element("select", { "aria-label": "Workload" }, element("option", { value: "", textContent: "your workload" }));
        for (const { name, title } of this.data.workloads) choice.append(element("option", { value: name, textContent: name, title }));
        choice.addEventListener("change", () => this.#load(choice.value));
        this.load = choice;
        this.lessons = element("select", { "aria-label": "Lesson" });
        this.lessons.addEventListener("change", () => this.#learn(this.data.lessons.find(({ name }) => name === this.lessons.value) ?? null));
        this.#offerLessons();
        takeDrops((text) => this.#learn(readLesson(text)));
        document.querySelector("#tools").append(
            labelled("Lesson", this.lessons), labelled("Edit", this.base), labelled("compare with", this.against), labelled("on", choice),
            button("", "Copy link to what you see", () => this.#copy(), "Copy link"),
            button("", "Open in schedlab: save the source as a file, and show the command that runs it", () => this.#save(), "Open in schedlab"),
            button("auto", "Light or dark", () => setTheme(isDark() ? "light" : "dark")),
        );
        followDivider(document.querySelector("#divider"));
    }

    /** Shows a state, as from a link. @param {State} state @param {string} warning */
    begin(state, warning) {
        this.settings.show(state);
        this.base.value = state.base;
        this.against.value = state.against;
        this.load.value = state.workload;
        this.#fillWorkload();
        this.editor.text = state.source;
        if (warning) notice(warning);
        this.#changed(0);
        if (state.at) this.schedules.goTo(state.at);
    }

    #offerLessons() {
        const { value } = this.lessons;
        const done = doneLessons();
        this.lessons.replaceChildren(element("option", { value: "", textContent: "none" }), ...this.data.lessons.map(({ name, title }) =>
            element("option", { value: name, textContent: done.includes(name) ? `${title} (done)` : title })));
        this.lessons.value = value;
    }

    /** Begins a lesson, or ends it. @param {import("./lesson.js").Lesson | null} lesson */
    #learn(lesson) {
        if (lesson && !Object.hasOwn(this.data.policies, lesson.base)) throw new Error(`lesson: base: there is no policy ${lesson.base}`);
        this.lesson.show(lesson);
        if (!lesson) return;
        const { base, settings, tick_us, span_ms } = lesson;
        const source = this.data.policies[base];
        this.begin({ ...this.settings.state, base, against: base, settings, source, tick_us, span_ms, workload: "", text: lesson.workload, cpus: 1, seed: 1, at: 0 }, "");
    }

    #choose(base) {
        Object.assign(this.settings.state, { base, source: this.data.policies[base], against: base, settings: "" });
        this.begin(this.settings.state, "");
    }

    #load(name) {
        this.settings.state.workload = name;
        this.#fillWorkload();
        this.#changed(0);
    }

    #fillWorkload() {
        const { state } = this.settings;
        const chosen = this.data.workloads.find(({ name }) => name === state.workload);
        if (state.workload && !chosen) throw new Error(`There is no workload ${state.workload}; choose one above.`);
        if (chosen) state.text = chosen.text;
        this.workload.value = state.text;
    }

    // --- compiling and running

    #changed(pause_ms = PAUSE_MS) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#update(), pause_ms);
    }

    async #update() {
        const number = ++this.#requestNumber;
        const began_ms = performance.now();
        const source = this.editor.text;
        this.settings.state.source = source;
        try {
            const module = await this.#compile(source);
            if (number !== this.#requestNumber || !module) return;
            await this.#run(module, number);
            if (number === this.#requestNumber) this.state.dataset.took = String(Math.round(performance.now() - began_ms));
        } catch (error) {
            if (number === this.#requestNumber) this.#say(error.message, "bad");
        }
    }

    /** @returns {Promise<Uint8Array | "shipped" | null>} null: it does not compile */
    async #compile(source) {
        // Unchanged, it needs no compiler: a link opens without fetching 75 MB.
        if (source === this.data.policies[this.settings.state.base] && !this.#isRequested) {
            this.editor.diagnose([]);
            return "shipped";
        }
        if (this.#compiled?.source === source) return this.#compiled.module;
        this.#say("Compiling …");
        const sources = { policies: this.data.headers };
        const { module, diagnostics } = await this.compiler.ask({ compile: { source, sources, module: this.module } });
        if (source !== this.editor.text) return null;
        this.editor.diagnose(diagnostics);
        this.schedules.markStale(!module);
        const first = diagnostics.find(({ severity }) => severity === "error") ?? diagnostics[0];
        if (!module) this.#say(`Line ${first.line}: ${first.text}`, "bad", first.line);
        else this.#compiled = { source, module };
        return module;
    }

    async #run(module, number) {
        const { state } = this.settings;
        const setup = {
            cpus: state.cpus, seed: state.seed, tick_ns: state.tick_us * 1000, span_ns: state.span_ms * 1e6, text: state.text,
        };
        const edited = this.#system(state.base, state.settings, module === "shipped" ? undefined : module);
        const systems = [edited, this.#system(state.against, "", undefined)];
        const [editedResult, otherResult] = await this.runner.ask({ setup, systems });
        if (number !== this.#requestNumber) return;
        await this.#show(editedResult, otherResult, module, setup);
    }

    #system(choice, settings, module) {
        const [name] = choice.split(":");
        const values = Object.fromEntries(settings.split(/[\s,]+/).filter(Boolean).map((pair) => pair.split("=")));
        return {
            // A separate policy has the costs of the shipped policy it comes from.
            policy: module ? this.#nameOf() : choice, settings: values, module,
            costs: module ? `kernel,${this.data.costs[name] ?? ""}`.replace(/,$/, "") : "kernel",
            sharesBy: sharesBy(this.policies, choice),
        };
    }

    /** The policy's name in its source. */
    #nameOf() {
        return /\.name\s*=\s*"([^"]*)"/.exec(this.editor.text)?.[1] ?? this.settings.state.base;
    }

    async #show(edited, other, module, setup) {
        if (edited.fault && !edited.frame) return this.#showFault(edited.fault, module);
        const [editedRuns, otherRuns] = [runsOf(edited), runsOf(other)];
        const difference = firstDifference(editedRuns, otherRuns, setup.cpus, setup.tick_ns / 100);
        const end = Math.max(edited.end_ns, other.end_ns);
        const { state } = this.settings;
        const all = [
            drawn(`${EDITED}: ${this.#nameOf()}`, editedRuns, edited.frame, setup.cpus),
            drawn(state.against, otherRuns, other.frame, setup.cpus),
        ];
        this.shown = { edited, other, all, difference, source: this.editor.text, module: module instanceof Uint8Array ? module : null };
        this.schedules.set(all, end, difference?.time ?? null);
        this.#fillFindings(edited, other, editedRuns, all[0].names);
        if (!edited.fault && this.lesson.check(edited.frame, editedRuns, all[0].names)) this.#offerLessons();
        if (edited.fault) await this.#showFault(edited.fault, module);
        else this.#showDifference(difference, all, areEqual(editedRuns, otherRuns));
        return undefined;
    }

    #showDifference(difference, all, isEqual) {
        if (!difference) {
            const end = moment(Math.max(this.shown.edited.end_ns, this.shown.other.end_ns));
            this.#say(isEqual ? `Both schedules are the same, up to ${end}.` : `Both policies choose the same processes, up to ${end}; only times differ.`);
            return;
        }
        const named = (pid, { names }) => (pid ? `runs ${names.get(pid) ?? "process"} ${pid}` : "is idle");
        const { time, cpu, edited, original } = difference;
        this.#say(`First difference at ${moment(time, 6)} on CPU ${cpu}: yours ${named(edited, all[0])}, ${all[1].title} ${named(original, all[1])}.`, "", 0, time);
    }

    async #showFault({ text, hook, offsets }, module) {
        let line = 0;
        if (offsets.length && module instanceof Uint8Array) {
            const lines = await this.compiler.ask({ locate: { module, offsets } });
            line = lines.find(Boolean) ?? 0;
        }
        line ||= lineOfHook(this.editor.text, hook);
        const place = line ? `Line ${line}: ` : "";
        const during = hook ? `${hook}(): ` : "";
        this.#say(`${place}${during}${text}`, "bad", line);
        if (line) this.editor.diagnose([{ line, column: 1, severity: "error", text: `${during}${text}`, changes: [] }]);
    }

    #fillFindings(edited, other, runs, names) {
        const table = changes(edited.frame, other.frame);
        const rows = table.map(({ title, about, before, after, change, better }) => {
            const words = change === null ? "" : change === 0 ? "same" : `${change > 0 ? "+" : "−"}${Math.abs(100 * change).toFixed(change > -0.1 && change < 0.1 ? 1 : 0)} %`;
            const kind = better === null ? "" : better ? "better" : "worse";
            const sentence = better === null ? words : `${words}, ${kind}`;
            return element("tr", { title: about },
                element("th", { scope: "row", textContent: title }), element("td", { textContent: before }),
                element("td", { textContent: after }), element("td", { className: kind, textContent: sentence }));
        });
        const heads = ["Metric", this.settings.state.against, EDITED, "Change"].map((text) => element("th", { scope: "col", textContent: text }));
        const waits = worstWaits(runs, edited.own).map(({ pid, begin, ns }) => {
            const open = button("", `${duration(ns)}: show this wait of ${names.get(pid)} ${pid}`, () => this.schedules.goTo(begin), duration(ns));
            return element("li", {}, open, ` ${names.get(pid) ?? ""} ${pid}, from ${moment(begin, 6)}`);
        });
        this.findings.replaceChildren(
            element("section", { className: "summary" }, ...this.#summary(edited, table)),
            element("section", {}, element("h2", { textContent: "Metrics" }),
                element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))),
            element("section", {}, element("h2", { textContent: "Longest waits under yours" }),
                waits.length ? element("ol", {}, ...waits) : element("p", { textContent: "No process waited." })),
        );
    }

    /** Returns the largest changes, against the other policy and against the edit before. */
    #summary(edited, table) {
        const { source } = this.settings.state;
        this.#edits = [{ source, frame: edited.frame }, ...this.#edits.filter((edit) => edit.source !== source)].slice(0, 2);
        const against = inWords(table);
        const before = this.#edits[1] && inWords(changes(edited.frame, this.#edits[1].frame));
        return [
            against && element("p", { textContent: `Compared with ${this.settings.state.against}: ${against}.` }),
            before && element("p", { textContent: `Since your last edit: ${before}.` }),
        ].filter(Boolean);
    }

    // --- the source and the schedule

    /** @returns {Promise<Map<number, number>>} the source's line of each basic block */
    async #lines() {
        const { edited, module } = this.shown;
        if (this.shown.lines) return this.shown.lines;
        const blocks = [...edited.offsets.keys()];
        const lines = await this.compiler.ask({ locate: { module, offsets: [...edited.offsets.values()] } });
        this.shown.lines = new Map(blocks.map((block, at) => [block, lines[at] ?? 0]));
        return this.shown.lines;
    }

    /** Shows why a process was picked, and the lines that were executed. */
    async #explain(time, pid, system) {
        const { edited, other, module } = this.shown;
        const near = ({ time_ns, pid: picked }) => picked === pid && Math.abs(time_ns - time) < NEAR_NS;
        const decision = (system ? other : edited).frame.decisions.findLast(near);
        const why = decision ? `${decision.name} ${pid} on CPU ${decision.cpu}: ${decision.text}` : `process ${pid}`;
        this.#say(`${moment(time, 6)}: ${why}`);
        if (system) return;
        if (!module) {
            this.state.append(button("", "Show the lines that decided; compiles the source", () => this.#compileUnchanged(time, pid), "Show the lines"));
            return;
        }
        const call = edited.calls.findLast((choice) => choice.hook === "pick" && choice.time <= time && (!decision || choice.cpu === decision.cpu));
        if (!call) return;
        const lines = await this.#lines();
        const executed = [...new Set(call.blocks.map((block) => lines.get(block)))].filter(Boolean).sort((one, another) => one - another);
        this.editor.mark(executed);
        if (executed.length) this.editor.show(executed[0]);
        this.state.append(` (pick(), lines ${executed.join(", ")})`);
    }

    async #compileUnchanged(time, pid) {
        this.#isRequested = true;
        await this.#update();
        await this.#explain(time, pid, 0);
    }

    /** Marks when a line of the source was executed. */
    async #markMoments(line) {
        if (!this.shown?.module || this.shown.source !== this.editor.text) return;
        const lines = await this.#lines();
        const calls = this.shown.edited.calls.filter(({ blocks }) => blocks.some((block) => lines.get(block) === line));
        this.schedules.markMoments(calls.map(({ time }) => time));
        const hooks = [...new Set(calls.map(({ hook }) => `${hook}()`))].join(", ");
        setText(this.pointer, calls.length ? `Line ${line} was executed in ${calls.length} calls of ${hooks}, marked above.` : "");
    }

    // --- words

    #say(text, kind = "", line = 0, time = null) {
        this.state.dataset.kind = kind;
        this.state.replaceChildren(text);
        if (line) this.state.append(button("", `Go to line ${line}`, () => this.editor.goTo(line), `Go to line ${line}`));
        if (time !== null) this.state.append(button("", "Show this moment", () => this.schedules.goTo(time), "Show"));
    }

    #showProgress({ done, total }) {
        this.#say(`Fetching the compiler: ${done.toFixed(0)} of ${total.toFixed(0)} MB. The browser keeps it.`);
    }

    async #copy() {
        const link = await linkOf({ ...this.settings.state, source: this.editor.text, at: this.schedules.at }, this.data.policies, this.data.version);
        history.replaceState(null, "", link);
        try {
            await navigator.clipboard.writeText(location.href);
            announce("The link is copied.");
        } catch {
            notice(element("label", {}, "The link: ", element("input", { value: location.href, readOnly: true })));
        }
    }

    #save() {
        const name = this.#nameOf();
        const address = URL.createObjectURL(new Blob([this.editor.text], { type: "text/x-c" }));
        element("a", { href: address, download: `${name}.c` }).click();
        URL.revokeObjectURL(address);
        const { cpus, seed, workload, against } = this.settings.state;
        const load = workload || "WORKLOAD";
        notice(element("span", {}, "Copy the file to policies/, then run ",
            element("code", { textContent: `./schedlab run --machine sim --policy ${name},${against} --workload ${load} --cpus ${cpus} --seed ${seed}` })));
    }
}

/** @returns {number} the line where a policy's hook begins or, without a hook, its definition; 0: not known */
function lineOfHook(source, hook) {
    const name = hook && new RegExp(`\\.${hook}\\s*=\\s*(\\w+)`).exec(source)?.[1];
    const begin = new RegExp(name ? `^POLICY_\\w+ .*\\b${name}\\(` : "^POLICY_DEFINITION");
    return source.split("\n").findIndex((text) => begin.test(text)) + 1;
}

/** Takes texts from files that are dropped on the page. @param {(text: string) => void} take */
function takeDrops(take) {
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", async (event) => {
        event.preventDefault();
        try {
            for (const file of event.dataTransfer.files) take(await file.text());
        } catch (error) {
            notice(error.message);
        }
    });
}

function labelled(title, made) {
    return element("label", {}, `${title} `, made);
}

/** @param {Node | string} words */
function notice(words) {
    const place = document.querySelector("#notices");
    const made = element("p", { className: "state", role: "alert" }, words);
    made.append(button("close", "Close this message", () => made.remove()));
    place.replaceChildren(made);
}

function followDivider(divider) {
    const set = (percent) => {
        document.querySelector("main").style.setProperty("--left", `${Math.min(80, Math.max(15, percent))}%`);
        divider.setAttribute("aria-valuenow", String(Math.round(percent)));
    };
    set(44);
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", (event) => {
        if (divider.hasPointerCapture(event.pointerId)) set((100 * event.clientX) / innerWidth);
    });
    divider.addEventListener("keydown", ({ key }) => {
        const step = { ArrowLeft: -2, ArrowRight: 2 }[key];
        if (step) set(Number(divider.getAttribute("aria-valuenow")) + step);
    });
}

async function fetched(name) {
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(`${name} cannot be fetched: ${answer.status}; the folder is not complete`);
    return answer;
}

async function main() {
    const [data, machine, separate, module] = await Promise.all([
        fetched("data.json").then((answer) => answer.json()),
        fetched("machine.wasm").then((answer) => answer.arrayBuffer()).then((bytes) => WebAssembly.compile(bytes)),
        fetched("separate.wasm").then((answer) => answer.arrayBuffer()).then((bytes) => WebAssembly.compile(bytes)),
        fetched("module.o").then((answer) => answer.arrayBuffer()),
    ]);
    const playground = new Playground(data, { machine, separate, module: new Uint8Array(module) });
    const standard = { ...data.first, source: data.policies[data.first.base] };
    const show = async () => {
        try {
            const { state, warning } = await stateOf(location.hash, standard, data.policies, data.version);
            playground.begin(state, warning);
        } catch (error) {
            playground.begin(standard, error.message);
        }
    };
    addEventListener("hashchange", show);
    await show();
}

main().catch((error) => notice(error.message));
