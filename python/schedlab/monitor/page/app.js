// SPDX-License-Identifier: MIT
//
// Puts the page together: for each system a column of panels, with a strip above that shows its state.

import { showConnection, systemBanner } from "./banners.js";
import { connect } from "./connection.js";
import { element } from "./elements.js";
import { listenToKeys } from "./keys.js";
import { restoreLecture } from "./lecture.js";
import { playLesson } from "./lesson.js";
import { enlarge, enlarged, Panel } from "./panel.js";
import { allStates, onHello, open } from "./store.js";
import { createStrip } from "./strip.js";
import { showTips } from "./tips.js";
import { createVerdict } from "./verdict.js";
import * as cost from "./modules/cost.js";
import * as decisions from "./modules/decisions.js";
import * as header from "./modules/header.js";
import * as help from "./modules/help.js";
import * as log from "./modules/log.js";
import * as metrics from "./modules/metrics.js";
import * as policy from "./modules/policy.js";
import * as processes from "./modules/processes.js";
import * as queues from "./modules/queues.js";
import * as selections from "./modules/selections.js";
import * as shares from "./modules/shares.js";
import * as timeline from "./modules/timeline.js";
import * as waits from "./modules/waits.js";
import * as workloads from "./modules/workloads.js";
import { PANELS } from "./panels.js";

const MODULES = {
    timeline, queues, policy, shares, processes, metrics, waits, decisions, selections, log, workloads, cost,
};

/** @type {{element: HTMLElement, panels: Panel[], ends: (() => void)[]}[]} */
let columns = [];
let shown = "a";

function build({ systems }) {
    const names = systems.map(({ system }) => system).join();
    const main = document.getElementById("content");
    if (main.dataset.systems === names) return;
    main.dataset.systems = names;
    for (const column of columns) {
        for (const panel of column.panels) panel.end();
        for (const end of column.ends) end();
    }
    columns = systems.map(({ system }) => createColumn(system));
    main.replaceChildren(...columns.map((column) => column.element));
    document.body.dataset.count = String(systems.length);
    if (!systems.some(({ system }) => system === shown)) shown = systems[0]?.system ?? "a";
    buildTabs(systems);
    verdict.show(systems.map(({ system }) => system));
}

function createColumn(system) {
    const strip = createStrip(system);
    const banner = systemBanner(system);
    const panels = PANELS.map((words) => {
        const panel = new Panel(words.name, system, words);
        MODULES[words.name].create(panel, system);
        return panel;
    });
    const grid = element("div", { className: "panels" }, ...panels.map((panel) => panel.element));
    const column = element("section", { className: "system", id: `system-${system}`, data: { system } });
    column.setAttribute("aria-labelledby", strip.titleIds);
    column.append(strip.element, banner.element, grid);
    return { element: column, panels, ends: [strip.end, banner.end] };
}

// On a small screen one system is visible at a time.
function buildTabs(systems) {
    const tabs = document.getElementById("tabs");
    tabs.hidden = systems.length < 2;
    tabs.replaceChildren(
        ...systems.map(({ system, title }) => {
            const tab = element("button", { type: "button", role: "tab", id: `tab-${system}`, data: { system } });
            tab.append(element("b", { textContent: system }), ` ${title}`);
            tab.setAttribute("aria-controls", `system-${system}`);
            tab.addEventListener("click", () => show(system));
            return tab;
        }),
    );
    show(shown);
}

function show(system) {
    shown = system;
    for (const column of columns) {
        column.element.classList.toggle("shown", column.element.dataset.system === system);
    }
    for (const tab of document.getElementById("tabs").children) {
        const chosen = tab.dataset.system === system;
        tab.setAttribute("aria-selected", String(chosen));
        tab.tabIndex = chosen ? 0 : -1;
    }
}

function moveAmongTabs(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const names = allStates().map(({ id }) => id);
    show(names[(names.indexOf(shown) + step + names.length) % names.length]);
    document.getElementById(`tab-${shown}`).focus();
}

// Screens that hide the other columns have tabs; others show all.
function currentSystem() {
    return document.activeElement?.closest(".system")?.dataset.system ?? shown;
}

if (enlarged() && !MODULES[enlarged()]) enlarge(enlarged());
restoreLecture();
const dialog = help.create(document.body);
const verdict = createVerdict(document.getElementById("verdict"));
const controls = header.create(document.getElementById("top"), { help: dialog.open });
document.getElementById("tabs").addEventListener("keydown", moveAmongTabs);
showTips();
showConnection(document.getElementById("banner"));
listenToKeys({ controls, help: dialog.open, currentSystem });
onHello(build);
onHello(({ lesson }) => playLesson(document.getElementById("lesson"), lesson));
open();
connect();
