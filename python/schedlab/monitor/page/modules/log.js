// SPDX-License-Identifier: MIT
//
// The console's lines as they come.

import { button, element, setIcon, setLabel } from "../elements.js";
import { LOG_MAX } from "../store.js";
import { count } from "../words.js";

const NEAR_PX = 24;

/** @param {import("../panel.js").Panel} panel */
export function create(panel) {
    const filter = element("input", { type: "search", placeholder: "filter", "aria-label": "Filter lines" });
    const hold = button("pause", "Hold the console", () => follow(!following));
    panel.tools.append(filter, hold);
    const lines = element("div", { className: "log", role: "log", tabIndex: 0, "aria-live": "off", "aria-label": "Console" });
    panel.body.append(lines);
    let following = true;
    let total = 0;
    let generation = -1;

    function follow(on) {
        following = on;
        setIcon(hold, on ? "pause" : "play");
        setLabel(hold, on ? "Hold the console" : "Follow the console");
        hold.setAttribute("aria-pressed", String(!on));
        if (on) toEnd();
    }
    function toEnd() {
        lines.scrollTop = lines.scrollHeight;
    }
    function matches(line) {
        return line.textContent.toLowerCase().includes(filter.value.toLowerCase());
    }

    filter.addEventListener("input", () => {
        for (const line of lines.children) line.hidden = !matches(line);
        if (following) toEnd();
    });
    // Scrolling up stops following; returning to the end resumes it.
    lines.addEventListener("wheel", (event) => {
        if (event.deltaY < 0 && following) follow(false);
    }, { passive: true });
    lines.addEventListener("scroll", () => {
        const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < NEAR_PX;
        if (atEnd && !following) follow(true);
    });

    panel.draws((state) => {
        if (generation !== state.generation) {
            generation = state.generation;
            total = state.log.total - state.log.items.length;
            lines.replaceChildren();
        }
        const fresh = state.log.since(total).slice(-LOG_MAX);
        total = state.log.total;
        if (!fresh.length) return;
        const made = fresh.map((text) => element("div", { textContent: text || " " }));
        if (filter.value) for (const line of made) line.hidden = !matches(line);
        lines.append(...made);
        while (lines.childElementCount > LOG_MAX) lines.firstChild.remove();
        panel.note(lines.childElementCount === 1 ? "1 line" : `${count(lines.childElementCount)} lines`);
        if (following) toEnd();
    });
}
