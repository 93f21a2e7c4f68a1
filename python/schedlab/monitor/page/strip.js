// SPDX-License-Identifier: MIT
//
// The line above a system's panels: its name, state and time, and whether all of it is shown.

import { policyColour } from "./colours.js";
import { announce, element, setText } from "./elements.js";
import { starving } from "./starvation.js";
import { subscribe } from "./store.js";
import { count, duration, formatSpeed, moment } from "./words.js";

const LIVES = { starting: "◌ starting", running: "▶ running", paused: "‖ paused", ended: "■ ended", done: "■ workload ended", failed: "✕ failed" };

/**
 * @param {string} system
 * @returns {{element: HTMLElement, titleIds: string, end: () => void}}
 */
export function createStrip(system) {
    const titleId = `title-${system}`;
    const part = (name, tip = "") => element("span", { className: `strip-${name}`, data: tip ? { tip } : {} });
    const letter = element("span", { className: "strip-letter", id: `letter-${system}`, textContent: system, "aria-hidden": "true" });
    const title = element("h2", { id: titleId });
    const setup = part("setup");
    const policy = part("policy");
    const life = part("life");
    const clock = part("clock", "Time of the system");
    const back = part("back", "Shows an earlier state; it continues from there, or from the present if it cannot");
    const speed = part("speed", "Speed relative to real time");
    const events = part("events", "Events of the trace per second of real time");
    const troubles = element("span", { className: "strip-troubles", role: "status" });
    const made = element("header", { className: "strip" }, letter, title, setup, policy, life, clock, back, speed, events, troubles);
    let before = { policy: "", life: "" };

    const end = subscribe(system, (state) => {
        const { info, frame } = state;
        if (info) {
            setText(title, info.title);
            setText(setup, setupWords(info));
        }
        if (!frame) return;
        if (policy.textContent !== frame.policy) {
            setText(policy, frame.policy);
            policy.style.setProperty("--policy", policyColour(frame.policy.split(":")[0]));
        }
        setText(life, state.isOver ? "■ at its end" : LIVES[frame.life] ?? frame.life);
        life.dataset.life = state.isOver ? "ended" : frame.life;
        setText(clock, moment(frame.now_ns, frame.back_ns ? 6 : 2));
        setText(back, frame.back_ns ? `◂ ${duration(frame.back_ns)} before the present` : "");
        setText(speed, formatSpeed(frame.speed));
        const wrong = troublesOf(state).join(" · ");
        setText(events, wrong ? "" : `${count(frame.events_per_s)} events/s`);
        setText(troubles, wrong);
        describe(state, before);
        before = { policy: frame.policy, life: frame.life };
    });
    return { element: made, titleIds: `letter-${system} ${titleId}`, end };
}

function setupWords({ tick_ns, repeatable }) {
    return `tick ${duration(tick_ns)}${repeatable ? " · repeatable" : ""}`;
}

function troublesOf(state) {
    const { frame, missed } = state;
    const { lost } = frame;
    const troubles = [...starving(state)].slice(0, 1).map(([pid, waits]) =>
        `⚠ ${state.nameOf(pid)} (${pid}) is starving: it has waited for ${duration(waits)}`);
    if (lost) troubles.push(`! ${count(lost)} records lost`);
    if (missed) troubles.push(`! too slow: restarted ${count(missed)} times`);
    return troubles;
}

function describe({ id, info, frame }, before) {
    const name = `${info?.title ?? id}:`;
    if (before.policy && before.policy !== frame.policy) announce(`${name} policy is now ${frame.policy}.`);
    else if (before.life && before.life !== frame.life) announce(`${name} ${frame.life}.`);
}
