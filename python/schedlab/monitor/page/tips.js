// SPDX-License-Identifier: MIT
//
// Tips for elements with a data-tip that have the pointer or the focus. A tip adds nothing to the label that
// screen readers announce.

import { element } from "./elements.js";

const DELAY_MS = 350;

/** Begins to show tips. */
export function showTips() {
    const tip = element("div", { className: "tip", hidden: true, "aria-hidden": "true" });
    document.body.append(tip);
    let timer = 0;
    let of = null;

    const place = () => {
        if (!of?.isConnected || !of.dataset.tip) return;
        tip.textContent = of.dataset.tip;
        tip.hidden = false;
        const at = of.getBoundingClientRect();
        const box = tip.getBoundingClientRect();
        const { clientWidth, clientHeight } = document.documentElement;
        const left = Math.min(at.left + at.width / 2 - box.width / 2, clientWidth - box.width - 8);
        const below = at.bottom + box.height + 14 < clientHeight;
        tip.style.left = `${Math.max(8, left)}px`;
        tip.style.top = `${below ? at.bottom + 7 : at.top - box.height - 7}px`;
    };
    const show = (event, delay) => {
        const over = event.target.closest?.("[data-tip]");
        if (over === of) return;
        hide();
        of = over;
        if (over) timer = setTimeout(place, delay);
    };
    const hide = () => {
        clearTimeout(timer);
        tip.hidden = true;
        of = null;
    };

    document.addEventListener("pointerover", (event) => {
        if (event.pointerType === "mouse") show(event, DELAY_MS);
    });
    document.addEventListener("focusin", (event) => {
        if (event.target.matches(":focus-visible")) show(event, 0);
    });
    document.addEventListener("click", (event) => {
        // Users without a mouse must be able to read a "?", too.
        if (event.target.closest?.(".hint")) {
            of = null;
            show(event, 0);
        } else hide();
    });
    document.addEventListener("focusout", hide);
    addEventListener("scroll", hide, { capture: true, passive: true });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") hide();
    });
}
