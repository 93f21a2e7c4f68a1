// SPDX-License-Identifier: MIT
//
// A page of a report that is made again while runs go on: it shows itself again as soon as there is a newer
// report; or offers to, if it is being used.

const EVERY_MS = 3000;

const own = document.currentScript.dataset.made;
let used = false;
for (const kind of ["pointerdown", "keydown", "wheel", "touchmove"]) {
    addEventListener(kind, () => (used = true), { once: true, passive: true });
}

function offer() {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "There is a newer report: show it";
    button.addEventListener("click", () => location.reload());
    document.querySelector(".growing").append(button);
    document.querySelector(".growing").setAttribute("role", "status");
}

// The script made.js calls it, with what tells one report from another.
window.reportMade = (made) => {
    if (made === own) return;
    clearInterval(looking);
    if (used) offer();
    else location.reload();
};

// Beside a page that was opened as a file, a script may be read, and nothing else.
const looking = setInterval(() => {
    const script = document.createElement("script");
    script.src = `made.js?${Date.now()}`;
    script.onload = script.onerror = () => script.remove();
    document.head.append(script);
}, EVERY_MS);
