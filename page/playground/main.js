// SPDX-License-Identifier: MIT
//
// The playground: a policy's source on the left, its schedule and that of another policy on the right. Each
// change compiles the source and runs both again.

import { setTheme, isDark } from "../../python/schedlab/monitor/page/colours.js";
import { button, element, policySelect, setText } from "../../python/schedlab/monitor/page/elements.js";
import { longestWaits } from "../../python/schedlab/monitor/page/finished.js";
import { asCatalogue, sharesBy } from "../../python/schedlab/monitor/page/session/catalogue.js";
import { duration, moment } from "../../python/schedlab/monitor/page/words.js";
import { checksOf, wordsOf } from "./checks.js";
import { changes, effortOf, inWords, reasonOf } from "./compare.js";
import { Editor } from "./editor.js";
import { placeOf } from "./faults.js";
import { keptOf, LabPane, progressOf } from "./lab.js";
import { doneLessons, LessonPane, readLesson, sourceOf } from "./lesson.js";
import { isFile, linkOf, stateOf } from "./link.js";
import { dividerOf, isNarrow, PANES, Tabs } from "./panes.js";
import { areEqual, firstDifference, runsOf } from "./runs.js";
import { drawn, Schedules } from "./schedule.js";
import { SettingsPane } from "./settings.js";
import { StudyPane } from "./study.js";
import { inLines, timesIn, ValuesPane } from "./values.js";
import { Requests } from "./workers.js";

const PAUSE_MS = 150; // between the last key and compiling
const COMPLETE_PAUSE_MS = 400; // between a schedule and the complete compilation, which slows down the next edit
const CHECK_PAUSE_MS = 500; // between a complete run and the check of rules
const STUDY_PAUSE_MS = 1500; // between a schedule and the compiler's further work
const REFERENCE = "rr"; // for the basic blocks of hooks
const COMPILE_MS = 120_000;
const RUN_MS = 20_000;
const CHECK_MS = 120_000;
const SPAN_MOST_MS = 60_000;
const NEAR_NS = 2000; // between a decision and the begin of its run
const EDITED = "Yours";
const STOPPED = "The source has changed.";
const LAB = "lab:"; // before a lab's name in the choice of lessons
const WORKLOAD_LINE = /^workload:(\d+): /;
const WAITS_SHOWN = 5;
const INTRODUCED = "schedlab-playground-introduced"; // in the browser's storage
const KEYS = "Press a run, or a wait below, to see why. In the schedule: + and − zoom, arrows move, full stop and comma go from run to run, Enter says why it ran.";
const REMARK = /\.remark\s*=\s*"([^"{}]*)"/; // without a value
const LAB_BASE = "rr"; // a lab's policy has its costs outside the lab's tests
const OUTDATED = "The schedules are older than your last change, which has not run yet.";
const UNOPENED = { why: 0, whom: 0, late: 0 };
const NOWHERE = { at: 0, ...UNOPENED };

/** @typedef {import("./link.js").State} State */

class Playground {
    #timer = 0;
    #studyTimer = 0;
    #checkTimer = 0;
    #completeTimer = 0;
    #requestNumber = 0;
    #openings = 0; // decisions and waits opened so far: only the last is shown
    /** The last compiled source. @type {{source: string, module: Uint8Array} | null} */
    #compiled = null;
    /** The last two runs of different sources, the latest first. @type {{source: string, frame: any}[]} */
    #edits = [];
    /** True if an unchanged source is compiled, too. */
    #isRequested = false;
    /** The source that a choice or a link put here: it can be had again. */
    #given = "";
    /** What is being done, in words. @type {Set<string>} */
    #steps = new Set();

    constructor(data, modules) {
        this.data = data;
        this.policies = data.catalogue.map(asCatalogue);
        this.compiler = new Requests("compiler.js", "The compiler", COMPILE_MS, null, (progress) => this.#showProgress(progress));
        this.runner = new Requests("runner.js", "The run", RUN_MS, modules);
        this.checker = new Requests("runner.js", "The check", CHECK_MS, modules);
        this.module = modules.module;
        this.state = element("p", { className: "state", role: "status" });
        this.steps = element("p", { className: "steps" });
        this.because = element("p", { className: "because", role: "status" });
        this.noTests = element("p", { textContent: "No lesson is open. Choose one above: this tab then lists what your policy must do." });
        this.pointer = element("p", { className: "under-pointer", textContent: KEYS });
        this.findings = element("div", { className: "findings" });
        this.study = new StudyPane((line) => this.#goTo(line));
        this.schedules = new Schedules((...run) => this.#press(run), (text) => setText(this.pointer, text || KEYS));
        const body = element("div", { className: "editor-body", id: "editor", role: "tabpanel" });
        this.editor = new Editor(body, data.interface, () => this.#edited(), (line) => this.#attempt(() => this.#markMoments(line)));
        this.settings = new SettingsPane(data, this.policies, () => this.#edited(0));
        this.values = new ValuesPane(() => this.editor.annotate(new Map()), () => Object.assign(this.settings.state, UNOPENED));
        this.lesson = new LessonPane();
        this.lab = new LabPane(this.compiler, modules, data.headers, {
            getSource: () => this.editor.text, setSource: (source) => this.begin({ ...this.settings.state, source, ...NOWHERE }, ""),
            showTest: (test) => this.begin({ ...this.settings.state, ...runOfTest(test), source: this.editor.text }, "", !this.lab.keeps),
            showTests: () => this.tabs.show("tests"), changed: () => this.#offerLessons(),
        });
        this.#lay(body);
    }

    #lay(body) {
        const text = element("textarea", { className: "workload-text", spellcheck: false, "aria-label": "The workload, in words" });
        const load = element("div", { className: "editor-body", id: "workload", hidden: true, role: "tabpanel" }, text);
        text.addEventListener("input", () => {
            this.settings.state.workload = this.load.value = "";
            this.settings.state.text = text.value;
            this.#changed();
        });
        this.workload = text;
        const machine = element("div", { className: "editor-body", id: "machine", hidden: true, role: "tabpanel" }, this.settings.element);
        const tests = element("div", { className: "editor-body", id: "tests", role: "tabpanel", tabIndex: 0, "aria-label": "Tests" }, this.noTests, this.lesson.verdicts, this.lab.tests);
        this.tabs = new Tabs({ "policy.c": body, workload: load, settings: machine, tests });
        const divider = (name, label, options) => dividerOf(name, label, {
            ...options, changed: (percent) => {
                this.settings.state[name] = percent;
            },
        });
        this.dividers = {
            left: divider("left", "Width of the editor", { isUpright: true }),
            upper: divider("upper", "Height of the schedules", {}),
            lower: divider("lower", "Height of the values", { isLast: true }),
        };
        const below = element("section", { className: "below", tabIndex: 0, "aria-label": "Verdict" }, this.pointer, this.findings, this.study.element);
        const source = document.querySelector("#source");
        source.append(this.tabs.element, this.lesson.element, this.lab.element, body, load, machine, tests, this.dividers.lower, this.values.element);
        source.after(this.dividers.left);
        document.querySelector("#result").append(element("div", { className: "status" }, this.state, this.because, this.steps), this.schedules.element, this.dividers.upper, below);
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
        this.lessons.addEventListener("change", () => this.#open(this.lessons.value));
        this.#offerLessons();
        takeDrops((text) => this.#learn(text, readLesson(text)));
        document.querySelector("#tools").append(
            labelled("Lesson", this.lessons), labelled("Edit", this.base), labelled("compare with", this.against), labelled("on", choice),
            button("", "Copy link to what you see", () => this.#copy(), "Copy link"),
            button("", "Open in schedlab: save the source as a file, and show the command that runs it", () => this.#save(), "Open in schedlab"),
            button("auto", "Light or dark", () => setTheme(isDark() ? "light" : "dark")),
            button("help", "Explain this page", () => introduce(true)),
        );
    }

    /** Shows a state. @param {State} state @param {string} warning @param {boolean} [isLinked] it is another's */
    begin(state, warning, isLinked = false) {
        const before = { ...this.settings.state, source: this.editor.text };
        const isReplaced = before.source !== state.source;
        const wasEdited = before.source && before.source !== this.#given;
        if (isReplaced) this.#given = state.source;
        this.#edits = [];
        this.lesson.keeps = this.lab.keeps = !isLinked;
        this.settings.show(state);
        this.base.value = state.base;
        this.against.value = state.against;
        this.load.value = state.workload;
        for (const [name, divider] of Object.entries(this.dividers)) divider.set(state[name]);
        this.#fillWorkload();
        this.editor.text = state.source;
        if (warning) notice(warning);
        else if (wasEdited && isReplaced) {
            notice(element("span", {}, "Another source replaced yours. ", button("", "Bring your source back", () => this.#bringBack(before), "Bring it back")));
        }
        const { why, whom, late } = state;
        this.#changed(0);
        Object.assign(state, { why, whom, late });
        if (state.at) this.schedules.goTo(state.at);
    }

    #bringBack(before) {
        document.querySelector("#notices").replaceChildren();
        this.begin(before, "");
        this.#given = "";
        this.#attempt(() => this.resume(before));
    }

    #offerLessons() {
        const { value } = this.lessons;
        const done = doneLessons();
        const lessons = this.data.lessons.map(({ name, title }) =>
            element("option", { value: name, textContent: done.includes(name) ? `${title} (done)` : title }));
        const labs = this.data.labs.map(({ name, title }) => element("option", { value: LAB + name, textContent: title + progressOf(name) }));
        this.lessons.replaceChildren(element("option", { value: "", textContent: "none" }), element("optgroup", { label: "Lessons" }, ...lessons),
            ...(labs.length ? [element("optgroup", { label: "Labs" }, ...labs)] : []));
        this.lessons.value = value;
    }

    /** Opens what the user chose. @param {string} choice a lesson's name, LAB with a lab's, or "" */
    async #open(choice) {
        try {
            if (choice.startsWith(LAB)) await this.#openLab(choice.slice(LAB.length));
            else this.#learn(choice, choice ? this.#lessonOf(choice) : null);
        } catch (error) {
            notice(error.message);
        }
    }

    /**
     * Begins a lesson, or ends it.
     * @param {string} link its name, or the text of its file @param {import("./lesson.js").Lesson | null} lesson
     */
    #learn(link, lesson) {
        const opened = { lesson: link, lab: "" };
        if (lesson) {
            const source = sourceOf(lesson, this.data.policies);
            const { base, settings, tick_us, span_ms, cpus = 1, seed = 1 } = lesson;
            this.begin({ ...this.settings.state, base, against: base, settings, source, tick_us, span_ms, workload: "", text: lesson.workload, cpus, seed, ...NOWHERE, ...opened }, "");
        }
        Object.assign(this.settings.state, opened);
        this.resume(opened);
    }

    /** Opens a lab with the source of the last check, or with its start file. @param {string} name */
    async #openLab(name) {
        const lab = await this.#readLab(name);
        const source = keptOf(name)?.source ?? lab.start;
        const first = lab.tests.find(({ hidden }) => !hidden);
        const run = first ? runOfTest(first) : {};
        const opened = { lesson: "", lab: name };
        this.begin({ ...this.settings.state, ...NOWHERE, ...run, base: LAB_BASE, against: LAB_BASE, source, ...opened }, "");
        await this.resume(opened);
    }

    /** Shows the lesson or the lab of a state. @param {Pick<State, "lesson" | "lab">} state */
    async resume({ lesson, lab }) {
        this.lesson.show(lesson ? this.#lessonOf(lesson) : null);
        this.lab.show(null);
        this.noTests.hidden = Boolean(lesson || lab);
        this.lessons.value = lab ? LAB + lab : lesson;
        if (lab) this.lab.show(await this.#readLab(lab), this.labs.reasons);
    }

    #lessonOf(link) {
        const lesson = isFile(link) ? readLesson(link) : this.data.lessons.find(({ name }) => name === link);
        if (!lesson) throw new Error(`This link opens the lesson ${link}, which is not in this playground; ask its sender for the address.`);
        return lesson;
    }

    async #readLab(name) {
        if (!this.data.labs.some((lab) => lab.name === name)) throw new Error(`This link opens the lab ${name}, which is not in this playground; ask its sender for the address.`);
        this.labs ??= await fetched("labs.json").then((answer) => answer.json());
        return this.labs.labs.find((lab) => lab.name === name);
    }

    #choose(base) {
        this.begin({ ...this.settings.state, base, source: this.data.policies[base], settings: "", ...NOWHERE }, "");
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

    #edited(pause_ms) {
        this.lesson.keeps = this.lab.keeps = true;
        this.#changed(pause_ms);
    }

    #changed(pause_ms = PAUSE_MS) {
        Object.assign(this.settings.state, UNOPENED);
        for (const timer of [this.#timer, this.#studyTimer, this.#checkTimer, this.#completeTimer]) clearTimeout(timer);
        this.#requestNumber += 1; // what is compiled or simulated now is no longer awaited
        this.#openings += 1;
        this.#markStale(true);
        for (const worker of [this.runner, this.checker]) worker.cancel(STOPPED);
        this.study.clear();
        this.values.clear();
        this.lab.compare(this.editor.text);
        this.#timer = setTimeout(() => this.#update(), pause_ms);
    }

    /** Marks results as older than what the user has changed: nothing in them can be opened. */
    #markStale(isStale) {
        this.isStale = isStale;
        this.schedules.markStale([isStale, isStale && JSON.stringify(this.shown?.inputs) !== JSON.stringify(this.#runInputs())]);
        this.findings.inert = isStale;
        for (const part of [this.findings, this.lesson.verdicts]) part.classList.toggle("stale", isStale);
    }

    /** What both runs depend on, except the source. */
    #runInputs() {
        const { cpus, seed, tick_us, span_ms, text, against } = this.settings.state;
        return { setup: { cpus, seed, tick_ns: tick_us * 1000, span_ns: span_ms * 1e6, text }, against };
    }

    /**
     * Compiles and runs. A changed source is first compiled without the checks of undefined behaviour and without
     * lines, which takes half the time; soon after its schedule is shown, it is compiled completely.
     * @param {boolean} [isComplete] at once
     */
    async #update(isComplete = false) {
        clearTimeout(this.#completeTimer);
        const number = ++this.#requestNumber;
        const began_ms = performance.now();
        const source = this.editor.text;
        this.settings.state.source = source;
        const took = () => String(Math.round(performance.now() - began_ms));
        if (!isComplete) delete this.state.dataset.took;
        delete this.state.dataset.complete;
        if (this.isStale) this.#say(this.shown ? OUTDATED : "");
        const opensDecision = async () => {
            const { why, whom, late } = this.settings.state;
            if (late) await this.#openWait(whom, why);
            else if (whom) await this.#explain(why, whom, 0);
            return Boolean(whom);
        };
        await this.#attempt(async () => {
            if (!isComplete && !this.#isShipped(source) && this.#compiled?.source !== source) {
                const module = await this.#compile(source, true);
                if (number !== this.#requestNumber || !module) return;
                const isShown = await this.#run(module, number, true);
                if (number !== this.#requestNumber) return;
                if (isShown) {
                    this.state.dataset.took = took();
                    if (!await opensDecision()) this.#completeTimer = setTimeout(() => this.#update(true), COMPLETE_PAUSE_MS);
                    return;
                }
            }
            const module = await this.#compile(source, false);
            if (number !== this.#requestNumber || !module) return;
            await this.#run(module, number, false);
            if (number !== this.#requestNumber) return;
            this.state.dataset.took ??= took();
            this.state.dataset.complete = took();
            await opensDecision();
        }, () => this.#markStale(true));
    }

    /** Does something, and shows its error, unless the source has changed. @param {() => Promise<any>} action @param {() => void} [failed] */
    async #attempt(action, failed = () => {}) {
        const number = this.#requestNumber;
        try {
            await action();
        } catch (error) {
            if (number !== this.#requestNumber) return;
            failed();
            this.#say(error.message, "bad");
        }
    }

    /** Says what is being done for the present source, and for how long. @template T @param {string} words @param {Promise<T>} work @returns {Promise<T>} */
    async #during(words, work) {
        const began_ms = performance.now();
        const number = this.#requestNumber;
        let text = "";
        const show = (next) => {
            this.#steps.delete(text);
            if (next) this.#steps.add(next);
            text = next;
            setText(this.steps, [...this.#steps].join("; "));
        };
        const count = () => show(number === this.#requestNumber ? `${words}, ${Math.round((performance.now() - began_ms) / 1000)} s` : "");
        count();
        const timer = setInterval(count, 1000);
        try {
            return await work;
        } finally {
            clearInterval(timer);
            show("");
        }
    }

    /** @returns {boolean} true if no compiler is needed: a link opens without fetching 75 MB */
    #isShipped(source) {
        return source === this.data.policies[this.settings.state.base] && !this.#isRequested;
    }

    /** @returns {Promise<Uint8Array | "shipped" | null>} null: it does not compile */
    async #compile(source, isQuick) {
        if (this.#isShipped(source)) {
            this.editor.diagnose([]);
            return "shipped";
        }
        if (this.#compiled?.source === source) return this.#compiled.module;
        const request = this.compiler.ask({ compile: { ...this.#inputs(source), isQuick } });
        const { module, diagnostics } = await this.#during(isQuick ? "Compiling" : "Compiling with checks and lines", request);
        if (source !== this.editor.text) return null;
        this.editor.diagnose(diagnostics);
        const first = diagnostics.find(({ severity }) => severity === "error") ?? diagnostics[0];
        if (!module) {
            this.#markStale(true);
            this.#say(`Line ${first.line}: ${first.text}`, "bad", first.line);
        } else if (!isQuick) this.#compiled = { source, module };
        return module;
    }

    #inputs(source) {
        return { source, sources: { policies: this.data.headers }, module: this.module };
    }

    /**
     * Runs both policies, and shows the result.
     * @param {boolean} isQuick the module lacks checks and lines; a fault is not shown @returns {Promise<boolean>} it is shown
     */
    async #run(module, number, isQuick) {
        const { state } = this.settings;
        const inputs = this.#runInputs();
        const edited = this.#system(state.base, state.settings, module === "shipped" ? undefined : module);
        const systems = [edited, this.#system(state.against, "", undefined)];
        const [editedResult, otherResult] = await this.#during("Simulating", this.runner.ask({ run: { setup: inputs.setup, systems } }));
        if (number !== this.#requestNumber || (isQuick && editedResult.fault)) return false;
        const { fault } = editedResult;
        const place = fault?.of === "policy" ? await placeOf(this.compiler, fault, module, this.editor.text) : null;
        if (number !== this.#requestNumber) return false;
        this.#show(editedResult, otherResult, isQuick ? null : module, { inputs, systems }, place);
        return true;
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

    /** Shows everything at once. @param {{line: number, text: string} | null} place of the policy's fault */
    #show(edited, other, module, { inputs, systems }, place) {
        const { fault } = edited;
        if (fault && (!place || !edited.frame)) {
            if (place) this.#showFault(place);
            else this.#showWrongInput(fault);
            return;
        }
        const { setup, against } = inputs;
        const [editedRuns, otherRuns] = [runsOf(edited), runsOf(other)];
        const compiled = module instanceof Uint8Array ? module : null;
        const isShown = compiled !== null && this.#isShown(edited, editedRuns, otherRuns, inputs);
        const difference = firstDifference(editedRuns, otherRuns, setup.cpus, setup.tick_ns / 100);
        const all = [
            drawn(`${EDITED}: ${this.#nameOf()}`, editedRuns, edited.frame, setup.cpus),
            drawn(against, otherRuns, other.frame, setup.cpus),
        ];
        this.shown = { edited, other, all, inputs, systems, source: this.editor.text, isShipped: module === "shipped", module: compiled, diagnostics: [] };
        if (compiled) {
            this.#studyTimer = setTimeout(() => this.#study(), STUDY_PAUSE_MS);
            if (!fault) this.#checkTimer = setTimeout(() => this.#check(), CHECK_PAUSE_MS);
        }
        if (isShown) return;
        this.schedules.set(all, Math.max(edited.end_ns, other.end_ns), difference?.time ?? null);
        this.#markStale(false);
        const waits = this.#waits(edited, editedRuns, all[0].names);
        if (place) {
            Object.assign(this.settings.state, UNOPENED);
            this.lesson.clear();
            const time_ns = fault.time_ns ?? edited.end_ns;
            this.findings.replaceChildren(element("p", { textContent: `The policy broke a rule at ${moment(time_ns, 6)}: ${sentenceOf(place)} The metrics are not compared.` }), waits);
            this.#showFault(place, time_ns);
        } else {
            this.#fillFindings(edited, other, waits);
            if (this.lesson.check(edited.frame, editedRuns, all[0].names)) this.#offerLessons();
            this.#showDifference(difference, all, areEqual(editedRuns, otherRuns));
        }
    }

    /** @returns {boolean} true if the same schedule of the same source is shown, of its quick compilation */
    #isShown(edited, editedRuns, otherRuns, inputs) {
        const { shown } = this;
        if (!shown || shown.module || shown.isShipped || edited.fault || shown.source !== this.editor.text) return false;
        return JSON.stringify(shown.inputs) === JSON.stringify(inputs)
            && areEqual(runsOf(shown.edited), editedRuns) && areEqual(runsOf(shown.other), otherRuns);
    }

    /** Compares the basic blocks of hooks with round-robin's, and finds broken rules of Linux. */
    async #study() {
        const { shown } = this;
        const number = this.#requestNumber;
        await this.#attempt(async () => {
            const words = `Comparing hooks with those of ${REFERENCE}`;
            this.reference ??= await this.#during(words, this.compiler.ask({ compile: this.#inputs(this.data.policies[REFERENCE]) }));
            if (number !== this.#requestNumber) return;
            const system = { ...this.#system(REFERENCE, "", this.reference.module), policy: REFERENCE };
            const [reference] = await this.#during(words, this.runner.ask({ run: { setup: shown.inputs.setup, systems: [system] } }));
            if (number !== this.#requestNumber) return;
            this.study.showEffort(effortOf(shown.edited.calls), effortOf(reference.calls), REFERENCE);
            const { linux, support } = this.data.bpf;
            const sources = { linux, policies: { ...this.data.headers, support } };
            const broken = await this.#during("Checking rules of Linux", this.compiler.ask({ examine: { source: shown.source, sources } }));
            if (number === this.#requestNumber) this.#showBroken(broken);
        });
    }

    #showBroken(broken) {
        this.study.showBroken(broken, this.#nameOf());
        const warnings = broken.filter(({ line }) => line).map(({ line, text }) => ({ line, column: 1, severity: "warning", text: `Linux: ${text}`, changes: [] }));
        if (warnings.length) this.#addDiagnostics(warnings);
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

    /** Checks the policy's rules with other workloads and tunables, in a separate worker. */
    async #check() {
        const { shown } = this;
        const number = this.#requestNumber;
        const { base } = this.settings.state;
        const system = this.#system(base, "", shown.module);
        const checks = checksOf(this.data.checks, this.settings.tunables, system.sharesBy > 0);
        await this.#attempt(async () => {
            const { passed, failed, fault } = await this.#during(`Checking rules in ${checks.length} runs`, this.checker.ask({ check: { system, checks } }));
            const place = fault && await placeOf(this.compiler, fault, shown.module, shown.source);
            if (number !== this.#requestNumber) return;
            const broken = place && { ...place, text: `${place.text} (${wordsOf(failed)})` };
            this.study.showCheck(passed, broken, this.#nameOf());
            if (broken?.line) this.#addDiagnostics([errorAt(broken)]);
        });
    }

    #addDiagnostics(more) {
        this.shown.diagnostics.push(...more);
        this.editor.diagnose(this.shown.diagnostics);
    }

    /** @param {{line: number, text: string}} place of the policy's fault @param {number | null} [time_ns] when it occurred */
    #showFault(place, time_ns = null) {
        this.#say(sentenceOf(place), "bad", place.line, time_ns);
        if (place.line) this.editor.diagnose([errorAt(place)]);
    }

    /** Says what is wrong with the workload or the settings; the schedules of the last right ones stay. */
    #showWrongInput({ text, of }) {
        const [, row] = WORKLOAD_LINE.exec(text) ?? [];
        this.#say(row ? text.replace(WORKLOAD_LINE, `The workload, line ${row}: `) : `The ${of}: ${text}`, "bad");
        if (of === "workload") this.state.append(button("", "Go to the workload", () => this.#goToWorkload(Number(row ?? 1)), "Go to the workload"));
    }

    /** @param {number} row of the workload's text, from 1 */
    #goToWorkload(row) {
        this.tabs.show("workload");
        const lines = this.workload.value.split("\n");
        const begin = lines.slice(0, row - 1).reduce((sum, line) => sum + line.length + 1, 0);
        this.workload.focus();
        this.workload.setSelectionRange(begin, begin + (lines[row - 1]?.length ?? 0));
    }

    #fillFindings(edited, other, waits) {
        const table = changes(edited.frame, other.frame);
        const rows = table.map(({ title, about, before, after, change, better }) => {
            const words = change === null ? "" : change === 0 ? "same" : `${change > 0 ? "+" : "−"}${Math.abs(100 * change).toFixed(change > -0.1 && change < 0.1 ? 1 : 0)} %`;
            const kind = better === null ? "" : better ? "better" : "worse";
            const sentence = [words, kind].filter(Boolean).join(", ");
            return element("tr", { title: about },
                element("th", { scope: "row", textContent: title }), element("td", { textContent: before }),
                element("td", { textContent: after }), element("td", { className: kind, textContent: sentence }));
        });
        const heads = ["Metric", this.settings.state.against, EDITED, "Change"].map((text) => element("th", { scope: "col", textContent: text }));
        this.findings.replaceChildren(
            element("section", { className: "summary" }, ...this.#summary(edited, table)),
            element("section", {}, element("h2", { textContent: "Metrics" }),
                element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))),
            waits);
    }

    /** @returns {HTMLElement} the longest waits, to open */
    #waits(edited, runs, names) {
        const waits = longestWaits(runs, edited.frame, WAITS_SHOWN).map(({ pid, begin, waited, isOpen }) => {
            const open = button("", `${duration(waited)}: show this wait of ${names.get(pid)} ${pid}, and why another process ran`,
                () => this.#attempt(() => this.#openWait(pid, begin)), duration(waited));
            return element("li", {}, open, ` ${names.get(pid) ?? ""} ${pid}, from ${moment(begin, 6)}${isOpen ? ", not ended" : ""}`);
        });
        return element("section", {}, element("h2", { textContent: "Longest waits under yours" }),
            waits.length ? element("ol", {}, ...waits) : element("p", { textContent: "No process waited." }));
    }

    /** Returns the largest changes, against the other policy and against the edit before. */
    #summary(edited, table) {
        const { source } = this.settings.state;
        this.#edits = [{ source, frame: edited.frame }, ...this.#edits.filter((edit) => edit.source !== source)].slice(0, 2);
        const against = inWords(table);
        const before = this.#edits[1] && inWords(changes(edited.frame, this.#edits[1].frame));
        return [
            against && element("p", { textContent: `Compared with ${this.settings.state.against}: ${against}.` }),
            before && before !== against && element("p", { textContent: `Since your last edit: ${before}.` }),
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

    #press(run) {
        return this.isStale ? setText(this.pointer, OUTDATED) : this.#attempt(() => this.#explain(...run));
    }

    /** Shows a wait, why the process waited, and why the process ran that took most of the wait. */
    async #openWait(pid, begin) {
        const { edited } = this.shown;
        this.schedules.goTo(begin);
        const runs = runsOf(edited);
        const next = runs.find((run) => run.pid === pid && run.begin > begin);
        const end = next?.begin ?? edited.end_ns;
        const during = (run) => Math.min(run.end, end) - Math.max(run.begin, begin);
        const others = runs.filter((run) => run.cpu === (next ?? run).cpu && run.pid !== pid && during(run) > 0);
        const [other] = others.sort((one, another) => during(another) - during(one) || one.begin - another.begin);
        await this.#explain(other?.begin ?? begin, other?.pid ?? 0, 0, { pid, begin, end, isOpen: !next });
    }

    /**
     * Shows why a process was picked, the lines that were executed, and why a process waited.
     * @param {number} time @param {number} pid 0: none was picked @param {number} system
     * @param {{pid: number, begin: number, end: number, isOpen: boolean} | null} [wait] null: the wait before the decision
     */
    async #explain(time, pid, system, wait = null) {
        const { edited, other, module, all, source, inputs, systems } = this.shown;
        const opening = ++this.#openings;
        const isOpen = () => opening === this.#openings;
        const opened = wait ? { why: wait.begin, whom: wait.pid, late: 1 } : { why: time, whom: pid, late: 0 };
        Object.assign(this.settings.state, system ? UNOPENED : opened);
        const near = ({ time_ns, pid: picked }) => picked === pid && Math.abs(time_ns - time) < NEAR_NS;
        const decision = (system ? other : edited).frame.decisions.findLast(near);
        const named = (number) => `${all[system].names.get(number) ?? "process"} ${number}`;
        const reason = decision?.text || (system ? "" : this.#remark());
        const why = decision ? `${named(pid)} on CPU ${decision.cpu}${reason && `: ${reason}`}` : pid ? named(pid) : "no process runs";
        this.#say(`${moment(time, 6)}: ${why}`);
        const waits = wait ?? { pid, end: time, isOpen: false };
        const explained = await this.runner.ask({ explain: { setup: inputs.setup, system: systems[system], pid: waits.pid, end_ns: waits.end } });
        if (isOpen()) setText(this.because, reasonOf(named(waits.pid), explained, waits.isOpen));
        if (!pid || system || !isOpen() || source !== this.editor.text) return;
        if (!module && this.shown.isShipped) {
            this.state.append(button("", "Show the lines that decided; compiles the source", () => this.#compileUnchanged(), "Show the lines"));
            return;
        }
        if (!module) {
            if (!this.state.dataset.complete) this.#update(true); // and explains
            return;
        }
        const call = edited.calls.findLast((choice) => choice.hook === "pick" && choice.time <= time && (!decision || choice.cpu === decision.cpu));
        if (!call) return;
        const lines = await this.#lines();
        if (!isOpen()) return;
        const executed = [...new Set(call.blocks.map((block) => lines.get(block)))].filter(Boolean).sort((one, another) => one - another);
        if (executed.length && !isNarrow()) this.tabs.show("editor");
        this.editor.mark(executed);
        if (executed.length) this.editor.show(executed[0]);
        this.state.append(` (pick(), lines ${executed.join(", ")})`);
        await this.#showValues(call);
    }

    /** The reason that the policy gives for every decision. If an edit leaves the shipped policy's, it may be wrong now. */
    #remark() {
        const { base } = this.settings.state;
        const [edited, shipped] = [this.shown.source, this.data.policies[base]].map((source) => REMARK.exec(source)?.[1] ?? "");
        return this.shown.isShipped || edited !== shipped ? edited : "";
    }

    /** Shows the values that a call read: repeats the run up to the call, with a policy that reports its loads. */
    async #showValues(call) {
        const { shown } = this;
        const number = shown.edited.calls.filter(({ hook }) => hook === call.hook).indexOf(call);
        this.values.wait(call);
        shown.observed ??= await this.compiler.ask({ observe: this.#inputs(shown.source) });
        const { module, layouts } = shown.observed;
        const { base, settings } = this.settings.state;
        const system = this.#system(base, settings, module);
        const observed = await this.runner.ask({ observe: { setup: shown.inputs.setup, system, layouts, hook: call.hook, number } });
        const offsets = [...new Set(observed.loads.flatMap((load) => load.offsets))];
        const places = await this.compiler.ask({ locate: { module, offsets } });
        const lineAt = new Map(offsets.map((offset, at) => [offset, places[at]]));
        const lines = observed.loads.map((load) => load.offsets.map((offset) => lineAt.get(offset)).find(Boolean) ?? null);
        const times = timesIn([shown.source, ...Object.values(this.data.headers)]);
        if (shown !== this.shown || !this.values.show(call, observed, shown.all[0].names, times)) return;
        this.editor.annotate(inLines(observed.loads, lines, shown.all[0].names, times));
    }

    #compileUnchanged() {
        this.#isRequested = true;
        this.#update(true);
    }

    /** Marks when a line of the source was executed. */
    async #markMoments(line) {
        const { shown } = this;
        if (!shown?.module || shown.source !== this.editor.text) return;
        const lines = await this.#lines();
        if (shown !== this.shown) return;
        const calls = this.shown.edited.calls.filter(({ blocks }) => blocks.some((block) => lines.get(block) === line));
        this.schedules.markMoments(calls.map(({ time }) => time));
        const hooks = [...new Set(calls.map(({ hook }) => `${hook}()`))].join(", ");
        setText(this.pointer, calls.length ? `Line ${line} was executed in ${calls.length} calls of ${hooks}, marked above.` : "");
    }

    // --- words

    #say(text, kind = "", line = 0, time = null) {
        this.state.dataset.kind = kind;
        this.state.replaceChildren(text);
        setText(this.because, "");
        if (line) this.state.append(button("", `Go to line ${line}`, () => this.#goTo(line), `Go to line ${line}`));
        if (time !== null) this.state.append(button("", "Show this moment", () => this.schedules.goTo(time), "Show"));
    }

    #goTo(line) {
        this.tabs.show("editor");
        this.editor.goTo(line);
    }

    #showProgress({ done, total }) {
        this.#say(`Fetching the compiler: ${done.toFixed(0)} of ${total.toFixed(0)} MB. The browser keeps it.`);
    }

    async #copy() {
        const link = await linkOf({ ...this.settings.state, source: this.editor.text, at: this.schedules.at }, this.data.policies, this.data.version);
        history.replaceState(null, "", link);
        try {
            await navigator.clipboard.writeText(location.href);
            notice("The link is copied.");
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

const sentenceOf = ({ line, text }) => `${line ? `Line ${line}: ` : ""}${text.replace(/\.?$/, ".")}`;
const errorAt = ({ line, text }) => ({ line, column: 1, severity: "error", text, changes: [] });

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

/** @param {import("./lab_judge.js").LabTest} test @returns {Partial<State>} what its run depends on */
function runOfTest({ text, tick_ns, cpus, seed, settings, limit_ns }) {
    const tunables = Object.entries(settings).map((pair) => pair.join("=")).join(",");
    return { workload: "", text, tick_us: tick_ns / 1000, cpus, seed: Number(seed), settings: tunables, span_ms: Math.min(limit_ns / 1e6, SPAN_MOST_MS), ...NOWHERE };
}

function labelled(title, made) {
    return element("label", {}, `${title} `, made);
}

/** @param {boolean} isShown the explanation of the page */
function introduce(isShown) {
    const place = document.querySelector("#intro");
    place.hidden = !isShown;
    place.querySelector("button")?.remove();
    place.append(button("close", "Close the explanation; it does not come back by itself", () => {
        localStorage.setItem(INTRODUCED, "yes");
        introduce(false);
    }));
}

/** @param {Node | string} words */
function notice(words) {
    const place = document.querySelector("#notices");
    const made = element("p", { className: "state", role: "alert" }, words);
    made.append(button("close", "Close this message", () => made.remove()));
    place.replaceChildren(made);
}

async function fetched(name) {
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(`${name} cannot be fetched (${answer.status}); reload the page, or make the folder again with ./schedlab page --out`);
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
    const sizes = Object.fromEntries(Object.entries(PANES).map(([name, [, usual]]) => [name, usual]));
    const standard = { ...data.first, ...NOWHERE, ...sizes, source: data.policies[data.first.base], lesson: "", lab: "" };
    const show = async () => {
        const { hash } = location;
        try {
            const { state, warning } = await stateOf(hash, standard, data.policies, data.version);
            if (hash !== location.hash) return; // another link is opened
            introduce(state === standard && !localStorage.getItem(INTRODUCED));
            playground.begin(state, warning, state !== standard);
            await playground.resume(state);
        } catch (error) {
            if (hash === location.hash) playground.begin(standard, error.message);
        }
    };
    addEventListener("hashchange", show);
    await show();
}

main().catch((error) => notice(error.message));
