// SPDX-License-Identifier: MIT
//
// A canvas as large as its place, sharp on every screen. It is drawn after changes, and continuously only
// while something moves.

const MOVING_GAP_MS = 30; // half of the screens' frames are enough for animations

export class Surface {
    #requestedFrame = 0;
    #urgent = false;
    #last = 0;
    #sized;

    /**
     * @param {any} panel its `visible` says whether drawing is necessary
     * @param {HTMLCanvasElement} canvas sized by CSS
     * @param {(context: CanvasRenderingContext2D, width: number, height: number, wall_ms: number) => boolean
     * | void} paint in CSS pixels; true: something moves, call it again
     */
    constructor(panel, canvas, paint) {
        this.panel = panel;
        this.canvas = canvas;
        this.paint = paint;
        this.context = canvas.getContext("2d");
        /** The time of recent drawings in milliseconds, a moving average: for tests and debugging. */
        this.cost_ms = 0;
        this.drawings = 0;
        this.#sized = new ResizeObserver(() => this.invalidate());
        this.#sized.observe(canvas);
    }

    /** Draws at the next animation frame. */
    invalidate() {
        this.#urgent = true;
        this.#want();
    }

    /** Draws now; for callers that cannot wait. @param {number} [wall_ms] */
    draw(wall_ms = performance.now()) {
        const { canvas, context } = this;
        const width = canvas.clientWidth;
        const height = canvas.clientHeight;
        if (!width || !height) return;
        const ratio = window.devicePixelRatio || 1;
        const columns = Math.round(width * ratio);
        const rows = Math.round(height * ratio);
        if (canvas.width !== columns || canvas.height !== rows) {
            canvas.width = columns;
            canvas.height = rows;
        }
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        const began = performance.now();
        const moves = this.paint(context, width, height, wall_ms);
        const took = performance.now() - began;
        this.cost_ms = this.drawings ? 0.9 * this.cost_ms + 0.1 * took : took;
        this.drawings += 1;
        this.#last = wall_ms;
        this.#urgent = false;
        if (moves) this.#want();
    }

    end() {
        cancelAnimationFrame(this.#requestedFrame);
        this.#sized.disconnect();
    }

    #want() {
        this.#requestedFrame ||= requestAnimationFrame((wall_ms) => {
            this.#requestedFrame = 0;
            if (!this.panel.visible) return;
            if (this.#urgent || wall_ms - this.#last >= MOVING_GAP_MS) this.draw(wall_ms);
            else this.#want();
        });
    }
}
