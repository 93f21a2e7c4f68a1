// SPDX-License-Identifier: MIT
//
// Workloads: started by a button, ended by group, or restarted with the system.

import { notice } from "../banners.js";
import { button, element, policySelect, setText } from "../elements.js";
import { allStates, hello } from "../store.js";
import { dress, swatch } from "../swatch.js";
import { count } from "../words.js";

const KINDS = [["simple", "Simple"], ["study", "From the studies"], ["own", "Your own"]];
const GROUPS_MAX = 30;

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 */
export function create(panel, system) {
    const all = element("input", { type: "checkbox", id: `workloads-all-${system}`, checked: true });
    const both = element("label", { className: "check", for: all.id, hidden: true }, all, "on all systems");
    const palette = element("div", { className: "palette" });
    const groups = element("ul", { className: "groups" });
    const again = new Again(panel, () => target());
    const groupTitle = element("h4", { textContent: "What runs" });
    panel.tools.append(both);
    all.addEventListener("input", () => again.followTarget());
    panel.body.append(palette, groupTitle, groups, again.element);
    let greeting = null;

    function target() {
        return all.checked && allStates().length > 1 ? {} : { system };
    }

    function start(name) {
        return panel.asks("start", { ...target(), workload: name }, `${name} was started.`);
    }

    function buildPalette(state) {
        const parts = KINDS.map(([kind, title]) => {
            const entries = hello().palette.filter((entry) => entry.kind === kind);
            if (!entries.length) return null;
            const buttons = entries.map((entry) => startButton(entry, state.can("start"), start));
            const chips = element("div", { className: "chips" }, ...buttons);
            if (kind !== "study") return element("section", {}, element("h4", { textContent: title }), chips);
            return element("details", {}, element("summary", { textContent: `${title} (${entries.length})` }), chips);
        });
        palette.replaceChildren(...parts.filter(Boolean));
    }

    const rows = [];
    groups.addEventListener("click", (event) => {
        const group = event.target.closest("[data-group]")?.dataset.group;
        if (group !== undefined) panel.asks("kill", { system, group });
    });

    panel.draws((state) => {
        both.hidden = allStates().length < 2;
        if (greeting !== hello()) {
            greeting = hello();
            buildPalette(state);
            again.build(state);
        }
        const taskGroups = groupsOf(state);
        setText(groupTitle, taskGroups.length ? "What runs" : "Nothing runs");
        while (rows.length < Math.min(taskGroups.length, GROUPS_MAX)) {
            rows.push(new GroupRow());
            groups.append(rows.at(-1).element);
        }
        rows.forEach((row, place) => row.show(taskGroups[place], state.can("start")));
    });
}

function startButton({ name, title }, can, start) {
    const made = button("play", `Start ${name}: ${title}`, () => start(name), name);
    made.classList.add("chip");
    made.disabled = !can;
    return made;
}

/** Returns the living processes by group, except the monitor's own. */
function groupsOf({ frame }) {
    const { pid, name, group, own: isMonitor } = frame.processes;
    const taskGroups = new Map();
    for (let at = 0; at < pid.length; at++) {
        if (isMonitor[at]) continue;
        const entry = taskGroups.get(group[at]);
        if (!entry) taskGroups.set(group[at], { group: group[at], pid: pid[at], names: new Set([name[at]]), count: 1 });
        else {
            entry.count += 1;
            if (entry.names.size < 4) entry.names.add(name[at]);
        }
    }
    return [...taskGroups.values()];
}

class GroupRow {
    constructor() {
        this.mark = swatch();
        this.words = element("span", { className: "group-words" });
        this.kill = button("close", "Kill", () => {}, "Kill");
        this.element = element("li", {}, this.mark, this.words, this.kill);
    }

    show(entry, can) {
        this.element.hidden = !entry;
        if (!entry) return;
        dress(this.mark, entry.pid);
        const names = [...entry.names].slice(0, 3).join(", ") + (entry.names.size > 3 ? " …" : "");
        setText(this.words, `${names}${entry.count > 1 ? ` × ${count(entry.count)}` : ""}`);
        this.kill.dataset.group = String(entry.group);
        this.kill.setAttribute("aria-label", `Kill group ${entry.group}: ${names}`);
        delete this.kill.dataset.tip;
        this.kill.disabled = !can;
    }
}

/** Restarts the system with another setup. */
class Again {
    constructor(panel, target) {
        this.panel = panel;
        this.target = target;
        this.element = element("form", { className: "again", noValidate: true });
        this.element.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#submit();
        });
    }

    build({ id, info }) {
        const { setup, machine, cpus, tick_ns, abilities } = info;
        this.element.hidden = !abilities.includes("setup");
        const most = hello().cpus_max?.[machine] ?? 256;
        this.cpus = number("CPUs", cpus, 1, most);
        this.seed = number("Seed", setup.seed ?? 1, 0, 2 ** 31 - 1);
        this.tick = number("Tick, ms", tick_ns / 1e6, 0.1, 1000, "any");
        this.policy = policySelect(hello().policies, "First policy");
        this.policy.value = policyName(setup.policy) || this.policy.value;
        this.workload = element("select", { "aria-label": "First workload" });
        const before = (setup.workloads ?? []).join(", ") || "none";
        this.workload.append(element("option", { value: "", textContent: `as before: ${before}` }), element("option", { value: "-", textContent: "none" }));
        for (const { name } of hello().palette) this.workload.append(element("option", { value: name, textContent: name }));
        this.submit = element("button", { type: "submit", className: "button strong", textContent: "Start again" });
        const fields = [this.cpus, this.seed, this.tick].map(([label]) => label);
        fields.push(labelled("Policy", this.policy), labelled("Workload", this.workload));
        this.followTarget();
        this.element.setAttribute("aria-label", `Start ${id} again`);
        this.element.replaceChildren(element("h4", { textContent: "Restart with" }), element("div", { className: "fields" }, ...fields, this.submit));
    }

    /** If several systems restart together, each keeps its policy. */
    followTarget() {
        if (this.policy) this.policy.disabled = !this.target().system;
    }

    async #submit() {
        const wrong = [this.cpus, this.seed, this.tick].find(([, field]) => !field.checkValidity() || field.value === "");
        if (wrong) {
            const [, field, title] = wrong;
            this.panel.fail(`${title}: ${count(Number(field.min))} to ${count(Number(field.max))}.`);
            field.setAttribute("aria-invalid", "true");
            field.focus();
            return;
        }
        for (const [, field] of [this.cpus, this.seed, this.tick]) field.removeAttribute("aria-invalid");
        const setup = {
            cpus: Number(this.cpus[1].value),
            seed: Number(this.seed[1].value),
            tick_ns: Math.round(Number(this.tick[1].value) * 1e6),
            policy: this.policy.value,
        };
        if (this.workload.value) setup.workloads = this.workload.value === "-" ? [] : [this.workload.value];
        const { target } = this;
        if (this.policy.disabled) delete setup.policy;
        this.submit.disabled = true;
        if (await this.panel.asks("restart", { ...target(), ...setup })) notice("Started again.", "good");
        this.submit.disabled = false;
    }
}

function policyName(policy) {
    if (typeof policy === "string") return policy;
    return policy ? policy.name + (policy.preset ? `:${policy.preset}` : "") : "";
}

function number(title, value, minimum, maximum, step = 1) {
    const field = element("input", { type: "number", min: minimum, max: maximum, step, value, required: true });
    return [labelled(title, field), field, title];
}

function labelled(title, field) {
    return element("label", { className: "field" }, element("span", { textContent: title }), field);
}
