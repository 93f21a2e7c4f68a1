// SPDX-License-Identifier: MIT
//
// Banners for a lost connection and for a system that has ended or failed; and notices, which disappear after
// a while.

import { ask, connect, onConnection } from "./connection.js";
import { announce, button, element, setText } from "./elements.js";
import { workloadEnd } from "./finished.js";
import { stateOf, subscribe } from "./store.js";
import { moment } from "./words.js";

const NOTICES_MAX = 4;
const NOTICE_MS = 12_000;

/** Shows the state of the connection. @param {HTMLElement} place */
export function showConnection(place) {
    const words = element("span");
    const again = button("reset", "Connect now", connect, "Try now");
    const banner = element("div", { className: "banner bad", role: "alert", hidden: true }, sign("✕"), words, again);
    place.append(banner);
    let timer = 0;
    onConnection((connection) => {
        clearInterval(timer);
        document.body.dataset.connection = connection.state;
        const wasLost = !banner.hidden;
        banner.hidden = connection.state !== "lost";
        if (banner.hidden) {
            if (wasLost) announce("The connection is back.");
            return;
        }
        const hint = connection.tries >= 4 ? " If the monitor was ended, restart it: ./schedlab monitor." : "";
        const update = () => {
            const seconds = Math.max(0, Math.ceil((connection.next_ms - performance.now()) / 1000));
            setText(words, `Connection to the monitor lost. Next attempt in ${seconds} s.${hint}`);
        };
        update();
        timer = setInterval(update, 1000);
    });
}

/**
 * Shows how one system has ended or failed, and a button to restart it.
 * @param {string} system
 * @returns {{element: HTMLElement, end: () => void}}
 */
export function systemBanner(system) {
    const title = element("strong");
    const words = element("pre", { className: "banner-words", tabIndex: 0 });
    const again = button("reset", "Restart the system with the same settings", startAgain, "Start again");
    const banner = element("div", { className: "banner", role: "alert", hidden: true }, sign("■"), title, words, again);

    function startAgain() {
        again.disabled = true;
        ask("restart", { system })
            .catch((error) => notice(error.message, "bad"))
            .finally(() => {
                again.disabled = false;
            });
    }

    const end = subscribe(system, (state) => {
        const life = state.frame?.life;
        const told = endWords(state);
        banner.hidden = !told;
        if (!told) return;
        banner.classList.toggle("bad", life === "failed");
        setText(banner.firstChild, life === "failed" ? "✕" : "■");
        setText(title, told);
        setText(words, state.frame.message);
        words.hidden = !state.frame.message;
        again.hidden = !stateOf(system).can("setup");
    });
    return { element: banner, end };
}

/** @returns {string} how a system or its workload has ended; "": it has not */
function endWords(state) {
    const { frame, info, isOver } = state;
    const name = info?.title ?? "The system";
    if (frame?.life === "failed") return `${name} has failed.`;
    const end_ns = workloadEnd(state);
    if (end_ns !== null) return `The workload has ended at ${moment(end_ns)}.`;
    if (isOver) return frame.message && `${name} is at its end.`;
    return frame?.life === "ended" ? `${name} has ended.` : "";
}

/**
 * Shows a notice, which disappears after a while unless it is bad.
 * @param {string | Node} words
 * @param {"plain" | "good" | "bad"} [kind]
 */
export function notice(words, kind = "plain") {
    const place = document.getElementById("notices");
    const made = element("div", { className: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" });
    const remove = () => made.remove();
    made.append(sign({ plain: "i", good: "✓", bad: "✕" }[kind]), words, button("close", "Close", remove));
    place.append(made);
    while (place.children.length > NOTICES_MAX) place.firstChild.remove();
    if (kind !== "bad") setTimeout(remove, NOTICE_MS);
}

function sign(text) {
    return element("span", { className: "sign", textContent: text, "aria-hidden": "true" });
}
