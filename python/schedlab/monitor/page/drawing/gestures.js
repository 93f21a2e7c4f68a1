// SPDX-License-Identifier: MIT
//
// Moves a view by pointer, wheel, fingers and keys.

const DRAG_LEAST = 4; // pixels, below which it is a click
const STEP = 0.1; // of the span, by an arrow
const LARGE_STEP = 0.5;
/** By a key, or a button. */
export const ZOOM = 1.5;
const WHEEL = 0.0015; // of a factor's logarithm, per pixel of the wheel

/**
 * @typedef {Object} Receiver
 * @property {() => {left: number, right: number}} span pixels of the axis
 * @property {(event: PointerEvent | null) => void} hover null: the pointer has left
 * @property {(event: PointerEvent) => void} press a click
 */

/**
 * Drag to pan, two fingers or the wheel to zoom. A plain wheel zooms only if the place has the focus, because
 * otherwise a user could not scroll past it.
 * @param {HTMLElement} place @param {import("./view.js").View} view @param {Receiver} receiver
 */
export function followPointer(place, view, receiver) {
    /** @type {Map<number, PointerEvent>} */
    const down = new Map();
    let moved = false;
    const pixel = () => view.span / (receiver.span().right - receiver.span().left);

    place.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        down.set(event.pointerId, event);
        moved = down.size > 1;
        place.focus({ preventScroll: true });
    });
    place.addEventListener("pointermove", (event) => {
        const before = down.get(event.pointerId);
        if (!before) {
            receiver.hover(event);
            return;
        }
        if (!moved && Math.abs(event.clientX - before.clientX) < DRAG_LEAST) return;
        if (!moved) place.setPointerCapture(event.pointerId);
        moved = true;
        receiver.hover(null);
        if (down.size === 2) pinch(event);
        else view.pan((before.clientX - event.clientX) * pixel());
        down.set(event.pointerId, event);
    });
    const release = (event) => {
        const pressed = down.delete(event.pointerId);
        if (pressed && !moved && event.type === "pointerup") receiver.press(event);
    };
    place.addEventListener("pointerup", release);
    place.addEventListener("pointercancel", release);
    place.addEventListener("pointerleave", () => receiver.hover(null));
    place.addEventListener("wheel", turn, { passive: false });

    function pinch(event) {
        const other = [...down.values()].find(({ pointerId }) => pointerId !== event.pointerId);
        const before = down.get(event.pointerId);
        const distance = Math.abs(before.clientX - other.clientX);
        const now = Math.abs(event.clientX - other.clientX);
        if (distance > 8 && now > 8) view.zoom(distance / now, placeOf((event.clientX + other.clientX) / 2));
    }

    function turn(event) {
        const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
        const zooms = event.ctrlKey || event.metaKey || (!sideways && place.contains(document.activeElement));
        if (!zooms && !sideways) return;
        event.preventDefault();
        const size = event.deltaMode === 1 ? 16 : 1;
        if (zooms) view.zoom(Math.exp(event.deltaY * size * WHEEL), placeOf(event.clientX));
        else view.pan((event.deltaX || event.deltaY) * size * pixel());
    }

    function placeOf(clientX) {
        const { left, right } = receiver.span();
        const x = clientX - place.getBoundingClientRect().left;
        return Math.min(1, Math.max(0, (x - left) / (right - left)));
    }
}

/**
 * Arrows pan, + and − zoom, 0 shows all, L follows now, P stops and resumes.
 * @param {HTMLElement} place @param {import("./view.js").View} view
 * @param {(key: string, event: KeyboardEvent) => boolean} other handles any other key; true: it was one
 */
export function followKeys(place, view, other) {
    const keys = {
        ArrowLeft: (event) => view.pan(-view.span * (event.shiftKey ? LARGE_STEP : STEP)),
        ArrowRight: (event) => view.pan(view.span * (event.shiftKey ? LARGE_STEP : STEP)),
        "+": () => view.zoom(1 / ZOOM),
        "=": () => view.zoom(1 / ZOOM),
        "-": () => view.zoom(ZOOM),
        0: () => view.fit(),
        l: () => view.follow(),
        End: () => view.follow(),
        Home: () => view.show(view.first, view.first + view.span),
        p: () => (view.live ? view.freeze() : view.follow()),
    };
    place.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        if (keys[key]) keys[key](event);
        else if (!other(key, event)) return;
        event.preventDefault();
        event.stopPropagation();
    });
}
